"""What the monitoring plan watches: houses that come, change and go, and every change that there ever was."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

FIRST_PRICE = 100


@dataclass
class Source:
    """A file with the houses as they are now; `told` is what a watcher must have been told by now."""

    path: Path
    random: Random
    houses: dict[str, int] = field(default_factory=dict)
    ever: dict[str, int] = field(default_factory=dict)  # every house, and its first price
    told: set[str] = field(default_factory=set)

    def advance(
        self, new: int, changed: int = 0, gone: int = 0, *, among: Collection[str] | None = None
    ) -> None:
        """Make changes, and have the file show them, all at once. Houses `among` these change or go."""
        known = sorted(self.houses if among is None else among)
        kept = self.random.sample(known, min(changed + gone, len(known)))
        for url in kept[:gone]:
            self.told.add(f"gone {url} {self.houses.pop(url)}")
        for url in kept[gone:]:
            price = self.houses[url] + self.random.randint(1, 9)
            self.told.add(f"changed {url} {self.houses[url]} {price}")
            self.houses[url] = price
        for number in range(len(self.ever), len(self.ever) + new):
            url, price = f"house-{number}", FIRST_PRICE + self.random.randint(0, 9)
            self.houses[url] = self.ever[url] = price
            self.told.add(f"new {url} {price}")
        self._show()

    def feed(self, pipe: Path, known: int, seconds: float) -> threading.Thread:
        """Write the houses into a pipe: those that are known at once, the others over some time."""
        lines = [json.dumps({"url": url, "price": price}) for url, price in self.houses.items()]
        pause = seconds / max(len(lines) - known, 1)

        def write() -> None:
            with suppress(BrokenPipeError), pipe.open("w", buffering=1) as opened:
                for place, line in enumerate(lines):
                    if place >= known:
                        time.sleep(pause)
                    opened.write(line + "\n")

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        return thread

    def _show(self) -> None:
        shown = [*self.houses.items()]
        self.random.shuffle(shown)
        lines = [json.dumps({"url": url, "price": price}) for url, price in shown]
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        os.replace(new, self.path)
