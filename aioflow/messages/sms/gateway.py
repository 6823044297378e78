"""A plain HTTP gateway for text messages: a request for each, made of templates of the configuration."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec

from aioflow.config.masking import mask
from aioflow.config.secrets import Secrets
from aioflow.messages.accounts import fill_in_address
from aioflow.messages.outbox.message import DeliveryError, if_cut_short
from aioflow.messages.sms.settings import PhoneSettings
from aioflow.state.crash_points import moment
from aioflow.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_SENDING = moment("gateway-request", "the request with a text message is about to be sent to a gateway")
_ANSWERED = moment("gateway-answered", "a gateway has answered, and that is not noted yet")

_PLACEHOLDER = re.compile(r"\{(to|text|key)\}")
_ANSWER_BYTES = 16 * 1024
_BODY_SECONDS = 5.0
_SHOWN_CHARACTERS = 200
_LATER = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
# Whoever answers so may have passed the message on before.
_UNCERTAIN = (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)


class Text(msgspec.Struct, frozen=True):
    """A text message: the number, the text, and the key that every copy carries."""

    to: str
    text: str
    key: str

    def fill_in(self, template: str, escape: Callable[[str], str] = str) -> str:
        values = {"to": self.to, "text": self.text, "key": self.key}
        return _PLACEHOLDER.sub(lambda found: escape(values[found[1]]), template)


@dataclass(frozen=True)
class GatewayRequest:
    """A request with all that is secret in it."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    data: bytes | None = field(repr=False)


class Gateway:
    """Speaks to one gateway; `label` is its table in the configuration, for messages."""

    def __init__(self, label: str, settings: PhoneSettings, secrets: Secrets) -> None:
        self._label = label
        self._settings = settings
        self._secrets = secrets
        self._session: ClientSession | None = None

    async def send(self, text: Text) -> str:
        """Send a text message; returns the gateway's answer. Raises DeliveryError."""
        request = self.request(text)
        progress = _Progress()
        try:
            with if_cut_short(lambda: self._unanswered(progress)):
                async with asyncio.timeout(self._settings.total_seconds):
                    response = await self._ask(request, progress)
        except TimeoutError as error:
            raise self._no_answer("no answer in time", progress, error) from None
        except (OSError, ValueError) as error:
            raise self._no_answer(type(error).__name__, progress, error) from None
        try:
            _ANSWERED()
            with if_cut_short(lambda: self._judged_by_status(response)):
                said = await _beginning(response)
            return self._judged(response, said)
        finally:
            response.close()

    def request(self, text: Text) -> GatewayRequest:
        """The request that sends a text; what it refers to is filled in before anything of the data is."""
        settings, fill_in = self._settings, self._secrets.fill_in
        headers = {"User-Agent": f"aioflow/{__version__}", "Accept-Encoding": "identity"}
        if settings.key_header:
            headers[settings.key_header] = text.key
        content_type, data = self._body(text)
        if content_type:
            headers["Content-Type"] = content_type
        names = {name.lower(): name for name in headers}
        for name, value in settings.headers.items():
            headers.pop(names.get(name.lower(), name), None)
            headers[name] = text.fill_in(fill_in(value))
        url = text.fill_in(fill_in_address(settings.url, self._secrets), lambda value: quote(value, safe=""))
        return GatewayRequest(settings.method, url, headers, data)

    def _body(self, text: Text) -> tuple[str, bytes | None]:
        settings, fill_in = self._settings, self._secrets.fill_in
        if settings.body is not None:
            return "text/plain; charset=utf-8", text.fill_in(fill_in(settings.body)).encode()
        if settings.form:
            pairs = {name: text.fill_in(fill_in(value)) for name, value in settings.form.items()}
            return "application/x-www-form-urlencoded", urlencode(pairs).encode()
        if settings.json is not None:
            content = _filled_in(json.loads(settings.json), lambda each: text.fill_in(fill_in(each)))
        elif settings.method in ("GET", "HEAD", "DELETE"):
            return "", None
        else:
            content = {"to": text.to, "text": text.text, "key": text.key}
        return "application/json", json.dumps(content, ensure_ascii=False).encode()

    async def _ask(self, request: GatewayRequest, progress: _Progress) -> ClientResponse:
        """The answer, of which only the head has come."""
        from aiohttp import ClientError

        session = self._opened()
        try:
            _SENDING()
            return await session.request(
                request.method,
                request.url,
                headers=dict(request.headers),
                data=request.data,
                allow_redirects=False,
                trace_request_ctx=progress,
            )
        except ClientError as error:
            raise self._no_answer(type(error).__name__, progress, error) from None

    def _judged(self, response: ClientResponse, said: str) -> str:
        """The answer of a gateway that took the message; a DeliveryError for any other."""
        status = response.status
        answer = f"{_status_text(status)}{f': {said}' if said else ''}"
        if any(_matches(status, pattern) for pattern in self._settings.success):
            return answer
        if status == HTTPStatus.CONFLICT and self._settings.key_header:
            return f"{answer} (the gateway has had a message with this key before)"
        failure = f"{self._label}: the gateway answered {answer}"
        if status in _LATER or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            from aioflow.web.retry_after import retry_after_seconds

            seconds = retry_after_seconds(response.headers)
            raise DeliveryError(failure, uncertain=status in _UNCERTAIN, retry_after_seconds=seconds)
        if status < HTTPStatus.MULTIPLE_CHOICES:
            expected = ", ".join(self._settings.success)
            raise DeliveryError(f"{failure}, expected is {expected}", final=True, uncertain=True)
        if status < HTTPStatus.BAD_REQUEST:
            raise DeliveryError(f"{failure}; redirects are not followed: give its new url", final=True)
        raise DeliveryError(failure, final=True)

    def _judged_by_status(self, response: ClientResponse) -> DeliveryError | str:
        try:
            return self._judged(response, "")
        except DeliveryError as error:
            return error

    def _no_answer(self, what: str, progress: _Progress, error: Exception) -> DeliveryError:
        from aiohttp import InvalidURL

        reason = mask(str(error)) or what
        if isinstance(error, InvalidURL | ValueError):
            # The text of such an error repeats the URL or header that is wrong.
            return DeliveryError(f"{self._label}: its url or headers cannot be sent ({what})", final=True)
        if not progress.is_sent:
            return DeliveryError(f"{self._label}: the gateway cannot be reached: {reason}", unreachable=True)
        return DeliveryError(
            f"{self._label}: the gateway took the request and did not answer: {reason}", uncertain=True
        )

    def _unanswered(self, progress: _Progress) -> DeliveryError:
        if progress.is_sent:
            return DeliveryError(
                f"{self._label}: the gateway took the request and had not answered", uncertain=True
            )
        return DeliveryError(f"{self._label}: the gateway had not taken the request")

    def _opened(self) -> ClientSession:
        if self._session is None:
            import aiohttp

            trace = aiohttp.TraceConfig()
            trace.on_request_headers_sent.append(_note_sent)
            self._session = aiohttp.ClientSession(
                # A connection that is used again may turn out to be closed after the request was sent.
                connector=aiohttp.TCPConnector(force_close=True, resolver=aiohttp.ThreadedResolver()),
                timeout=aiohttp.ClientTimeout(total=None, connect=self._settings.connect_seconds),
                cookie_jar=aiohttp.DummyCookieJar(),
                trace_configs=[trace],
                auto_decompress=False,
            )
        return self._session

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class _Progress(msgspec.Struct):
    """The progress of an exchange."""

    is_sent: bool = False


async def _note_sent(session: Any, context: Any, parameters: Any) -> None:
    context.trace_request_ctx.is_sent = True


async def _beginning(response: ClientResponse) -> str:
    """Return the beginning of a gateway's answer. Its status counts, even if the rest cannot be read."""
    from aiohttp import ClientError

    if response.headers.get("Content-Encoding", "identity") != "identity":
        return ""
    data = b""
    with suppress(ClientError, OSError):  # among them that the time is over
        async with asyncio.timeout(_BODY_SECONDS):
            while len(data) < _ANSWER_BYTES and (chunk := await response.content.read(_ANSWER_BYTES)):
                data += chunk
    return shown(data.decode("utf-8", errors="replace"))


def shown(text: str) -> str:
    """Return a text of the other side as it may be shown: short, on one line, without controls or secrets."""
    line = " ".join(mask(text).split())
    line = "".join(character if character.isprintable() else "�" for character in line)
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}…"


def _status_text(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _matches(status: int, pattern: str) -> bool:
    return str(status) == pattern or (pattern.endswith("xx") and str(status)[0] == pattern[0])


def _filled_in(content: Any, fill_in: Callable[[str], str]) -> Any:
    """JSON with all its texts filled in; keys stay as they are."""
    if isinstance(content, str):
        return fill_in(content)
    if isinstance(content, list):
        return [_filled_in(each, fill_in) for each in content]
    if isinstance(content, dict):
        return {name: _filled_in(each, fill_in) for name, each in content.items()}
    return content
