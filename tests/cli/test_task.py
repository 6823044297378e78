"""aioflow task next."""

import json
from collections.abc import Callable

from tests.cli.conftest import Ended


def test_next_times_are_a_json_list_with_offsets(command: Callable[..., Ended]) -> None:
    ended = command(
        *(
            "task",
            "next",
            "30 2 * * *",
            "--zone",
            "Europe/Berlin",
            "--from",
            "2026-03-28T00:00",
            "--count",
            "3",
        ),
        "--json",
    )
    assert ended.code == 0, ended.messages
    assert json.loads(ended.output) == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]


def test_a_mistake_in_a_schedule_is_shown_under_its_field(command: Callable[..., Ended]) -> None:
    ended = command("task", "next", "0 25 * * *", "--zone", "UTC")
    assert ended.code != 0
    assert "hour: 25 is not between 0 and 23\n  0 25 * * *\n    ^" in ended.messages


def test_an_unknown_zone_is_refused_with_a_suggestion(command: Callable[..., Ended]) -> None:
    ended = command("task", "next", "@daily", "--zone", "Europe/Berln")
    assert ended.code != 0
    assert "did you mean 'Europe/Berlin'?" in ended.messages
