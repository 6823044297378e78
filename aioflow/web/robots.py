"""robots.txt (RFC 9309): fetched once for each origin, before any other request, and obeyed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from aioflow.web.errors import (
    ConnectionFailedError,
    NotRecordedError,
    ResponseTimeoutError,
    ResponseTooLargeError,
    RobotsRefusedError,
    SiteDownError,
    WebError,
    status_text,
)
from aioflow.web.hosts import Host, Hosts
from aioflow.web.http import Fetcher, Request, Response
from aioflow.web.urls import origin, resolve, without_userinfo

KEPT_SECONDS = 24 * 3600.0
UNREACHABLE_SECONDS = 60.0  # until a robots.txt that could not be read is asked for again
REDIRECTS_AT_MOST = 5
# The limit for rules of unused hosts, as text; parsed rules take up to 70 times as much.
RULES_BYTES_KEPT = 2 * 1024 * 1024
_BYTES_OF_A_HOST = 256
_PARSED_ON_THE_LOOP_BYTES = 32 * 1024
_COMPARED_ON_THE_LOOP = 4_000_000  # bytes of rules times those of a URL, some 20 milliseconds
_FOR_NOW = frozenset({408, 425, 429})  # client errors after which a robots.txt may still exist
_AGENT_LINE = re.compile(r"user(?:-|\s+)?agent(?:\s*:\s*|\s+|$)(.*)", re.IGNORECASE)
_SITE_LINE = re.compile(r"(?:site-?maps?|host)(?:\s*:|\s)", re.IGNORECASE)
# A line without a colon is a rule only if it begins like one.
_RULE_LINE = re.compile(
    r".*:|(?:allow|dis{1,2}al{1,2}[oa]w|diasllow|(?:crawl|request|visit)[- ](?:delay|rate|time))(?:\s|$)",
    re.IGNORECASE,
)
# Characters that are the same in rules and URLs, however both are escaped to be compared.
_START = re.compile(r"/[A-Za-z0-9_.~/=-]*|\*")
_PIECE = re.compile(r"[G-Za-z_.~/=?&-][A-Za-z0-9_.~/=?&-]*")  # begins like no part of an escape
_TOKEN = re.compile(r"[^\s/*(;,]+")


class RobotsRules(msgspec.Struct, frozen=True):
    """The rules of a robots.txt until it expires. Without rules, everything or nothing is allowed."""

    state: str  # rules, absent or unreachable
    until: float
    rules: Rules | None = None
    why: str = ""
    status: int | None = None  # of a server error
    is_down: bool = False  # the whole site seems to be down

    def is_slow(self, url: str) -> bool:
        """Return whether the check of a URL takes long, since each rule is compared with all of it."""
        return self.rules is not None and self.rules.text_bytes * len(url) > _COMPARED_ON_THE_LOOP

    def allows(self, url: str) -> bool:
        return self.rules.allow(url) if self.rules is not None else self.state != "unreachable"


class Rules:
    """The rules for one agent."""

    __slots__ = ("_parser", "_pieces", "_starts", "crawl_delay_seconds", "text_bytes")

    def __init__(self, lines: Sequence[str]) -> None:
        from protego import Protego

        text = "\n".join(["User-agent: *", *lines])
        self._parser = Protego.parse(text)
        signs = [sign for line in lines if (sign := _sign(line)) is not None]
        self._starts = tuple(sign.text for sign in signs if sign.at_start)
        self._pieces = tuple({sign.text for sign in signs if not sign.at_start})
        self.text_bytes = len(text)
        self.crawl_delay_seconds = self._parser.crawl_delay("*") or 0.0
        rate = self._parser.request_rate("*")
        if rate is not None:
            longest = int(KEPT_SECONDS) * rate.requests  # numbers may be too large for a float
            seconds = min(rate.seconds, longest) / rate.requests
            self.crawl_delay_seconds = max(self.crawl_delay_seconds, seconds)

    def allow(self, url: str) -> bool:
        # Most URLs have no sign of any rule. This test is ten times faster than the search for the longest
        # rule. Escapes, and characters that are removed from URLs, could hide a sign.
        path = url.find("/", 8)
        if path > 0 and "%" not in url and url.isprintable() and not url.startswith(self._starts, path):
            for piece in self._pieces:
                if piece in url:
                    break
            else:
                return True
        return self._parser.can_fetch(url, "*")


class RobotsFetcher:
    """Refuses requests that the host's robots.txt forbids, and sets the host's pace to its crawl-delay.

    `reader` fetches robots.txt itself, in place of `inner`; it has nothing of its own to close.
    """

    def __init__(
        self,
        inner: Fetcher,
        hosts: Hosts,
        *,
        reader: Fetcher | None = None,
        rules_bytes_kept: int = RULES_BYTES_KEPT,
    ) -> None:
        self._inner = inner
        self._reader = reader or inner
        self._hosts = hosts
        self._rules_bytes_kept = rules_bytes_kept
        self._agent = product_token(hosts.http.user_agent)
        self._readings: dict[str, _Reading] = {}  # under way, by origin
        self._sizes: dict[str, int] = {}  # of the rules of each host, the oldest first
        self._bytes = 0

    async def fetch(self, request: Request) -> Response:
        if request.robots:
            host = self._hosts.at(request.url)
            if host.heeds_robots:
                rules = host.robots.get(_scheme(request.url))
                if rules is None or asyncio.get_running_loop().time() >= rules.until:
                    rules = await self._rules(host, request)
                if rules.is_slow(request.url):
                    is_allowed = await asyncio.to_thread(rules.allows, request.url)
                else:
                    is_allowed = rules.allows(request.url)
                if not is_allowed:
                    self._refuse(host, request.url, rules)
        return await self._inner.fetch(request)

    async def close(self) -> None:
        await self._inner.close()

    def _refuse(self, host: Host, url: str, rules: RobotsRules) -> None:
        shown, robots_url = without_userinfo(url), _robots_url(url)
        if rules.rules is not None:
            found = f"{robots_url} forbids it to the user agent {self._agent}"
        elif shown.partition("?")[0] == robots_url:
            return  # it cannot forbid that it is read
        else:
            left = max(rules.until - asyncio.get_running_loop().time(), 0)
            found = f"{robots_url} could not be read ({rules.why}); nothing may be fetched for {left:.0f} s"
            if rules.status is not None:
                found = f"the site answers {status_text(rules.status)}: {found}"
        message = (
            f"{shown}: {found}; if the host is yours, "
            f'set robots = false under [host."{host.name}"] in aioflow.toml'
        )
        error = SiteDownError(message, rules.status) if rules.is_down else RobotsRefusedError(message)
        host.counters.failed(error)
        raise error

    # --- fetched once for all that wait ---

    async def _rules(self, host: Host, request: Request) -> RobotsRules:
        asked = origin(request.url)
        host.users += 1
        host.aside += 1
        try:
            while (reading := self._readings.get(asked)) is not None:
                await reading.ended.wait()
                if reading.failure is not None:
                    raise _failure_of(request.url, reading.failure)
                if reading.rules is not None:
                    return reading.rules
                # Its reader was cancelled: the first that waits takes over.
            return await self._lead(host, asked, request)
        finally:
            host.aside -= 1
            host.users -= 1

    async def _lead(self, host: Host, asked: str, request: Request) -> RobotsRules:
        reading = self._readings[asked] = _Reading()
        host.reading_robots += 1
        try:
            rules = await self._read(request)
            self._keep(host, _scheme(request.url), rules)
            reading.rules = rules
            return rules
        except WebError as failure:
            reading.failure = failure
            raise _failure_of(request.url, failure) from failure
        finally:
            host.reading_robots -= 1
            del self._readings[asked]
            reading.ended.set()

    def _keep(self, host: Host, scheme: str, rules: RobotsRules) -> None:
        host.robots[scheme] = rules
        if rules.state != "unreachable":
            limit = self._hosts.http.retry_after_seconds  # the longest wait
            host.follow_crawl_delay(min(rules.rules.crawl_delay_seconds if rules.rules else 0.0, limit))
        size = _BYTES_OF_A_HOST + (rules.rules.text_bytes if rules.rules else 0)
        self._bytes += size - self._sizes.pop(host.key, 0)
        self._sizes[host.key] = size
        if self._bytes > self._rules_bytes_kept:
            self._forget()

    def _forget(self) -> None:
        """Forget the oldest rules; those of hosts in use stay, or they would be fetched each time."""
        for key in tuple(self._sizes):
            host = self._hosts.known(key)
            if host is None or not host.is_used:
                self._bytes -= self._sizes.pop(key)
                if host is not None:
                    host.robots.clear()
            if self._bytes <= self._rules_bytes_kept:
                return

    # --- reading it ---

    async def _read(self, request: Request) -> RobotsRules:
        url = _robots_url(request.url)
        try:
            for _ in range(REDIRECTS_AT_MOST + 1):
                asked = Request(url, streamed=True, robots=False, urgent=True, permit=request.permit)
                asked = replace(asked, watch=request.watch, attempt=request.attempt, may_be_absent=True)
                async with await self._reader.fetch(asked) as response:
                    if not 300 <= response.status < 400:
                        return await self._understand(response)
                    location = response.headers.get("Location")
                target = resolve(url, location) if location else None
                if target is None:
                    break
                url = target
        except NotRecordedError:  # nothing is sent to the host then
            return RobotsRules("absent", _now() + UNREACHABLE_SECONDS)
        except WebError as error:
            if not error.sent and url == _robots_url(request.url):
                raise  # the host itself could not be reached, whatever the reason
            is_down = isinstance(error, ConnectionFailedError | ResponseTimeoutError)
            return _unreachable(str(error), is_down=is_down)
        return RobotsRules("absent", _now() + KEPT_SECONDS)

    async def _understand(self, response: Response) -> RobotsRules:
        if response.status >= 500:
            return _unreachable(f"status {response.status}", response.status, is_down=True)
        if response.status >= 400:
            seconds = UNREACHABLE_SECONDS if response.status in _FOR_NOW else KEPT_SECONDS
            return RobotsRules("absent", _now() + seconds)
        body = await self._beginning(response)
        if len(body) > _PARSED_ON_THE_LOOP_BYTES:
            rules = await asyncio.to_thread(parse, body, self._agent)
        else:
            rules = parse(body, self._agent)
        return RobotsRules("rules", _now() + KEPT_SECONDS, rules)

    async def _beginning(self, response: Response) -> bytes:
        """Return the body up to the limit, without a line that is cut there."""
        if isinstance(response.body, bytes):
            body, whole = response.body, True
        else:
            pieces, whole = bytearray(), True
            try:
                async for chunk in response.body:
                    pieces += chunk
                    if len(pieces) > self._hosts.http.robots_bytes:
                        break
            except ResponseTooLargeError:
                whole = False
            body = bytes(pieces)
        limit = self._hosts.http.robots_bytes
        if whole and len(body) <= limit:
            return body
        return body[: body.rfind(b"\n", 0, limit) + 1]


def _unreachable(why: str, status: int | None = None, *, is_down: bool) -> RobotsRules:
    return RobotsRules("unreachable", _now() + UNREACHABLE_SECONDS, None, why, status, is_down)


class _Reading:
    """A robots.txt that is being fetched; it has neither rules nor failure if it was given up."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.rules: RobotsRules | None = None
        self.failure: WebError | None = None


def _failure_of(url: str, failure: WebError) -> WebError:
    """Return the failure of the request for robots.txt as an error of the page."""
    text = str(failure.args[0])
    robots_url = _robots_url(url)
    if text.startswith(robots_url):
        text = without_userinfo(url) + text[len(robots_url) :]
    told = type(failure)(text)
    told.sent = failure.sent
    return told


def product_token(user_agent: str) -> str:
    """Return the name of the first product in the user agent, which rules in a robots.txt use."""
    found = _TOKEN.match(user_agent.strip())
    return found[0].lower() if found is not None else "*"


def parse(body: bytes, agent: str) -> Rules | None:
    """Return the rules for an agent; None if there are none."""
    lines = lines_for(body.decode("utf-8-sig", "replace"), agent)
    return Rules(lines) if lines else None


class _Sign(NamedTuple):
    """A text in every URL that a rule may forbid: at the start of its path, or anywhere."""

    text: str
    at_start: bool


def _sign(line: str) -> _Sign | None:
    """Return the sign of a line; None if the line forbids nothing."""
    start = _START.search(line)
    if start is None or line[:5].lower() == "allow":
        return None
    if "%" in line or "://" in line:
        return _Sign("/", True)  # the parser decides
    pieces = _PIECE.findall(line.partition("*")[2])
    if start[0] in ("/", "*") and pieces:
        return _Sign(max(pieces, key=len), False)
    return _Sign(start[0].replace("*", "/"), True)


def lines_for(text: str, agent: str) -> list[str]:
    """Return the rules in the groups that name the agent, or else in those for all.

    Only these are parsed: with thousands of agents sharing thousands of rules, a parser of all groups
    takes minutes and gigabytes. And a group applies to the agent that it names, not to longer names.
    """
    own: list[str] = []
    common: list[str] = []
    is_named = is_own = is_common = False
    after_agent = False
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        found = _AGENT_LINE.fullmatch(line)
        if found is None:
            if _SITE_LINE.match(line) or not _RULE_LINE.match(line):
                continue  # lines that do not end a list of agents
            after_agent = False
            if is_own:
                own.append(line)
            if is_common:
                common.append(line)
            continue
        if not after_agent:
            is_own = is_common = False
        after_agent = True
        token = _TOKEN.match(found[1])
        is_own = is_own or (token is not None and token[0].lower() == agent)
        is_common = is_common or found[1].startswith("*")
        is_named = is_named or is_own
    return own if is_named else common


def _robots_url(url: str) -> str:
    """Return the URL of robots.txt, without the default port."""
    root = origin(url)
    return f"{root.removesuffix(':443' if root.startswith('https:') else ':80')}/robots.txt"


def _scheme(url: str) -> str:
    return url[:5].lower()


def _now() -> float:
    return asyncio.get_running_loop().time()
