"""notify and phone: what they post to the outbox of the run, what they refuse, and that it is delivered."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aioflow import AioflowError, Engine, PlanError, Result, RunError, loads
from aioflow.testing import Script, rows, run_plan
from tests.operators.running import NO_MEMORY, Mode, plan
from tests.servers.gateway import Answer, Gateway

HOUSES = rows(
    ("1 Oak Street", 549000, "+4915112345678"),
    ("2 Elm Road", None, "+4915112345679"),
    schema="address price mobile",
)
HOSTILE_TEXTS = [
    'x", "to": "+1", "y": "',
    "x&to=+1",
    "a\r\nTo: +1\r\n\r\nb",
    "'; drop table aioflow_outbox; --",
    "{to} {key} {{ 7 * 7 }} ${HOME} %s secret:CHAT",
    "\x00\ud800\u202e<script>",
]
NONE = rows(schema="address price mobile")
MODES = pytest.mark.parametrize("mode", ["D-", "D+S-", "D+S+"])
TEAM = {"notify": {"team": {"url": ["json://one.example", "secret:CHAT"]}}}
PHONE = {"phone": {"default": {"url": "https://gateway.example/send", "allow": ["+49*"]}}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the plan, and so its database, is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIOFLOW_SECRET_CHAT", "json://two.example/T0KEN")
    return tmp_path


@dataclass(frozen=True)
class Posted:
    """A message that waits in the outbox."""

    channel: str
    account: str
    delivery: str
    statement: str
    content: dict[str, Any]

    @property
    def text(self) -> str:
        return str(self.content["text"])


def posted() -> list[Posted]:
    path = Path("aioflow.db")
    if not path.exists():
        return []
    with sqlite3.connect(path) as connection:
        found = connection.execute(
            "select channel, account, delivery, statement, content from aioflow_outbox order by place"
        ).fetchall()
    connection.close()
    return [Posted(a, b, c, d, json.loads(content)) for a, b, c, d, content in found]


def run(statements: str, tables: Mapping[str, Any], outputs: str = "out", **settings: Any) -> Result:
    """Run statements, and leave what they posted in the outbox."""
    inputs = [name for name in settings if name in ("rel", "others")]
    whole = {**tables, "outbox": {"deliver_seconds": 0}}
    return run_plan(plan(statements, inputs, outputs), configuration=whole, **settings)


def out(result: Result) -> list[Any]:
    return [record.row for record in result.outputs["out"]]


def problems(statements: str, tables: Mapping[str, Any]) -> str:
    with pytest.raises(PlanError) as caught:
        run(statements, tables, rel=HOUSES)
    return str(caught.value)


# --- notify -------------------------------------------------------------------------------------


@MODES
def test_notify_posts_one_message_to_each_url_and_passes_the_tuples_on(mode: Mode) -> None:
    result = run(
        'notify (rel, "{count} new houses" : out)', TEAM, rel=HOUSES, mode=mode, memory_bytes=NO_MEMORY
    )
    assert out(result) == list(HOUSES.rows)
    first, second = posted()
    assert (first.channel, first.account, first.delivery) == ("notify", "team", "at-least-once")
    assert "notify" in first.statement
    assert first.content == {
        "to": "json://one.example",
        "subject": "2 new houses",
        "text": "address: 1 Oak Street, price: 549000, mobile: +4915112345678\n"
        "address: 2 Elm Road, mobile: +4915112345679",
    }
    assert second.content == {**first.content, "to": "secret:CHAT"}


def test_notify_with_each_posts_a_message_for_each_tuple() -> None:
    statement = 'notify (rel, "At {address}" : out) {EACH; BODY: "{{ price|number }} for {{ row.address }}"}'
    run(statement, {"notify": {"team": {"url": "json://one.example"}}}, rel=HOUSES)
    assert [(each.content["subject"], each.text) for each in posted()] == [
        ("At 1 Oak Street", "549,000 for 1 Oak Street"),
        ("At 2 Elm Road", " for 2 Elm Road"),
    ]


def test_a_template_sees_all_rows_and_their_number() -> None:
    body = "{{ count }}:{% for row in rows %} {{ row.address }};{% endfor %}"
    run(f'notify (rel : out) {{BODY: "{body}"; VIA: team; DELIVERY: at-most-once}}', TEAM, rel=HOUSES)
    assert posted()[0].text == "2: 1 Oak Street; 2 Elm Road;"
    assert posted()[0].delivery == "at-most-once"


def test_a_long_relation_says_how_much_of_it_is_shown() -> None:
    tables = {"notify": {"team": {"url": "json://one.example", "most_rows": 2}}}
    run(
        'notify (rel, "x") log (rel, "y")',
        tables,
        rel=rows(*((n,) for n in range(5)), schema="n"),
        outputs="",
    )
    assert posted()[0].text == "0\n1\n… and 3 more rows"


@pytest.mark.parametrize("operator", ['notify (rel, "x" : out)', 'phone (rel, to="+4915112345678" : out)'])
def test_an_empty_relation_is_told_only_if_that_is_wanted(operator: str) -> None:
    tables = {**TEAM, **PHONE}
    assert out(run(operator, tables, rel=NONE)) == []
    assert posted() == []
    run(f"{operator} {{EVEN_IF_EMPTY}}", tables, rel=NONE)
    assert {each.text for each in posted()} == {"No rows."}


def test_nothing_is_posted_by_a_run_that_fails() -> None:
    statements = 'notify (rel, "x") read ("not-there.jsonl" : out)'
    with pytest.raises(RunError):
        run(statements, TEAM, rel=HOUSES)
    assert posted() == []


def test_a_title_is_one_line_whatever_the_data() -> None:
    hostile = rows(("a\r\nX-Evil: 1\x00\u2028b",), schema="name")
    run('notify (rel, "New: {name}" : out) {EACH}', TEAM, rel=hostile)
    assert posted()[0].content["subject"] == "New: a X-Evil: 1 b"


# --- phone --------------------------------------------------------------------------------------


@MODES
def test_phone_posts_a_message_to_each_number(mode: Mode) -> None:
    statement = 'phone (rel, to=["+49 151 12345678", "+1 (202) 555-0123"] : out)'
    assert len(out(run(statement, PHONE, rel=HOUSES, mode=mode))) == 2
    assert [each.content["to"] for each in posted()] == ["+4915112345678", "+12025550123"]
    assert posted()[0].text == "1 Oak Street, 549000, +4915112345678\n2 Elm Road, +4915112345679"
    assert (posted()[0].channel, posted()[0].account) == ("phone", "default")


def test_numbers_come_from_data_with_each_where_they_are_allowed() -> None:
    people = rows(("Ann", "+49 151 12345678"), ("Bob", "+1 202 5550123"), ("Eve", None), schema="name mobile")
    statement = 'phone (rel, to="{mobile}" : out) {EACH; BODY: "Hi {{ name }}"; ERRORS: failed}'
    result = run(
        f'{statement} project (failed, "name, error" : wrong)', PHONE, rel=people, outputs="out, wrong"
    )
    assert [each.content for each in posted()] == [
        {"to": "+4915112345678", "subject": "Hi Ann", "text": "Hi Ann"}
    ]
    assert out(result) == [("Ann", "+49 151 12345678")]
    (bob, refused), (eve, missing) = [record.row for record in result.outputs["wrong"]]
    assert (bob, eve) == ("Bob", "Eve")
    assert "[phone.default] does not allow it" in refused
    assert "is no phone number" in missing


def test_without_errors_a_number_that_is_not_allowed_ends_the_run() -> None:
    people = rows(("+4915112345678",), ("+12025550123",), schema="mobile")
    with pytest.raises(RunError, match=r"\+12025550123 comes from data"):
        run('phone (rel, to="{mobile}" : out) {EACH; BODY: "Hi"}', PHONE, rel=people)
    assert posted() == []


def test_a_long_text_is_cut_with_a_warning_or_split() -> None:
    long = rows((" ".join(["house"] * 200),), schema="name")
    settings = {"url": "https://gateway.example", "most_segments": 2}
    result = run('phone (rel, to="+4915112345678" : out)', {"phone": {"default": settings}}, rel=long)
    (message,) = posted()
    assert message.text.endswith("house...")
    assert len(message.text) <= 306
    assert any("was cut to 2" in warning for warning in result.warnings)

    Path("aioflow.db").unlink()
    settings["too_long"] = "split"
    result = run('phone (rel, to="+4915112345678" : out)', {"phone": {"default": settings}}, rel=long)
    texts = [each.text for each in posted()]
    assert len(texts) > 2
    assert " ".join(texts) == next(iter(long))["name"]
    assert not result.warnings


# --- whatever becomes of the input ------------------------------------------------------------

STATEMENTS = pytest.mark.parametrize(
    "statement",
    [
        'notify (rel, "x" : out)',
        'notify (rel, "x" : out) {EVEN_IF_EMPTY}',
        'notify (rel, "x" : out) {EACH}',
        'phone (rel, to="+4915112345678" : out)',
        'phone (rel, to="+4915112345678" : out) {EACH}',
    ],
)
NUMBERS = [{"n": number} for number in range(20)]
BOTH = {"notify": {"team": {"url": "json://one.example"}}, **PHONE}


@STATEMENTS
def test_an_empty_input_of_which_nothing_is_known(statement: str) -> None:
    assert out(run(statement, BOTH, rel=[])) == []
    assert len(posted()) == ("EVEN_IF_EMPTY" in statement)


@STATEMENTS
def test_a_dead_input_is_not_told_and_makes_a_dead_output(statement: str) -> None:
    statements = f'null (others, others, others : rel, live) {statement} pack (out, "p" : result)'
    assert len(run(statements, BOTH, outputs="result", others=NUMBERS)) == 0
    assert posted() == []


@STATEMENTS
def test_an_input_that_fails_is_not_told(statement: str) -> None:
    with pytest.raises(AioflowError, match="gone"):
        run(statement, BOTH, rel=Script(*NUMBERS).fail(OSError("gone")))
    assert posted() == []


@STATEMENTS
def test_a_reader_that_leaves_early_does_not_keep_the_rest_from_being_told(statement: str) -> None:
    statements = f"{statement.replace(' out)', ' all)')} limit (all, 1 : out)"
    assert len(out(run(statements, BOTH, rel=NUMBERS, capacity_rows=1))) == 1
    assert len(posted()) == (20 if "EACH" in statement else 1)


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "mistake"),
    [
        ('notify (rel, "At {address}" : out)', "unknown attribute 'address'"),
        ('notify (rel, "At {adress}" : out) {EACH}', "did you mean 'address'?"),
        ('notify (rel : out) {EACH; BODY: "{{ adress }}"}', "did you mean 'address'?"),
        ('notify (rel : out) {BODY: "{{ address }}"}', "say EACH"),
        ('notify (rel : out) {BODY: "{% if %}"}', "BODY"),
        ("notify (rel : out) {EACH; EVEN_IF_EMPTY}", "so none for none"),
        ("notify (rel : out) {DELIVERY: twice}", "must be one of at-least-once, at-most-once"),
        ("phone (rel : out)", "to"),
        ('phone (rel, to="0151 12345678" : out)', "is no phone number"),
        ("phone (rel, to=5 : out)", "must be a phone number"),
        ('phone (rel, to="{mobile}" : out)', "needs EACH"),
        ('phone (rel, to="{mobil}" : out) {EACH}', "did you mean 'mobile'?"),
    ],
)
def test_mistakes_are_found_before_anything_runs(statement: str, mistake: str) -> None:
    declared = f"PLAN test {{ INPUT: rel (address, price, mobile) OUTPUT: out BODY {{ {statement} }} }}"
    with pytest.raises(PlanError) as caught:
        run_plan(declared, configuration={**TEAM, **PHONE}, rel=HOUSES)
    assert mistake in str(caught.value)


def test_what_is_not_configured_is_told_for_all_statements_before_anything_runs() -> None:
    told = problems('notify (rel, "x") phone (rel, to="+4915112345678" : out)', {})
    assert "nothing is configured for notify: write [notify.default] url" in told
    assert "nothing is configured for phone: write [phone.default] url" in told
    assert not Path("aioflow.db").exists()
    told = problems('notify (rel, "x" : out)', {"notify": {"team": {"url": "secret:NOT_THERE"}}})
    assert "AIOFLOW_SECRET_NOT_THERE" in told
    told = problems('notify (rel, "x" : out) {DB: elsewhere}', TEAM)
    assert "there is no database 'elsewhere'" in told


def test_numbers_from_data_need_an_account_that_allows_some() -> None:
    tables = {"phone": {"default": {"url": "https://gateway.example"}}}
    told = problems('phone (rel, to="{mobile}" : out) {EACH}', tables)
    assert 'write allow = ["+49*"]' in told


# --- delivery -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", HOSTILE_TEXTS)
async def test_what_stands_in_data_stays_data(value: str) -> None:
    async with Gateway() as gateway, Engine(configuration={"phone": {"p": {"url": gateway.url()}}}) as engine:
        program = loads(plan('phone (rel, to="+4915112345678" : out)', ["rel"]))
        await engine.run(program, {"rel": rows((f"x{value}x",), schema="name")})
    (request,) = gateway.requests
    sent = json.loads(request.body)
    assert sent["to"] == "+4915112345678"
    assert set(sent) == {"to", "text", "key"}
    assert request.path == "/"


async def test_messages_are_delivered_after_the_commit_and_each_once() -> None:
    async with Gateway() as gateway:
        tables = {
            "phone": {"default": {"url": gateway.url("/sms")}},
            "notify": {"default": {"url": f"json://{gateway.host}/hook"}},
        }
        gateway.refuse(404, times=1)
        gateway.answer(Answer())
        async with Engine(configuration=tables) as engine:
            text = plan('phone (rel, to="+4915112345678" : told) notify (told, "New" : out)', ["rel"])
            result = await engine.run(loads(text), {"rel": HOUSES})
    assert len(gateway.requests) == 2
    assert len(gateway.taken) == 1
    assert {request.path for request in gateway.requests} == {"/sms", "/hook"}
    (warning,) = result.warnings
    assert "1 message could not be delivered" in warning
    assert "404" in warning


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ('notify (new, "News" : out) {VIA: team}', TEAM),
        ('phone (new, to="+49 151 12345678" : out)', PHONE),
    ],
)
def test_a_message_made_from_what_is_doubtful_says_so(statement: str, tables: Mapping[str, Any]) -> None:
    lacking = 'unpack (rel, "price" : known) {ERRORS: skip} minus (rel, known : new) {ON: "address"} '
    run(lacking + statement, tables, rel=HOUSES)
    assert posted()
    for message in posted():
        assert (
            "May be wrong" in message.content["subject"] or "This may be wrong" in message.content["subject"]
        )
        assert message.text.startswith("This may be wrong: ")
