"""The part of a run's account that a crawl has: the links and pages that were left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import ClassVar

from aioflow.authoring.services import AccountEntry, Scope, ServiceHost
from aioflow.crawl.rules import UrlRules
from aioflow.values.quantities import count_text


class CrawlAccount:
    """The rules of a crawl's statements, with their memory of traps, and what they left out.

    It is a service of the run: all calls of a recursive plan share the memory of a statement.
    """

    scope: ClassVar[Scope] = "run"

    def __init__(self) -> None:
        self._rules: dict[str, UrlRules] = {}
        self._left_out: Counter[str] = Counter()
        self._pages_left_out: Counter[str] = Counter()

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

    def leave_out_pages(self, reasons: Iterable[str]) -> None:
        """Count pages that were fetched and left out, by reason."""
        self._pages_left_out.update(reasons)

    def account(self) -> AccountEntry | None:
        counts = {"left-out": self._left_out, "pages-left-out": self._pages_left_out}
        details = {name: dict(reasons) for name, reasons in counts.items() if reasons}
        if not details:
            return None
        lines = [
            _line(reasons, noun)
            for reasons, noun in ((self._left_out, "link"), (self._pages_left_out, "page"))
            if reasons
        ]
        return AccountEntry("crawl", details, tuple(lines))

    async def close(self) -> None:
        """Do nothing: there is only memory."""


def _line(counts: Counter[str], noun: str) -> str:
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in counts.most_common())
    return f"left out {count_text(sum(counts.values()), noun)}: {reasons}"
