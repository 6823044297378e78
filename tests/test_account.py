"""The account of a run: what it did, for people and as JSON; what services add to it."""

import json
from datetime import datetime
from itertools import count
from typing import Any, ClassVar

import pytest

from aioflow import Context, Engine, Stream, function, loads, operator, run, same_as_input
from aioflow.authoring.services import AccountEntry, Scope, ServiceHost
from aioflow.config.secrets import Secret
from aioflow.errors import RunError
from aioflow.testing import run as run_virtually
from aioflow.testing import run_plan

SIDES = """
PLAN sides
{
  INPUT: numbers (n number)
  OUTPUT: low, high
  BODY
  {
    select (numbers, "n < 10" : low)
    select (numbers, "n >= 10" : high)
  }
}
"""
NUMBERS = [{"n": 1}, {"n": 2}, {"n": 30}]


@function(pure=True)
def refuse_odd(row: Any) -> dict[str, Any]:
    if row["n"] % 2:
        raise ValueError(f"{row['n']} is odd")
    if row["n"] > 20:
        raise OverflowError("too large")
    return {"half": row["n"] // 2}


class Parcels:
    """A service that counts, and tells what it counted when the run has ended."""

    scope: ClassVar[Scope] = "run"

    def __init__(self) -> None:
        self.taken = 0
        self.is_closed = False

    @classmethod
    def open_service(cls, host: ServiceHost) -> "Parcels":
        return cls()

    def account(self) -> AccountEntry | None:
        if not self.taken:
            return None
        return AccountEntry(
            "parcels", {"taken": self.taken, "closed": self.is_closed}, (f"{self.taken} taken",)
        )

    async def close(self) -> None:
        self.is_closed = True


@operator(schema=same_as_input)
async def parcel(rel: Stream, *, context: Context) -> Any:
    """Pass every tuple, and have the service count it."""
    parcels = context.service(Parcels)
    async for row in rel:
        parcels.taken += 1
        yield row


def test_rows_are_counted_for_each_input_and_output() -> None:
    account = run(loads(SIDES), numbers=NUMBERS).account
    assert dict(account.inputs) == {"numbers": 3}
    assert {name: output.rows for name, output in account.outputs.items()} == {"low": 2, "high": 1}
    assert account.rows == 3
    assert account.outcome == "ended"


@pytest.mark.parametrize("mode", ["D-", "D+S-", "D+S+"])
def test_an_output_without_rows_is_in_the_account(mode: Any) -> None:
    account = run_plan(SIDES, mode=mode, numbers=[{"n": 1}]).account
    assert {name: output.rows for name, output in account.outputs.items()} == {"low": 1, "high": 0}
    assert account.lines() == ("1 row (low 1, high 0) in 0.00 s",)


def test_failures_are_counted_by_kind() -> None:
    plan = """
    PLAN halves { INPUT: numbers OUTPUT: halves BODY {
        apply (numbers, "refuse_odd" : halves) {ERRORS: skip}
    } }
    """
    account = run(loads(plan), numbers=[{"n": 1}, {"n": 3}, {"n": 4}, {"n": 30}]).account
    assert dict(account.errors) == {"ValueError": 2, "OverflowError": 1}
    assert account.lines()[1] == "3 failures: 2 ValueError, 1 OverflowError"
    output = account.outputs["halves"]
    assert (output.rows, output.is_whole) == (1, False)


def test_a_run_that_failed_has_an_account_of_what_it_did_until_then() -> None:
    async def main() -> Any:
        plan = loads('PLAN halves { INPUT: a OUTPUT: b BODY { apply (a, "refuse_odd" : b) } }', "a.plan")
        async with Engine() as engine, engine.stream(plan, a=[{"n": 2}, {"n": 7}]) as stream:
            with pytest.raises(RunError):
                async for _ in stream:
                    pass
        return stream.account()

    account = run_virtually(main())
    told = account.as_json()
    assert account.outcome == told["outcome"] == "failed"
    assert told["error"]["kind"] == "ValueError"
    assert told["error"]["place"] == "a.plan:1:41"
    assert told["error"]["statement"] == "apply"
    assert "7 is odd" in told["error"]["message"]
    assert account.lines()[0].startswith("failed after 0.00 s")
    assert told["outputs"]["b"]["whole"] is False


def test_a_run_that_its_reader_left_was_stopped() -> None:
    async def main() -> Any:
        numbers = ({"n": number % 10} for number in count())
        async with Engine() as engine, engine.stream(loads(SIDES), numbers=numbers, output="low") as stream:
            assert stream.account().outcome == "not started"
            async for _ in stream:
                assert stream.account().outcome == "running"
                break
        return stream.account()

    account = run_virtually(main())
    assert account.outcome == "stopped"
    assert account.lines()[0].startswith("stopped after 0.00 s")


def test_services_of_the_run_add_to_its_account() -> None:
    plan = "PLAN p { INPUT: a OUTPUT: b BODY { parcel (a : b) } }"
    account = run_plan(plan, a=[{"n": 1}, {"n": 2}]).account
    assert account.entries == (AccountEntry("parcels", {"taken": 2, "closed": True}, ("2 taken",)),)
    assert account.as_json()["parcels"] == {"taken": 2, "closed": True}
    assert account.lines() == ("2 rows in 0.00 s", "2 taken")
    assert run_plan(plan, a=[]).account.entries == ()


def test_the_account_is_json_with_units_and_times_with_a_zone() -> None:
    told = run(loads(SIDES), numbers=NUMBERS).account.as_json()
    assert json.loads(json.dumps(told)) == told
    assert list(told) == [
        *("version", "aioflow", "run-id", "plan", "outcome", "started", "ended", "elapsed-seconds"),
        *("inputs", "outputs", "errors", "counters", "warnings", "notes", "nothing-found", "error"),
    ]
    assert told["version"] == 1
    started, ended = map(datetime.fromisoformat, (told["started"], told["ended"]))
    assert started.utcoffset() is not None
    assert (ended - started).total_seconds() == pytest.approx(told["elapsed-seconds"], abs=1e-5)
    assert told["outputs"]["low"] == {"rows": 2, "whole": True, "partial": [], "doubtful": []}
    assert told["error"] is None


def test_an_account_shows_no_secret() -> None:
    @function(pure=True)
    def tell_secret(row: Any) -> None:
        raise ValueError(f"refused: {Secret('token', 'hunter2-hunter2').reveal()}")

    plan = 'PLAN p { INPUT: a OUTPUT: b BODY { apply (a, "tell_secret" : b) {ERRORS: skip} } }'
    account = run(loads(plan), a=[{"n": 1}]).account
    assert "refused: ********" in json.dumps(account.as_json())
    assert "hunter2" not in json.dumps(account.as_json()) + "".join(account.lines())
