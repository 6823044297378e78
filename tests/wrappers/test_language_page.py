"""The page about wrappers: its examples have no mistakes, its tables are complete and true."""

import re

import pytest

from aioflow import Engine, loads
from aioflow.wrappers import parse_wrapper, reader_names
from aioflow.wrappers.conversions import WORDS
from aioflow.wrappers.language.wrapper_text import DIRECTIVES
from aioflow.wrappers.templates import Authority, UrlTemplate
from tests.documentation import ROOT, Block, blocks_of

PAGE = (ROOT / "docs" / "wrappers.md").read_text(encoding="utf-8")
EXAMPLES = [block for block in blocks_of(PAGE) if block.kind == "wrapper"]


def section(title: str) -> str:
    found = re.search(rf"^#+ {re.escape(title)}$(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def first_cells(text: str) -> list[str]:
    return [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: f"line {block.line}")
def test_an_example_has_no_mistakes(block: Block) -> None:
    text = block.text
    request = (
        "" if re.search(r"^(GET|POST):", text, re.MULTILINE) else 'GET: "https://homes.example/{city}"\n'
    )
    wrapper = f"WRAPPER w (city, max-price optional)\n{{\n{request}{text}}}\nPLAN p {{ BODY {{ }} }}"
    found = Engine().check(loads(wrapper))
    assert [str(each) for each in found if each.severity == "error"] == []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5


def test_the_header_of_the_page_can_be_read() -> None:
    header = section("The header").split("`")[1]
    inputs = parse_wrapper("w", header).inputs
    assert inputs is not None
    assert [given.name for given in inputs] == ["city", "beds", "max-price", "page"]


def test_every_directive_is_described_and_in_the_grammar() -> None:
    described = PAGE.split("## Grammar")[0]
    grammar = section("Grammar")
    assert [name for name in DIRECTIVES if not re.search(rf"`{name}\b", described)] == []
    assert [name for name in DIRECTIVES if f'"{name}"' not in grammar] == []


def test_every_word_is_described() -> None:
    listed = {word for cell in first_cells(section("Words")) for word in re.findall(r"`(\w+)", cell)}
    assert listed == set(WORDS)


def test_every_reader_is_described() -> None:
    table = section("Reading").split("Packages can add")[0]
    described = {cell.strip(" `") for cell in first_cells(table)}
    assert described == set(reader_names())


def test_the_table_of_templates_is_true() -> None:
    values = {"city": "New York", "path": "/a/b", "link": "https://a.example/x?y", "n": None}
    places = {name: place for place, name in enumerate(values)}
    rows = re.findall(r"^\| `(\S+)` \| `(\S+)` \|$", section("URL templates"), re.MULTILINE)
    assert len(rows) == 7
    for template, url in rows:
        compiled = UrlTemplate(template, places)
        assert Authority(compiled).url(compiled.expand(list(values.values()))) == url
