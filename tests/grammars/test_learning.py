"""Grammars from a few marked records, on real pages, on pages with gaps, and on hostile ones."""

import re
from typing import Any

import pytest

from aioflow.errors import InputError
from aioflow.grammars import compile, learn
from tests.grammars.test_pages import page, records

FIELDS = {
    "ca8.html": ("link", "date", "title", "court"),
    "armfor.html": ("name", "docket", "link", "date"),
    "okla.html": ("link", "title", "citation", "number", "date"),
    "ncctapp.html": ("link", "number", "status", "author"),
    "pgnews_1998_11.txt": ("month", "year", "title", "file", "number"),
    "pgnews_2004_11.txt": ("title", "author", "number"),
    "tzdata_changelog.txt": ("package", "version", "urgency", "maintainer", "email", "date"),
}


def marked(name: str, *numbers: int) -> list[dict[str, Any]]:
    """The records of these numbers, as the grammar that was written by hand extracts them."""
    return [{field: records(name)[each][field].strip() for field in FIELDS[name]} for each in numbers]


def stripped(found: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{name: value.strip() for name, value in record.items()} for record in found]


@pytest.mark.parametrize(
    ("name", "numbers", "count"),
    [
        ("ca8.html", (0, 3), 38),
        ("ca8.html", (0, 3, 5, 38), 74),
        ("armfor.html", (0, 1), 25),
        ("okla.html", (0, 2), 7),
        ("ncctapp.html", (0, 1), 20),
        ("ncctapp.html", (0, 1, 30), 37),
        ("pgnews_1998_11.txt", (0, 5), 72),
        ("pgnews_1998_11.txt", (0, 5, 60), 135),
        ("pgnews_2004_11.txt", (0, 50), 489),
        ("tzdata_changelog.txt", (0, 3), 7),
        ("tzdata_changelog.txt", (0, 3, 9), 38),
    ],
)
def test_examples_of_a_real_page_teach_what_was_written_by_hand(
    name: str, numbers: tuple[int, ...], count: int
) -> None:
    learned = learn(page(name), marked(name, *numbers))
    by_hand = marked(name, *range(len(records(name))))
    found = stripped(learned.records)
    # Nothing is found that is none, and records that are not found are told of.
    assert [record for record in found if record not in by_hand] == []
    assert len(found) == count
    assert count in (len(by_hand), 489) or any(
        "skipped" in doubt or "differ" in doubt for doubt in learned.doubts
    )


def test_skipped_records_that_look_alike_are_counted() -> None:
    learned = learn(page("pgnews_1998_11.txt"), marked("pgnews_1998_11.txt", 0, 5))
    (doubt,) = (each for each in learned.doubts if "skipped" in each)
    missing = len(records("pgnews_1998_11.txt")) - len(learned.records)
    assert doubt.startswith(f"{missing} places were skipped that differ in blanks or digits only: line 347")


SHOP = """<h1>Goods</h1>
<li><b>Psion 3c</b> <i>new!</i> costs <u>$399.50</u></li>
<li><b>Siena</b> costs <u>$199</u></li>
<li><b>Modem &amp; cable</b> <i>used</i> costs <u>$20</u></li>
<li><b>Palm <em>Pilot</em></b> costs <u>$249.90</u></li>
"""


def test_the_text_of_a_learned_grammar_is_a_grammar() -> None:
    learned = learn(SHOP, [{"name": "Psion 3c", "price": "399.50"}, {"name": "Siena", "price": 199}])
    assert compile(learned.text).parse(SHOP, "records").value == learned.records
    assert learned.records == [
        {"name": "Psion 3c", "price": "399.50"},
        {"name": "Siena", "price": "199"},
        {"name": "Modem &amp; cable", "price": "20"},
    ]
    assert "price=[0-9.]+" in learned.text
    assert any("between name and price the examples differ" in doubt for doubt in learned.doubts)


def test_a_field_that_an_example_lacks_is_optional() -> None:
    examples: list[dict[str, Any]] = [
        {"name": "Psion 3c", "state": "new!", "price": "399.50"},
        {"name": "Siena", "state": None, "price": "199"},
    ]
    learned = learn(SHOP, examples)
    assert [record.get("state") for record in learned.records] == ["new!", None, "used"]
    assert [record["price"] for record in learned.records] == ["399.50", "199", "20"]
    assert "state is optional: some examples lack it" in learned.doubts


def test_values_are_found_with_entities_and_markup_inside() -> None:
    learned = learn(SHOP, [{"name": "Siena", "price": "199"}, {"name": "Palm Pilot", "price": "249.90"}])
    assert {"name": "Palm <em>Pilot</em>", "price": "249.90"} in learned.records
    said = "example 2: name is written 'Palm <em>Pilot</em>' on the page, and extracted so"
    assert said in learned.doubts
    learned = learn(SHOP, [{"name": "Psion 3c", "price": "399.50"}, {"name": "Modem & cable", "price": "20"}])
    assert {"name": "Modem &amp; cable", "price": "20"} in learned.records


def test_the_occurrence_is_taken_whose_values_are_together() -> None:
    text = "199 Siena is mentioned first, and 1999 too.\n"
    text += "Item: Psion = 399;\nItem: Siena = 199;\nItem: Palm = 249;\n"
    learned = learn(text, [{"name": "Psion", "price": "399"}, {"name": "Siena", "price": "199"}])
    assert learned.records == [
        {"name": "Psion", "price": "399"},
        {"name": "Siena", "price": "199"},
        {"name": "Palm", "price": "249"},
    ]
    assert any(
        "example 2 is taken from line 3, but its values occur elsewhere" in each for each in learned.doubts
    )


def test_equal_examples_give_equal_grammars() -> None:
    examples = marked("ncctapp.html", 0, 1, 30)
    one, other = (learn(page("ncctapp.html"), examples) for _ in range(2))
    assert (one.text, one.doubts) == (other.text, other.doubts)


def test_one_example_is_told_to_be_few() -> None:
    learned = learn(SHOP, [{"name": "Siena", "price": "199"}])
    assert {"name": "Siena", "price": "199"} in learned.records
    assert "one example does not tell what differs from record to record; mark another one" in learned.doubts


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([], "mark at least one record"),
        ([{}], "example 1 has no value"),
        ([{"name": " "}], "example 1: name is empty"),
        ([{"name": ["a"]}], "example 1: name must be a text, a number or null"),
        ([{"na me": "Siena"}], "'na me' cannot be the name of a variable"),
        ([{"end": "Siena"}], "'end' cannot be the name of a variable"),
        ([{"name": "Sienna"}], "name 'Sienna' is not on the page; the nearest text is 'Siena<'"),
        (
            [{"name": "Siena"}, {"name": "@@@@"}],
            "example 2: name '@@@@' is not on the page; nothing on it is like",
        ),
        ([{"name": "Siena"}] * 21, "more than 20 examples"),
        ([{"a": "Siena", "b": "Siena"}], "only within one another"),
    ],
)
def test_examples_that_cannot_be_used_are_told(examples: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        learn(SHOP, examples)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 300_000 + "<b>one</b> 1 end\n<b>two</b> 2 end\n" + "<" * 100_000,
        "<b>one</b> 1 end\n<b>two</b> 2 end\n" * 3_000,
        "".join(
            f"\x00'\"\\]^- <b>{word}</b> {number} \x1b[31m'\"\\ end \u202e\n "
            for number, word in enumerate(("one", "two"), 1)
        ),
        "(" * 5_000 + "<b>one</b> 1 end\n<b>two</b> 2 end\n" + ")" * 5_000,
        "rule a is 'b' end // <b>one</b> 1 end\nrule a is 'b' end // <b>two</b> 2 end\n",
    ],
)
def test_hostile_pages_are_read_within_bounds(text: str) -> None:
    learned = learn(text, [{"name": "one", "number": "1"}, {"name": "two", "number": "2"}])
    assert {"name": "one", "number": "1"} in learned.records
    assert {"name": "two", "number": "2"} in learned.records


def test_a_page_may_be_long_but_not_endless() -> None:
    with pytest.raises(InputError, match="more than 2,000,000 characters"):
        learn("a" * 2_000_001, [{"name": "a"}])
