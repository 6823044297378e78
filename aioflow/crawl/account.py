"""The part of a run's account that a crawl has: the URLs that were left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import ClassVar

from aioflow.authoring.services import AccountEntry, Scope, ServiceHost
from aioflow.crawl.rules import UrlRules
from aioflow.values.quantities import count_text


class CrawlAccount:
    """The rules of a crawl's statements, with their memory of traps, and the URLs that they left out.

    It is a service of the run: all calls of a recursive plan share the memory of a statement.
    """

    scope: ClassVar[Scope] = "run"

    def __init__(self) -> None:
        self._rules: dict[str, UrlRules] = {}
        self._left_out: Counter[str] = Counter()

    @classmethod
    def open_service(cls, host: ServiceHost) -> CrawlAccount:
        return cls()

    def rules(self, key: str, make: Callable[[], UrlRules]) -> UrlRules:
        """Return the rules of a statement, which are made when it begins for the first time."""
        if key not in self._rules:
            self._rules[key] = make()
        return self._rules[key]

    def leave_out(self, reasons: Iterable[str]) -> None:
        """Count URLs that were left out, by reason."""
        self._left_out.update(reasons)

    def account(self) -> AccountEntry | None:
        if not self._left_out:
            return None
        number = count_text(sum(self._left_out.values()), "link")
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in self._left_out.most_common())
        return AccountEntry("crawl", {"left-out": dict(self._left_out)}, (f"left out {number}: {reasons}",))

    async def close(self) -> None:
        """Do nothing: there is only memory."""
