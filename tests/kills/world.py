"""All that a plan needs to be run, in a folder: configuration, source, database; and whom it tells."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.cli.program import environment, own_folders
from tests.kills.commands import Commands, Victim
from tests.kills.receivers import HOOK, PASSWORD, SMS, USER, Receipt, Receivers, read_maildir
from tests.kills.source import Source
from tests.kills.stores import Store
from tests.servers.smtp import CA_FILE

MONITOR, CHANNELS, NOTICES, STREAM = "monitor.plan", "channels.plan", "notices.plan", "stream.plan"
DIGESTS = "digests.plan"

# Checkpoints come once a second.
_STREAM_SECONDS = 3.5
_HERE = Path(__file__).parent
_CONFIGURATION = """
[database.default]
url = "{url}"

[email.default]
url = "smtp+starttls://{user}@localhost:{smtp}"
from = "watcher@example.org"
password = "secret:MAIL"
ca = "{ca}"

[email.box]
url = "maildir:box"
from = "watcher@example.org"

[phone.default]
url = "http://127.0.0.1:{gateway}{sms}"

[notify.default]
url = "json://127.0.0.1:{gateway}{hook}"
"""


@dataclass
class World:
    """A folder in which a plan is run again and again."""

    folder: Path
    store: Store
    commands: Commands
    receivers: Receivers
    random: Random
    plan: str = MONITOR
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir(parents=True)
        self.log = self.folder / "commands.log"
        self.source = Source(self.folder / "houses.jsonl", self.random)
        shutil.copy(_HERE / self.plan, self.folder)
        (self.folder / "aioflow.toml").write_text(
            _CONFIGURATION.format(
                url=self.store.url,
                user=USER,
                smtp=self.receivers.smtp_port,
                ca=CA_FILE,
                gateway=self.receivers.gateway_port,
                sms=SMS,
                hook=HOOK,
            )
        )
        self._before = {channel: len(receipts) for channel, receipts in self._received().items()}

    # --- commands -------------------------------------------------------------------------------

    def start_run(self, kill_at: str | None = None) -> Victim:
        if self.plan == STREAM:
            pipe = self.folder / "houses.pipe"
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
            known = len(self.store.rows("select 1 from history"))
            self.source.feed(pipe, known, _STREAM_SECONDS)
        return self._start("run", self.plan, kill_at=kill_at)

    def start_delivery(self, kill_at: str | None = None) -> Victim:
        return self._start("outbox", "deliver", kill_at=kill_at)

    def _start(self, *arguments: str, kill_at: str | None) -> Victim:
        variables = {
            **own_folders(self.folder),
            "TMPDIR": str(self.temporary),
            "AIOFLOW_SECRET_MAIL": PASSWORD,
            **self.variables,
            **({"AIOFLOW_KILL_AT": kill_at} if kill_at else {}),
        }
        return self.commands.start(arguments, environment(**variables), self.folder, self.log)

    def last_words(self) -> str:
        """What the last commands have said."""
        return self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""

    # --- what came of it ------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until nothing of a killed process is under way any more."""
        self.store.settle()
        self.receivers.settle()

    def receipts(self) -> dict[str, list[Receipt]]:
        """What everybody got from this world's plan, by channel, in order."""
        return {channel: got[self._before[channel] :] for channel, got in self._received().items()}

    def expected(self) -> set[str]:
        """What everybody must have been told by now."""
        if self.plan in (MONITOR, STREAM):
            return self.source.told
        return {text for text in self.source.told if text.startswith("new ")}

    def _received(self) -> dict[str, list[Receipt]]:
        if self.plan == NOTICES:
            return {"webhook": self.receivers.requests(HOOK)}
        if self.plan == DIGESTS:
            box = read_maildir(self.folder / "box")
            return {"maildir": [Receipt(f"{id} {text}", text) for id, told in box for text in news_in(told)]}
        if self.plan == CHANNELS:
            return {"maildir": read_maildir(self.folder / "box"), "phone": self.receivers.requests(SMS)}
        return {"mail": self.receivers.mails()}

    def undelivered(self) -> int:
        outbox = self.store.rows("select count(*) from aioflow_outbox where state in ('waiting', 'sending')")
        digests = self.store.rows("select count(*) from aioflow_digests")
        return sum(int(count) for (count,) in [*outbox, *digests])

    def gathered(self) -> list[str]:
        """The news that wait in digests."""
        found = []
        for (content,) in self.store.rows("select content from aioflow_digests"):
            for part in json.loads(content)["$list"][0]["$list"]:
                relation = part["$relation"]
                houses = [dict(zip(relation["names"], row, strict=True)) for row in relation["rows"]]
                found += [f"new {house['url']} {house['price']}" for house in houses]
        return found

    def left_files(self) -> list[str]:
        """Temporary files that nobody has removed, also of messages."""
        return sorted(os.listdir(self.temporary))


def news_in(subject: str) -> list[str]:
    """The news that the subject of a digest tells."""
    return [text for text in subject.split(";") if text]
