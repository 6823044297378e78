"""`aioflow notify test`: samples through accounts, and what is told when one does not arrive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Ended
from tests.servers.gateway import Request, gateway_process, read_journal

Command = Callable[..., Ended]


@dataclass(frozen=True)
class Receiver:
    """A gateway in a process of its own."""

    host: str
    journal: Path

    @property
    def requests(self) -> list[Request]:
        return read_journal(self.journal)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    journal = tmp_path / "journal"
    with gateway_process(journal) as port:
        yield Receiver(f"127.0.0.1:{port}", journal)


def configure(folder: Path, text: str) -> None:
    (folder / "aioflow.toml").write_text(text)


def test_a_sample_goes_to_every_url_of_an_account(
    command: Command, folder: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOFLOW_SECRET_CHAT", f"json://ann:hunter2@{receiver.host}/T0KEN-1")
    configure(folder, f'[notify.team]\nurl = ["json://{receiver.host}/hook", "secret:CHAT"]\n')
    ended = command("notify", "test", "team")
    assert (ended.code, ended.messages) == (0, "")
    assert ended.output == f"sent to json://{receiver.host}/hook: JSON: 200\nsent to secret:CHAT: JSON: 200\n"
    assert [request.path for request in receiver.requests] == ["/hook", "/T0KEN-1"]
    assert json.loads(receiver.requests[0].body)["title"] == "A test of aioflow"


def test_a_text_message_needs_a_number(command: Command, folder: Path, receiver: Receiver) -> None:
    configure(folder, f'[phone.default]\nurl = "http://{receiver.host}/send"\n')
    ended = command("notify", "test", "default")
    assert ended.code == 2
    assert "with --to" in ended.messages
    assert "is no phone number" in command("notify", "test", "default", "--to", "0151").messages
    ended = command("notify", "test", "phone.default", "--to", "+49 151 12345678")
    assert (ended.code, ended.output) == (0, "sent to +4915112345678: 200 OK: ok\n")
    (request,) = receiver.requests
    assert json.loads(request.body)["to"] == "+4915112345678"
    assert (request.key or "").startswith("test-")


def test_mail_is_tried_as_well(command: Command, folder: Path) -> None:
    configure(folder, '[email.home]\nurl = "maildir:mail"\nfrom = "me@example.org"\n')
    assert "with --to" in command("notify", "test", "home").messages
    ended = command("notify", "test", "home", "--to", "Ann <ann@example.org>")
    assert (ended.code, ended.messages) == (0, "")
    assert ended.output.startswith("sent to Ann <ann@example.org>: ")
    (mail,) = (folder / "mail" / "new").iterdir()
    assert "Subject: A test of aioflow" in mail.read_text()


def test_what_is_configured_is_listed_with_what_it_misses(command: Command, folder: Path) -> None:
    ended = command("notify", "test")
    assert ended.code == 0
    assert "no account is configured: write [notify.NAME]" in ended.output
    configure(
        folder,
        '[notify.team]\nurl = "secret:CHAT"\n[phone.default]\nurl = "https://gateway.example"\n'
        '[email.default]\nurl = "smtp://me@mail.example.org"\n',
    )
    lines = command("notify", "test").output.splitlines()
    assert lines[0].startswith("email.default  [email.default]")
    assert lines[1].startswith("notify.team    [notify.team]: there is no secret 'CHAT'")
    assert lines[2] == "phone.default  ready"


def test_a_name_that_means_several_or_none_is_refused(command: Command, folder: Path) -> None:
    gateway = 'url = "https://gateway.example"\n'
    configure(folder, f'[notify.team]\nurl = "json://x"\n[phone.team]\n{gateway}')
    ended = command("notify", "test", "team")
    assert ended.code == 2
    assert "say notify.team or phone.team" in ended.messages
    ended = command("notify", "test", "taem")
    assert ended.code == 2
    assert "did you mean 'team'?" in ended.messages
    assert "--to" in command("notify", "test", "notify.team", "--to", "+4915112345678").messages


def test_an_account_that_cannot_be_used_says_what_to_do(command: Command, folder: Path) -> None:
    configure(folder, '[notify.team]\nurl = "secret:CHAT"\n')
    ended = command("notify", "test", "team")
    assert ended.code == 2
    assert "set the environment variable AIOFLOW_SECRET_CHAT" in ended.messages


def test_a_failure_is_told_with_advice_and_without_secrets(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with gateway_process(tmp_path / "gone") as port:
        pass
    monkeypatch.setenv("AIOFLOW_SECRET_CHAT", f"json://ann:hunter2@127.0.0.1:{port}/T0KEN-2")
    configure(
        folder,
        f'[notify.team]\nurl = "secret:CHAT"\n[notify.odd]\nurl = "nonsense://x"\n'
        f'[phone.default]\nurl = "http://127.0.0.1:{port}/"\n',
    )
    ended = command("notify", "test", "team")
    assert (ended.code, ended.output) == (1, "")
    assert "failed: [notify.team]: A Connection error" in ended.messages
    assert "note: nothing has arrived; a plan would try again" in ended.messages
    assert "hunter2" not in ended.messages
    assert "T0KEN-2" not in ended.messages
    ended = command("notify", "test", "odd")
    assert ended.code == 1
    assert "apprise knows no service for its url" in ended.messages
    assert "trying again cannot help" in ended.messages
    ended = command("notify", "test", "phone.default", "--to", "+4915112345678")
    assert ended.code == 1
    assert "the gateway cannot be reached" in ended.messages
