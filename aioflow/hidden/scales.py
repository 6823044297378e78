"""Scales: the values of ordered attributes as whole numbers, and back."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Protocol

from aioflow.errors import InputError
from aioflow.hidden.attributes import Numeric

_SECOND = timedelta(seconds=1)
_EXACT = Context(prec=400)


class Scale(Protocol):
    """Values at equal distances, counted from one of them."""

    def encode(self, value: Any) -> int:
        """Return the number of a value; a ValueError says why it has none."""
        ...

    def decode(self, number: int) -> Any: ...

    @property
    def ends(self) -> tuple[int | None, int | None]:
        """The first and the last number, if there are any."""
        ...


class Numbers:
    """Numbers at multiples of a step from a base. They are counted exactly, whatever their size."""

    ends: tuple[int | None, int | None] = (None, None)

    def __init__(self, base: Any, step: Any) -> None:
        self._kind = next((kind for kind in (Decimal, float) if kind in (type(base), type(step))), int)
        self._base, self._step = _fraction(base), _fraction(step)
        self._is_plain = self._kind is int and self._step == 1 and self._base.denominator == 1
        self._first = self._base.numerator if self._is_plain else 0

    def encode(self, value: Any) -> int:
        if self._is_plain and type(value) is int:
            return value - self._first
        steps = (_fraction(value) - self._base) / self._step
        if steps.denominator != 1:
            raise ValueError(
                f"it is not {self._shown(self._base)} plus a multiple of {self._shown(self._step)}"
            )
        return steps.numerator

    def decode(self, number: int) -> Any:
        if self._is_plain:
            return number + self._first
        value = self._base + number * self._step
        if self._kind is Decimal:
            return _EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))
        return self._kind(value)

    def _shown(self, value: Fraction) -> str:
        return str(value.numerator if value.denominator == 1 else float(value))


class Dates:
    """Days, a number of them apart."""

    def __init__(self, base: date, days: int) -> None:
        self._base, self._days = base.toordinal(), days
        first, last = (end.toordinal() - self._base for end in (date.min, date.max))
        self.ends = -(-first // days), last // days

    def encode(self, value: Any) -> int:
        if not isinstance(value, date) or isinstance(value, datetime):
            raise ValueError("it is not a date")
        number, rest = divmod(value.toordinal() - self._base, self._days)
        if rest:
            raise ValueError(f"it is not a multiple of {self._days} days from {date.fromordinal(self._base)}")
        return number

    def decode(self, number: int) -> date:
        return date.fromordinal(self._base + number * self._days)


class Times:
    """Moments, a step apart."""

    def __init__(self, base: datetime, step: timedelta) -> None:
        self._base, self._step = base, step
        first, last = (end.replace(tzinfo=base.tzinfo) - base for end in (datetime.min, datetime.max))
        margin = timedelta(days=1) // step + 1 if base.tzinfo else 0  # other zones are ahead or behind
        self.ends = -(-first // step) + margin, last // step - margin

    def encode(self, value: Any) -> int:
        if not isinstance(value, datetime) or (value.tzinfo is None) != (self._base.tzinfo is None):
            raise ValueError("it is not a time of this kind")
        number, rest = divmod(value - self._base, self._step)
        if rest:
            raise ValueError(f"it is not a multiple of {self._step} from {self._base.isoformat()}")
        return number

    def decode(self, number: int) -> datetime:
        return self._base + number * self._step


def scale_for(attribute: Numeric, sample: Any = None) -> Scale:
    """Return the scale of an attribute. Without bounds, a value that was seen tells its kind."""
    base = next((end for end in (attribute.low, attribute.high, sample) if end is not None), 0)
    step = attribute.step
    try:
        if isinstance(base, datetime):
            return Times(base, step if isinstance(step, timedelta) else step * _SECOND)
        if isinstance(base, date):
            return Dates(base, step.days if isinstance(step, timedelta) else int(step))
        is_bound = attribute.low is not None or attribute.high is not None
        scale = Numbers(base if is_bound else 0 * base, step)
        scale.encode(base)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InputError(
            f"{attribute.name!r}: {base!r} with the step {step!r} is no scale: {error}"
        ) from error
    return scale


def _fraction(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise ValueError("it is not a number")
    try:
        # A float stands for its shortest decimal: 0.1 is a tenth.
        return Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, OverflowError):
        raise ValueError("it is not a finite number") from None
