"""URL templates as RFC 6570 has them, texts with values, and hosts that no value can change."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from aioflow.relation import Relation, Schema
from aioflow.web.errors import RequestRefusedError
from aioflow.wrappers.templates import Authority, TextTemplate, UrlTemplate


def listed(*values: Any) -> Relation:
    return Relation(Schema(("value",)), [(value,) for value in values])


def expand(template: str, **values: Any) -> str:
    places = {name: place for place, name in enumerate(values)}
    compiled = UrlTemplate(template, places)
    assert compiled.mistakes == []
    return "".join(compiled.expand(list(values.values())))


def url(template: str, **values: Any) -> str:
    """The URL, its host guarded."""
    places = {name: place for place, name in enumerate(values)}
    compiled = UrlTemplate(template, places)
    authority = Authority(compiled)
    assert compiled.mistakes + authority.mistakes == []
    return authority.url(compiled.expand(list(values.values())))


def text(template: str, **values: Any) -> str:
    compiled = TextTemplate(template, {name: place for place, name in enumerate(values)})
    assert compiled.mistakes == []
    return compiled.render(list(values.values()))


# --- RFC 6570 ------------------------------------------------------------------------------------

VALUES: dict[str, Any] = {
    "count": listed("one", "two", "three"),
    "dom": listed("example", "com"),
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": listed("red", "green", "blue"),
    "v": "6",
    "x": 1024,
    "y": 768,
    "empty": "",
    "none": listed(),
    "undef": None,
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,y}", "1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,empty}", "?1024,"),
        ("?{x,undef}", "?1024"),
        ("?{undef,y}", "?768"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{x:2}", "10"),
        ("{list}", "red,green,blue"),
        ("{list*}", "red,green,blue"),
        ("{none}", ""),
        ("{x,none}", "1024"),
        ("{#none}", ""),
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("O{+empty}X", "OX"),
        ("{+path}/here", "/foo/bar/here"),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{+list*}", "red,green,blue"),
        ("{#var}", "#value"),
        ("{#half}", "#50%25"),
        ("foo{#empty}", "foo#"),
        ("foo{#undef}", "foo"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("{.who}", ".fred"),
        ("{.who,who}", ".fred.fred"),
        ("www{.dom*}", "www.example.com"),
        ("X{.empty}", "X."),
        ("X{.undef}", "X"),
        ("{/who}", "/fred"),
        ("{/half,who}", "/50%25/fred"),
        ("{/who,dub}", "/fred/me%2Ftoo"),
        ("{/var,empty}", "/value/"),
        ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
        ("{;who}", ";who=fred"),
        ("{;v,empty,who}", ";v=6;empty;who=fred"),
        ("{;x,y,undef}", ";x=1024;y=768"),
        ("{;list*}", ";list=red;list=green;list=blue"),
        ("{?who}", "?who=fred"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?x,y,undef}", "?x=1024&y=768"),
        ("{?undef}", ""),
        ("{?none}", ""),
        ("{?var:3}", "?var=val"),
        ("{?list}", "?list=red,green,blue"),
        ("{?list*}", "?list=red&list=green&list=blue"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{&x,y,empty}", "&x=1024&y=768&empty="),
    ],
)
def test_expansion_is_that_of_the_rfc(template: str, expected: str) -> None:
    assert expand(template, **VALUES) == expected


def test_what_is_encoded_already_stays_so_and_the_rest_is_encoded() -> None:
    assert expand("{+link}", link="a%20b c%zz|é") == "a%20b%20c%25zz%7C%C3%A9"


def test_names_may_hold_hyphens_and_anything_in_backticks() -> None:
    assert expand("{?max-price}", **{"max-price": 5}) == "?max-price=5"
    assert expand("{?`House No.`}", **{"House No.": 5}) == "?House%20No.=5"


def test_the_text_of_a_template_is_encoded_too_but_not_its_host() -> None:
    assert expand("https://münchen.example/straße{x}", x=1) == "https://münchen.example/stra%C3%9Fe1"
    assert expand("https://{x}.münchen.example/ü", x="a") == "https://a.münchen.example/%C3%BC"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a b", "a%20b"),
        (5, "5"),
        (0, "0"),
        (5.0, "5"),
        (0.5, "0.5"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1000"),
        (True, "true"),
        (False, "false"),
        (date(2026, 7, 28), "2026-07-28"),
        (datetime(2026, 7, 28, 12, 0, tzinfo=UTC), "2026-07-28T12%3A00%3A00%2B00%3A00"),
        (listed("a", None, 2), "a,2"),
        ("\ud800", "%3F"),
    ],
)
def test_values_of_all_types_have_a_text(value: Any, expected: str) -> None:
    assert expand("{x}", x=value) == expected


def test_a_relation_with_several_attributes_is_no_list() -> None:
    pairs = Relation(Schema(("a", "b")), [(1, 2)])
    with pytest.raises(RequestRefusedError, match="the input 'x' is a relation with the attributes a, b"):
        expand("{x}", x=pairs)


# --- hosts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ("https://a.example{+path}", {"path": "/x"}, "https://a.example/x"),
        ("https://a.example{+path}", {"path": "?x=1"}, "https://a.example?x=1"),
        ("https://a.example{/x}{?y}", {"x": None, "y": None}, "https://a.example"),
        ("https://a.example/{+path}", {"path": "@b.example/"}, "https://a.example/@b.example/"),
        ("https://{city}.a.example/", {"city": "bonn"}, "https://bonn.a.example/"),
        ("http://localhost:{port}/", {"port": 8080}, "http://localhost:8080/"),
        ("https://{host}/x", {"host": "b.example"}, "https://b.example/x"),
        ("{+base}{?q}", {"base": "https://b.example", "q": 1}, "https://b.example?q=1"),
        ("{+link}#top", {"link": "HTTPS://b.example/"}, "HTTPS://b.example/#top"),
    ],
)
def test_values_go_where_the_template_says(template: str, values: dict[str, Any], expected: str) -> None:
    assert url(template, **values) == expected


@pytest.mark.parametrize(
    ("template", "values"),
    [
        ("https://a.example{+path}", {"path": "@evil.example/"}),
        ("https://a.example{+path}", {"path": ".evil.example/"}),
        ("https://a.example{+path}", {"path": ":8080/"}),
        ("https://a.example{+path}", {"path": "\\@evil.example/"}),
        ("https://a.example{/x}{y}", {"x": None, "y": ".evil.example"}),
        ("https://a.example{;x}", {"x": "@evil.example"}),
        ("https://{city}.a.example/", {"city": "evil.example/"}),
        ("https://{city}.a.example/", {"city": "evil.example#"}),
        ("https://{city}.a.example/", {"city": "me@evil"}),
        ("https://{city}.a.example{+path}", {"city": "b", "path": "@evil.example"}),
        ("{+base}{+path}", {"base": "https://a.example", "path": "@evil.example"}),
        ("{+base}/x", {"base": "ftp://a.example"}),
        ("{+base}/x", {"base": "a.example"}),
        ("{+base}/x", {"base": "javascript:alert(1)//"}),
    ],
)
def test_values_that_would_change_the_host_are_refused(template: str, values: dict[str, Any]) -> None:
    with pytest.raises(RequestRefusedError, match=next(iter(values))):
        url(template, **values)


HOSTED = [
    "https://a.example{+x}",
    "https://a.example{/x}{+y}",
    "https://a.example/{+x}",
    "https://a.example{?x}{y}",
]
TRICKY = st.text(alphabet="/@:.?#\\%[]x1 \t\n\x00é", max_size=12)


@given(st.sampled_from(HOSTED), TRICKY, TRICKY)
@settings(max_examples=300, deadline=None)
def test_no_value_leads_to_another_host(template: str, x: str, y: str) -> None:
    try:
        made = url(template, x=x, y=y)
    except RequestRefusedError:
        return
    assert URL(made).raw_host == "a.example"
    assert (URL(made).user, URL(made).port) == (None, 443)
    assert made.isascii()
    assert made.isprintable()
    assert " " not in made


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain", "plain"),
        ("in {city}, {beds} beds", "in Bonn, 3 beds"),
        ('{"a": "{city}"}', '{"a": "Bonn"}'),
        ("query { house { beds } }", "query { house { beds } }"),
        ("{{city}}", "{city}"),
        ("{{{city}}}", "{{city}}"),
        ("{ city } {} {1}", "{ city } {} {1}"),
        ("<{nothing}>", "<>"),
    ],
)
def test_texts_with_values(template: str, expected: str) -> None:
    assert text(template, city="Bonn", beds=3.0, nothing=None) == expected


def test_a_text_that_is_one_value_says_so() -> None:
    places = {"a": 0, "b c": 1}
    assert TextTemplate("{`b c`}", places).only == ("b c", 1)
    assert TextTemplate("{a} ", places).only is None
    assert TextTemplate("{{a}}", places).only is None


def test_a_relation_is_no_part_of_a_text() -> None:
    with pytest.raises(RequestRefusedError, match="the input 'x' is a relation"):
        text("a {x}", x=listed(1))
