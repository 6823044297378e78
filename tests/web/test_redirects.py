"""Redirects: followed by the rules, not for ever, and without credentials for strangers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import pytest

from aioflow.errors import InputError
from aioflow.web.client import Client
from aioflow.web.cookies import CookieFetcher, CookieStore
from aioflow.web.errors import AddressRefusedError, BadResponseError
from aioflow.web.http import Request, Response, Timing
from aioflow.web.redirects import RedirectFetcher
from aioflow.web.settings import HostSettings, HttpSettings, WebSettings, web_settings
from tests.web.scripted import Answer, Chunks, Script, answer, redirect

A, B = "http://a.example/", "http://b.example/"


def following(
    answers: Mapping[str, Answer | Sequence[Answer]],
    most: int = 10,
    hosts: Mapping[str, HostSettings] | None = None,
) -> tuple[RedirectFetcher, Script]:
    script = Script(answers)
    settings = WebSettings(HttpSettings(redirects=most), hosts or {})
    return RedirectFetcher(script, settings), script


async def test_an_answer_that_is_no_redirect_passes() -> None:
    fetcher, _ = following({A: answer(304, {"Location": B})})
    assert (await fetcher.fetch(Request(A))).status == 304


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_and_the_way_is_told(status: int) -> None:
    fetcher, _ = following(
        {
            A: redirect("x?y#z", status, attempts=2, timing=Timing(1, 2, 3)),
            A + "x?y": redirect(B, status),
            B: answer(body=b"there", attempts=3, timing=Timing(1, 2, 3)),
        }
    )
    response = await fetcher.fetch(Request(A))
    assert (response.url, response.hops, response.body) == (B, (A, A + "x?y"), b"there")
    assert (response.attempts, response.timing) == (4, Timing(2, 5, 6))


@pytest.mark.parametrize(
    ("method", "status", "becomes"),
    [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("PUT", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
        ("PUT", 301, "PUT"),
        ("DELETE", 302, "DELETE"),
    ],
)
async def test_the_method_changes_by_the_rules(method: str, status: int, becomes: str) -> None:
    fetcher, script = following({A: redirect("/next", status), A + "next": answer()})
    headers = {"Content-Type": "text/plain", "X-Mine": "1"}
    await fetcher.fetch(Request(A, method, headers, b"body", is_safe=False))
    second = script.requests[1]
    assert second.method == becomes
    if becomes == method and method != "HEAD":
        assert (second.body, second.headers, second.is_safe) == (b"body", headers, False)
    else:
        assert (second.body, second.headers) == (None, {"X-Mine": "1"})
    assert second.is_safe == (becomes != method)


CREDENTIALS = {
    "authorization": "Bearer hush",
    "Cookie": "session=hush",
    "Proxy-Authorization": "Basic hush",
    "X-Api-Key": "hush",
    "Accept": "text/html",
}


@pytest.mark.parametrize(
    "other", [B, "https://a.example/", "http://a.example:8080/", "http://sub.a.example/"]
)
async def test_credentials_do_not_leave_their_origin(other: str) -> None:
    fetcher, script = following({A: redirect(other), other: redirect(A + "back"), A + "back": answer()})
    await fetcher.fetch(Request(A, headers=CREDENTIALS))
    assert [request.headers for request in script.requests] == [
        CREDENTIALS,
        {"Accept": "text/html"},
        {"Accept": "text/html"},
    ]


async def test_credentials_stay_within_their_origin() -> None:
    fetcher, script = following({A: redirect("HTTP://A.example:80/x"), "http://A.example:80/x": answer()})
    await fetcher.fetch(Request(A, headers=CREDENTIALS))
    assert script.requests[1].headers == CREDENTIALS


LEAVE = {"a.example": HostSettings(resend_to=("b.example",))}


@pytest.mark.parametrize(
    ("method", "body", "status"),
    [
        ("POST", b"order=1", 307),
        ("POST", b"order=1", 308),
        ("POST", None, 307),
        ("PUT", b"x", 301),
        ("PATCH", b"x", 302),
        ("DELETE", None, 302),
        ("GET", b"a query that is written as a body", 307),
    ],
)
@pytest.mark.parametrize("is_safe", [False, True])
@pytest.mark.parametrize(
    "other", [B, "https://a.example/", "http://a.example:8080/", "http://sub.a.example/"]
)
async def test_effects_and_bodies_are_not_sent_to_another_origin_without_leave(
    method: str, body: bytes | None, status: int, is_safe: bool, other: str
) -> None:
    fetcher, script = following({A: redirect(other, status), other: answer()})
    with pytest.raises(BadResponseError) as caught:
        await fetcher.fetch(Request(A, method, body=body, is_safe=is_safe))
    assert len(script.requests) == 1
    host = urlsplit(other).netloc
    assert str(caught.value) == (
        f"{A} -> {other}: status {status} asks to send this {method} again to another origin, "
        f"{other[:-1]} instead of http://a.example, which is not allowed; if that is meant, "
        f'write resend_to = ["{host}"] under [host."a.example"], or ask the other address itself'
    )


@pytest.mark.parametrize(
    ("asked", "settings", "other"),
    [
        (A, LEAVE, B),
        (A, LEAVE, "https://b.example:8443/"),
        (A, {"a.example:80": HostSettings(resend_to=("b.example:80",))}, B),
        (A, {"a.example": HostSettings(resend_to=("a.example",))}, "https://a.example/"),
        ("http://[::1]:81/", {"[::1]:81": HostSettings(resend_to=("[::1]:82",))}, "http://[::1]:82/"),
    ],
)
async def test_a_host_may_have_leave_to_send_requests_on(
    asked: str, settings: Mapping[str, HostSettings], other: str
) -> None:
    fetcher, script = following({asked: redirect(other, 307), other: answer(body=b"done")}, hosts=settings)
    headers = CREDENTIALS | {"Content-Type": "text/plain"}
    response = await fetcher.fetch(Request(asked, "POST", headers, b"order=1", is_safe=False))
    assert (response.body, response.url) == (b"done", other)
    repeated = script.requests[1]
    assert (repeated.method, repeated.body, repeated.is_safe) == ("POST", b"order=1", False)
    assert repeated.headers == {"Accept": "text/html", "Content-Type": "text/plain"}


@pytest.mark.parametrize("other", ["http://c.example/", "http://sub.b.example/", "http://b.example:81/"])
async def test_leave_for_one_host_is_none_for_another(other: str) -> None:
    settings = {"a.example": HostSettings(resend_to=("b.example:80",))}
    fetcher, script = following({A: redirect(other, 307), other: answer()}, hosts=settings)
    with pytest.raises(BadResponseError, match="which is not allowed"):
        await fetcher.fetch(Request(A, "POST", body=b"order=1", is_safe=False))
    assert len(script.requests) == 1


async def test_leave_is_asked_for_at_each_hop() -> None:
    fetcher, script = following({A: redirect(B, 307), B: redirect("http://c.example/", 307)}, hosts=LEAVE)
    with pytest.raises(BadResponseError, match=r'under \[host\."b\.example"\]'):
        await fetcher.fetch(Request(A, "POST", body=b"order=1", is_safe=False))
    assert len(script.requests) == 2


async def test_what_becomes_a_get_may_go_anywhere() -> None:
    fetcher, script = following({A: redirect(B, 303), B: answer()})
    await fetcher.fetch(Request(A, "POST", body=b"order=1", is_safe=False))
    assert script.asked == [f"POST {A}", f"GET {B}"]


async def test_leave_to_send_on_is_a_setting_of_a_host() -> None:
    network = Script({A: redirect(B, 308), B: answer(body=b"done")})
    settings = web_settings({"host": {"a.example": {"resend_to": ["B.example"]}}, "http": {"robots": False}})
    async with Client.open(settings, network=network) as client:
        response = await client.fetch(Request(A, "POST", body=b"order=1", is_safe=False))
    assert response.body == b"done"
    with pytest.raises(InputError, match="resend_to must be a list of hosts"):
        web_settings({"host": {"a.example": {"resend_to": ["http://b.example/"]}}})


async def test_a_body_is_not_sent_on_unencrypted() -> None:
    leave = {"a.example": HostSettings(resend_to=("a.example",))}
    fetcher, script = following({"HTTPS://a.example/": redirect(A, 307)}, hosts=leave)
    with pytest.raises(BadResponseError, match="unencrypted"):
        await fetcher.fetch(Request("HTTPS://a.example/", "POST", body=b"password=hush"))
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("", r"http://a\.example/: status 302 without a Location"),
        ("javascript:alert(1)", "leads to 'javascript:"),
        ("file:///etc/passwd", "leads to 'file:"),
        ("http://[::1", "is no http"),
        ("ftp://user:hush@host/", "leads to 'ftp://host/'"),
    ],
)
async def test_a_location_that_leads_nowhere_is_told(location: str, message: str) -> None:
    body = Chunks(b"moved")
    fetcher, _ = following({A: redirect(location, body=body)})
    with pytest.raises(BadResponseError, match=message):
        await fetcher.fetch(Request("http://a.example/", streamed=True))
    assert body.is_closed


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/gr\udcfc\udcdfe", A + "gr%FC%DFe"),
        ("/straße", A + "straße"),
        (" /x y ", A + "x y"),
        ("//b.example/", B),
    ],
)
async def test_a_location_may_be_spelled_badly(location: str, url: str) -> None:
    fetcher, _ = following({A: redirect(location), url: answer()})
    assert (await fetcher.fetch(Request(A))).url == url


async def test_redirects_end_somewhere() -> None:
    def on(request: Request) -> Response:
        return redirect(f"/{int(request.url.rpartition('/')[2] or 0) + 1}")

    fetcher, script = following({A: on, **{f"{A}{number}": on for number in range(20)}}, most=3)
    with pytest.raises(BadResponseError, match="redirected more often than 3 times"):
        await fetcher.fetch(Request(A))
    assert len(script.requests) == 4


async def test_no_redirect_is_followed_when_none_may() -> None:
    fetcher, _ = following({A: redirect(B)}, most=0)
    with pytest.raises(BadResponseError, match="more often than 0"):
        await fetcher.fetch(Request(A))


async def test_a_circle_is_noticed() -> None:
    fetcher, script = following({A: redirect(B), B: redirect(A)})
    with pytest.raises(
        BadResponseError,
        match=r"http://a\.example/ -> http://b\.example/ -> http://a\.example/: redirected in a circle",
    ):
        await fetcher.fetch(Request(A))
    assert len(script.requests) == 2


async def test_the_same_address_with_a_new_cookie_is_no_circle() -> None:
    def check(request: Request) -> Response:
        if request.headers.get("Cookie") == "seen=1":
            return answer(body=b"welcome")
        return answer(302, {"Location": A, "Set-Cookie": "seen=1"})

    fetcher = RedirectFetcher(CookieFetcher(Script({A: check})), WebSettings())
    assert (await fetcher.fetch(Request(A, cookies=CookieStore()))).body == b"welcome"


async def test_a_cookie_that_changes_nothing_does_not_hide_a_circle() -> None:
    script = Script({A: answer(302, {"Location": A, "Set-Cookie": "seen=1"})})
    fetcher = RedirectFetcher(CookieFetcher(script), WebSettings())
    with pytest.raises(BadResponseError, match="circle"):
        await fetcher.fetch(Request(A, cookies=CookieStore()))
    assert len(script.requests) == 2


async def test_a_hop_that_is_refused_says_where_it_came_from() -> None:
    bodies = [Chunks(), Chunks()]
    fetcher, _ = following(
        {A: redirect(B, body=bodies[0]), B: redirect("//10.0.0.1/", body=bodies[1])}
        | {"http://10.0.0.1/": AddressRefusedError("http://10.0.0.1/: private")}
    )
    with pytest.raises(AddressRefusedError, match=r"private \(redirected from http://a.example/\)"):
        await fetcher.fetch(Request(A, streamed=True))
    assert all(body.is_closed for body in bodies)


async def test_the_last_answer_is_left_open_for_its_reader() -> None:
    body = Chunks(b"here")
    fetcher, script = following({A: redirect(B), B: answer(body=body)})
    response = await fetcher.fetch(Request(A, streamed=True))
    assert not body.is_closed
    assert await response.read() == b"here"
    await fetcher.close()
    assert script.is_closed
