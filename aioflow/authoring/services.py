"""Services: objects with a lifetime that operators share, such as an HTTP client or the cookies of a run.

An operator asks for a service by its class. The service is opened when it is first asked for, and closed with
its engine or run. When a run ends successfully, its services conclude, commit and deliver before they are
closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from aioflow.authoring.context import RunInfo
from aioflow.errors import AioflowError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Scope: TypeAlias = Literal["engine", "run"]
S = TypeVar("S", bound="Service")


class ServiceHost(Protocol):
    """The engine or run that a service belongs to, as the service sees it."""

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The tables of the configuration, by name."""
        ...

    @property
    def run(self) -> RunInfo | None:
        """The run, for a service that belongs to one."""
        ...

    def service(self, kind: type[S]) -> S:
        """Return another service, of the same or a longer lifetime."""
        ...

    def if_interrupted(self, act: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `act` if the reader of the run is interrupted during the block, or was before it.

        It is for work that can be done later as well, such as deliveries.
        """
        ...

    def warn(self, message: str) -> None: ...
    def found_nothing(self, message: str) -> None:
        """Warn that a successful run found nothing where there should be something."""
        ...


class Service(Protocol):
    """A class of services; `scope` says whether all runs of an engine share one, or each run has its own.

    A service of a run can also be Concluding, Committing, Delivering and Accounted.
    """

    scope: ClassVar[Scope]

    @classmethod
    def open_service(cls, host: ServiceHost) -> Any:
        """Make the service; work that takes time is left for its first use."""
        ...

    async def close(self) -> None:
        """Release everything, whatever the outcome of the run. An error raised here fails the run."""
        ...


@runtime_checkable
class Concluding(Protocol):
    """A service of a run that has work left when all statements have ended successfully."""

    async def conclude(self) -> None:
        """Finish the work of the run, before any of it is committed. An error fails the run."""
        ...


@runtime_checkable
class Committing(Protocol):
    """A service of a run that makes writes durable.

    Services commit when the run has ended successfully. Those that want a checkpoint also commit while a plan
    with COMMIT: batch streams, at moments when no row is under way.
    """

    @property
    def wants_checkpoint(self) -> bool:
        """True if it holds anything that a checkpoint would make durable."""
        ...

    async def commit(self) -> bool:
        """Make pending writes durable; return whether there were any. An error fails the run."""
        ...


class Deliveries(msgspec.Struct, frozen=True):
    """The messages that were delivered after a commit, and those that are left in the outbox."""

    sent: int = 0
    failed: int = 0  # given up: they are not tried again
    waiting: int = 0  # tried again later

    def __add__(self, other: Deliveries) -> Deliveries:
        return Deliveries(self.sent + other.sent, self.failed + other.failed, self.waiting + other.waiting)


@runtime_checkable
class Delivering(Protocol):
    """A service of a run that acts after a commit."""

    async def committed(self) -> Deliveries | None:
        """Do what follows a commit, while rows may be under way again.

        Return the outcome of messages, or None if there are none. An error raised here is a warning of the
        run, which has committed.
        """
        ...


class AccountEntry(msgspec.Struct, frozen=True):
    """The part of a run's account that a service adds: figures, and lines for people.

    The figures are plain JSON with units in the names; in the JSON form their key is `name`. Lines are short,
    and there is none for a figure of zero.
    """

    name: str
    figures: Mapping[str, Any]
    lines: tuple[str, ...] = ()


@runtime_checkable
class Accounted(Protocol):
    """A service of a run that adds to its account, while the run is under way and when it is over."""

    def account(self) -> AccountEntry | None:
        """Return the work of the service so far; this is also called after it was closed."""
        ...


class Services:
    """The services that are open in one scope. Services that are `given` are not closed here."""

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
        self._is_interrupted = False
        self._if_interrupted: list[Callable[[], None]] = []
        self._given = given
        self._around = around
        self._open: dict[type[Any], Any] = {}
        self._accounted: list[Accounted] = []

    def for_run(
        self, run: RunInfo, warn: Callable[[str], None], found_nothing: Callable[[str], None]
    ) -> Services:
        """Return a scope for one run within this one."""
        return Services(
            self.configuration, self._given, around=self, run=run, warn=warn, found_nothing=found_nothing
        )

    def service(self, kind: type[S]) -> S:
        found = self._open.get(kind)
        if found is None:
            found = self._find(kind)
        return found  # type: ignore[no-any-return]  # kept by its class

    def opened(self, kind: type[S]) -> S | None:
        """Return a service that is open already, or that was given."""
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
        """Return the entries of a run's services for its account."""
        told = (service.account() for service in self._accounted)
        return tuple(entry for entry in told if entry is not None)

    def interrupt(self) -> None:
        """Tell services that the reader of the run was interrupted."""
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

    # --- the end of a run -----------------------------------------------------------------------
    # A service may stage its last writes with a service that it uses, and that was opened before it. Services
    # therefore conclude, commit and close in the reverse of the order in which they were opened.

    def want_checkpoint(self) -> bool:
        """Return whether a checkpoint would make anything durable."""
        return any(service.wants_checkpoint for service in self._committing())

    async def conclude(self) -> None:
        """Have services finish the work of the run; the first error ends this."""
        for service in self._latest_first():
            if isinstance(service, Concluding):
                await service.conclude()

    async def checkpoint(self) -> bool:
        """Commit the services that want a checkpoint; return whether anything was made durable."""
        return await self._commit([each for each in self._committing() if each.wants_checkpoint])

    async def commit(self) -> bool:
        """Commit all services; return whether anything was made durable. The first error ends this."""
        return await self._commit(self._committing())

    async def _commit(self, services: Iterable[Committing]) -> bool:
        made_durable = [await service.commit() for service in services]
        return any(made_durable)

    async def committed(self) -> Deliveries | None:
        """Have services do the work after a commit; return the outcome of messages, None without any."""
        delivered = [
            await self._follow(each) for each in self._latest_first() if isinstance(each, Delivering)
        ]
        known = [each for each in delivered if each is not None]
        return sum(known, Deliveries()) if known else None

    async def _follow(self, service: Delivering) -> Deliveries | None:
        try:
            return await service.committed()
        except Exception as error:  # the run has committed and does not fail
            self.warn(str(error) if isinstance(error, AioflowError) else f"{type(error).__name__}: {error}")
            return None

    def _committing(self) -> list[Committing]:
        return [service for service in self._latest_first() if isinstance(service, Committing)]

    def _latest_first(self) -> list[Any]:
        return list(reversed(self._open.values()))

    async def close(self) -> None:
        """Close all services, even if some of them cannot be closed; raise the first error."""
        errors: list[BaseException] = []
        while self._open:
            _, opened = self._open.popitem()
            try:
                await opened.close()
            except BaseException as error:  # also when this is cancelled: the others are closed first
                errors.append(error)
        if errors:
            raise errors[0]
