"""The decoding of JSON text: as `json.loads`, with a limit of depth and the place of every mistake."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from aioflow.wrappers.charsets import detect
from aioflow.wrappers.loop_fairness import limit_text
from aioflow.wrappers.readers.incremental import BadPageError

DEPTH_LIMIT = 256
_LONGEST_MARK = 4

_ESCAPE = re.compile(r"\\.", re.DOTALL)
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NEITHER = bytes(code for code in range(256) if code not in b'"[]{}')
_FOLDS = 16  # more than pages are deep; beyond it a loop over the rest is cheaper
_STEP = {ord("["): 1, ord("]"): -1}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DIGITS = re.compile(r"\d{4301,}")  # Python reads no longer integers

# A value that begins at an offset, and where it ends; StopIteration where none can begin.
scan_value: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class Nesting:
    """The nesting depth of a JSON text, while it arrives.

    It looks at brackets outside of strings only, by operations on whole texts: a fraction of the time
    that reading the values takes. Run over a text before it is read, it keeps reading within the limit.
    """

    __slots__ = ("_escape", "depth", "in_string", "lowest", "quotes")

    def __init__(self) -> None:
        self.depth = 0
        self.lowest = 0  # in the piece that was fed last
        self.quotes = 0  # in that piece
        self.in_string = False
        self._escape = ""  # a backslash whose character is still to come

    def feed(self, text: str) -> bool:
        """Take in a piece; whether it stays within the limit."""
        if self._escape or "\\" in text:
            text = _ESCAPE.sub("", self._escape + text)
            self._escape = "\\" if text.endswith("\\") else ""
        marks = text.encode("utf-8", "surrogatepass").translate(_ONE_KIND, _NEITHER)
        self.quotes = marks.count(b'"')
        # Two quotes side by side open and close nothing: few strings have brackets in them.
        marks = marks.replace(b'""', b"")
        if self.in_string or b'"' in marks:
            marks = b"".join(marks.split(b'"')[1 if self.in_string else 0 :: 2])
        self.in_string ^= bool(self.quotes & 1)
        return self._follow(marks)

    def _follow(self, brackets: bytes) -> bool:
        """Pairs with nothing in them are taken out, again and again: what stays is `]]][[`."""
        start, height, rest = self.depth, 0, brackets
        while height < _FOLDS and len(folded := rest.replace(b"[]", b"")) < len(rest):
            rest = folded
            height += 1
        if height == _FOLDS:
            depths = list(accumulate(map(_STEP.__getitem__, rest), initial=start))
            self.lowest, self.depth, peak = min(depths), depths[-1], max(depths)
        else:
            closed = rest.count(b"]")
            self.lowest = start - closed
            self.depth = self.lowest + len(rest) - closed
            peak = max(start, self.depth)
        # The folds may have been elsewhere than the peak.
        return peak + height <= DEPTH_LIMIT or _peak(brackets, start) <= DEPTH_LIMIT


def _peak(brackets: bytes, start: int) -> int:
    return max(accumulate(map(_STEP.__getitem__, brackets), initial=start))


class TextPosition:
    """Line and column of an offset in a text whose beginning may be gone."""

    __slots__ = ("column", "line")

    def __init__(self) -> None:
        self.line = self.column = 1

    def drop(self, text: str, count: int) -> None:
        """The first `count` characters go."""
        self.line, self.column = self.of(text, count)

    def of(self, text: str, offset: int) -> tuple[int, int]:
        lines = text.count("\n", 0, offset)
        if not lines:
            return self.line, self.column + offset
        return self.line + lines, offset - text.rindex("\n", 0, offset)


class BadJsonError(BadPageError):
    """A text is no JSON; the message says where and why."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        place = "" if line is None else f"line {line}, column {column}: "
        super().__init__(f"the JSON cannot be read: {place}{reason}")


class TooDeepError(BadJsonError):
    """A text is nested deeper than the limit."""

    def __init__(self) -> None:
        super().__init__(f"it is nested more than {DEPTH_LIMIT} levels deep")


def reason_of(error: Exception, text: str, offset: int) -> tuple[str, int]:
    """Return the reason and the place of an exception of the decoder, called at `offset`."""
    if isinstance(error, RecursionError):
        return f"nested more than {DEPTH_LIMIT} levels deep", offset
    if isinstance(error, StopIteration):
        reason, offset = "expecting value", error.value if isinstance(error.value, int) else offset
    elif isinstance(error, json.JSONDecodeError):
        reason, offset = error.msg[0].lower() + error.msg[1:], error.pos
    else:
        digits = _DIGITS.search(text, offset)
        return "an integer of more than 4,300 digits", digits.start() if digits else offset
    if text[offset : offset + 1] == "<":
        reason += ", found '<': is this an HTML page?"
    return reason, offset


def has_surrogates(text: str) -> bool:
    """Return whether there may be halves of surrogate pairs among the escapes."""
    return _SURROGATE.search(text) is not None


def without_surrogates(value: Any) -> Any:
    """The value with U+FFFD for every half of a pair, which no text outside of JSON can carry."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_surrogates(element) for element in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(element) for key, element in value.items()}
    return value


def parse(text: str, place: TextPosition | None = None) -> Any:
    """The value of a whole text; a BadJsonError with the place of the mistake otherwise."""
    if text.count("[") + text.count("{") > DEPTH_LIMIT and not Nesting().feed(text):
        raise TooDeepError
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason, offset = reason_of(error, text, 0)
        raise BadJsonError(reason, *(place or TextPosition()).of(text, offset)) from None
    return without_surrogates(value) if has_surrogates(text) else value


def dump(value: Any) -> str:
    """The text of a value; what JSON has no word for (NaN, infinity) is null in it."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, list):
        return [_finite(element) for element in value]
    if isinstance(value, dict):
        return {key: _finite(element) for key, element in value.items()}
    return value


class JsonDecoder:
    """Bytes to text: UTF-8 unless the wrapper, a byte order mark or the header says otherwise.

    Bytes that are wrong are an error, as they are for JSON: nothing is replaced.
    """

    def __init__(self, content_type: str = "", charset: str | None = None) -> None:
        self._content_type = content_type
        self._said = charset
        self._start = b""
        self._bytes = 0
        self._decoder: codecs.IncrementalDecoder | None = None
        self._codec = ""

    def feed(self, data: bytes) -> str:
        if self._decoder is not None:
            return self._decode(data)
        self._start += data
        return self._begin() if len(self._start) >= _LONGEST_MARK else ""

    def end(self) -> str:
        begun = self._begin() if self._decoder is None else ""
        return begun + self._decode(b"", final=True)

    def _begin(self) -> str:
        charset = detect(self._start, self._content_type, self._said, markup=False)
        self._codec = charset.codec
        if charset.said_by == "nobody" and 0 in self._start[:2]:
            self._codec = "utf-16-be" if self._start[0] == 0 else "utf-16-le"
        self._decoder = codecs.getincrementaldecoder(self._codec)("strict")
        start, self._start = self._start, b""
        return self._decode(start).removeprefix("\ufeff")

    def _decode(self, data: bytes, final: bool = False) -> str:
        assert self._decoder is not None
        before = self._bytes - len(self._decoder.getstate()[0])
        self._bytes += len(data)
        try:
            return self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            at = before + error.start + 1
            raise BadJsonError(f"byte {at:,} is not {self._codec}; say CHARSET if it is another") from None


class JsonLines:
    """A value on each line; blank lines are left out."""

    def __init__(self) -> None:
        self._parts: list[str] = []  # of the line that is not complete
        self._size = 0
        self._number = 0

    def feed(self, text: str) -> list[Any]:
        complete, end, rest = text.rpartition("\n")
        if not end:
            self._parts.append(text)
            self._size += len(text)
            limit_text(self._size)
            return []
        complete = "".join((*self._parts, complete))
        self._parts, self._size = [rest], len(rest)
        return [value for _, value in self.numbered(complete)]

    def end(self) -> list[Any]:
        return [value for _, value in self.numbered("".join(self._parts))]

    def numbered(self, text: str) -> Iterator[tuple[int, Any]]:
        """The values of whole lines, with the number of each."""
        for line in text.split("\n"):
            self._number += 1
            # JSON text sequences (RFC 7464) begin each text with a record separator.
            line = line.strip(" \t\r\x1e")
            if line:
                place = TextPosition()
                place.line = self._number
                yield self._number, parse(line, place)
