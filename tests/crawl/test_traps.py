"""Traps end, and real sites come through whole."""

from __future__ import annotations

import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import pytest

from aioflow.crawl import TRAPS, CrawlTraps, TrapNames, UrlRules
from aioflow.crawl.traps import (
    _MOST_REMEMBERED,
    MOST_DATES,
    MOST_QUERIES,
    Calendar,
    ParameterCounts,
    is_loop,
)
from aioflow.errors import SettingError

YEAR = 2026
SITE = "http://a.example"


def reasons(urls: Iterable[str], traps: Iterable[str] = TRAPS) -> list[str | None]:
    return UrlRules(traps=CrawlTraps(traps, year=YEAR)).reasons(list(urls))


def counted(urls: Iterable[str]) -> Counter[str | None]:
    return Counter(reasons(urls))


# --- sites that come through --------------------------------------------------------------------


def installed_pages() -> Iterator[str]:
    """URLs of the documentation and of the packages that are installed here, as a server would have them."""
    roots = [Path("/usr/share/doc"), Path(sysconfig.get_path("purelib")), Path(sys.prefix) / "share"]
    for root in roots:
        for number, path in enumerate(root.rglob("*")):
            if number > 30_000:
                break
            yield f"{SITE}/{path.relative_to(root).as_posix()}"


def test_installed_documentation_comes_through_whole() -> None:
    urls = list(installed_pages())
    assert len(urls) > 1000
    assert counted(urls) == {None: len(urls)}


def blog() -> Iterator[str]:
    """A blog of twenty years: a page for each day, month and year, posts, tags and pages of lists."""
    day = date(2004, 1, 1)
    while day < date(YEAR, 6, 1):
        yield f"{SITE}/{day:%Y/%m/%d}/"
        yield f"{SITE}/{day:%Y/%m/%d}/a-post-of-{day:%d}/"
        yield f"{SITE}/{day:%Y/%m}/"
        yield f"{SITE}/archive/{day:%Y-%m-%d}.html"
        day += timedelta(days=1)
    for number in range(2000):
        yield f"{SITE}/?p={number}"
        yield f"{SITE}/tag/t{number}/page/{number % 30}/"
        yield f"{SITE}/?m={2004 + number % 20}{1 + number % 12:02}"


def forum() -> Iterator[str]:
    """A forum: topics by number, each with some pages, and profiles."""
    for topic in range(1, 6000):
        for start in range(0, 20 * (1 + topic % 6), 20):
            yield f"{SITE}/viewtopic.php?f={topic % 25}&t={topic}&start={start}"
        yield f"{SITE}/memberlist.php?mode=viewprofile&u={topic}"
        yield f"{SITE}/topic/{topic}/{topic % 12}"


def wiki() -> Iterator[str]:
    for number in range(6000):
        for action in ("edit", "history"):
            yield f"{SITE}/index.php?title=Page_{number}&action={action}"
        yield f"{SITE}/index.php?title=Page_{number}&oldid={number * 7}&diff={number * 7 + 1}"


def shop() -> Iterator[str]:
    """A shop whose articles are parameters, and lists with some orders and pages."""
    for number in range(20_000):
        yield f"{SITE}/product.php?id={number}&lang=en"
    for category, page, order in product(range(40), range(20), ("price", "name")):
        yield f"{SITE}/c/{category}?page={page}&order={order}"


def numbers() -> Iterator[str]:
    """Numbers that might be dates, and paths that might be loops, but are not."""
    for number in range(10_000, 30_000, 20):
        yield f"{SITE}/list?start={number}&from=1200&to=2500"
    yield from (f"{SITE}/tiles/{z}/{x}/{x}.png" for z in range(5) for x in range(5))
    yield from (f"{SITE}/map?x={x}&y=2500&z=3" for x in range(100))
    yield from (f"{SITE}/films?year={year}" for year in range(1890, YEAR))
    yield f"{SITE}/2001/11/11/11/11"
    yield f"{SITE}/docs/en/docs/"
    yield f"{SITE}/item/2950/10"
    yield f"{SITE}/_downloads/0123456789abcdef0123456789abcdef/example.py"
    yield f"{SITE}/newspaper/1912/04/16/"
    yield f"{SITE}/a/(b)/c?d=(e)"


@pytest.mark.parametrize("site", [blog, forum, wiki, shop, numbers])
def test_sites_come_through_whole(site: object) -> None:
    assert callable(site)
    urls = list(site())
    found = reasons(urls)
    assert [pair for pair in zip(urls, found, strict=True) if pair[1]] == []


# --- traps --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("/calendar/2031/01/", "calendar"),
        ("/events/1850-03", "calendar"),
        ("/events/2027-03", None),
        ("/cal?year=2040&month=1", "calendar"),
        ("/cal?date=2040-01-01", "calendar"),
        ("/cal?date=20400101", "calendar"),
        ("/cal?date=2026-05-01", None),
        ("/2099/01/01/", "calendar"),
        ("/a/a/a", "path-loops"),
        ("/a/b/a/b/a/b/", "path-loops"),
        ("/x/a/b/c/a/b/c/a/b/c/y", "path-loops"),
        ("/a/b/a/c/a/d/a/e/a", "path-loops"),
        ("/a/a/b/b", None),
        ("/" + "/".join(map(str, range(21))), "path-depth"),
        ("/" + "/".join(map(str, range(20))), None),
        ("/x;jsessionid=1A2B", "sessions"),
        ("/(S(lit3py55t21z5v55vlm25s55))/order.aspx", "sessions"),
        ("/?PHPSESSID=0123456789abcdef0123456789abcdef", "sessions"),
        ("/?sid=0123456789abcdef0123456789abcdef", "sessions"),
        ("/?sid=12", None),
        ("/?sessionid=12", None),
    ],
)
def test_one_url_of_a_trap(url: str, reason: str | None) -> None:
    assert reasons([SITE + url]) == [reason]
    if reason is not None:
        others = [name for name in TRAPS if name != reason]
        assert reasons([SITE + url], others) == [None]
        assert reasons([SITE + url], ()) == [None]


@pytest.mark.parametrize(
    "form", ["/calendar/{:%Y/%m/%d}", "/cal.php?day={0:%d}&month={0:%m}&year={0:%Y}", "/?date={:%Y-%m-%d}"]
)
def test_a_calendar_without_end_ends(form: str) -> None:
    days = [date(YEAR, 6, 1) + timedelta(days=number) for number in range(200_000)]
    found = counted(SITE + form.format(day) for day in days)
    assert found[None] <= 366 * 11
    assert sum(found.values()) - found[None] == found["calendar"] + found["parameters"]
    backwards = [date(YEAR, 6, 1) - timedelta(days=number) for number in range(200_000)]
    assert counted(SITE + form.format(day) for day in backwards)[None] <= MOST_DATES


def test_combinations_of_filters_end() -> None:
    urls = [
        f"{SITE}/list?colour={a}&size={b}&brand={c}&order={d}"
        for a, b, c, d in product(range(20), range(20), range(50), range(4))
    ]
    found = counted(urls)
    assert 1000 <= (found[None] or 0) <= 3000
    assert found["parameters"] == len(urls) - found[None]


def test_combinations_end_where_the_path_has_a_number_too() -> None:
    urls = [
        f"{SITE}/c/{number}/list?colour={number % 20}&size={number // 20 % 20}&brand={number // 400}"
        for number in range(20_000)
    ]
    assert counted(urls)["parameters"] > 15_000


def test_parameters_that_are_never_the_same_end() -> None:
    found = counted(f"{SITE}/page?r={number}" for number in range(MOST_QUERIES + 1000))
    assert found == {None: MOST_QUERIES, "parameters": 1000}


def test_a_url_that_was_let_through_is_let_through_again() -> None:
    traps = UrlRules(traps=CrawlTraps(year=YEAR))
    urls = [f"{SITE}/list?a={a}&b={b}&c={c}" for a, b, c in product(range(30), repeat=3)]
    first = traps.reasons(urls)
    assert None in first
    assert "parameters" in first
    assert traps.reasons(urls) == first


def test_what_is_remembered_is_bounded() -> None:
    counts, calendar = ParameterCounts(), Calendar(YEAR)
    for number in range(600_000):
        counts.is_endless(SITE, f"/p{number}", f"a={number}")
        if number % 4 == 0:
            calendar.is_endless(SITE, f"/calendar/c{number}/2026/05/", "")
    assert counts.remembered <= _MOST_REMEMBERED
    assert calendar.remembered <= _MOST_REMEMBERED


def test_the_length_of_a_path_costs_no_more_than_its_segments() -> None:
    assert not is_loop([str(number) for number in range(2000)])
    assert is_loop(["a", "b"] * 1000)


def test_names_of_traps() -> None:
    assert TrapNames.bind("calendar, Sessions", ()) == ("calendar", "sessions")
    assert TrapNames.bind(("parameters", "path-loops"), ()) == ("parameters", "path-loops")
    assert TrapNames.bind("none", ()) == ()
    with pytest.raises(SettingError, match="did you mean 'calendar'"):
        TrapNames.bind("calender", ())
    with pytest.raises(SettingError, match="must be some of"):
        TrapNames.bind(3, ())
