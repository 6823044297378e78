"""The filters of a watch as fields of a wrapper: CSS, XPath, JSON paths, and the elements to leave out."""

from __future__ import annotations

import re

import msgspec

from aioflow.errors import AioflowError
from aioflow.language.literals import write_string

_SPLIT = 'raw join "\\n" split "\\n"'
_JSON_PREFIXES = ("json:", "jq:", "jqraw:")
_SIMPLE_JQ = re.compile(r"(?:\.(?:[A-Za-z_]\w*)?(?:\[(?:[0-9]*)\])*)+")
# A name without a dot can only be the first: many of them in a row could be divided in many ways.
_ONE_VALUE = re.compile(
    r"\$?(?:[A-Za-z_][\w-]*)?(?:\.[A-Za-z_][\w-]*|\[(?:[0-9]+|'[^'\]*]*'|\"[^\"\]*]*\")\])*"
)
_PATH = re.compile(r"\s*(?:\.{0,2}/|\()")
WHOLE_PAGE = "title, body"


class PageFields(msgspec.Struct, frozen=True):
    """The reading of one page: READ and EACH, the fields, and the attribute with the lines or the value.

    `is_value` is true for a single value, which is compared as old and new. Lines are compared as a set.
    """

    reading: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    is_list: bool = True
    is_value: bool = False
    has_excluded: bool = False


class FilterNotes:
    """Collects notes on filters that cannot be taken over."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.lost_all = False

    def add(self, note: str) -> None:
        self.notes.append(note)


def page_fields(
    includes: list[str], excludes: list[str], content_type: str, notes: FilterNotes, *, as_lines: bool
) -> list[PageFields]:
    """Return the readings of a page; there are several if filters are of several kinds.

    `as_lines` makes lines of single values too, for rules about lines.
    """
    found: list[PageFields] = []
    selectors, paths, json_paths = _by_kind(includes, notes)
    excluded = _excluded(excludes, notes)
    if selectors:
        found.append(_html_lines(", ".join(selectors), excluded))
    if paths:
        found.append(_html_lines(" | ".join(paths), excluded))
    found += [_json_values(path, as_lines=as_lines) for path in json_paths]
    if includes and not found:
        notes.lost_all = True
        notes.add("None of its filters can be taken over, so the plan compares the whole page.")
    return found or [_whole_page(content_type, excluded)]


def source_lines() -> PageFields:
    """Return the reading of the source of a page, line by line."""
    return PageFields(("READ: text lines",), ("line:",), is_list=False)


def product_offer() -> PageFields:
    """Return the reading of price and availability in the data for machines (JSON-LD) of a shop."""
    source = """"script[type='application/ld+json']" raw join "\\n" """.rstrip()
    price = r"""match r'"price"\s*:\s*"?([0-9.,]+)' number"""
    stock = r"""match r'"availability"\s*:\s*"(?:https?://schema.org/)?([A-Za-z]+)'"""
    return PageFields(
        (), (f"price: {source} {price}", f"availability: {source} {stock}"), is_list=False, is_value=True
    )


def _whole_page(content_type: str, excluded: str) -> PageFields:
    if "json" in content_type or content_type.startswith("text/plain"):
        return source_lines()
    if "rss" in content_type or "atom" in content_type or content_type.partition(";")[0].endswith("xml"):
        return PageFields(
            ("READ: xml strip-namespaces", 'EACH: "//item | //entry"'),
            ('line: "title"', 'link: "link[text()] | link/@href"'),
            is_list=False,
        )
    return _html_lines(WHOLE_PAGE, excluded)


def _html_lines(selector: str, excluded: str) -> PageFields:
    fields = [f"line: {write_string(selector)} {_SPLIT} required"]
    if excluded:
        fields.append(f"excluded: {write_string(excluded)} {_SPLIT}")
    return PageFields((), tuple(fields), has_excluded=bool(excluded))


def _json_values(path: str, *, as_lines: bool) -> PageFields:
    if not as_lines and _ONE_VALUE.fullmatch(path):
        return PageFields(("READ: json",), (f"value: {write_string(path)}",), is_list=False, is_value=True)
    return PageFields(("READ: json",), (f"line: {write_string(path)} char all required",))


def _by_kind(filters: list[str], notes: FilterNotes) -> tuple[list[str], list[str], list[str]]:
    selectors: list[str] = []
    paths: list[str] = []
    json_paths: list[str] = []
    for each in filters:
        if each.startswith(_JSON_PREFIXES):
            kept, text, reader = json_paths, _json_path(each), "json"
        elif _is_xpath(each):
            kept, text, reader = paths, _xpath(each), "html"
        else:
            kept, text, reader = selectors, each, "html"
        problem = "jq is a language of its own" if text is None else _problem(text, reader)
        if problem or text is None:
            notes.add(f"The filter {each!r} cannot be taken over: {problem}.")
        else:
            kept.append(text)
    return selectors, paths, json_paths


def _is_xpath(text: str) -> bool:
    return text.startswith(("/", "xpath:", "xpath1:"))


def _xpath(text: str) -> str:
    path = text.removeprefix("xpath:").removeprefix("xpath1:").strip()
    return path if _PATH.match(path) else f"({path})"


def _json_path(text: str) -> str | None:
    """Return a filter as a path of JSON; of jq only `.a.b[0]` and `.a[]` are paths."""
    kind, _, path = text.partition(":")
    path = path.strip()
    if kind == "json":
        return path
    if path == ".":
        return "$"
    return "$" + path.replace("[]", "[*]") if _SIMPLE_JQ.fullmatch(path) else None


def _excluded(filters: list[str], notes: FilterNotes) -> str:
    """Return one selector for all elements to leave out; XPaths are one of their own only without CSS."""
    selectors = [each for each in filters if not _is_xpath(each)]
    paths = [_xpath(each) for each in filters if _is_xpath(each)]
    if selectors and paths:
        for each in paths:
            notes.add(
                f"The elements {each!r} are not left out: the plan leaves out elements by CSS or by XPath."
            )
        paths = []
    kept = []
    for each in paths or selectors:
        if problem := _problem(each, "html"):
            notes.add(f"The elements {each!r} are not left out: {problem}.")
        else:
            kept.append(each)
    return (" | " if paths else ", ").join(kept)


def _problem(selector: str, reader: str) -> str:
    """Return why a reader refuses a selector, or an empty text."""
    from aioflow.wrappers.definition import Extraction, Field, Processing
    from aioflow.wrappers.readers.reader import compiled

    field = Field("line", selector=selector, processing=(Processing("all"),))
    try:
        compiled(Extraction(reader=reader, fields=(field,)))
    except AioflowError as error:
        return str(error).rstrip(".")
    return ""
