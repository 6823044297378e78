"""The mistakes of one text, collected while it is read and reported together."""

from __future__ import annotations

from aioflow.errors import Diagnostic
from aioflow.source import Source, Span

MISTAKES_SHOWN = 200
# A text that is no plan at all can have millions.
MISTAKES_KEPT = 10_000
# Each mistake is shown with its whole line, and a line can be as long as the text.
CHARACTERS_SHOWN = 1_000_000


class Mistakes:
    """Every mistake found so far in one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: dict[tuple[int, int], Diagnostic] = {}
        self._only_counted = 0

    def __bool__(self) -> bool:
        return bool(self._found)

    def __len__(self) -> int:
        return len(self._found) + self._only_counted

    def add(self, message: str, start: int, end: int | None = None) -> None:
        """Note a mistake. Of two at one place only the first is kept: the other is its consequence."""
        if len(self._found) == MISTAKES_KEPT:
            self._only_counted += 1
            return
        span = Span(self.source, start, start + 1 if end is None else end)
        self._found.setdefault((span.start, 0), Diagnostic(message, span))

    def include(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Take over all mistakes that were found elsewhere."""
        for diagnostic in diagnostics:
            start = diagnostic.span.start if diagnostic.span else 0
            self._found[(start, len(self._found) + 1)] = diagnostic

    def diagnostics(self) -> list[Diagnostic]:
        """Return all mistakes in the order of the text; past a limit only their number."""
        ordered = [self._found[key] for key in sorted(self._found)]
        shown: list[Diagnostic] = []
        characters = 0
        for diagnostic in ordered[:MISTAKES_SHOWN]:
            if characters > CHARACTERS_SHOWN:
                break
            shown.append(diagnostic)
            characters += _line_length(diagnostic.span)
        if len(self) > len(shown):
            last = shown[-1].span
            shown.append(Diagnostic(f"{len(self) - len(shown):,} more mistakes follow", last))
        return shown


def _line_length(span: Span | None) -> int:
    return 0 if span is None else len(span.source.line(span.line))
