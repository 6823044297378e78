"""aioflow grammar debug: the page of a source with what matched, what was bound and what was skipped."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.cli.program import ROOT, aioflow
from tests.cli.test_grammar_test import GOODS, PAGE

IRREGULAR = ROOT / "tests" / "data" / "pages"


@dataclass
class Shown:
    """A span of the page, with the names of the spans around it."""

    kind: str
    name: str
    around: list[str]
    text: str = ""


@dataclass
class Reading(HTMLParser):
    """Reads the source of a page back, and its spans."""

    source: str = ""
    spans: dict[str, Shown] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    open: list[str | None] = field(default_factory=list)
    is_source: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.attributes |= set(given)
        if tag == "main":
            self.is_source = True
        elif tag == "div" and given["class"] == "l" and given["id"] != "L1":
            self._add("\n")
        elif tag == "span" and self.is_source:
            number = given.get("data-i")
            self.open.append(number)
            if number and number not in self.spans:
                around = [self.spans[each].name for each in self.open[:-1] if each]
                self.spans[number] = Shown(given["class"].split()[0], given["data-n"], around)

    def handle_endtag(self, tag: str) -> None:
        if tag == "main":
            self.is_source = False
        elif tag == "span" and self.is_source:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.is_source:
            self._add(data)

    def _add(self, text: str) -> None:
        self.source += text
        for each in filter(None, self.open):
            self.spans[each].text += text

    def texts(self, kind: str, name: str) -> list[str]:
        return [each.text for each in self.spans.values() if (each.kind, each.name) == (kind, name)]


def read(path: Path) -> Reading:
    reading = Reading()
    reading.feed(path.read_text())
    return reading


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "goods.jedi").write_text(GOODS)
    (tmp_path / "shop.html").write_text(PAGE)
    return tmp_path


def test_page_shows_rules_variables_and_what_was_skipped(shop: Path) -> None:
    ran = aioflow("grammar", "debug", "shop.html", "--grammar", "goods.jedi", cwd=shop)
    assert ran.returncode == 0, ran.stderr
    page = read(shop / "shop.html.debug.html")
    assert page.source == PAGE
    first, second = page.texts("r", "article")
    assert first == "<b>MP10</b> Psion 3c for <b>$399.50</b>"
    assert page.texts("v", "code") == ["MP10", "MP22"]
    assert page.texts("v", "price") == ["399.50", "199"]
    assert page.texts("v", "list") == [first, second]
    # A line end stands between the parts of a span.
    skipped = ["<html><b>Palmtops</b> We sell", " (or <b>less</b>)<p>", "<b>bye</b></html>"]
    assert page.texts("k", "skipped") == skipped
    price = next(each for each in page.spans.values() if each.name == "price")
    assert price.around == ["goods", "list", "article"]


@pytest.mark.parametrize("name", ["ca8.html", "okla.html", "pgnews_2004_11.txt", "tzdata_changelog.txt"])
def test_page_of_a_real_source_has_all_of_its_text(name: str, tmp_path: Path) -> None:
    grammar = (IRREGULAR / name).with_suffix(".jedi")
    ran = aioflow(
        "grammar", "debug", str(IRREGULAR / name), "--grammar", str(grammar), "-o", "p.html", cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    page = read(tmp_path / "p.html")
    assert page.source == (IRREGULAR / name).read_text()
    assert page.open == []


def test_page_needs_nothing_else_and_runs_its_own_script_only(shop: Path) -> None:
    aioflow("grammar", "debug", "shop.html", "--grammar", "goods.jedi", "-o", "p.html", cwd=shop)
    page = read(shop / "p.html")
    assert {"link", "img", "iframe", "object"} & page.tags == set()
    assert {"src", "href", "style", "onclick"} & page.attributes == set()
    assert re.search(
        r"default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'\"",
        (shop / "p.html").read_text(),
    )


def test_hostile_sources_are_shown_as_text(shop: Path) -> None:
    hostile = "</main></script><script>alert(1)</script><img src=x onerror=alert(1)> &amp; \" ' "
    hostile += "\x00 \x1b[31m \u202e"
    (shop / "bad.txt").write_text(hostile)
    (shop / "any.jedi").write_text(
        'rule any is x=(.* "<script>" .*) // </script><script>alert(2)</script>\nend'
    )
    aioflow("grammar", "debug", "bad.txt", "--grammar", "any.jedi", "-o", "p.html", cwd=shop)
    page = read(shop / "p.html")
    shown = hostile.replace("\x00", r"\x00").replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")
    assert page.source == shown
    assert page.texts("v", "x") == [shown]
    text = (shop / "p.html").read_text()
    assert (text.count("<script>"), text.count("alert(2)")) == (1, 1)
    assert "img" not in page.tags


def test_a_failure_has_a_page_with_its_place(shop: Path) -> None:
    (shop / "lines.jedi").write_text(r"strict rule lines is ([0-9]+ '\n')+ end")
    (shop / "bad.txt").write_text("12\n5x\n")
    ran = aioflow("grammar", "debug", "bad.txt", "--grammar", "lines.jedi", "-o", "p.html", cwd=shop)
    assert ran.returncode == 1
    assert "error: bad.txt:2:2: " in ran.stderr
    assert "p.html shows the place" in ran.stderr
    assert read(shop / "p.html").source == "12\n5herex\n"
    assert "Line 2, column 2: no interpretation goes on" in (shop / "p.html").read_text()


def test_deep_nesting_is_drawn_so_far(shop: Path) -> None:
    (shop / "group.jedi").write_text("strict rule group is '(' group()? ')' end")
    (shop / "deep.txt").write_text("(" * 900 + ")" * 900)
    ran = aioflow("grammar", "debug", "deep.txt", "--grammar", "group.jedi", "-o", "p.html", cwd=shop)
    assert ran.returncode == 0, ran.stderr
    page = read(shop / "p.html")
    assert page.source == "(" * 900 + ")" * 900
    assert len(page.texts("r", "group")) == 65
    assert "rules more than 64 levels deep are not drawn" in (shop / "p.html").read_text()


def test_a_line_of_a_megabyte_is_broken(shop: Path) -> None:
    (shop / "a.jedi").write_text("rule r is 'b' x=.* end")
    (shop / "a.txt").write_text("b" + "a" * 1_000_000)
    ran = aioflow("grammar", "debug", "a.txt", "--grammar", "a.jedi", "-o", "p.html", cwd=shop)
    assert ran.returncode == 0, ran.stderr
    page = read(shop / "p.html")
    assert page.source == "b" + "a" * 1_000_000
    assert max(map(len, re.findall(r"a+", (shop / "p.html").read_text()))) <= 4000


def test_a_page_that_cannot_be_written_is_told(shop: Path) -> None:
    ran = aioflow("grammar", "debug", "shop.html", "--grammar", "goods.jedi", "-o", "none/p.html", cwd=shop)
    assert ran.returncode == 2
    assert "cannot write page: no such file or directory: 'none/p.html'" in ran.stderr
