"""Splits a text into its items, and a plan into its header entries and statements.

Each cut is made where only an item, an entry or a statement can begin, whatever is missing or too much. So a
mistake stays in its own piece and hides none in others; `lalr` parses each piece.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TypeAlias

import msgspec

from aioflow.errors import suggestion
from aioflow.language.kinds import end_of_body, item_kinds
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import BAD, CONSTANT, END, KEY, NAME, Cursor, Token, found_after, show

STATEMENTS_AT_MOST = 100_000
# The entries of a plan's header besides BODY, in the order in which they are printed.
HEADER = ("INPUT", "OUTPUT", "PARAM", "MAX_DEPTH", "ONCE", "COMMIT")
_PARTS = (*HEADER, "BODY")
_EXPECTED_IN_PLAN = "expected INPUT, OUTPUT, PARAM, MAX_DEPTH, ONCE or BODY"


class Piece(msgspec.Struct):
    """Tokens that belong together, and the token found after them."""

    tokens: list[Token]
    following: Token


class PlanPieces(msgspec.Struct):
    """A plan, split up. Tokens that are missing in the text are None."""

    keyword: Token
    name: Token | None
    opening: Token | None = None
    entries: list[Piece] = msgspec.field(default_factory=list)
    body: Token | None = None
    body_opening: Token | None = None
    statements: list[Piece] = msgspec.field(default_factory=list)
    body_closing: Token | None = None
    closing: Token | None = None

    @property
    def title(self) -> str:
        return f"PLAN {self.name.text!r}" if self.name else "PLAN"

    def stretches(self) -> list[tuple[str, int, int]]:
        """The lines of the plan as it is printed, each with a label (none for statements), in order."""
        marks = (
            ("{", self.opening),
            ("BODY", self.body),
            ("BODY {", self.body_opening),
            ("BODY }", self.body_closing),
            ("}", self.closing),
        )
        found = [("PLAN", self.keyword.start, (self.name or self.keyword).end)]
        found += [(label, token.start, token.end) for label, token in marks if token is not None]
        found += [
            (each.tokens[0].text.upper(), each.tokens[0].start, each.tokens[-1].end) for each in self.entries
        ]
        found += [("", each.tokens[0].start, each.tokens[-1].end) for each in self.statements]
        return sorted(found, key=itemgetter(1))


def item_starts(cursor: Cursor) -> bool:
    """Return whether an item begins here, even though another may not be closed."""
    token = cursor.token
    if not token.first or token.type != NAME:
        return False
    if token.is_keyword("USE"):
        return cursor.peek().type == CONSTANT and isinstance(cursor.peek().value, str)
    # `plan` and `thing` may be variables: then BODY, a type or a flag can be the word after them.
    if token.is_keyword("PLAN"):
        following = cursor.peek()
        return cursor.peek(2 if following.is_word else 1).text == "{" and not following.is_keyword("BODY")
    if not cursor.peek().is_word or (cursor.previous is not None and cursor.previous.text not in (")", "}")):
        return False
    return item_kinds.get(token.text) is not None


class PlanSplitter:
    """Splits one plan, from the end of its name to its closing brace."""

    def __init__(self, cursor: Cursor, mistakes: Mistakes, keyword: Token, name: Token | None) -> None:
        self._cursor = cursor
        self._mistakes = mistakes
        self.pieces = PlanPieces(keyword, name)
        # Statements outside of BODY; only the first is reported.
        self._strays = 0

    def read(self) -> PlanPieces:
        """Cut everything up to the plan's closing brace, or to where it must have ended."""
        self.pieces.opening = self._cursor.take() if self._cursor.token.text == "{" else None
        while not self._ends():
            self._read_part()
        if self._cursor.token.text == "}":
            self.pieces.closing = self._cursor.take()
        elif self.pieces.opening is not None:
            self._report_unclosed(self.pieces.opening, self.pieces.title)
        if self._body_is_missing():
            at = self.pieces.name or self.pieces.keyword
            self._mistakes.add(f"{self.pieces.title} has no BODY", at.start, at.end)
        return self.pieces

    def _body_is_missing(self) -> bool:
        pieces = self.pieces
        reported = self._cursor.lost or self._strays or not (pieces.opening or pieces.entries)
        return pieces.body is None and not reported

    def _ends(self) -> bool:
        return self._cursor.token.text == "}" or self._cursor.token.type == END or item_starts(self._cursor)

    def _report_unclosed(self, opening: Token, owner: str) -> None:
        if self._cursor.lost:
            return
        suspect = self._misindented_clauses()
        if suspect is not None:
            opening, owner = suspect
        closed, here = "never closed", self._cursor.token
        if here.type != END:
            closed = f"not closed before {here.text} in line {here.source.position(here.start)[0]}"
        self._mistakes.add(f"'{{' of {owner} is {closed}", opening.start, opening.end)

    def _misindented_clauses(self) -> tuple[Token, str] | None:
        """Clauses whose closing brace stands further left than their statement: the plan's, probably."""
        for piece in reversed(self.pieces.statements):
            operator, last = piece.tokens[0], piece.tokens[-1]
            if last.text == "}" and last.first and last.column < operator.column:
                opening = next(token for token in piece.tokens if token.text == "{")
                return opening, f"the clauses of {show(operator)}"
        return None

    # --- the header -----------------------------------------------------------------------------

    def _read_part(self) -> None:
        token, following = self._cursor.token, self._cursor.peek()
        if token.text == ";":
            self._cursor.take()
        elif token.text == "{":
            self._mistakes.add("expected BODY before '{'", token.start, token.end)
            self._read_body(token)
        elif token.type == NAME and following.text == "{":
            self._check_body_keyword(self._cursor.take())
            self._read_body(token)
        elif token.type == NAME and following.text == ":":
            self._read_entry()
        elif token.is_word and following.text == "(":
            self._read_stray(token)
        elif token.is_keyword("BODY"):
            self._expect("'{'", self._cursor.take())
            self._read_body(token)
        elif token.type == NAME and suggestion(token.text, HEADER):
            self._read_entry()
        else:
            self._mistakes.add(f"{_EXPECTED_IN_PLAN}, found {show(token)}", token.start, token.end)
            self._skip_to_part()

    def _read_stray(self, token: Token) -> None:
        if not self._strays:
            message = f"statement {show(token)} stands outside of BODY {{ … }}"
            self._mistakes.add(message, token.start, token.end)
        self._strays += 1
        self._read_statement()

    def _expect(self, wanted: str, after: Token) -> None:
        shown, start, end = found_after(after, self._cursor.token)
        self._mistakes.add(f"expected {wanted} after {show(after)}, found {shown}", start, end)

    def _check_body_keyword(self, token: Token) -> None:
        if not token.is_keyword("BODY"):
            hint = suggestion(token.text.upper(), ("BODY",)) or "; only BODY is followed by '{'"
            self._mistakes.add(f"unknown part of a plan {token.text!r}{hint}", token.start, token.end)

    def _skip_to_part(self) -> None:
        self._cursor.take()
        while not self._ends() and not self._part_starts():
            self._cursor.take()

    def _part_starts(self) -> bool:
        """Return whether a part of the header can only begin here; values of an entry never look so."""
        token = self._cursor.token
        if token.text in ("{", ";"):
            return True
        if not token.is_word:
            return False
        following = self._cursor.peek().text
        if following == ":":
            return token.type == NAME
        if following == "{" and suggestion(token.text, ("BODY",)):
            return True
        if not token.first or self._continues_entry():
            return False
        return following in ("(", "{") or token.text.upper() in _PARTS

    def _continues_entry(self) -> bool:
        previous = self._cursor.previous
        return previous is not None and previous.text in (",", ":", "=", "(", "[")

    def _read_entry(self) -> None:
        key = self._cursor.take()
        tokens = [key]
        if self._cursor.token.text == ":":
            tokens.append(self._cursor.take())
        else:
            self._expect("':'", key)
        while not self._ends() and not self._part_starts():
            tokens.append(self._cursor.take())
        self.pieces.entries.append(Piece(tokens, self._cursor.token))

    # --- the body -------------------------------------------------------------------------------

    def _read_body(self, keyword: Token) -> None:
        if self.pieces.body is not None:
            first = self.pieces.body.source.position(self.pieces.body.start)[0]
            self._mistakes.add(
                f"a plan has one BODY only; the first is in line {first}", keyword.start, keyword.end
            )
        opening = self._cursor.take() if self._cursor.token.text == "{" else None
        while not self._ends():
            if len(self.pieces.statements) == STATEMENTS_AT_MOST:
                self._give_up()
            elif self._cursor.token.text == ";":
                self._cursor.take()
            else:
                self._read_statement()
        closing = None
        # Without an opening brace, a single closing one is the plan's.
        if self._cursor.token.text == "}" and (opening is not None or self._cursor.peek().text == "}"):
            closing = self._cursor.take()
        if opening is not None and closing is None:
            self._report_unclosed(opening, "BODY")
        self.pieces.body = keyword
        self.pieces.body_opening, self.pieces.body_closing = opening, closing

    def _give_up(self) -> None:
        token = self._cursor.token
        message = f"a plan has at most {STATEMENTS_AT_MOST:,} statements"
        self._mistakes.add(message, token.start, token.end)
        # The others are not looked at: it would take long to find mistakes that do not matter now.
        self.pieces.statements.clear()
        self._cursor.leave()

    def _read_statement(self) -> None:
        if not self._cursor.token.is_word:
            self._skip_strange()
            return
        operator = self._cursor.take()
        operator.type = NAME
        tokens = [operator]
        if self._cursor.token.text == "(":
            self._take_arguments(tokens)
            if self._cursor.token.text == "{":
                self._take_clauses(tokens)
        else:
            self._take_rest(tokens)
        self.pieces.statements.append(Piece(tokens, self._cursor.token))

    def _statement_starts(self) -> bool:
        return self._cursor.token.is_word and self._cursor.peek().text == "("

    def _skip_strange(self) -> None:
        token = self._cursor.take()
        if token.type != BAD:
            self._mistakes.add(f"expected a statement, found {show(token)}", token.start, token.end)
        depth = int(token.text == "{")
        while not (self._statement_starts() or item_starts(self._cursor) or self._cursor.token.type == END):
            token = self._cursor.token
            if depth == 0 and (token.text == "}" or (token.first and token.is_word)):
                return
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            self._cursor.take()

    def _take_arguments(self, tokens: list[Token]) -> None:
        cursor = self._cursor
        tokens.append(cursor.take())
        outputs = False
        while True:
            token = cursor.token
            text = token.text
            if text == "(" and tokens[-1].is_word:
                # The word before it begins a statement: the next one, or one put where its output should be.
                operator = tokens.pop()
                cursor.give_back(operator)
                if operator.first or outputs:
                    return
                tokens.append(self._take_nested(tokens[0]))
                continue
            if text == "{" or ((token.first or text == "}") and self._ends()):
                return
            tokens.append(cursor.take())
            if text == ")":
                return
            outputs = outputs or text == ":"

    def _take_nested(self, outer: Token) -> Token:
        """A call among the arguments: reported, and read as if its result stood there."""
        token = self._cursor.take()
        message = (
            f"{show(token)} cannot stand inside {show(outer)}; "
            "make it a statement of its own and use its output here"
        )
        self._mistakes.add(message, token.start, token.end)
        depth = 0
        while not self._ends() and not (self._cursor.token.first and self._statement_starts()):
            depth += {"(": 1, ")": -1}.get(self._cursor.take().text, 0)
            if depth == 0:
                break
        token.type = NAME
        return token

    def _take_clauses(self, tokens: list[Token]) -> None:
        cursor, depth = self._cursor, 0
        while True:
            token = cursor.token
            text = token.text
            if text == "(" and tokens[-1].is_word and tokens[-1].first:
                cursor.give_back(tokens.pop())
                return
            if text == ":" and tokens[-1].type == NAME:
                tokens[-1].type = KEY
            if text != "}" and token.first and self._ends():
                return
            tokens.append(cursor.take())
            if text in ("{", "}"):
                # A brace at the beginning of a line closes the clauses, whatever is open in them.
                depth = 0 if token.first and text == "}" else depth + (1 if text == "{" else -1)
                if depth == 0:
                    return

    def _take_rest(self, tokens: list[Token]) -> None:
        """A statement without parentheses: it reaches to where the next one seems to begin."""
        column = tokens[0].column
        while not self._ends() and not self._statement_starts() and self._cursor.token.text != ";":
            token = self._cursor.token
            if token.first and token.is_word and token.column <= column:
                return
            tokens.append(self._cursor.take())


_EXPECTED = "expected PLAN, USE or another item"
_PLAN_PART = re.compile(r"\b(?:(?:INPUT|OUTPUT)\s*:|BODY\s*\{)", re.IGNORECASE)


class UsePieces(msgspec.Struct):
    """`USE "file"`."""

    keyword: Token
    path: Token

    def stretches(self) -> list[tuple[str, int, int]]:
        return [("USE", self.keyword.start, self.path.end)]


class ItemPieces(msgspec.Struct):
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


class ItemSplitter:
    """Splits a text item by item."""

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
        shown, start, end = found_after(keyword, path)
        if path.type != BAD:
            message = f"expected a file in quotes after {show(keyword)}, found {shown}"
            self._mistakes.add(message, start, end)
        while not self._cursor.token.first:
            self._cursor.skip()

    def _read_plan(self, keyword: Token) -> None:
        name = self._cursor.take() if self._cursor.token.is_word else None
        token = self._cursor.token
        if name is None:
            shown, start, end = found_after(keyword, token)
            self._mistakes.add(f"expected a name after {show(keyword)}, found {shown}", start, end)
        if self._cursor.token.text != "{":
            if name is not None:
                shown, start, end = found_after(name, token)
                self._mistakes.add(f"expected '{{' after {show(name)}, found {shown}", start, end)
            self._skip_to_brace()
        self._cut_plan(keyword, name)

    def _cut_plan(self, keyword: Token, name: Token | None) -> None:
        pieces = PlanSplitter(self._cursor, self._mistakes, keyword, name).read()
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
        entry: tuple[Token, Token] | None = None  # the first thing that belongs into a body, after another
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
        shown, start, end = found_after(last, token)
        self._mistakes.add(f"expected '{{' after {show(last)}, found {shown}", start, end)

    def _is_misspelt_plan(self, keyword: Token, body: str) -> bool:
        return bool(suggestion(keyword.text, ("PLAN",))) and _PLAN_PART.search(body) is not None
