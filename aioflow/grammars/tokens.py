"""Words of grammars. Bodies of rules and code have different ones, so the parser says which it expects."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from aioflow.grammars.characters import CharacterSet, CodeRange, character_set
from aioflow.language.mistakes import Mistakes
from aioflow.source import Source

TokenKind: TypeAlias = Literal["word", "literal", "class", "number", "sign", "unknown", "broken", "end"]

KEYWORDS = frozenset({"rule", "is", "end", "do", "accept", "if", "strict", "prune"})

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_OPEN_COMMENT = re.compile(r"/\*")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_BODY_SIGN = re.compile(r"\+=|[()|?*+.=:;]")
_CODE_SIGN = re.compile(r"\$\$|\+=|==|!=|<=|>=|&&|\|\||[-!<>=+*/%(){},;.\[\]]")
_LITERAL = re.compile(r"""(['"])((?:\\[^\n]|(?!\1)[^\\\n])*)(\1)?""")
_CLASS = re.compile(r"\[((?:\\[^\n]|[^\]\\\n])*)(\])?")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([^\n]))|([^\\])", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r"}
_HINTS = {"d": "[0-9]", "w": "[A-Za-z0-9_]", "s": r"[ \t\r\n]"}
_TYPOGRAPHIC = "“”‘’„«»"


class GrammarToken(NamedTuple):
    """A word; `text` is the meaning of a literal, and `characters` that of a class."""

    kind: TokenKind
    text: str
    start: int
    end: int
    characters: CharacterSet | None = None

    @property
    def shown(self) -> str:
        """The word as messages name it."""
        if self.kind == "end":
            return "the end of the grammar"
        return {"literal": "a literal", "class": "a class"}.get(self.kind, f"'{self.text}'")


class GrammarScanner:
    """Reads words at a place of the text; mistakes inside literals and classes are noted once each."""

    def __init__(self, text: str, mistakes: Mistakes) -> None:
        self.text = text
        self.mistakes = mistakes

    def token(self, place: int, is_code: bool) -> GrammarToken:
        """Return the first word at or after a place."""
        text = self.text
        found = _BLANK.match(text, place)
        start = found.end() if found else place
        if start == len(text):
            return GrammarToken("end", "", start, start)
        if _OPEN_COMMENT.match(text, start):
            self.mistakes.add("the comment that begins here has no end", start, start + 2)
            return GrammarToken("end", "", len(text), len(text))
        if word := _WORD.match(text, start):
            return GrammarToken("word", word[0], start, word.end())
        if text[start] in "'\"":
            return self._literal(start)
        if not is_code and text[start] == "[":
            return self._class(start)
        if is_code and (number := _NUMBER.match(text, start)):
            return GrammarToken("number", number[0], start, number.end())
        if sign := (_CODE_SIGN if is_code else _BODY_SIGN).match(text, start):
            return GrammarToken("sign", sign[0], start, sign.end())
        return GrammarToken("unknown", text[start], start, start + 1)

    def _literal(self, start: int) -> GrammarToken:
        found = _LITERAL.match(self.text, start)
        assert found is not None  # the quote is there
        if found[3] is None:
            self.mistakes.add("the literal that begins here has no end on its line", start)
            return GrammarToken("broken", found[0], start, found.end())
        characters = [chr(code) for _, code, _ in self._escaped(found[2], found.start(2))]
        return GrammarToken("literal", "".join(characters), start, found.end())

    def _class(self, start: int) -> GrammarToken:
        found = _CLASS.match(self.text, start)
        assert found is not None  # the bracket is there
        content, inside = found[1], found.start(1)
        if found[2] is None:
            self.mistakes.add("the class that begins here has no ']' on its line", start)
            return GrammarToken("broken", found[0], start, found.end())
        is_inverted = content.startswith("^")
        if is_inverted:
            content, inside = content[1:], inside + 1
        ranges = self._ranges(content, inside)
        if not ranges:
            self.mistakes.add("the class is empty: no character is in it", start, found.end())
        characters = character_set(ranges)
        if is_inverted:
            characters = characters.inverted()
            if not characters.ranges:
                self.mistakes.add("the class is empty: it leaves out every character", start, found.end())
        return GrammarToken("class", found[0], start, found.end(), characters)

    def _ranges(self, content: str, inside: int) -> list[CodeRange]:
        written = self._escaped(content, inside)
        ranges: list[CodeRange] = []
        place = 0
        while place < len(written):
            start, first, _ = written[place]
            if place + 2 < len(written) and written[place + 1][1:] == (ord("-"), False):
                end, last, _ = written[place + 2]
                if last < first:
                    wrong = self.text[start : end + 1]
                    self.mistakes.add(f"the range {wrong!r} is reversed", start, end + 1)
                ranges.append((min(first, last), max(first, last)))
                place += 3
            else:
                ranges.append((first, first))
                place += 1
        return ranges

    def _escaped(self, content: str, inside: int) -> list[tuple[int, int, bool]]:
        """Return place, code point and whether it was escaped, for each character."""
        found: list[tuple[int, int, bool]] = []
        for each in _ESCAPE.finditer(content):
            start = inside + each.start()
            if each[4] is not None:
                found.append((start, ord(each[4]), False))
            elif each[1] or each[2]:
                found.append((start, int(each[1] or each[2], 16), True))
            else:
                if each[3].isalnum() and each[3] not in _NAMED:
                    self._unknown_escape(each[3], start)
                found.append((start, ord(_NAMED.get(each[3], each[3])), True))
        return found

    def _unknown_escape(self, character: str, start: int) -> None:
        if character in "xu":
            hint = (
                f"; \\{character} is followed by {'two' if character == 'x' else 'four'} hexadecimal digits"
            )
        else:
            hint = f"; write {_HINTS[character]}" if character in _HINTS else ""
        self.mistakes.add(f"unknown escape '\\{character}'{hint}", start, start + 2)


def end_of_rules(text: str, start: int) -> int:
    """Return the offset of the brace that closes a grammar within a longer text, -1 if there is none."""
    scanner = GrammarScanner(text, Mistakes(Source("", text)))
    place, depth = start, 0
    # The word that ends the code which the place is in.
    closing = ""
    while True:
        token = scanner.token(place, is_code=bool(closing))
        if token.kind == "end":
            return -1
        if token.kind in ("literal", "class", "broken"):
            pass
        elif token.text == closing:
            closing = ""
        elif token.text == "{":
            depth += 1
        elif token.text == "}" and not depth:
            return token.start
        elif token.text == "}":
            depth -= 1
        elif not closing and token.kind == "word":
            closing = {"do": "end", "if": ";"}.get(token.text, "")
        place = token.end


def unknown_character(character: str) -> str:
    """Return the message about a character that begins no word."""
    hint = "; literals stand in straight quotes" if character in _TYPOGRAPHIC else ""
    hint = hint or ("; literals stand in quotes" if character.isalnum() else "")
    return f"unexpected character {character!r}{hint}"
