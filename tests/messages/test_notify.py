"""The channel `notify`: what apprise's services get, what failures mean, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aioflow.config.masking import mask
from aioflow.config.secrets import Secrets
from aioflow.errors import InputError
from aioflow.messages.accounts import fill_in_address
from aioflow.messages.chat import channel as chat_channel
from aioflow.messages.chat.apprise_child import parts_of
from aioflow.messages.chat.channel import NotifyChannel
from aioflow.messages.outbox.message import DeliveryError, Message
from tests.servers.gateway import Answer, Gateway

HOSTILE = '<b>&amp;</b> "x"\n<!channel> {text} ${HOME} \\n :smile: secret:CHAT'


def message(url: str, text: str = "1 Oak Street", **fields: Any) -> Message:
    return Message("key-1", "notify", "team", {"to": url, "subject": "New", "text": text}, **fields)


@asynccontextmanager
async def opened(
    *urls: str, secrets: Secrets | None = None, **settings: Any
) -> AsyncIterator[tuple[Gateway, NotifyChannel, str]]:
    async with Gateway() as gateway:
        given = [url.replace("GATEWAY", gateway.host) for url in urls or ("json://GATEWAY/hook",)]
        tables = {"notify": {"team": {"url": given, **settings}}}
        channel = NotifyChannel(tables, secrets=secrets)
        try:
            yield gateway, channel, given[0]
        finally:
            await channel.close()


async def failure(channel: NotifyChannel, sent: Message) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        await channel.deliver(sent)
    return caught.value


def children() -> set[int]:
    """The processes that this one has started and not yet seen the end of."""
    return {int(child) for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def said_of(process: int, what: str) -> bytes:
    return Path(f"/proc/{process}/{what}").read_bytes()


# --- delivering ---------------------------------------------------------------------------------


async def test_a_webhook_gets_title_text_and_key_and_its_refusals_are_told() -> None:
    before = children()
    async with opened() as (gateway, channel, url):
        assert channel.problems(None) == []
        assert await channel.deliver(message(url, HOSTILE)) == "JSON: 200"
        (request,) = gateway.requests
        assert (request.path, request.key) == ("/hook", "key-1")
        sent = json.loads(request.body)
        assert (sent["title"], sent["message"]) == ("New", HOSTILE)

        for status, final, uncertain in [(404, True, False), (500, False, False), (502, False, True)]:
            gateway.refuse(status, times=1)
            error = await failure(channel, message(url))
            assert (error.final, error.uncertain) == (final, uncertain)
            assert f"error={status}" in str(error)
            assert str(error).startswith("[notify.team]: ")

        gateway.refuse(429, times=1, Retry_After="17")
        assert (await failure(channel, message(url))).retry_after_seconds == 17

        gateway.answer(Answer(reset=True, takes=True, times=1))
        error = await failure(channel, message(url))
        assert (error.final, error.uncertain) == (False, True)

        gateway.refuse(409, times=1)
        assert "has had a message with this key" in await channel.deliver(message(url))
        assert len(children() - before) == 1
    assert children() == before


async def test_a_service_that_is_not_there_has_not_got_the_message() -> None:
    async with Gateway() as gateway:
        gone = gateway.host
    async with opened(f"json://{gone}/", "nonsense://x", "json://") as (_, channel, url):
        error = await failure(channel, message(url))
        assert (error.final, error.uncertain) == (False, False)
        assert "connection refused" in str(error)
        assert (await failure(channel, message("nonsense://x"))).final
        assert (await failure(channel, message("json://"))).final


async def test_a_long_text_goes_in_parts_of_which_each_is_delivered_once() -> None:
    # As a chat with room for 2000 characters, here with a server of its own.
    lines = [f"house {number} in Oak Street" for number in range(120)]
    async with opened("mmost://GATEWAY/aaaaaaaaaaaaaaaaaaaaaaaa", total_seconds=20) as (
        gateway,
        channel,
        url,
    ):
        text = "\n".join(lines * 3)
        gateway.answer(Answer(times=1))
        gateway.refuse(503, times=1)
        error = await failure(channel, message(url, text))
        assert error.progress == {"parts": 1}
        assert "(3 parts)" in await channel.deliver(message(url, text, progress=error.progress or {}))
    told = [json.loads(request.body)["text"] for request in gateway.taken]
    assert len(told) == 3
    assert all(len(each) <= 4000 for each in told)
    found = [line for each in told for line in each.splitlines() if line.startswith("house")]
    assert found == lines * 3


async def test_a_service_that_takes_too_long_is_given_up_with_its_process() -> None:
    before = children()
    for seconds in (1, 10, 100):
        # Its thread would go on waiting long after that.
        async with opened("json://GATEWAY/hook?rto=600", total_seconds=seconds) as (gateway, channel, url):
            held = gateway.answer(Answer(until=asyncio.Event()))
            error = await failure(channel, message(url))
            assert (error.final, error.uncertain) == (False, True)
            assert children() == before
        if held.reached.is_set():
            break  # on a machine that is not too busy to ask within the time
    assert held.reached.is_set()


async def test_a_process_that_does_not_come_back_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    monkeypatch.setattr(chat_channel, "_GRACE_SECONDS", -59.9)
    async with opened(total_seconds=60) as (gateway, channel, url):
        gateway.answer(Answer(until=asyncio.Event()))
        error = await failure(channel, message(url))
        assert error.uncertain
        assert "no answer within 60 s" in str(error)
        assert children() == before


async def test_a_cancelled_delivery_leaves_no_process() -> None:
    before = children()
    async with opened() as (gateway, channel, url):
        held = gateway.answer(Answer(until=asyncio.Event()))
        delivery = asyncio.create_task(channel.deliver(message(url)))
        await held.reached.wait()
        assert children() != before
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivery
        assert children() == before


async def test_no_secret_is_shown_or_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    monkeypatch.setenv("AIOFLOW_SECRET_OTHER", "not-for-children")
    async with Gateway() as gateway:
        secret = f"json://ann:hunter2@{gateway.host}/T0KEN-PATH?+X-Auth=h3ader-token"
        secrets = Secrets({"AIOFLOW_SECRET_CHAT": secret})
        channel = NotifyChannel({"notify": {"team": {"url": "secret:CHAT"}}}, secrets=secrets)
        await channel.deliver(message("secret:CHAT"))
        gateway.refuse(403)
        error = await failure(channel, message("secret:CHAT"))
        (child,) = children() - before
        environment, command = said_of(child, "environ"), said_of(child, "cmdline")
        await channel.close()
    assert gateway.taken[0].headers["X-Auth"] == "h3ader-token"
    assert gateway.taken[0].path == "/T0KEN-PATH"
    for piece in ("hunter2", "T0KEN-PATH", "h3ader-token"):
        assert piece not in str(error)
        assert mask(f"said {piece}!") == "said ********!"
        assert piece.encode() not in environment + command
    assert b"not-for-children" not in environment


# --- the configuration --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("account", "problem"),
    [
        ({"total_seconds": 5}, "[notify.team] has no url"),
        ({"url": "secret:NONE"}, "there is no secret 'NONE'"),
        ({"url": "json://ann:secret:NONE@host"}, "there is no secret 'NONE'"),
        ({"url": "json://ann:hunter2@host"}, "a password stands in its url"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_sent(account: dict[str, Any], problem: str) -> None:
    (told,) = NotifyChannel({"notify": {"team": account}}, secrets=Secrets({})).problems("team")
    assert problem in told
    assert "hunter2" not in told


def test_without_apprise_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_channel, "find_spec", lambda name: None)
    (told,) = NotifyChannel({"notify": {"team": {"url": "ntfy://topic"}}}).problems(None)
    assert told == "notify needs an optional package: pip install 'aioflow[notify]'"


@pytest.mark.parametrize("settings", [{"url": "ntfy.sh"}, {"url": []}, {"url": ["x"]}, {"most_rows": 0}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    if settings == {"url": []}:
        assert NotifyChannel({"notify": {"team": settings}}).problems("team")
        return
    with pytest.raises(InputError, match=r"notify\.team\."):
        NotifyChannel({"notify": {"team": settings}})


async def test_a_message_whose_account_has_changed_is_for_the_only_url_or_for_nobody() -> None:
    async with opened() as (gateway, channel, _):
        await channel.deliver(message("json://elsewhere"))
        assert len(gateway.taken) == 1
    async with opened("json://GATEWAY/a", "json://GATEWAY/b") as (gateway, channel, _):
        error = await failure(channel, message("json://elsewhere"))
        assert error.final
        assert "has no url 'json://elsewhere' any more" in str(error)
        assert not gateway.requests


def test_a_secret_within_an_address_is_escaped_and_one_that_is_the_address_is_not() -> None:
    secrets = Secrets({"AIOFLOW_SECRET_PW": "a/b @c", "AIOFLOW_SECRET_ALL": "json://host/a b"})
    assert fill_in_address("json://ann:secret:PW@host/x", secrets) == "json://ann:a%2Fb%20%40c@host/x"
    assert fill_in_address("secret:ALL", secrets) == "json://host/a b"


# --- parts of a text ----------------------------------------------------------------------------

texts = st.lists(st.text("ab -", max_size=40), max_size=30).map("\n".join)


@given(texts, st.integers(5, 60), st.integers(0, 5))
@example(" aaaaa", 5, 0)
def test_parts_have_all_words_in_order_and_fit(text: str, most: int, lines: int) -> None:
    parts = parts_of(text, most, lines, most_parts=10_000)
    assert " ".join(parts).split() == text.split() or max(map(len, text.split())) > most
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(len(part) <= most for part in parts)
    assert all(part.count("\n") < lines for part in parts if lines)


@given(texts, st.integers(30, 60), st.integers(1, 4))
def test_what_does_not_fit_into_the_parts_is_told(text: str, most: int, most_parts: int) -> None:
    parts = parts_of(text, most, most_parts=most_parts)
    assert len(parts) <= most_parts
    assert all(len(part) <= most for part in parts)
    whole = parts_of(text, most, most_parts=10_000)
    if len(whole) <= most_parts:
        assert parts == whole
    else:
        assert parts[-1].splitlines()[-1].endswith(("more line", "more lines"))
