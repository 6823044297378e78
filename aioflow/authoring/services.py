"""Services: things with a lifetime that operators share, such as an HTTP client or the cookies of a run.

An operator asks for one by its class; it is opened when first asked for, and closed with its engine or run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from aioflow.authoring.context import RunInfo

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Scope: TypeAlias = Literal["engine", "run"]
S = TypeVar("S", bound="Service")


class ServiceHost(Protocol):
    """What a service may ask of the engine or run that it belongs to."""

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The tables of the configuration, by name."""
        ...

    @property
    def run(self) -> RunInfo | None:
        """The run, for a service that belongs to one."""
        ...

    @property
    def ended_well(self) -> bool:
        """Whether the run came to its end: neither failed nor stopped. Known when services close."""
        ...

    def service(self, kind: type[S]) -> S:
        """Another service, of the same or a longer lifetime."""
        ...

    def if_interrupted(self, act: Callable[[], None]) -> AbstractContextManager[None]:
        """Have something called in the block when whoever waits for the run waits no longer, or did before.

        It is for work that others can do later, such as deliveries.
        """
        ...

    def warn(self, message: str) -> None: ...
    def found_nothing(self, message: str) -> None:
        """Tell that a run that ended well brought nothing where there should be something."""
        ...


class Service(Protocol):
    """A class of services; `scope` says whether all runs of an engine share one, or each run has its own."""

    scope: ClassVar[Scope]

    @classmethod
    def open_service(cls, host: ServiceHost) -> Any:
        """Make the service; whatever takes time is left for its first use."""
        ...

    async def close(self) -> None:
        """Release everything. What it raises fails the run."""
        ...


@runtime_checkable
class Checkpointed(Protocol):
    """A service of a run that can make durable what it holds before the run has ended."""

    @property
    def wants_checkpoint(self) -> bool: ...
    async def checkpoint(self) -> None:
        """Make it durable, at a moment when no row is under way."""
        ...

    async def after_checkpoint(self) -> None:
        """What follows, while rows are under way again."""
        ...


class AccountEntry(msgspec.Struct, frozen=True):
    """What a service adds to the account of its run: figures, plain JSON with units in the names, and lines.

    The figures stand under `name` in the JSON form. Lines are for people: short, none for what is nothing.
    """

    name: str
    figures: Mapping[str, Any]
    lines: tuple[str, ...] = ()


@runtime_checkable
class Accounted(Protocol):
    """A service of a run that has something to tell of it, while it is under way and when it is over."""

    def account(self) -> AccountEntry | None:
        """Return what it has done so far; asked also after it was closed."""
        ...


class Services:
    """The services that are open in one scope. Those that are `given` belong to whoever gave them."""

    def __init__(
        self,
        configuration: Mapping[str, Any],
        given: Mapping[type[Any], Any],
        *,
        around: Services | None = None,
        run: RunInfo | None = None,
        warn: Callable[[str], None] = lambda message: None,
        found_nothing: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.configuration = configuration
        self.run = run
        self.warn = warn
        self.found_nothing = found_nothing
        self.ended_well = False
        self._is_interrupted = False
        self._if_interrupted: list[Callable[[], None]] = []
        self._given = given
        self._around = around
        self._open: dict[type[Any], Any] = {}
        self._accounted: list[Accounted] = []

    def for_run(
        self, run: RunInfo, warn: Callable[[str], None], found_nothing: Callable[[str], None]
    ) -> Services:
        """A scope for one run within this one."""
        return Services(
            self.configuration, self._given, around=self, run=run, warn=warn, found_nothing=found_nothing
        )

    def service(self, kind: type[S]) -> S:
        found = self._open.get(kind)
        if found is None:
            found = self._find(kind)
        return found  # type: ignore[no-any-return]  # kept by its class

    def opened(self, kind: type[S]) -> S | None:
        """A service that somebody has asked for already, or that was given."""
        found = self._open.get(kind) or self._given.get(kind)
        return found if found is not None or self._around is None else self._around.opened(kind)

    def _find(self, kind: type[S]) -> Any:
        if kind in self._given:
            return self._given[kind]
        if kind.scope == "engine" and self._around is not None:
            return self._around.service(kind)
        opened = self._open[kind] = kind.open_service(self)
        if self.run is not None and isinstance(opened, Accounted):
            self._accounted.append(opened)
        return opened

    def account(self) -> tuple[AccountEntry, ...]:
        """Return what the services of a run have to tell of it."""
        told = (service.account() for service in self._accounted)
        return tuple(entry for entry in told if entry is not None)

    def interrupt(self) -> None:
        """Tell services that nobody waits for the run any more."""
        self._is_interrupted = True
        for act in tuple(self._if_interrupted):
            act()

    @contextmanager
    def if_interrupted(self, act: Callable[[], None]) -> Iterator[None]:
        if self._is_interrupted:
            act()
        self._if_interrupted.append(act)
        try:
            yield
        finally:
            self._if_interrupted.remove(act)

    def want_checkpoint(self) -> bool:
        return any(service.wants_checkpoint for service in self._checkpointed())

    async def checkpoint(self) -> None:
        for service in self._checkpointed():
            await service.checkpoint()

    async def after_checkpoint(self) -> None:
        for service in self._checkpointed():
            await service.after_checkpoint()

    def _checkpointed(self) -> list[Checkpointed]:
        return [service for service in self._open.values() if isinstance(service, Checkpointed)]

    async def close(self) -> None:
        """Close all, the latest first, each whatever became of the others; raises the first error."""
        errors: list[BaseException] = []
        while self._open:
            _, opened = self._open.popitem()
            try:
                await opened.close()
            except BaseException as error:  # also when this is cancelled: the others are closed first
                errors.append(error)
        if errors:
            raise errors[0]
