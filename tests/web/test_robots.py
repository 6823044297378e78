"""robots.txt: asked for once, believed, followed and not trusted with anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from protego import Protego

from aioflow.testing import run
from aioflow.web.errors import (
    AddressRefusedError,
    BadResponseError,
    ConnectionFailedError,
    NotRecordedError,
    RequestRefusedError,
    ResponseTimeoutError,
    ResponseTooLargeError,
    RobotsRefusedError,
    SiteDownError,
    WebError,
)
from aioflow.web.host_queue import HostQueueFetcher
from aioflow.web.hosts import Hosts
from aioflow.web.http import Request, Response
from aioflow.web.robots import RobotsFetcher, lines_for, parse, product_token
from aioflow.web.settings import HostSettings, HttpSettings, WebSettings
from tests.web.scripted import Allowance, Answer, Chunks, Script, Site, answer, redirect

A = "http://a.example"
HOUR = 3600.0


class Scene:
    """A site with a robots.txt, robots and turns around it."""

    def __init__(
        self,
        text: bytes | Callable[[], Answer] = b"",
        *,
        others: Mapping[str, Callable[[], Answer]] | None = None,
        own: HostSettings | None = None,
        seconds: float = 0.0,
        **http: Any,
    ) -> None:
        self.text = text
        self.others = others or {}
        self.site = Site(self._respond, seconds=seconds)
        self.hosts = Hosts(WebSettings(HttpSettings(**http), {"a.example": own} if own else {}))
        self.fetcher = RobotsFetcher(HostQueueFetcher(self.site, self.hosts), self.hosts)

    def _respond(self, request: Request) -> Answer:
        if request.url in self.others:
            return self.others[request.url]()
        if not request.url.endswith("/robots.txt"):
            return answer()
        return self.text() if callable(self.text) else answer(body=Chunks(self.text))

    async def fetch(self, path: str = "/page", **request: Any) -> Response:
        return await self.fetcher.fetch(Request(path if "://" in path else A + path, **request))

    async def allows(self, path: str = "/page", **request: Any) -> bool:
        try:
            await self.fetch(path, **request)
        except (RobotsRefusedError, SiteDownError):
            return False
        return True

    @property
    def asked(self) -> int:
        return sum(url.endswith("/robots.txt") for url in self.site.urls)


async def allowed(text: bytes | Callable[[], Answer], **http: Any) -> bool:
    return await Scene(text, **http).allows()


def test_what_it_forbids_is_refused_and_not_sent() -> None:
    async def main() -> list[str]:
        scene = Scene(b"User-agent: *\nDisallow: /private\nAllow: /private/not")
        assert await scene.allows("/page")
        assert not await scene.allows("/private/x")
        assert await scene.allows("/private/not")
        return scene.site.urls

    assert run(main()) == [f"{A}/robots.txt", f"{A}/page", f"{A}/private/not"]


def test_the_refusal_says_what_forbids_it_and_how_to_switch_it_off() -> None:
    async def main() -> str:
        scene = Scene(b"User-agent: *\nDisallow: /")
        with pytest.raises(RobotsRefusedError) as caught:
            await scene.fetch("http://me:secret@a.example:8080/x?y=1")
        return str(caught.value)

    assert run(main()) == (
        "http://a.example:8080/x?y=1: http://a.example:8080/robots.txt forbids it to the user agent aioflow; "
        'if the host is yours, set robots = false under [host."a.example:8080"] in aioflow.toml'
    )


def test_it_is_asked_for_once_and_everybody_waits_for_it_without_permits() -> None:
    async def main() -> None:
        scene = Scene(b"User-agent: *\nDisallow: /x", seconds=1, concurrency=10)
        allowance = Allowance(15)
        tasks = [asyncio.create_task(scene.allows("/page", permit=allowance)) for _ in range(10)]
        await asyncio.sleep(0.5)
        assert allowance.held == 1
        assert await asyncio.gather(*tasks) == [True] * 10
        assert scene.asked == 1
        assert scene.site.times(f"{A}/page") == [1] * 10

    run(main())


def test_it_is_asked_for_by_origin() -> None:
    async def main() -> list[str]:
        scene = Scene(b"User-agent: *\nDisallow: /x")
        for origin in (
            "http://a.example",
            "https://a.example",
            "http://a.example:8080",
            "http://A.EXAMPLE:80",
        ):
            assert await scene.allows(f"{origin}/page")
            assert not await scene.allows(f"{origin}/x")
        for scheme in ("http", "https", "http"):
            assert await scene.allows(f"{scheme}://a.example:8080/page")
        return [url for url in scene.site.urls if url.endswith("/robots.txt")]

    assert run(main()) == [
        "http://a.example/robots.txt",
        "https://a.example/robots.txt",
        "http://a.example:8080/robots.txt",
        "https://a.example:8080/robots.txt",
    ]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_none_allows_everything(status: int) -> None:
    async def main() -> None:
        scene = Scene(lambda: answer(status, body=b"User-agent: *\nDisallow: /"))
        assert await scene.allows()
        await asyncio.sleep(23 * HOUR)
        assert await scene.allows()
        assert scene.asked == 1

    run(main())


def test_too_many_requests_allows_for_now_and_pauses_the_host() -> None:
    async def main() -> list[float]:
        answers = iter([answer(429, {"Retry-After": "30"})])
        scene = Scene(lambda: next(answers, None) or answer(404))
        assert await scene.allows()
        await asyncio.sleep(60)
        assert await scene.allows()
        return scene.site.times()

    assert run(main()) == [0, 30, 90, 90]


TROUBLES: list[tuple[Callable[[], Answer], type[WebError], str]] = [
    (lambda: answer(500), SiteDownError, "the site answers 500 Internal Server Error: "),
    (lambda: answer(503), SiteDownError, "the site answers 503 Service Unavailable: "),
    (lambda: ConnectionFailedError("connection refused"), SiteDownError, "connection refused"),
    (lambda: ResponseTimeoutError("no answer in 30 s"), SiteDownError, "no answer in 30 s"),
    (lambda: BadResponseError("bad framing"), RobotsRefusedError, "bad framing"),
    (lambda: answer(body=Chunks(b"User-agent: *\n", ConnectionFailedError("cut"))), SiteDownError, "cut"),
    (lambda: redirect("http://10.0.0.1/"), RobotsRefusedError, "private"),
]


@pytest.mark.parametrize(("trouble", "kind", "why"), TROUBLES)
def test_one_that_cannot_be_read_forbids_everything_until_it_can(
    trouble: Callable[[], Answer], kind: type[WebError], why: str
) -> None:
    async def main() -> None:
        scene = Scene(trouble, others={"http://10.0.0.1/": lambda: AddressRefusedError("private")})
        with pytest.raises(kind, match=why):
            await scene.fetch()
        await asyncio.sleep(59)
        assert not await scene.allows()
        assert scene.asked == 1
        scene.text = b"User-agent: *\nDisallow: /x"
        assert await scene.allows("/robots.txt")  # nothing can forbid that
        assert not await scene.allows()
        await asyncio.sleep(1)
        assert await scene.allows()

    run(main())


def test_it_is_believed_for_a_day() -> None:
    async def main() -> None:
        scene = Scene(b"User-agent: *\nDisallow: /page")
        assert not await scene.allows()
        scene.text = b""
        await asyncio.sleep(24 * HOUR - 1)
        assert not await scene.allows()
        await asyncio.sleep(1)
        assert await scene.allows()
        assert scene.asked == 2

    run(main())


def test_it_is_asked_for_with_nothing_that_was_meant_for_the_page() -> None:
    async def main() -> Request:
        script = Script({f"{A}/robots.txt": answer(body=b""), f"{A}/page": answer()})
        request = Request(f"{A}/page", "POST", {"Authorization": "secret"}, b"body", is_safe=False)
        await RobotsFetcher(script, Hosts(WebSettings())).fetch(request)
        return script.requests[0]

    assert run(main()) == Request(f"{A}/robots.txt", streamed=True, robots=False, urgent=True)


def test_it_is_read_as_far_as_its_limit_and_a_line_that_is_cut_does_not_count() -> None:
    async def main() -> None:
        # The limit lies within "/private", of which "/" would remain.
        start = b"User-agent: *\nDisallow: /x\n"
        chunks = Chunks(start, b"Disallow: /private\n", *[b"#" * 1000] * 1000)
        scene = Scene(lambda: answer(body=chunks), robots_bytes=len(start) + 11)
        assert await scene.allows("/page")
        assert not await scene.allows("/x")
        assert await scene.allows("/private")
        assert chunks.given == 2
        assert chunks.is_closed

    run(main())


def test_what_came_before_it_grew_too_large_counts() -> None:
    async def main() -> None:
        chunks = Chunks(b"User-agent: *\nDisallow: /x\nDisallow: /", ResponseTooLargeError("a bomb"))
        scene = Scene(lambda: answer(body=chunks))
        assert await scene.allows("/page")
        assert not await scene.allows("/x")

    run(main())


async def test_a_large_one_is_read_beside_the_loop() -> None:
    lines = b"".join(b"Disallow: /*%d*/$\n" % number for number in range(10_000))
    reading = asyncio.create_task(allowed(b"User-agent: *\n" + lines))
    steps = 0
    while not reading.done():
        await asyncio.sleep(0)
        steps += 1
    assert await reading
    assert steps > 50  # on the loop, the reading itself would take about ten


def test_redirects_are_followed_also_to_another_host() -> None:
    async def main() -> None:
        others: dict[str, Callable[[], Answer]] = {
            "https://b.example/moved": lambda: redirect("/again", 301),
            "https://b.example/again": lambda: answer(body=b"User-agent: *\nDisallow: /x"),
        }
        scene = Scene(lambda: redirect("https://b.example/moved"), others=others)
        assert not await scene.allows("/x")
        assert await scene.allows("/page")
        assert scene.site.urls[:3] == [f"{A}/robots.txt", *others]

    run(main())


@pytest.mark.parametrize(
    ("hop", "sent"),
    [
        (lambda: redirect("/robots.txt"), 6),
        (lambda: answer(301), 1),
        (lambda: answer(304), 1),
        (lambda: redirect("file:///etc/passwd"), 1),
    ],
)
def test_redirects_that_lead_nowhere_mean_that_there_is_none(hop: Callable[[], Answer], sent: int) -> None:
    async def main() -> int:
        scene = Scene(hop)
        assert await scene.allows()
        return scene.asked

    assert run(main()) == sent


def unsent(kind: type[WebError]) -> WebError:
    error = kind(f"{A}/robots.txt: it is not to be")
    error.sent = False
    return error


@pytest.mark.parametrize("kind", [AddressRefusedError, RequestRefusedError, ConnectionFailedError])
def test_a_host_that_cannot_be_asked_at_all_is_no_matter_of_robots(kind: type[WebError]) -> None:
    async def main() -> None:
        scene = Scene(lambda: unsent(kind), seconds=1)
        tasks = (scene.fetch(path) for path in ("/a", "http://me:hush@a.example/b"))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        told = [(kind, f"{A}/a: it is not to be"), (kind, f"{A}/b: it is not to be")]
        assert [(type(each), str(each)) for each in results] == told
        assert [each.sent for each in results if isinstance(each, WebError)] == [False, False]
        assert scene.asked == 1
        scene.text = b"User-agent: *\nDisallow: /x"
        assert await scene.allows()
        assert not await scene.allows("/x")
        assert scene.asked == 2

    run(main())


def test_a_replay_without_it_allows_everything() -> None:
    assert run(allowed(lambda: NotRecordedError("not recorded")))


def test_it_can_be_switched_off() -> None:
    async def main() -> None:
        forbids = b"User-agent: *\nDisallow: /"
        for scene in (Scene(forbids, robots=False), Scene(forbids, own=HostSettings(robots=False))):
            assert await scene.allows()
            assert scene.asked == 0
        scene = Scene(forbids)
        assert await scene.allows(robots=False)
        assert scene.asked == 0
        assert not await Scene(forbids, robots=False, own=HostSettings(robots=True)).allows()

    run(main())


def test_if_the_reader_is_cancelled_another_takes_over() -> None:
    async def main() -> None:
        scene = Scene(b"User-agent: *\nDisallow: /x", seconds=1)
        tasks = [asyncio.create_task(scene.allows()) for _ in range(4)]
        await asyncio.sleep(0.5)
        tasks[0].cancel()
        tasks[2].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [each is True for each in results] == [False, True, False, True]
        assert scene.asked == 2
        host = scene.hosts.at(A)
        assert (host.users, host.aside, host.inside, host.reading_robots) == (0, 0, 0, 0)

    run(main())


def test_it_counts_for_the_rate_and_goes_first() -> None:
    async def main() -> list[tuple[float, str]]:
        scene = Scene(b"", rate=1)
        first = asyncio.create_task(scene.fetch("/other", robots=False))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(scene.fetch("/another", robots=False))
        await asyncio.sleep(0)
        await asyncio.gather(first, waiting, scene.fetch("/page"))
        return [(when, url.removeprefix(A)) for when, url in scene.site.sent]

    assert run(main()) == [(0, "/other"), (1, "/robots.txt"), (2, "/another"), (3, "/page")]


# --- what it says about speed ---


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (b"User-agent: *\nCrawl-delay: 10", [0, 10, 20, 30]),
        (b"User-agent: *\nRequest-rate: 1/5s", [0, 5, 10, 15]),
        (b"User-agent: *\nRequest-rate: 3/1m\nCrawl-delay: 2", [0, 20, 40, 60]),
        (b"User-agent: *\nCrawl-delay: 0.1", [0, 0.5, 1, 1.5]),  # not faster than configured
        (b"User-agent: *\nCrawl-delay: -3", [0, 0.5, 1, 1.5]),
        (b"User-agent: *\nCrawl-delay: nan", [0, 0.5, 1, 1.5]),
        (b"User-agent: other\nCrawl-delay: 10", [0, 0.5, 1, 1.5]),
        (b"User-agent: *\nCrawl-delay: 1e300", [0, 3600, 7200, 10800]),
        (b"User-agent: *\nRequest-rate: 1/" + b"9" * 400, [0, 3600, 7200, 10800]),
    ],
)
def test_a_crawl_delay_makes_it_slower_and_never_faster(text: bytes, times: list[float]) -> None:
    async def main() -> list[float]:
        scene = Scene(text, rate=2)
        await asyncio.gather(*(scene.fetch() for _ in range(3)))
        return scene.site.times()

    assert run(main()) == times


def test_a_crawl_delay_that_is_gone_is_forgotten() -> None:
    async def main() -> list[float]:
        scene = Scene(b"User-agent: *\nCrawl-delay: 10", rate=2, burst=2)
        await scene.fetch()
        scene.text = b""
        await asyncio.sleep(24 * HOUR)
        await asyncio.gather(*(scene.fetch() for _ in range(3)))
        return [when - 24 * HOUR - 10 for when in scene.site.times()[2:]]

    assert run(main()) == [0, 0, 0.5, 1]


# --- whom it speaks to ---


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("aioflow/1.0", "aioflow"),
        ("aioflow/1.0 (+https://example.org)", "aioflow"),
        ("My-Bot", "my-bot"),
        ("MyBot (me@example.org)", "mybot"),
        ("", "*"),
    ],
)
def test_the_name_is_that_of_the_first_product(agent: str, token: str) -> None:
    assert product_token(agent) == token


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"User-agent: aioflow\nDisallow: /\n\nUser-agent: *\nAllow: /", False),
        (b"User-agent: *\nDisallow: /\n\nUser-agent: AIOflow\nAllow: /", True),
        (b"User-agent: *\nDisallow: /\n\nUser-agent: aioflow", True),  # a group of its own, without rules
        (b"User-agent: aioflow/1.0\nDisallow: /", False),
        (b"User-agent: aio\nDisallow: /", True),
        (b"User-agent: a\nDisallow: /", True),
        (b"User-agent: aioflow-news\nDisallow: /", True),
        (b"User-agent: other\nUser-agent: aioflow\nDisallow: /", False),
        (b"User-agent: aioflow\n\nSitemap: http://x/\nUser-agent: other\nDisallow: /", False),
        (
            b"User-agent: aioflow\nDisallow: /a\nUser-agent: b\nAllow: /\nUser-agent: aioflow\nDisallow: /p",
            False,
        ),
        (b"user agent aioflow\ndisallow /", False),
        (b"useragent\nUser-agent: *\nDisallow: /", False),
        (b"Disallow: /", True),
        (b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /", False),
        (b"User-agent: *\rDisallow: /", False),
        (b"User-agent: *  # all\nDisallow: / # everything", False),
        (b"<html>User-agent: *\nDisallow: /</html>", True),
        (b"\x00\xff\xfe", True),
        (b"", True),
        (b"User-agent: *\nDisallow:", True),
        (b"User-agent: *\nDisallow: /*e$", False),
    ],
)
def test_a_group_is_for_the_agents_it_names(text: bytes, expected: bool) -> None:
    assert run(allowed(text)) is expected


def test_another_user_agent_has_another_name() -> None:
    text = b"User-agent: mybot\nDisallow: /"
    assert run(allowed(text))
    assert not run(allowed(text, user_agent="MyBot/2.0 (+https://example.org)"))


LINES = st.lists(
    st.sampled_from(
        [
            "User-agent: *",
            "User-agent: aioflow",
            "User-agent: zebra",
            "user agent aioflow",
            "useragent",
            "User-agent:",
            "Disallow: /a",
            "Disallow: /",
            "Disallow:",
            "Allow: /a/b",
            "Allow: /*c$",
            "Crawl-delay: 3",
            "Sitemap: /x",
            "Host: y",
            "nonsense",
            "nonsense: more",
            "# comment",
            "",
        ]
    ),
    max_size=14,
)


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_reading_only_the_groups_that_matter_changes_nothing(lines: list[str]) -> None:
    """Where both agree what a group is for, the whole file gives the same verdicts."""
    text = "\n".join(lines)
    whole = Protego.parse(text)
    rules = parse(text.encode(), "aioflow")
    assert (0 if rules is None else rules.crawl_delay_seconds) == (whole.crawl_delay("aioflow") or 0)
    for path in ("/", "/a", "/a/b", "/a/c", "/x", "/robots.txt"):
        ours = rules is None or rules.allow(A + path)
        assert ours == whole.can_fetch(A + path, "aioflow"), path


PARTS = st.lists(
    st.sampled_from(
        ["/", "a", "b", "a/b", "*", "$", "%61", "%2F", "é", "?", "=", ".html", "http://x", "\t", " ", ":"]
    ),
    max_size=5,
).map("".join)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["Disallow: ", "disallow:", "Disallow ", "Disalow: ", "Allow: "]), PARTS)
    ),
    PARTS,
)
@example([("Disallow: ", "/a")], "%61")
@example([("Disallow: ", "/a")], "\ta")
@example([("Disallow: ", "*a")], "a")
@example([("Disallow: ", "http://x")], "http://x")
@example([("Disallow: ", "/*3F")], "a?b")
@example([("Disallow: ", "/*a%62*")], "xab")
@example([("Disallow: ", "/*.html$"), ("Disallow: ", "/*?")], "a.html?")
def test_the_short_way_to_a_verdict_leads_to_the_same(rules: list[tuple[str, str]], path: str) -> None:
    lines = ["User-agent: *", *(field + value for field, value in rules)]
    whole = Protego.parse("\n".join(lines))
    ours = parse("\n".join(lines).encode(), "aioflow")
    for url in (f"{A}/{path}", f"{A}{path}"):
        assert (ours is None or ours.allow(url)) == whole.can_fetch(url, "aioflow")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300) | st.text().map(str.encode), st.text(max_size=30))
def test_no_file_is_too_strange(body: bytes, path: str) -> None:
    rules = parse(body, "aioflow")
    assert rules is None or rules.crawl_delay_seconds >= 0
    assert rules is None or rules.allow(f"{A}/{path}") in (True, False)


def test_thousands_of_agents_that_share_thousands_of_rules_cost_nothing() -> None:
    agents = "".join(f"User-agent: bot{number}\n" for number in range(10_000))
    rules = "".join(f"Disallow: /{number}\n" for number in range(10_000))
    assert lines_for(agents + rules, "aioflow") == []
    # Reading all groups would take minutes, and all the memory there is.
    found = parse((agents + "User-agent: *\n" + rules).encode(), "aioflow")
    assert found is not None
    assert found.text_bytes < len(rules) + 100


# --- memory ---


def test_rules_of_hosts_that_nobody_uses_are_forgotten_when_they_are_too_many() -> None:
    async def main() -> None:
        scene = Scene(b"User-agent: *\n" + b"Disallow: /x\n" * 100)
        scene.fetcher = RobotsFetcher(
            HostQueueFetcher(scene.site, scene.hosts), scene.hosts, rules_bytes_kept=10_000
        )
        scene.others = {"http://used.example/page": lambda: answer(body=Chunks(b"x"))}
        streamed = await scene.fetch("http://used.example/page", streamed=True)
        for number in range(20):
            assert await scene.allows(f"http://h{number}.example/page")
        kept = [host.key for host in scene.hosts if host.robots]
        assert 2 < len(kept) < 10
        assert "used.example:80" in kept
        assert "h19.example:80" in kept
        asked = scene.asked
        assert await scene.allows("http://h0.example/page")
        assert await scene.allows("http://used.example/other")
        assert scene.asked == asked + 1
        await streamed.close()

    run(main())
