"""Couriers in processes of their own: at once, and killed at every moment of a delivery."""

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aioflow.state.crash_points import VARIABLE
from tests.messages.courier_process import CourierProcess, courier_process
from tests.messages.posts import SETTINGS, opened_post


def recorded(record: Path) -> Counter[str]:
    return Counter(record.read_text().split()) if record.exists() else Counter()


async def test_processes_at_once_deliver_every_message_once(database_url: str, tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with opened_post(database_url) as post:
        keys = [
            *await post.put(*map(str, range(40)), delivery="at-most-once"),
            *await post.put(*map(str, range(40)), account="other"),
        ]
        with ExitStack() as stack:
            processes = [stack.enter_context(courier_process(database_url, record)) for _ in range(2)]
            for process in processes:
                process.begin()
            assert [await process.end() for process in processes] == [0, 0]
        assert recorded(record) == Counter(keys)
        assert set((await post.states()).values()) == {"sent"}


@dataclass(frozen=True)
class Kill:
    """A moment of the first or the second message, and what it leaves behind."""

    moment: str
    number: int
    copies: tuple[int, int] = (1, 1)
    states: tuple[str, str] = ("sent", "sent")


# The first message is to be sent at least once, the second at most once.
KILLS = (
    Kill("message claimed", 1),
    Kill("message handed over", 1, copies=(2, 1)),
    Kill("message claiming", 2),
    Kill("message claimed", 2, copies=(1, 0), states=("sent", "dead")),
    Kill("message handed over", 2, states=("sent", "dead")),
    Kill("message noted", 2),
)


async def test_a_kill_at_any_moment_loses_nothing_and_sends_nothing_twice_that_must_not_be(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        killed: list[tuple[Kill, Path, list[str], CourierProcess]] = []
        for place, kill in enumerate(KILLS):
            database = tmp_path / f"{place}.db"
            async with opened_post(f"sqlite:{database}") as post:
                keys = [*await post.put("one"), *await post.put("two", delivery="at-most-once")]
            variables = {VARIABLE: f"{kill.moment}:{kill.number}"}
            record = database.with_suffix(".record")
            process = stack.enter_context(courier_process(f"sqlite:{database}", record, variables))
            process.begin()
            killed.append((kill, database, keys, process))
        for kill, database, keys, process in killed:
            assert await process.end() == -9, kill
            async with opened_post(f"sqlite:{database}") as post:
                # The next courier looks when the lease is over.
                post.clock.now = datetime.now(UTC) + timedelta(seconds=SETTINGS.lease_seconds)
                report = await post.courier().deliver()
                states = await post.states()
            sent = recorded(database.with_suffix(".record"))
            sent.update(message.key for message in post.channel.delivered)
            assert tuple(sent[key] for key in keys) == kill.copies, kill
            assert (states["one"], states["two"]) == kill.states, kill
            assert report.dead == kill.states.count("dead")
