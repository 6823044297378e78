"""Cuts a text into its items, so that a mistake in one does not hide those in others."""

from __future__ import annotations

import re
from typing import TypeAlias

from aioflow.dataclass import dataclass
from aioflow.errors import suggestion
from aioflow.language.kinds import end_of_body, item_kinds
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import BAD, CONSTANT, END, NAME, Cursor, Token
from aioflow.language.structure import PlanCutter, PlanPieces, item_starts
from aioflow.language.words import found_behind, show

_EXPECTED = "expected PLAN, USE or another item"
_PLAN_PART = re.compile(r"\b(?:(?:INPUT|OUTPUT)\s*:|BODY\s*\{)", re.IGNORECASE)


@dataclass
class UsePieces:
    """`USE "file"`."""

    keyword: Token
    path: Token

    def stretches(self) -> list[tuple[str, int, int]]:
        return [("USE", self.keyword.start, self.path.end)]


@dataclass
class ItemPieces:
    """An item of a kind that the language does not know, as offsets into the text."""

    keyword: Token
    name: Token
    header: tuple[int, int]
    opening: int
    body: tuple[int, int]
    closing: int

    def stretches(self) -> list[tuple[str, int, int]]:
        return [("header", self.keyword.start, self.header[1]), ("body", self.opening, self.closing + 1)]


Pieces: TypeAlias = UsePieces | ItemPieces | PlanPieces


class ItemCutter:
    """Reads a text item by item."""

    def __init__(self, cursor: Cursor, mistakes: Mistakes) -> None:
        self._cursor = cursor
        self._mistakes = mistakes
        self.pieces: list[Pieces] = []
        # Closing braces that items which were cut short have left over; they are no news.
        self._orphans = 0

    def read(self) -> list[Pieces]:
        while self._cursor.token.type != END:
            self._read_item()
        return self.pieces

    def _read_item(self) -> None:
        token, following = self._cursor.token, self._cursor.peek()
        if token.type == NAME and token.text.upper() == "USE" and following.text != "{":
            self._read_use(self._cursor.take())
        elif token.is_keyword("PLAN") and following.text not in (":", "("):
            self._read_plan(self._cursor.take())
        elif token.type == NAME and following.is_word:
            self._read_other(self._cursor.take(), self._cursor.take())
        else:
            self._report_strange(self._cursor.take())

    def _report_strange(self, token: Token) -> None:
        following = self._cursor.token
        if token.text == "}" and self._orphans:
            self._orphans -= 1
        elif token.text == "}":
            self._mistakes.add("'}' closes nothing", token.start, token.end)
        elif token.is_word and following.text == "(":
            message = f"statement {show(token)} stands outside of any plan"
            self._mistakes.add(message, token.start, token.end)
        elif token.type == NAME and following.text == "{":
            name = suggestion(token.text, ("PLAN", *item_kinds.keywords())) or f", found {show(following)}"
            self._mistakes.add(f"expected a name after {show(token)}{name}", token.start, token.end)
        elif token.type != BAD:
            self._mistakes.add(f"{_EXPECTED}, found {show(token)}", token.start, token.end)
        self._skip_to_item(token)

    def _skip_to_item(self, token: Token) -> None:
        """Go on where an item begins, past a pair of braces if there is one."""
        if token.text == "}":
            return
        depth = int(token.text == "{")
        while self._cursor.token.type != END and not item_starts(self._cursor):
            if depth == 0 and (self._cursor.token.text == "}" or self._looks_like_item()):
                return
            depth += {"{": 1, "}": -1}.get(self._cursor.take().text, 0)

    def _looks_like_item(self) -> bool:
        token = self._cursor.token
        return token.first and token.type == NAME and self._cursor.peek().is_word and token.column == 1

    def _read_use(self, keyword: Token) -> None:
        path = self._cursor.token
        if path.type == CONSTANT and isinstance(path.value, str):
            self.pieces.append(UsePieces(keyword, self._cursor.take()))
            return
        shown, start, end = found_behind(keyword, path)
        if path.type != BAD:
            message = f"expected a file in quotes after {show(keyword)}, found {shown}"
            self._mistakes.add(message, start, end)
        while not self._cursor.token.first:
            self._cursor.skip()

    def _read_plan(self, keyword: Token) -> None:
        name = self._cursor.take() if self._cursor.token.is_word else None
        token = self._cursor.token
        if name is None:
            shown, start, end = found_behind(keyword, token)
            self._mistakes.add(f"expected a name after {show(keyword)}, found {shown}", start, end)
        if self._cursor.token.text != "{":
            if name is not None:
                shown, start, end = found_behind(name, token)
                self._mistakes.add(f"expected '{{' after {show(name)}, found {shown}", start, end)
            self._skip_to_brace()
        self._cut_plan(keyword, name)

    def _cut_plan(self, keyword: Token, name: Token | None) -> None:
        pieces = PlanCutter(self._cursor, self._mistakes, keyword, name).read()
        self._orphans += 0 if pieces.closing else 1 + (pieces.body is not None and not pieces.body_closing)
        self.pieces.append(pieces)

    def _skip_to_brace(self) -> None:
        """Pass what stands between a plan's name and its brace, if that is on the same line."""
        while not self._cursor.token.first and self._cursor.token.text not in ("{", "}"):
            self._cursor.skip()

    def _read_other(self, keyword: Token, name: Token) -> None:
        kind = item_kinds.get(keyword.text)
        header = self._read_header(keyword, name)
        if header is None:
            return
        self._cursor.forget_comments(*header)
        opening = self._cursor.token.start
        text = self._cursor.source.text
        closing = (kind.end_of_body if kind else end_of_body)(text, opening + 1)
        if kind is None and self._is_misspelt_plan(keyword, text[opening : closing if closing > 0 else None]):
            message = f"unknown item kind {keyword.text!r}{suggestion(keyword.text, ('PLAN',))}"
            self._mistakes.add(message, keyword.start, keyword.end)
            self._cut_plan(keyword, name)
            return
        if not opening < closing < len(text) or text[closing] != "}":
            message = f"'{{' of {keyword.text} {name.text!r} is never closed"
            self._mistakes.add(message, opening, opening + 1)
            self._cursor.leave()
            return
        body = text[opening + 1 : closing]
        start = opening + 1 + len(body) - len(body.lstrip())
        end = max(start, opening + 1 + len(body.rstrip()))
        self.pieces.append(ItemPieces(keyword, name, header, opening, (start, end), closing))
        self._cursor.jump(closing + 1)

    def _read_header(self, keyword: Token, name: Token) -> tuple[int, int] | None:
        """The stretch between an item's name and its opening brace, or None when there is no brace."""
        start = self._cursor.token.start
        end = last = name.end
        entry: tuple[Token, Token] | None = None  # the first thing that belongs into a body, behind another
        previous, depth = name, 0
        while self._cursor.token.text != "{":
            token = self._cursor.token
            if token.type == END or token.text == "}" or item_starts(self._cursor):
                self._report_no_brace(keyword, *(entry or (previous, token)))
                self._orphans += token.text == "}" and entry is not None
                return None
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if entry is None and depth <= 0 and self._cursor.peek().text == ":":
                entry = previous, token
            previous = self._cursor.take()
            end = previous.end
        return (start, end) if end > last else (last, last)

    def _report_no_brace(self, keyword: Token, last: Token, token: Token) -> None:
        if not keyword.text.isupper() and item_kinds.get(keyword.text) is None:
            self._mistakes.add(f"{_EXPECTED}, found {show(keyword)}", keyword.start, keyword.end)
            return
        shown, start, end = found_behind(last, token)
        self._mistakes.add(f"expected '{{' after {show(last)}, found {shown}", start, end)

    def _is_misspelt_plan(self, keyword: Token, body: str) -> bool:
        return bool(suggestion(keyword.text, ("PLAN",))) and _PLAN_PART.search(body) is not None
