"""From the values of a tuple to the request that is sent."""

import json
from base64 import b64decode
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from aioflow.errors import SettingError
from aioflow.plan import Plan, Program
from aioflow.relation import Document, Relation, Schema
from aioflow.web.errors import RequestRefusedError
from aioflow.web.http import Request
from aioflow.wrappers import RequestMaker, Wrapper, parse_wrapper
from aioflow.wrappers.inheritance import build, merge

SECRETS = {"TOKEN": "t0ken", "PASSWORD": "pässword", "BROKEN": "a\nb"}


def wrapper(header: str, body: str) -> Wrapper:
    return build(merge(parse_wrapper("w", header, body), Program(Plan("p"))))


def make(header: str, body: str, *values: Any, **named: Any) -> Request | None:
    return RequestMaker(wrapper(header, body), secret=SECRETS.__getitem__).make(named or values)


def made(header: str, body: str, *values: Any, **named: Any) -> Request:
    request = make(header, body, *values, **named)
    assert request is not None
    return request


# --- the URL -------------------------------------------------------------------------------------


def test_a_get() -> None:
    request = made("(city, max-price)", 'GET: "https://a.example/{?city,max-price}"', "New York", 550000)
    assert request == Request("https://a.example/?city=New%20York&max-price=550000")


def test_values_come_by_name_or_in_the_order_of_the_inputs() -> None:
    body = 'GET: "https://a.example/{a}/{b}"'
    assert made("(b, a)", body, 1, 2).url == "https://a.example/2/1"
    assert made("(b, a)", body, a=1, b=2).url == "https://a.example/1/2"


def test_a_null_makes_no_request_unless_it_is_optional() -> None:
    body = 'GET: "https://a.example/{?a,b}"'
    assert make("(a, b optional)", body, None, 1) is None
    assert made("(a, b optional)", body, 1, None).url == "https://a.example/?a=1"
    assert made("(a, b optional)", body, a=1).url == "https://a.example/?a=1"


def test_a_default_stands_for_null() -> None:
    body = 'GET: "https://a.example/{?a,b}"'
    assert made("(a, b = 5)", body, 1, None).url == "https://a.example/?a=1&b=5"
    assert made("(a, b = 5)", body, 1, 0).url == "https://a.example/?a=1&b=0"


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("https://a.example/x?y=1#z", "https://a.example/x?y=1#z"),
        ("HTTP://a.example", "HTTP://a.example"),
        (" https://a.example/ä b\n", "https://a.example/%C3%A4%20b"),
        ("https://a.example/100%/%41", "https://a.example/100%25/%41"),
        ("https://münchen.example/ü", "https://münchen.example/%C3%BC"),
    ],
)
def test_a_link_is_taken_as_it_is_and_what_no_url_can_hold_is_encoded(link: str, url: str) -> None:
    assert made("(link)", 'GET: "{+link}"', link).url == url


@pytest.mark.parametrize(
    "link", ["page2.html", "/x", "ftp://a.example/", "javascript:x", "", "https://", 5, "//a/b"]
)
def test_a_link_that_is_no_web_address_is_refused_and_named(link: Any) -> None:
    with pytest.raises(RequestRefusedError, match=r"the input 'link' is '.*', which is no http") as caught:
        make("(link)", 'GET: "{+link}"', link)
    assert caught.value.attempts == 0


def test_a_message_shows_no_password_and_only_the_beginning_of_a_long_text() -> None:
    with pytest.raises(RequestRefusedError) as caught:
        make("(link)", 'GET: "{+link}"', "ftp://me:hunter2@a.example/" + "x" * 1000)
    assert "hunter2" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_templates_with_mistakes_make_no_maker() -> None:
    for url in ("https://a.example/{b}", "https://a.example/{a", "a.example/{a}"):
        with pytest.raises(SettingError):
            RequestMaker(wrapper("(a)", f'GET: "{url}"'))


# --- manners -------------------------------------------------------------------------------------


def test_what_the_wrapper_says_about_the_request() -> None:
    request = made("", 'GET: "https://a.example/"; ROBOTS: off; TIMEOUT: 2.5')
    assert (request.robots, request.timeout_seconds, request.is_safe) == (False, 2.5, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_only_a_get_is_safe_unless_the_wrapper_says_so(method: str) -> None:
    request = made("", f'{method}: "https://a.example/"')
    assert (request.method, request.is_safe, request.body) == (method, False, None)
    assert made("", f'{method}: "https://a.example/"; SAFE').is_safe


def test_what_all_requests_have_in_common_is_given_once() -> None:
    maker = RequestMaker(wrapper("", 'GET: "https://a.example/"'), streamed=True, urgent=True)
    request = maker.make(())
    assert request is not None
    assert (request.streamed, request.urgent) == (True, True)


# --- headers and secrets -------------------------------------------------------------------------


def test_headers_hold_values_and_secrets() -> None:
    header = 'HEADERS: Accept = "text/html", X-City = "in {city}", X-Key = "Token secret:TOKEN"'
    request = made("(city)", f'GET: "https://a.example/"; {header}', "Bonn")
    assert request.headers == {"Accept": "text/html", "X-City": "in Bonn", "X-Key": "Token t0ken"}


def test_a_header_that_is_a_null_is_left_out() -> None:
    header = 'HEADERS: If-None-Match = "{tag}", X = "<{tag}>"'
    assert made("(tag optional)", f'GET: "https://a.example/"; {header}', None).headers == {"X": "<>"}


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: x", "a\nb", "a\0b"])
def test_a_value_cannot_forge_headers(value: str) -> None:
    with pytest.raises(RequestRefusedError, match=r"the header 'X' .* line break or NUL"):
        make("(a)", 'GET: "https://a.example/"; HEADERS: X = "{a}"', value)


def test_a_secret_with_a_line_break_is_refused_without_showing_it() -> None:
    with pytest.raises(RequestRefusedError) as caught:
        make("", 'GET: "https://a.example/"; HEADERS: X = "secret:BROKEN"')
    assert "a\nb" not in str(caught.value)
    assert "secret:BROKEN" in str(caught.value)


def test_authorization() -> None:
    bearer = made("", 'GET: "https://a.example/"; AUTH: bearer "secret:TOKEN"')
    assert bearer.headers == {"Authorization": "Bearer t0ken"}
    basic = made("", 'GET: "https://a.example/"; AUTH: basic "me" "secret:PASSWORD"')
    assert b64decode(basic.headers["Authorization"].removeprefix("Basic ")).decode() == "me:pässword"


def test_a_value_is_never_taken_for_a_secret() -> None:
    body = 'POST: "https://a.example/"; FORM: a; HEADERS: X = "{a}", Y = "k {a}"'
    request = made("(a)", body, "secret:TOKEN")
    assert request.body == b"a=secret%3ATOKEN"
    assert request.headers["X"] == "secret:TOKEN"
    assert request.headers["Y"] == "k secret:TOKEN"


def test_secrets_are_asked_for_only_where_they_are_used() -> None:
    with pytest.raises(SettingError, match="the secret 'TOKEN' is asked for"):
        RequestMaker(wrapper("", 'GET: "https://a.example/"; AUTH: bearer "secret:TOKEN"')).make(())
    given = RequestMaker(wrapper("", 'GET: "https://a.example/"; AUTH: bearer "secret:X"')).make(
        (), str.lower
    )
    assert given is not None
    assert given.headers["Authorization"] == "Bearer x"


# --- bodies --------------------------------------------------------------------------------------


def test_a_form() -> None:
    form = 'FORM: city, max = "{price}", n = 5, ok = true, t = "a&b {city}", l = [1, "x"], e = null'
    request = made("(city, price optional)", f'POST: "https://a.example/"; {form}', "Köln & co", None)
    assert request.body == (b"city=K%C3%B6ln+%26+co&n=5&ok=true&t=a%26b+K%C3%B6ln+%26+co&l=1&l=x&e=")
    assert request.headers == {"Content-Type": "application/x-www-form-urlencoded"}


def test_a_relation_of_one_attribute_fills_a_form_several_times() -> None:
    several = Relation(Schema(("v",)), [("a",), (None,), (2,)])
    assert made("(tag)", 'POST: "https://a.example/"; FORM: tag', several).body == b"tag=a&tag=2"


def test_json_keeps_types_and_points_make_objects() -> None:
    body = 'JSON: q = "{city}", page.size = 50, page.from = "{start}", a.b.c = null, l = [1, "x"]'
    request = made("(city, start optional)", f'POST: "https://a.example/"; {body}', 'B"onn', None)
    assert json.loads(request.body or b"") == {
        "q": 'B"onn',
        "page": {"size": 50},
        "a": {"b": {"c": None}},
        "l": [1, "x"],
    }
    assert request.headers == {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (0.5, 0.5),
        (True, True),
        (Decimal("5.00"), 5),
        (Decimal("0.5"), 0.5),
        (date(2026, 7, 28), "2026-07-28"),
        (Relation(Schema(("v",)), [(1,), ("a",)]), [1, "a"]),
        (Relation(Schema(("a", "b")), [(1, None)]), [{"a": 1, "b": None}]),
        (Document('{"x": [1]}', "json"), {"x": [1]}),
        (Document("<p>", "html"), "<p>"),
    ],
)
def test_values_of_all_types_in_json(value: Any, expected: Any) -> None:
    request = made("(x)", 'POST: "https://a.example/"; JSON: x', value)
    assert json.loads(request.body or b"") == {"x": expected}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN")])
def test_numbers_that_json_does_not_have_are_refused(value: Any) -> None:
    with pytest.raises(RequestRefusedError, match=r"the input 'x' is .*, a number that JSON does not have"):
        make("(x)", 'POST: "https://a.example/"; JSON: x', value)


def test_a_text_as_body() -> None:
    request = made("(x)", "PUT: 'https://a.example/'; BODY: '<q a=\"{x}\">{{x}}</q>'", "ü")
    assert request.body == '<q a="ü">{x}</q>'.encode()
    assert request.headers == {"Content-Type": "text/plain; charset=utf-8"}


def test_a_content_type_of_its_own_replaces_the_usual_one() -> None:
    body = 'POST: "https://a.example/"; BODY: "<x/>"; HEADERS: content-type = "text/xml"'
    assert made("", body).headers == {"content-type": "text/xml"}


# --- paging -------------------------------------------------------------------------------------


def test_the_first_page_has_its_number() -> None:
    body = 'GET: "https://a.example/?q=1"; EACH: "li"; PAGING:'
    assert made("", f'{body} number "page"').url == "https://a.example/?q=1&page=1"
    assert made("", f'{body} offset "start" by 20').url == "https://a.example/?q=1&start=0"
    assert made("", f'{body} number "p" from 0').url == "https://a.example/?q=1&p=0"


def test_secrets_stand_in_bodies_too() -> None:
    assert made("", 'POST: "https://a.example/"; FORM: p = "secret:TOKEN"').body == b"p=t0ken"
    assert made("", 'POST: "https://a.example/"; JSON: p = "secret:TOKEN"').body == b'{"p": "t0ken"}'


# --- lists ---------------------------------------------------------------------------------------


def sent_json(header: str, members: str, *values: Any) -> Any:
    body = made(header, f'POST: "https://a.example/"; JSON: {members}', *values).body
    assert body is not None
    return json.loads(body)


def sent_form(header: str, fields: str, *values: Any) -> str:
    body = made(header, f'POST: "https://a.example/"; FORM: {fields}', *values).body
    assert body is not None
    return body.decode()


def test_lists_hold_values_of_inputs_in_json() -> None:
    assert sent_json("(a)", 'q = [1, "{a}", "x {a}", "{{a}}"]', 5) == {"q": [1, 5, "x 5", "{a}"]}
    relation = Relation(Schema(("n",)), [(1,), (2,)])
    assert sent_json("(a)", 'q = ["{a}", true]', relation) == {"q": [[1, 2], True]}


def test_a_null_keeps_its_place_in_a_list_of_json() -> None:
    assert sent_json("(a optional)", 'q = [1, null, "{a}", 2]', None) == {"q": [1, None, None, 2]}
    assert sent_json("(a optional)", "q = []", None) == {"q": []}


def test_lists_hold_values_of_inputs_in_forms_and_nulls_are_left_out() -> None:
    assert sent_form("(a, b optional)", 'q = [1, "{a}", "{b}", "x{a}"]', 5, None) == "q=1&q=5&q=x5"
    relation = Relation(Schema(("n",)), [(1,), (2,)])
    assert sent_form("(a)", 'q = ["{a}", 3]', relation) == "q=1&q=2&q=3"


def test_lists_hold_secrets() -> None:
    assert sent_json("()", 'q = ["secret:TOKEN", 1]') == {"q": ["t0ken", 1]}
    assert sent_form("()", 'q = ["secret:TOKEN", "Bearer secret:TOKEN"]') == "q=t0ken&q=Bearer+t0ken"


# --- types of inputs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "url", "json_value"),
    [
        ("number", " 007 ", "7", 7),
        ("number", "2.50", "2.5", 2.5),
        ("number", 7, "7", 7),
        ("date", " 2024-02-29 ", "2024-02-29", "2024-02-29"),
        ("date", "2024-02-29 10:30", "2024-02-29T10%3A30%3A00", "2024-02-29T10:30:00"),
        ("boolean", "True", "true", True),
        ("char", 7, "7", "7"),
        ("char", True, "true", "true"),
        ("char", date(2024, 2, 29), "2024-02-29", "2024-02-29"),
        ("document", "<a>", "%3Ca%3E", "<a>"),
    ],
)
def test_a_value_is_sent_as_one_of_its_declared_type(
    kind: str, value: Any, url: str, json_value: object
) -> None:
    assert made(f"(x {kind})", 'GET: "https://a.example/{x}"', value).url == f"https://a.example/{url}"
    assert sent_json(f"(x {kind})", "x", value) == {"x": json_value}


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("number", "x y", "'x y'"),
        ("number", "", "''"),
        ("number", True, "True"),
        ("number", "nan", "'nan'"),
        ("number", "1_000", "'1_000'"),
        ("date", "2024-02-30", "'2024-02-30'"),
        ("date", 20240229, "20240229"),
        ("boolean", "yes", "'yes'"),
        ("relation", "x", "'x'"),
        ("number", Relation(Schema(("n",)), [(1,)]), "a relation"),
        ("char", Relation(Schema(("n",)), [(1,)]), "a relation"),
        ("number", "9" * 2000, f"'{'9' * 79}…"),
    ],
)
def test_a_value_that_cannot_be_read_as_its_declared_type_is_refused_and_named(
    kind: str, value: Any, shown: str
) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        make(f"(a, x {kind} optional)", 'GET: "https://a.example/{a}{?x}"', 1, value)
    assert str(caught.value) == f"the input 'x' must be a {kind}, not {shown}"


def test_nulls_and_values_without_a_type_are_left_as_they_are() -> None:
    body = 'GET: "https://a.example/{a}{?x}"'
    assert made("(a, x number optional)", body, "x y", None).url == "https://a.example/x%20y"
    assert made("(a, x number = 5)", body, "007", None).url == "https://a.example/007?x=5"
