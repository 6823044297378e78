"""The channel `phone`: what it asks of a gateway, and what it makes of its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from aioflow.config.secrets import Secrets
from aioflow.errors import InputError
from aioflow.messages.outbox.message import DeliveryError, Message
from aioflow.messages.sms import gateway as gateway_module
from aioflow.messages.sms.channel import PhoneAccounts, PhoneChannel
from aioflow.messages.sms.settings import PhoneSettings, phone_number
from aioflow.state.crash_points import watch
from tests.clocks import PATIENCE_SECONDS, let_time_pass
from tests.messages.posts import opened_post
from tests.servers.gateway import Answer, Gateway

TO = "+4915112345678"
HOSTILE = 'x", "to": "+1"} &to=+1\r\nEvil: 1 secret:TOKEN {to} {key}'
SECRETS = Secrets({"AIOFLOW_SECRET_TOKEN": "tök&n +x"})


def text_message(text: str = "New: 1 Oak Street", account: str = "default", key: str = "key-1") -> Message:
    return Message(key, "phone", account, {"to": TO, "text": text})


@asynccontextmanager
async def opened(**settings: Any) -> AsyncIterator[tuple[Gateway, PhoneChannel]]:
    async with Gateway() as gateway:
        settings = {"url": gateway.url("/send"), **settings}
        settings["url"] = settings["url"].replace("GATEWAY", gateway.host)
        channel = PhoneChannel({"phone": {"default": settings}}, secrets=SECRETS)
        try:
            yield gateway, channel
        finally:
            await channel.close()


async def failure(channel: PhoneChannel) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        await channel.deliver(text_message())
    return caught.value


# --- requests -----------------------------------------------------------------------------------


async def test_a_gateway_gets_number_text_and_key_as_json() -> None:
    async with opened() as (gateway, channel):
        assert await channel.deliver(text_message()) == "200 OK: ok"
    (request,) = gateway.requests
    assert (request.method, request.path, request.key) == ("POST", "/send", "key-1")
    assert request.headers["Content-Type"] == "application/json"
    assert json.loads(request.body) == {"to": TO, "text": "New: 1 Oak Street", "key": "key-1"}


async def test_a_json_template_keeps_its_form_whatever_the_text_is() -> None:
    template = '{"messages": [{"to": ["{to}"], "body": "{text}", "n": 1}], "auth": "secret:TOKEN"}'
    async with opened(json=template) as (gateway, channel):
        await channel.deliver(text_message(HOSTILE))
    sent = json.loads(gateway.requests[0].body)
    assert sent == {"messages": [{"to": [TO], "body": HOSTILE, "n": 1}], "auth": "tök&n +x"}


async def test_a_form_keeps_its_fields_whatever_the_text_is() -> None:
    async with opened(form={"to": "{to}", "text": "{text}", "id": "{key}", "pw": "secret:TOKEN"}) as (
        gateway,
        channel,
    ):
        await channel.deliver(text_message(HOSTILE))
    (request,) = gateway.requests
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    fields = parse_qs(request.body.decode(), strict_parsing=True)
    assert fields == {"to": [TO], "text": [HOSTILE], "id": ["key-1"], "pw": ["tök&n +x"]}


async def test_a_query_keeps_its_fields_whatever_the_text_is() -> None:
    url = "http://GATEWAY/send/{to}?pw=secret:TOKEN&text={text}"
    async with opened(url=url, method="GET") as (gateway, channel):
        await channel.deliver(text_message(HOSTILE))
    (request,) = gateway.requests
    path, query = urlsplit(request.path).path, urlsplit(request.path).query
    assert (request.method, request.body) == ("GET", b"")
    assert path in ("/send/+4915112345678", "/send/%2B4915112345678")
    assert parse_qs(query, strict_parsing=True) == {"pw": ["tök&n +x"], "text": [HOSTILE]}


async def test_a_body_of_any_kind_and_headers_are_sent() -> None:
    headers = {"content-type": "text/xml", "Authorization": "Bearer secret:TOKEN"}
    headers["Authorization"] = headers["Authorization"].replace("TOKEN", "PLAIN")
    secrets = Secrets({"AIOFLOW_SECRET_PLAIN": "pass-1"})
    async with Gateway() as gateway:
        account = {"url": gateway.url(), "body": "<sms to='{to}'>{text}</sms>", "headers": headers}
        channel = PhoneChannel({"phone": {"default": {**account, "key_header": "X-Id"}}}, secrets=secrets)
        await channel.deliver(text_message("Hi"))
        await channel.close()
    (request,) = gateway.requests
    assert request.body == f"<sms to='{TO}'>Hi</sms>".encode()
    assert request.headers.getall("Content-Type") == ["text/xml"]
    assert request.headers["Authorization"] == "Bearer pass-1"
    assert (request.key, request.headers["X-Id"]) == (None, "key-1")


async def test_a_header_is_never_divided() -> None:
    async with opened(headers={"X-Text": "{text}"}) as (gateway, channel):
        with pytest.raises(DeliveryError) as caught:
            await channel.deliver(text_message("a\r\nEvil: 1"))
        assert caught.value.final
    assert not gateway.requests


# --- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "final", "uncertain"),
    [
        (400, True, False),
        (401, True, False),
        (404, True, False),
        (302, True, False),
        (408, False, False),
        (429, False, False),
        (500, False, False),
        (503, False, False),
        (502, False, True),
        (504, False, True),
    ],
)
async def test_a_refusal_says_whether_trying_again_can_help(
    status: int, final: bool, uncertain: bool
) -> None:
    async with opened() as (gateway, channel):
        gateway.refuse(status)
        error = await failure(channel)
    assert (error.final, error.uncertain) == (final, uncertain)
    assert f"[phone.default]: the gateway answered {status}" in str(error)
    assert "not now" in str(error)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_gateway_says_when_to_come_again(status: int) -> None:
    async with opened() as (gateway, channel):
        gateway.refuse(status, Retry_After="17")
        assert (await failure(channel)).retry_after_seconds == 17


async def test_a_message_whose_answer_was_lost_is_not_sent_twice() -> None:
    async with Gateway(knows_keys=True) as gateway:
        channel = PhoneChannel({"phone": {"default": {"url": gateway.url()}}})
        gateway.answer(Answer(reset=True, takes=True, times=1))
        error = await failure(channel)
        assert (error.final, error.uncertain) == (False, True)
        assert "409 Conflict" in await channel.deliver(text_message())
        assert len(gateway.taken) == 1
        await channel.close()


async def test_without_a_key_a_conflict_is_a_refusal() -> None:
    async with opened(key_header="") as (gateway, channel):
        gateway.refuse(409)
        assert (await failure(channel)).final


async def test_only_the_statuses_that_were_named_are_a_success() -> None:
    async with opened(success=["202", "3xx"]) as (gateway, channel):
        error = await failure(channel)
        assert (error.final, error.uncertain) == (True, True)
        gateway.answer(Answer(status=202, times=1))
        assert await channel.deliver(text_message()) == "202 Accepted: ok"
        gateway.answer(Answer(status=303, times=1, body=""))
        assert await channel.deliver(text_message()) == "303 See Other"


async def test_a_gateway_that_is_not_there_has_not_got_the_message() -> None:
    async with opened() as (gateway, _):
        url = gateway.url()
    channel = PhoneChannel({"phone": {"default": {"url": url}}})
    error = await failure(channel)
    await channel.close()
    assert (error.final, error.uncertain) == (False, False)
    assert "cannot be reached" in str(error)


async def test_a_gateway_that_does_not_answer_may_have_got_the_message() -> None:
    async with opened(total_seconds=60) as (gateway, channel):
        held = gateway.answer(Answer(until=asyncio.Event()))
        delivery = asyncio.create_task(failure(channel))
        await held.reached.wait()
        let_time_pass(60)
        error = await delivery
    assert (error.final, error.uncertain) == (False, True)
    assert "did not answer" in str(error)


@asynccontextmanager
async def answering(*parts: bytes, endlessly: bool) -> AsyncIterator[str]:
    """A server that begins an answer so and either goes on for ever, or says nothing more."""

    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"".join(parts))
        with suppress(ConnectionError):
            while endlessly:
                writer.write(b"line\n" * 1000)
                await writer.drain()
            await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await ended.wait()


@pytest.mark.parametrize("endlessly", [True, False])
async def test_what_counts_is_the_status_however_the_answer_goes_on(
    endlessly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would be far too late to say that nobody answered.
    monkeypatch.setattr(gateway_module, "_BODY_SECONDS", 3600 if endlessly else 0.05)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n"
    async with answering(head, b"sent as 17\n", endlessly=endlessly) as url:
        channel = PhoneChannel({"phone": {"default": {"url": url, "total_seconds": 60}}})
        async with asyncio.timeout(PATIENCE_SECONDS):  # far less than the 3600 above
            answer = await channel.deliver(text_message())
        await channel.close()
    assert answer.startswith("200 OK: sent as 17")
    assert len(answer) < 250
    assert "\n" not in answer


async def test_a_redirect_is_not_followed() -> None:
    async with opened() as (gateway, channel):
        gateway.answer(Answer(status=307, headers={"Location": gateway.url("/elsewhere")}))
        assert (await failure(channel)).final
    assert [request.path for request in gateway.requests] == ["/send"]


async def test_an_answer_that_repeats_a_secret_is_masked() -> None:
    async with opened(headers={"X-Pin": "secret:TOKEN"}) as (gateway, channel):
        gateway.answer(Answer(status=403, body="tök&n +x is wrong"))
        error = await failure(channel)
    assert "tök" not in str(error)
    assert "******** is wrong" in str(error)


async def test_a_cancelled_delivery_leaves_nothing_behind() -> None:
    async with opened() as (gateway, channel):
        held = gateway.answer(Answer(until=asyncio.Event()))
        delivery = asyncio.create_task(channel.deliver(text_message()))
        await held.reached.wait()
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivery


async def test_a_message_through_apprise_carries_number_and_key() -> None:
    async with opened(url="json://GATEWAY/{to}") as (gateway, channel):
        assert channel.problems(None) == []
        assert await channel.deliver(text_message("long " * 200)) == "JSON: 200"
        gateway.refuse(404)
        assert (await failure(channel)).final
    (request,) = gateway.taken
    assert (request.path, request.key) == ("/+4915112345678", "key-1")
    assert json.loads(request.body)["message"] == ("long " * 200).rstrip()


# --- the configuration --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("account", "problem"),
    [
        ({"allow": ["+49*"]}, "has no url"),
        ({"url": "https://gateway.example/?pw=secret:NONE"}, "there is no secret 'NONE'"),
        ({"url": "https://gateway.example", "headers": {"A": "secret:NONE"}}, "there is no secret 'NONE'"),
        ({"url": "https://u:hunter2@gateway.example"}, "a password stands in its url"),
        ({"url": "https://gateway.example", "form": {"to": "{to}"}}, "{text} stands neither"),
        ({"url": "https://gateway.example/{to}", "method": "GET"}, "{text} stands neither"),
        ({"url": "https://gateway.example", "body": "{to} {text}", "json": "{}"}, "exclude each other"),
        ({"url": "twilio://secret:TOKEN@15551234567"}, "{to} must stand in the url"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_sent(account: dict[str, Any], problem: str) -> None:
    channel = PhoneChannel({"phone": {"default": account}}, secrets=SECRETS)
    (told,) = channel.problems(None)
    assert problem in told
    assert "[phone.default]" in told
    assert "hunter2" not in told


def test_an_account_is_taken_by_name_or_because_it_is_the_only_one() -> None:
    one = {"url": "https://one.example"}
    assert PhoneAccounts({"phone": {"work": one}}).find(None)[0] == "work"
    assert PhoneAccounts({"phone": {"work": one, "default": one}}).find(None)[0] == "default"
    assert PhoneChannel({}).problems(None) == [
        'nothing is configured for phone: write [phone.default] url = "https://gateway.example/send" '
        "into aioflow.toml"
    ]
    both = PhoneChannel({"phone": {"work": one, "home": one}})
    assert "say VIA: work" in both.problems(None)[0]
    assert "did you mean 'work'?" in both.problems("wrok")[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "gateway.example"},
        {"method": "post it"},
        {"json": '{"to": }'},
        {"headers": {"A": "a\nb"}},
        {"success": ["ok"]},
        {"key_header": "X: y"},
        {"allow": ["+49"]},
        {"allow": ["0151 12345678"]},
        {"most_segments": 0},
        {"too_long": "ignore"},
        {"total_seconds": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"phone\.default\."):
        PhoneChannel({"phone": {"default": {"url": "https://gateway.example", **settings}}})


@pytest.mark.parametrize("text", ["+49 151 1234-5678", "+49.151.12345678", TO, "+49 (151) 12345678"])
def test_numbers_are_read_as_people_write_them(text: str) -> None:
    assert phone_number(text) == TO


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0151 12345678",
        "+0151 1234567",
        "+49 (0)151 12345678",
        "+49151",
        "+1234567890123456",
        "+49a1512345678",
        "+4915112345678\r\n",
        "+4915112345678\x00",
        "+4915112345678,+4915112345679",
        "+４９１５１１２３４５６７８",
    ],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no phone number"):
        phone_number(text)


def allowing(*numbers: str) -> Callable[[str], bool]:
    return PhoneSettings(allow=numbers).allows


def test_numbers_from_data_are_allowed_whole_or_by_their_beginning() -> None:
    assert allowing("+49*")(TO)
    assert allowing(TO)(TO)
    assert allowing("+*")(TO)
    assert not allowing()(TO)
    assert not allowing("+1*", TO[:-1])(TO)
    assert not allowing(TO)(TO + "9")


@pytest.mark.parametrize(("status", "state"), [(202, "sent"), (400, "dead"), (503, "waiting")])
async def test_a_cut_while_the_body_of_an_answer_is_read_leaves_its_status(
    tmp_path: Path, status: int, state: str
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} Said\r\nContent-Length: 10\r\n\r\nbegun".encode())
        await reader.read()  # until the other side is gone
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/?{{to}}{{text}}"
        gateway = PhoneChannel({"phone": {"default": {"url": url, "method": "GET"}}})
        await post.put("hello", account="default")

        async def deliver(message: Message) -> str:
            return await gateway.deliver(text_message())

        post.channel.does = deliver
        courier = post.courier()
        with watch(lambda name: courier.interrupt() if name == "gateway-answered" else None):
            report = await courier.deliver()
        await gateway.close()
        entry = await post.only()
        assert (entry.state, report.sent) == (state, int(state == "sent"))
        assert str(status) in str(entry.answer if state == "sent" else entry.last_error)
