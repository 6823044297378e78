"""Collects what is found wrong with a wrapper, each at its place in the wrapper's own text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from aioflow.errors import Diagnostic
from aioflow.source import Span
from aioflow.wrappers.language import WrapperText
from aioflow.wrappers.language.places import place_in
from aioflow.wrappers.templates import Mistake


class Findings:
    """The mistakes and warnings of one wrapper."""

    def __init__(self, text: WrapperText) -> None:
        self._text = text
        self._found: list[Diagnostic] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def has_mistakes(self) -> bool:
        return any(found.severity == "error" for found in self._found)

    def add(self, message: str, span: Span | None, severity: Literal["error", "warning"] = "error") -> None:
        self._found.append(Diagnostic(message, span or self._text.span, severity))

    def warn(self, message: str, span: Span | None) -> None:
        self.add(message, span, "warning")

    def add_in_text(self, mistakes: Iterable[Mistake], literal: Span | None, hint: str = "") -> None:
        """Mistakes at places in a string of the source."""
        for mistake in mistakes:
            span = None if literal is None else place_in(literal, mistake.start, mistake.end)
            self.add(mistake.message + hint, span)

    def without(self, known: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Everything that is not known already, once, in the order of the text.

        What is wrong in this wrapper only, though it stands in one that LIKE brings, is placed at LIKE.
        """
        reported = set(known)
        found = dict.fromkeys(self._at_home(each) for each in self._found if each not in reported)
        return sorted(found, key=lambda each: each.span.start if each.span else -1)

    def _at_home(self, found: Diagnostic) -> Diagnostic:
        if self._text.like is None or self._text.owns(found.span):
            return found
        message = f"{found.message} (from LIKE {self._text.like})"
        return replace(found, message=message, span=self._text.like_span)
