"""Paging inside a wrapper: from each page to the next, and to an end."""

from typing import Any

import pytest

from aioflow.plan import Plan, Program
from aioflow.web.http import Request
from aioflow.wrappers import Pages, RequestMaker, Wrapper, parse_wrapper
from aioflow.wrappers.inheritance import build, merge
from aioflow.wrappers.requests import with_parameter


def wrapper(body: str) -> Wrapper:
    return build(merge(parse_wrapper("w", "", body), Program(Plan("p"))))


def first(of: Wrapper) -> Request:
    request = RequestMaker(of, secret=str.lower).make(())
    assert request is not None
    return request


def walk(body: str, *pages: tuple[Any, int]) -> list[str]:
    """The URLs that are asked for when pages have these values for the next one, and so many items."""
    described = wrapper(f'GET: "https://a.example/list?q=1"; EACH: "li"; {body}')
    request: Request | None = first(described)
    walking = Pages(described)
    urls = []
    for next_page, items in pages:
        assert request is not None
        urls.append(request.url.removeprefix("https://a.example/list"))
        request = walking.following(request, request.url, next_page, items)
    return [*urls, "end" if request is None else "more"]


def test_a_wrapper_without_paging_has_one_page() -> None:
    assert walk("", (None, 5)) == ["?q=1", "end"]


def test_next_links_are_relative_to_their_page() -> None:
    pages = [("?q=1&p=2", 3), ("/list?q=1&p=3", 3), (None, 3)]
    assert walk('PAGING: next "a.next"', *pages) == ["?q=1", "?q=1&p=2", "?q=1&p=3", "end"]


@pytest.mark.parametrize("link", [None, "", "  ", "javascript:void(0)", "mailto:x@y", "?q=1", "#top"])
def test_a_next_link_that_leads_nowhere_new_is_the_end(link: Any) -> None:
    assert walk('PAGING: next "a.next"', (link, 3)) == ["?q=1", "end"]


def test_next_links_in_a_circle_end() -> None:
    assert walk('PAGING: next "a"', ("?p=2", 1), ("?p=3", 1), ("?p=2", 1)) == ["?q=1", "?p=2", "?p=3", "end"]


def test_a_page_that_was_redirected_counts_as_seen_and_is_the_base_of_its_links() -> None:
    described = wrapper('GET: "https://a.example/"; PAGING: next "a"')
    request, walking = first(described), Pages(described)
    second = walking.following(request, "https://a.example/real/1", "2", 1)
    assert second is not None
    assert second.url == "https://a.example/real/2"
    assert walking.following(second, second.url, "/real/1", 1) is None


def test_numbers_and_offsets_go_on_until_a_page_has_no_items() -> None:
    pages = [(None, 2), (None, 1), (None, 0)]
    assert walk('PAGING: number "p"', *pages) == ["?q=1&p=1", "?q=1&p=2", "?q=1&p=3", "end"]
    assert walk('PAGING: number "p" from 0 by 2', *pages) == ["?q=1&p=0", "?q=1&p=2", "?q=1&p=4", "end"]
    assert walk('PAGING: offset "s" by 20', *pages) == ["?q=1&s=0", "?q=1&s=20", "?q=1&s=40", "end"]


def test_cursors_go_on_until_there_is_none_or_a_known_one() -> None:
    paging = 'PAGING: cursor "$.next" as "after"'
    assert walk(paging, ("a b", 0), (7, 1), (None, 1)) == ["?q=1", "?q=1&after=a%20b", "?q=1&after=7", "end"]
    assert walk(paging, ("a", 1), ("a", 1)) == ["?q=1", "?q=1&after=a", "end"]
    assert walk(paging, ("a", 1), ("b", 1), ("a", 1)) == ["?q=1", "?q=1&after=a", "?q=1&after=b", "end"]
    assert walk(paging, ("", 1)) == ["?q=1", "end"]


def test_max_pages_cuts_and_says_so() -> None:
    described = wrapper('GET: "https://a.example/"; EACH: "li"; PAGING: number "p"; MAX_PAGES: 2')
    request, walking = first(described), Pages(described)
    second = walking.following(request, request.url, None, 5)
    assert second is not None
    assert not walking.was_cut
    assert walking.following(second, second.url, None, 5) is None
    assert (walking.was_cut, walking.pages) == (True, 2)


def test_an_end_at_max_pages_is_no_cut() -> None:
    described = wrapper('GET: "https://a.example/"; EACH: "li"; PAGING: number "p"; MAX_PAGES: 1')
    walking = Pages(described)
    assert walking.following(first(described), "https://a.example/", None, 0) is None
    assert not walking.was_cut


def test_a_next_link_behind_a_form_is_followed_by_get() -> None:
    described = wrapper('POST: "https://a.example/"; FORM: a = 1; PAGING: next "a"; HEADERS: Accept = "x"')
    following = Pages(described).following(first(described), "https://a.example/", "/2", 1)
    assert following == Request("https://a.example/2", headers={"Accept": "x"})


def test_a_number_behind_a_form_is_another_post() -> None:
    described = wrapper('POST: "https://a.example/"; FORM: a = 1; EACH: "li"; PAGING: number "p"')
    following = Pages(described).following(first(described), "https://a.example/", None, 1)
    assert following is not None
    assert (following.method, following.body, following.url) == ("POST", b"a=1", "https://a.example/?p=2")


def test_secrets_do_not_follow_a_link_to_another_origin() -> None:
    described = wrapper(
        'GET: "https://a.example/"; AUTH: bearer "secret:T"; PAGING: next "a";'
        ' HEADERS: X-Key = "secret:K", Accept = "x"'
    )
    request = first(described)
    own = Pages(described).following(request, request.url, "/2", 1)
    assert own is not None
    assert own.headers == {"X-Key": "k", "Accept": "x", "Authorization": "Bearer t"}
    for link in ("https://b.example/", "http://a.example/", "https://a.example:8443/"):
        other = Pages(described).following(request, request.url, link, 1)
        assert other is not None
        assert other.headers == {"Accept": "x"}


def test_secrets_do_not_come_back_on_the_way_home() -> None:
    described = wrapper('GET: "https://a.example/"; AUTH: bearer "secret:T"; PAGING: next "a"')
    walking = Pages(described)
    away = walking.following(first(described), "https://a.example/", "https://b.example/", 1)
    assert away is not None
    home = walking.following(away, away.url, "https://a.example/2", 1)
    assert home is not None
    assert home.headers == {}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example", "https://a.example?p=2"),
        ("https://a.example/x?", "https://a.example/x?p=2"),
        ("https://a.example/x?p=1", "https://a.example/x?p=2"),
        ("https://a.example/x?a=1&p=1&b=2&p=5", "https://a.example/x?a=1&b=2&p=2"),
        ("https://a.example/x?%70=1&pp=3", "https://a.example/x?pp=3&p=2"),
        ("https://a.example/x?a#p=1", "https://a.example/x?a&p=2#p=1"),
    ],
)
def test_a_parameter_is_set_in_place_of_all_of_its_name(url: str, expected: str) -> None:
    assert with_parameter(url, "p", "2") == expected


def test_names_and_values_of_parameters_are_encoded() -> None:
    assert with_parameter("https://a.example/", "p[x]", "a&b c") == "https://a.example/?p%5Bx%5D=a%26b%20c"
