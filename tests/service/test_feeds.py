"""Changes as feeds, read back by feedparser and by parsers of XML and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from aioflow.relation import Document, Relation, Value
from aioflow.service.feeds import FeedInfo, atom, json_feed, rss
from aioflow.state import RowChange

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ABOUT = FeedInfo(
    "Houses & more", "https://monitor.example/tasks/1", "https://monitor.example/tasks/1.xml", NOON
)
ATOM = "{http://www.w3.org/2005/Atom}"
HOUSE = {"url": "https://houses.example/7?a=1&b=2", "address": "7 Ocean Drive", "price": 500}
Feed = Callable[[Iterable[RowChange], FeedInfo], bytes]
BOTH = pytest.mark.parametrize("feed", [rss, atom])


def added(row: dict[str, Value], place: int = 1) -> RowChange:
    return RowChange("houses", "key", "added", NOON, "run", "", place, True, (), None, row, "cursor")


def removed(row: dict[str, Value]) -> RowChange:
    return replace(added(row), kind="removed", before=row, after=None)


def changed(before: dict[str, Value], after: dict[str, Value]) -> RowChange:
    columns = tuple(name for name in after if before[name] != after[name])
    return replace(added(after), kind="changed", columns=columns, before=before)


def parsed(feed: Feed, *changes: RowChange, about: FeedInfo = ABOUT) -> Any:
    found = feedparser.parse(feed(changes, about), sanitize_html=False)
    assert not found.bozo, found
    return found


# --- entries --------------------------------------------------------------------------------------


@BOTH
def test_an_entry_has_title_link_time_and_categories(feed: Feed) -> None:
    (entry,) = parsed(feed, added(HOUSE)).entries
    assert entry.title == "New: 7 Ocean Drive"
    assert entry.link == HOUSE["url"]
    assert entry.published_parsed[:6] == (2026, 1, 31, 12, 0, 0)
    assert [tag.term for tag in entry.tags] == ["new", "houses"]
    assert "<th>price</th><td>500</td>" in entry.summary


@BOTH
def test_the_title_tells_what_has_changed(feed: Feed) -> None:
    (entry,) = parsed(feed, changed(HOUSE, {**HOUSE, "price": 480})).entries
    assert entry.title == "Changed: 7 Ocean Drive (price: 500 → 480)"
    assert "<th>price</th><td>500</td><td>480</td>" in entry.summary
    (entry,) = parsed(feed, changed(HOUSE, {**HOUSE, "price": None})).entries
    assert entry.title == "Changed: 7 Ocean Drive (price: 500 → nothing)"


@BOTH
def test_a_row_that_is_gone_has_its_last_values(feed: Feed) -> None:
    (entry,) = parsed(feed, removed(HOUSE)).entries
    assert (entry.title, entry.link) == ("Gone: 7 Ocean Drive", HOUSE["url"])


@pytest.mark.parametrize(
    ("row", "title"),
    [
        ({"id": "x1", "Title": "A title", "name": "a name"}, "New: A title"),
        ({"id": "b-7", "name": ""}, "New: b-7"),
        ({"url": "https://x.example/", "n": 5}, "New: https://x.example/"),
        ({"n": 5, "d": date(2026, 1, 2)}, "New: 5"),
        ({"n": None}, "New: houses"),
        ({"text": "one\n two\t three"}, "New: one two three"),
        ({"text": "x" * 500}, f"New: {'x' * 119}…"),
    ],
)
def test_a_title_has_the_text_that_people_know_the_row_by(row: dict[str, Value], title: str) -> None:
    assert parsed(atom, added(row)).entries[0].title == title


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "/houses/7",
        "https://",
        "http://[",
        "http://a b",
        'http://x"',
    ],
)
def test_other_texts_are_no_links(address: str) -> None:
    change = added({"url": address})
    for feed in (rss, atom):
        assert not parsed(feed, change).entries[0].get("links")
    assert "url" not in json.loads(json_feed([change], ABOUT))["items"][0]


@BOTH
def test_values_are_escaped(feed: Feed) -> None:
    row: dict[str, Value] = {"<b>": "<script>alert('&')</script>"}
    (entry,) = parsed(feed, added(row)).entries
    expected = "<th>&lt;b&gt;</th><td>&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;</td>"
    assert entry.summary == f"<table><tr>{expected}</tr></table>"


def test_identities_are_stable_and_unique() -> None:
    change = added(HOUSE)
    others = [replace(change, place=2), replace(change, run_id="other"), replace(change, table="other")]
    for feed in (rss, atom):
        ids = [entry.id for entry in parsed(feed, change, *others).entries]
        assert len(set(ids)) == 4
        later = replace(change, cursor="another", noticed=NOON + timedelta(days=1))
        assert parsed(feed, later).entries[0].id == ids[0]
    assert [each["id"] for each in json.loads(json_feed([change, *others], ABOUT))["items"]] == ids


# --- feeds ----------------------------------------------------------------------------------------


@BOTH
def test_a_feed_describes_itself(feed: Feed) -> None:
    found = parsed(feed, about=replace(ABOUT, language="de"))
    assert (found.feed.title, found.feed.link, found.feed.language) == (ABOUT.title, ABOUT.home, "de")
    assert {"rel": "self", "href": ABOUT.address}.items() <= {
        (key, value) for link in found.feed.links for key, value in link.items()
    }
    assert found.feed.updated_parsed[:4] == (2026, 1, 31, 12)
    assert found.entries == []


def test_atom_has_the_elements_that_it_must_have() -> None:
    root = ElementTree.fromstring(atom([added(HOUSE)], ABOUT))
    assert root.tag == f"{ATOM}feed"
    for element in (root, *root.iter(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert len(element.findall(f"{ATOM}{name}")) == 1
    assert root.findtext(f"{ATOM}author/{ATOM}name") == "aioflow"
    assert {each.tag for each in root.iter()} <= {
        f"{ATOM}{name}"
        for name in (
            *("feed", "entry", "id", "title", "updated", "published", "link", "author", "name"),
            *("category", "content"),
        )
    }


def test_rss_has_the_elements_that_it_must_have() -> None:
    root = ElementTree.fromstring(rss([added(HOUSE)], ABOUT))
    assert (root.tag, root.get("version")) == ("rss", "2.0")
    channel = root.find("channel")
    assert channel is not None
    assert all(channel.findtext(name) for name in ("title", "link", "description", "lastBuildDate"))
    guid = channel.find("item/guid")
    assert guid is not None
    assert guid.get("isPermaLink") == "false"


def test_json_feed_has_the_keys_that_it_must_have() -> None:
    found = json.loads(json_feed([added(HOUSE)], replace(ABOUT, language="en")))
    assert found["version"] == "https://jsonfeed.org/version/1.1"
    assert (found["title"], found["home_page_url"], found["feed_url"], found["language"]) == (
        *(ABOUT.title, ABOUT.home, ABOUT.address, "en"),
    )
    (item,) = found["items"]
    assert (item["title"], item["url"], item["date_published"], item["tags"]) == (
        *("New: 7 Ocean Drive", HOUSE["url"], "2026-01-31T12:00:00Z", ["new", "houses"]),
    )
    assert isinstance(item["id"], str)
    assert item["content_html"]


def test_times_are_in_utc() -> None:
    change = replace(added(HOUSE), noticed=NOON.astimezone(timezone(timedelta(hours=9))))
    assert parsed(atom, change).entries[0].published == "2026-01-31T12:00:00Z"


TEXTS = st.text(st.characters(codec=None), max_size=20)
VALUES = st.one_of(
    *(TEXTS, st.none(), st.integers(), st.floats(), st.booleans(), st.dates()),
    st.just(Decimal("1.50")),
    st.just(Document("<p>\x01</p>", "html")),
    st.lists(TEXTS, max_size=3).map(Relation.of_values),
)
ROWS = st.dictionaries(TEXTS, VALUES, max_size=4)


@given(st.lists(ROWS, max_size=3), TEXTS, TEXTS)
def test_any_values_make_a_feed_that_can_be_parsed(
    rows: list[dict[str, Value]], table: str, title: str
) -> None:
    changes = [replace(added(row, place), table=table) for place, row in enumerate(rows)]
    changes += [replace(changed({**row}, row), columns=tuple(row)) for row in rows]
    about = replace(ABOUT, title=title)
    assert len(ElementTree.fromstring(rss(changes, about)).findall("channel/item")) == len(changes)
    assert len(ElementTree.fromstring(atom(changes, about)).findall(f"{ATOM}entry")) == len(changes)
    assert len(json.loads(json_feed(changes, about))["items"]) == len(changes)
