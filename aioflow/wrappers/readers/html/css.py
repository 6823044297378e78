"""CSS selectors of the HTML reader, `css @attribute`: split and checked when a wrapper is compiled.

Lexbor accepts some broken selectors silently (an unclosed bracket or quote, a namespace, :hover) and reports
others without their place, so the syntax is checked here. cssselect 1.6 was tried for it: its tree has no
offsets, so of 211 texts that are refused here it accepts 7 and names another place for 46.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NoReturn

import msgspec

from aioflow.errors import SettingError, suggestion

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

TEXT, OWN_TEXT, MARKUP = "", "@text", "@html"
ITEM = "data-aioflow-item"
_TAKEN = re.compile(r"@([A-Za-z_:][\w:.-]*)\s*$")
_IDENT = re.compile(r"(?:--|-?(?:[A-Za-z_]|[^\x00-\x7f]|\\[^\n]))(?:[\w-]|[^\x00-\x7f]|\\[^\n])*")
_NAME = re.compile(r"(?:[\w-]|[^\x00-\x7f]|\\[^\n])+")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
_BLANK = re.compile(r"(?:\s|/\*.*?\*/)*", re.DOTALL)
_NTH = re.compile(r"(?:odd|even|[+-]?\d*n(?:\s*[+-]\s*\d+)?|[+-]?\d+)(?=\s*(?:\)|of\b))", re.IGNORECASE)
_PLAIN = frozenset(
    {
        "any-link",
        "blank",
        "checked",
        "disabled",
        "empty",
        "enabled",
        "first-child",
        "first-of-type",
        "last-child",
        "last-of-type",
        "link",
        "only-child",
        "only-of-type",
        "optional",
        "placeholder-shown",
        "read-only",
        "read-write",
        "required",
        "root",
    }
)
_OF_SELECTORS = frozenset({"is", "where", "not", "has"})
_OF_PLACES = frozenset({"nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type"})
_CONTAINS = "lexbor-contains"
_KNOWN = sorted(_PLAIN | _OF_SELECTORS | _OF_PLACES | {_CONTAINS})
_DEEPEST = 16  # pseudo-classes inside pseudo-classes
_LONGEST = 4000


class Selector(msgspec.Struct, frozen=True):
    """A selector of the HTML reader: where (`css`; empty for the item itself) and what of it (`taken`).

    `taken` is TEXT, OWN_TEXT, MARKUP or the name of an attribute. A list of selectors `may_repeat`: Lexbor
    reports an element once for each that it matches. One that `counts` looks at all siblings of each
    element, which takes time that grows with their square. One `is_relative` that began with a combinator:
    it finds what it means while its item bears the attribute ITEM. `steps` counts what is looked for among
    all ancestors of an element that is one of `ends`.
    """

    css: str
    taken: str = TEXT
    may_repeat: bool = False
    counts: bool = False
    is_relative: bool = False
    steps: int = 0
    ends: tuple[str, ...] = ()

    @property
    def looks_beside(self) -> bool:
        """Return whether it begins with a combinator that leads to siblings of the item."""
        return self.is_relative and self.css.removeprefix(f"[{ITEM}] ")[0] in "+~"

    @property
    def attribute(self) -> str | None:
        return None if self.taken in (TEXT, OWN_TEXT, MARKUP) else self.taken


@lru_cache(maxsize=1024)  # a plan's are looked at when it is checked, and again when it is run
def parse_selector(text: str) -> Selector:
    """A field's selector; a SettingError with the offset of a mistake."""
    taken = TEXT
    css = text
    if found := _TAKEN.search(text):
        css = text[: found.start()]
        name = found[1].lower()
        taken = f"@{name}" if name in ("text", "html") else name
    if not css.strip():
        return Selector("", taken)
    check = _Check(css)
    check.whole()
    css = css.strip()
    if check.is_relative:
        css = f"[{ITEM}] {css}"
    _compile(css)
    ends = tuple(check.ends)
    return Selector(css, taken, check.has_list, check.counts, check.is_relative, check.steps, ends)


def parse_each(text: str) -> Selector:
    """The selector of an iterating element: it takes the element, nothing of it."""
    selector = parse_selector(text)
    if selector.taken != TEXT:
        raise SettingError("an iterating element is selected whole, without '@'", offset=text.rindex("@"))
    if not selector.css:
        raise SettingError("an iterating element needs a selector")
    return selector


def _compile(css: str) -> None:
    """Have Lexbor compile a selector that was found to be well formed: it may know less."""
    from selectolax.lexbor import SelectolaxError

    try:
        _some_page().css(css)
    except SelectolaxError:
        raise SettingError(f"the selector {css.strip()!r} is not understood") from None


@cache
def _some_page() -> LexborHTMLParser:
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser("<p></p>")


class _Check:
    """Walks over a selector once, from left to right."""

    def __init__(self, text: str) -> None:
        self.has_list = False
        self.counts = False
        self.is_relative = False
        self.steps = 0
        self.ends: list[str] = []
        self._steps_so_far = 0  # of the selector of a list that is being read, with all inside of it
        self._text = text
        self._place = 0
        self._depth = 0

    def whole(self) -> None:
        if len(self._text) > _LONGEST:
            raise SettingError(f"the selector has {len(self._text):,} characters, {_LONGEST:,} at most")
        self._blank()
        if self._peek() and self._peek() in ">+~":
            self.is_relative = True
            self.counts = self._peek() == "~"
        self._list(relative=self.is_relative)
        if self._place < len(self._text):
            self._fail_at_rest()
        if self.is_relative and self.has_list:
            self._fail("a list of selectors cannot begin with a combinator", 0)

    # --- characters ------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]

    def _blank(self) -> bool:
        found = _BLANK.match(self._text, self._place)
        assert found is not None
        self._place = found.end()
        return bool(found[0])

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self._place)
        if found is None:
            return None
        self._place = found.end()
        return found[0]

    def _fail(self, message: str, place: int | None = None) -> NoReturn:
        raise SettingError(message, offset=self._place if place is None else place)

    def _fail_at_rest(self) -> NoReturn:
        character = self._peek()
        if not character:
            self._fail("the selector ends where an element is expected", max(0, len(self._text.rstrip()) - 1))
        if character == "@":
            self._fail("'@' and an attribute's name stand at the end of a selector")
        if character == "|":
            self._fail("'|' is not understood: selectors have no namespaces and no columns")
        self._fail(f"{character!r} is not expected here")

    # --- grammar ---------------------------------------------------------------------------------

    def _list(self, *, relative: bool) -> None:
        while True:
            self._complex(relative)
            if self._peek() != ",":
                return
            self._place += 1
            if self._depth == 0:
                self.has_list = True

    def _complex(self, relative: bool) -> None:
        self._blank()
        if relative and self._peek() and self._peek() in ">+~":
            self._place += 1
            self._blank()
        while True:
            begin = self._place
            self._compound()
            end = self._text[begin : self._place]
            parted = self._blank()
            sign = self._peek()
            if sign and sign in ">+~":
                self.counts |= sign == "~"
                self._place += 1
                self._blank()
            elif not parted or not sign or sign in ",)":
                break
            else:
                self._steps_so_far += 1
        if self._depth == 0:
            self.steps = max(self.steps, self._steps_so_far)
            # A pseudo-class may itself look at ancestors: then it is no cheap way to know an end.
            self.ends.append("*" if ":" in end else end)
            self._steps_so_far = 0

    def _compound(self) -> None:
        begin = self._place
        if self._peek() == "*":
            self._place += 1
        else:
            self._take(_IDENT)
        while (sign := self._peek()) and sign in "#.[:":
            self._place += 1
            if sign == "[":
                self._attribute()
            elif sign == ":":
                self._pseudo()
            elif self._take(_NAME if sign == "#" else _IDENT) is None:
                self._fail(f"{sign!r} needs a name behind it", self._place - 1)
        if self._place == begin:
            self._fail_at_rest()

    def _attribute(self) -> None:
        begin = self._place - 1
        self._blank()
        if self._take(_IDENT) is None:
            self._fail("'[' needs the name of an attribute behind it", begin)
        self._blank()
        if self._peek() != "]":
            if self._take(_OPERATOR) is None:
                self._fail_unclosed("[", begin)
            self._blank()
            if self._take(_STRING) is None and self._take(_IDENT) is None:
                self._fail_value()
            self._blank()
            self._take(_CASE)
            self._blank()
        if self._peek() != "]":
            self._fail_unclosed("[", begin)
        self._place += 1

    def _fail_value(self) -> NoReturn:
        if self._peek() in ("'", '"') and self._peek():
            self._fail("the quote is not closed")
        self._fail("an attribute's value that is no plain word stands in quotes")

    def _fail_unclosed(self, bracket: str, begin: int) -> NoReturn:
        if self._peek():
            self._fail_at_rest()
        self._fail(f"{bracket!r} is not closed", begin)

    def _pseudo(self) -> None:
        begin = self._place - 1
        if self._peek() == ":":
            self._fail_pseudo_element(begin)
        name = (self._take(_IDENT) or "").lower()
        if not name:
            self._fail("':' needs the name of a pseudo-class behind it", begin)
        called = self._peek() == "("
        if name in _PLAIN and not called:
            return
        if name not in _OF_SELECTORS | _OF_PLACES | {_CONTAINS} or not called:
            self._fail_unknown(name, called, begin)
        self._place += 1
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail("pseudo-classes are nested too deeply here")
        self._argument(name)
        self._blank()
        if self._peek() != ")":
            self._fail_unclosed("(", begin)
        self._place += 1
        self._depth -= 1

    def _argument(self, name: str) -> None:
        self._blank()
        if name in _OF_SELECTORS:
            self._list(relative=name == "has")
        elif name == _CONTAINS:
            if self._take(_STRING) is None:
                self._fail(f':{_CONTAINS}("text") takes a text in quotes')
            self._blank()
            self._take(_CASE)
        else:
            self.counts = True
            if self._take(_NTH) is None:
                self._fail(f":{name}(…) takes a place: 2, odd, even, 2n+1, -n+3")
            self._blank()
            if self._take(_OF) is not None:
                self._list(relative=False)

    def _fail_pseudo_element(self, begin: int) -> NoReturn:
        rest = self._text[begin:]
        if rest.startswith("::text"):
            self._fail("'::text' is written '@text' here, and the text is taken without it", begin)
        if found := re.match(r"::attr\(\s*([\w:-]+)\s*\)", rest):
            self._fail(f"'{found[0]}' is written '@{found[1]}' here", begin)
        self._fail("pseudo-elements ('::') are no part of a page", begin)

    def _fail_unknown(self, name: str, called: bool, begin: int) -> NoReturn:
        if name in ("contains", "has-text", "text", "icontains"):
            self._fail(f"':{name}' is unknown; :{_CONTAINS}(\"text\") looks at an element's own text", begin)
        if name in ("eq", "nth", "first", "last", "gt", "lt"):
            self._fail(f"':{name}' is unknown; the words 'first' and 'last', or :nth-child, choose", begin)
        if name in ("hover", "active", "focus", "visited", "target"):
            self._fail(f"':{name}' matches nothing in a page that is not displayed", begin)
        if name == "scope":
            self._fail("':scope' is unknown; a selector that begins with '>' starts at the item", begin)
        if name in _PLAIN:
            self._fail(f"':{name}' takes no argument", begin)
        if name in _KNOWN:
            self._fail(f"':{name}' needs an argument in parentheses", begin)
        hint = suggestion(name, _KNOWN) or f" (there are: {', '.join(_KNOWN)})"
        self._fail(f"unknown pseudo-class ':{name}'{hint}", begin)


_OPERATOR = re.compile(r"[~|^$*]?=")
_CASE = re.compile(r"[iIsS]\b")
_OF = re.compile(r"of\s", re.IGNORECASE)
