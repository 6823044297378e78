"""Other kinds of items: found by the language, understood by those who register them."""

import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import aioflow.language
from aioflow.errors import Diagnostic, PlanError, SettingError
from aioflow.language import ItemKind, end_of_body, format_text, item_kind, item_kinds, loads, parse
from aioflow.plan import Item, Plan
from aioflow.source import Span

TEXT = """\
PLAN p { BODY { } }

Thing first (a, b) LIKE other  # with a comment
{
  one: "}"   # and a brace }
  two: { three }
}
"""


class Calls:
    """A kind of items that remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str, str, Span, Span]] = []
        self.error: Exception | None = None

    def parse(self, name: str, header: str, body: str, header_span: Span, body_span: Span) -> object:
        self.given.append((name, header, body, header_span, body_span))
        if self.error is not None:
            raise self.error
        return {"name": name}


@pytest.fixture
def thing() -> Iterator[Calls]:
    calls = Calls()
    item_kind("THING", calls.parse)
    yield calls
    item_kinds.remove("THING")


def messages(text: str) -> list[str]:
    with pytest.raises(PlanError) as caught:
        loads(text, "t.plan")
    return [str(each) for each in caught.value.diagnostics]


def test_a_registered_kind_gets_texts_and_places(thing: Calls) -> None:
    item = parse(TEXT, "t.plan").entries[1]
    assert isinstance(item, Item)
    assert item.content == {"name": "first"}
    ((name, header, body, header_span, body_span),) = thing.given
    assert (name, header) == ("first", "(a, b) LIKE other")
    assert body == 'one: "}"   # and a brace }\n  two: { three }'
    assert (header_span.place, body_span.place) == ("t.plan:3:13", "t.plan:5:3")
    for text, span in ((header, header_span), (body, body_span)):
        assert span.source.text[span.start : span.end] == text


def test_items_reach_the_program(thing: Calls) -> None:
    program = loads(TEXT)
    item = program.item("thing", "FIRST")
    assert item is not None
    assert item.content == {"name": "first"}


def test_the_word_of_a_kind_is_a_name_elsewhere(thing: Calls) -> None:
    text = (
        "PLAN p\n{\nINPUT: a (x char,\nthing char),\nthing\nBODY\n{\nop () {\nthing\nALL\n}\nthing ()\n}\n}\n"
    )
    plan = parse(text).entries[0]
    assert isinstance(plan, Plan)
    assert ([each.name for each in plan.inputs], len(plan.statements)) == (["a", "thing"], 2)
    assert thing.given == []


def test_an_item_without_header_and_body(thing: Calls) -> None:
    parse("THING it {}")
    assert [(header, body) for _, header, body, _, _ in thing.given] == [("", "")]


def test_an_offset_in_the_body_is_shown_in_its_line(thing: Calls) -> None:
    thing.error = SettingError("there is no two", offset=thing_offset("two"))
    assert messages(TEXT) == ["t.plan:6:3: there is no two\n      two: { three }\n      ^"]


def thing_offset(word: str) -> int:
    return TEXT[TEXT.index("one:") :].index(word)


def test_an_offset_in_the_header_is_shown_there(thing: Calls) -> None:
    thing.error = SettingError("there is no other", setting="header", offset=12)
    assert [each.partition("\n")[0] for each in messages(TEXT)] == ["t.plan:3:25: there is no other"]


def test_a_mistake_without_an_offset_is_shown_at_the_body(thing: Calls) -> None:
    thing.error = SettingError("something is missing")
    assert [each.partition("\n")[0] for each in messages(TEXT)] == ["t.plan:5:3: something is missing"]


def test_all_mistakes_of_an_item_are_reported_beside_others(thing: Calls) -> None:
    source = parse("PLAN p { BODY { } }", "elsewhere").source
    assert source is not None
    thing.error = PlanError([Diagnostic("one"), Diagnostic("two", Span(source, 0, 1))])
    text = TEXT + "PLAN q { BODY { op (a b) } }\n"
    found = {each.partition("\n")[0] for each in messages(text)}
    assert found == {
        "one",
        "elsewhere:1:1: two",
        "t.plan:8:23: expected ',', ':' or ')' after 'a', found 'b'",
    }


def test_an_item_of_an_unknown_kind_is_kept_but_not_loaded() -> None:
    text = "RECIPE search (city) { GET: x }\nPLAN p { BODY { } }\n"
    assert parse(text).entries[0] == Item("RECIPE", "search", "(city)", "GET: x")
    assert messages(text) == [
        "t.plan:1:1: unknown item kind 'RECIPE'; no installed package provides it\n"
        "    RECIPE search (city) { GET: x }\n"
        "    ^^^^^^"
    ]


def test_an_item_kind_that_is_near_is_suggested(thing: Calls) -> None:
    found = messages("THNIG a { }\nPLAN p { BODY { } }")
    assert found[0].startswith("t.plan:1:1: unknown item kind 'THNIG'; did you mean 'THING'?\n")


def test_a_kind_may_find_the_end_of_its_bodies_itself() -> None:
    def end(text: str, start: int) -> int:
        return text.find("\n}", start) + 1

    calls = Calls()
    item_kind("ODD", calls.parse, end_of_body=end)
    try:
        text = "ODD a\n{\n  [{\"' /* }\n}\n"
        assert format_text(text + "plan p { body { } }") == text + "\nPLAN p\n{\n  BODY\n  {\n  }\n}\n"
        assert parse(text).entries == (Item("ODD", "a", "", "[{\"' /* }"),)
        with pytest.raises(PlanError, match=r"'\{' of ODD 'a' is never closed"):
            parse("ODD a { }")
    finally:
        item_kinds.remove("ODD")


@pytest.mark.parametrize(
    ("body", "end"),
    [
        ("}", 0),
        (" a } }", 3),
        ("{ } }", 4),
        ('"}" }', 4),
        ("'}' }", 4),
        ('"""\n}""" }', 9),
        ("# }\n}", 4),
        ("// }\n}", 5),
        ("/* } */ }", 8),
        ("don't }", 6),
        (r'"\"}" }', 6),
        ("{ }", -1),
        ("", -1),
    ],
)
def test_the_end_of_a_body(body: str, end: int) -> None:
    assert end_of_body(body, 0) == end


@pytest.mark.parametrize("keyword", ["plan", "USE", "Body"])
def test_the_language_keeps_its_own_words(keyword: str) -> None:
    with pytest.raises(TypeError, match=f"an item kind cannot be called '{keyword}'"):
        item_kind(keyword, Calls().parse)


INSTALLED = ItemKind("EXTRA", lambda name, header, body, header_span, body_span: name)
NOT_A_KIND = 42


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def entry_points(group: str) -> list[EntryPoint]:
        assert group == "aioflow.items"
        return [
            EntryPoint("EXTRA", f"{__name__}:INSTALLED", group),
            EntryPoint("WRONG", f"{__name__}:NOT_A_KIND", group),
        ]

    monkeypatch.setattr("aioflow.language.kinds.installed", entry_points)
    yield
    item_kinds.remove("EXTRA")


@pytest.mark.usefixtures("installed")
def test_installed_packages_bring_kinds() -> None:
    item = parse("EXTRA a { }").entries[0]
    assert isinstance(item, Item)
    assert item.content == "a"
    assert "EXTRA" in item_kinds.keywords()


@pytest.mark.usefixtures("installed")
def test_an_entry_point_that_is_no_kind_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"entry point 'WRONG' of 'aioflow.items' must give an ItemKind, not 42"
    ):
        parse("WRONG a { }")


def test_the_language_names_no_kind() -> None:
    for path in Path(aioflow.language.__file__).parent.iterdir():
        if path.suffix in (".py", ".lark"):
            text = path.read_text("utf-8")
            assert not re.search(r"WRAPPER|GRAMMAR", text), path
