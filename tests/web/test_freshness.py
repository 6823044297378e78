"""When a private cache may keep an answer and give it again (RFC 9111)."""

from __future__ import annotations

import pytest

from aioflow.web.freshness import (
    StoredHead,
    age,
    asked,
    conditions,
    confirms,
    directives,
    lifetime,
    may_keep,
    may_use,
    merged,
    to_keep,
    varying,
)

DATE = "Tue, 15 Nov 1994 00:08:31 GMT"  # a moment as a server writes it
AT = 784_858_111.0


def kept(*headers: tuple[str, str], status: int = 200, at: float = AT, delay: float = 0.0) -> StoredHead:
    return StoredHead(status, headers, at - delay, at)


def control(text: str) -> tuple[str, str]:
    return ("Cache-Control", text)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], 0),
        ([control("max-age=60")], 60),
        ([control('max-age="60"')], 60),
        ([control("public, MAX-AGE = 60 , x")], 60),
        ([control("max-age=60, max-age=5")], 60),
        ([control("s-maxage=60")], 0),
        ([control("max-age=-5")], 0),
        ([control("max-age=x"), ("Expires", "Tue, 15 Nov 1994 01:08:31 GMT")], 0),
        ([control("max-age=99999999999999999999")], 2.0**31),
        ([control("max-age=60"), ("Expires", "0")], 60),
        ([("Date", DATE), ("Expires", "Tue, 15 Nov 1994 00:09:31 GMT")], 60),
        ([("Expires", "Tue, 15 Nov 1994 00:09:31 GMT")], 60),
        ([("Date", DATE), ("Expires", "Mon, 14 Nov 1994 00:08:31 GMT")], 0),
        ([("Expires", "0"), ("Last-Modified", "Mon, 14 Nov 1994 00:08:31 GMT")], 0),
        ([("Date", DATE), ("Last-Modified", "Mon, 14 Nov 1994 00:08:31 GMT")], 8640),
        ([("Date", DATE), ("Last-Modified", "Mon, 14 Nov 1904 00:08:31 GMT")], 86400),
        ([("Date", DATE), ("Last-Modified", "Wed, 16 Nov 1994 00:08:31 GMT")], 0),
        ([("Last-Modified", "yesterday")], 0),
        ([("Expires", "Tue, 99 Nov 99999999999 00:09:31 GMT")], 0),
    ],
)
def test_an_answer_is_fresh_for_a_while(headers: list[tuple[str, str]], seconds: float) -> None:
    assert lifetime(kept(*headers)) == seconds


@pytest.mark.parametrize(
    ("headers", "delay", "later", "seconds"),
    [
        ([], 0, 10, 10),
        ([("Age", "30")], 0, 10, 40),
        ([("Age", "30")], 5, 10, 45),
        ([("Age", "30, 40")], 0, 0, 30),
        ([("Age", "-30")], 0, 10, 10),
        ([("Date", "Tue, 15 Nov 1994 00:07:31 GMT")], 5, 10, 70),
        ([("Date", "Tue, 15 Nov 1994 00:09:31 GMT")], 0, 10, 10),
        ([("Date", "nonsense")], 0, 10, 10),
        ([], 0, -100, 0),
    ],
)
def test_an_answer_has_an_age(
    headers: list[tuple[str, str]], delay: float, later: float, seconds: float
) -> None:
    assert age(kept(*headers, delay=delay), AT + later) == seconds


@pytest.mark.parametrize(
    ("answer", "request_says", "later", "may"),
    [
        ("max-age=60", "", 59, True),
        ("max-age=60", "", 60, False),
        ("max-age=60, no-cache", "", 1, False),
        ('max-age=60, no-cache="Set-Cookie"', "", 1, False),
        ("max-age=60, private", "", 1, True),
        ("max-age=60", "no-cache", 1, False),
        ("max-age=60", "max-age=10", 10, True),
        ("max-age=60", "max-age=10", 11, False),
        ("max-age=60", "max-age=0", 1, False),
        ("max-age=60", "max-age=x", 1, False),
        ("max-age=60", "min-fresh=10", 50, True),
        ("max-age=60", "min-fresh=10", 51, False),
        ("max-age=60", "max-stale", 1000, True),
        ("max-age=60", "max-stale=10", 70, True),
        ("max-age=60", "max-stale=10", 71, False),
        ("max-age=60, must-revalidate", "max-stale", 61, False),
        ("", "", 0, False),
    ],
)
def test_a_kept_answer_may_be_given(answer: str, request_says: str, later: float, may: bool) -> None:
    assert may_use(directives(request_says), kept(control(answer)), AT + later) is may


@pytest.mark.parametrize(
    ("status", "answer", "request_says", "authorized", "may"),
    [
        (200, "", "", False, True),
        (404, "", "", False, True),
        (301, "", "", False, True),
        (302, "max-age=60", "", False, False),
        (206, "max-age=60", "", False, False),
        (500, "max-age=60", "", False, False),
        (304, "max-age=60", "", False, False),
        (200, "private, max-age=60", "", False, True),
        (200, "no-store", "", False, False),
        (200, "No-Store, max-age=60", "", False, False),
        (200, "", "no-store", False, False),
        (200, "no-cache", "", False, True),
        (200, "max-age=60", "", True, False),
        (200, "max-age=60, private", "", True, False),
        (200, "public", "", True, True),
        (200, "must-revalidate", "", True, True),
        (200, "s-maxage=60", "", True, True),
        (200, "public, no-store", "", True, False),
    ],
)
def test_an_answer_may_be_kept(
    status: int, answer: str, request_says: str, authorized: bool, may: bool
) -> None:
    assert may_keep(directives(request_says), authorized, kept(control(answer), status=status)) is may


def test_an_answer_that_depends_on_anything_is_not_kept() -> None:
    assert varying(kept(("Vary", "Accept, COOKIE,"), ("vary", "x"))) == {"accept", "cookie", "x"}
    assert not may_keep({}, False, kept(("Vary", "Accept, *")))


def test_several_headers_are_read_as_one() -> None:
    assert not may_use({}, kept(control("max-age=60"), control("no-cache")), AT)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, {}),
        ({"cache-control": "max-age=0"}, {"max-age": "0"}),
        ({"Pragma": "no-cache"}, {"no-cache": ""}),
        ({"Pragma": "no-cache", "Cache-Control": "max-stale"}, {"max-stale": ""}),
    ],
)
def test_a_request_says_what_it_wants(headers: dict[str, str], expected: dict[str, str]) -> None:
    assert asked(headers) == expected


def test_a_kept_answer_is_asked_about_by_its_validators() -> None:
    assert conditions(kept()) == {}
    assert conditions(kept(("ETag", '"1"'), ("last-modified", DATE))) == {
        "If-None-Match": '"1"',
        "If-Modified-Since": DATE,
    }


@pytest.mark.parametrize(
    ("own", "other", "is_same"),
    [('"1"', '"1"', True), ('W/"1"', '"1"', True), ('"1"', '"2"', False), ('"1"', None, True)],
)
def test_a_304_speaks_of_an_etag(own: str, other: str | None, is_same: bool) -> None:
    assert confirms(kept(("ETag", own)), other) is is_same


def test_what_concerns_one_connection_or_one_visitor_is_not_kept() -> None:
    headers = [
        ("Content-Type", "text/html"),
        ("Set-Cookie", "id=1"),
        ("Connection", "close, X-Hop"),
        ("X-Hop", "1"),
        ("Transfer-Encoding", "chunked"),
        ("X-Two", "1"),
        ("X-Two", "2"),
    ]
    assert to_keep(headers) == (("Content-Type", "text/html"), ("X-Two", "1"), ("X-Two", "2"))


def test_a_304_renews_headers_but_not_those_of_the_body() -> None:
    old = (("Content-Type", "text/html"), ("Date", "then"), ("X-Old", "1"))
    news = [("content-type", "text/plain"), ("date", "now"), ("Content-Length", "0"), ("ETag", '"2"')]
    assert merged(old, news) == (
        ("Content-Type", "text/html"),
        ("X-Old", "1"),
        ("date", "now"),
        ("ETag", '"2"'),
    )
