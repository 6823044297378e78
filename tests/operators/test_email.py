"""email: what stands in the outbox, what is told before a run, and what arrives."""

from __future__ import annotations

import email
import email.policy
import re
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from aioflow import AioflowError, Engine, PlanError, Result, RunError, loads
from aioflow.authoring.function import function
from aioflow.testing import Script, rows, run_plan
from tests.operators.running import NO_MEMORY, plan
from tests.servers.smtp import SmtpServer

HOUSES: list[dict[str, Any]] = [
    {"address": "Elm St", "price": 549000},
    {"address": "Oak <St>", "price": None},
]
PEOPLE = [{"name": "Ann", "email": "ann@example.org"}, {"name": "Bob", "email": "bob@evil.example"}]
TO = 'to="me@example.org", subject="News"'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def account(**keys: Any) -> dict[str, Any]:
    return {"url": "maildir:mail", "from": "Watcher <watch@example.org>", **keys}


def run(
    statements: str, *, outputs: str = "out", accounts: Any = None, memory_bytes: int = 1 << 20, **inputs: Any
) -> Result:
    configuration = {"email": {"default": account()} if accounts is None else accounts}
    text = plan(statements, inputs, outputs)
    return run_plan(text, configuration=configuration, memory_bytes=memory_bytes, **inputs)


def mails(folder: str = "mail") -> list[EmailMessage]:
    """What lies in a Maildir, by recipient and subject."""
    found = []
    for path in Path(folder).glob("new/*"):
        message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        found.append(message)
    return sorted(found, key=lambda each: (str(each["To"]), str(each["Subject"])))


def body(message: EmailMessage, kind: str = "plain") -> str:
    part = message.get_body((kind,))
    return "" if part is None else str(part.get_content())


def given(result: Result, output: str = "out") -> list[Any]:
    return [record.row for record in result.outputs[output]]


# --- one message for a relation -----------------------------------------------------------------


def test_a_relation_is_mailed_as_a_table_and_passed_on() -> None:
    result = run(f"email (rel, {TO} : out)", rel=HOUSES)
    assert given(result) == [("Elm St", 549000), ("Oak <St>", None)]
    [found] = mails()
    assert (found["From"], found["To"]) == ("Watcher <watch@example.org>", "me@example.org")
    assert "Elm St    549000" in body(found)
    assert "2 rows, sent by the plan test" in body(found)
    assert "Oak &lt;St&gt;" in body(found, "html")


@pytest.mark.parametrize("rel", [rows(schema="a"), []])
def test_an_empty_relation_is_not_mailed_unless_one_says_so(rel: Any) -> None:
    assert given(run(f"email (rel, {TO} : out)", rel=rel)) == []
    assert mails() == []
    assert given(run(f"email (rel, {TO} : out) {{EVEN_IF_EMPTY}}", rel=rel)) == []
    [found] = mails()
    assert body(found).startswith("No rows.")


def test_subject_recipients_and_answers() -> None:
    run(
        'email (rel, to=["me@example.org", "Ann <ann@example.org>"], subject="{count} new {{houses}}" : out) '
        '{CC: "cc@example.org"; BCC: "bcc@example.org"; REPLY_TO: "desk@example.org"}',
        rel=HOUSES,
    )
    [found] = mails()
    assert found["To"] == "me@example.org, Ann <ann@example.org>"
    assert (found["Cc"], found["Bcc"], found["Reply-To"]) == (
        "cc@example.org",
        "bcc@example.org",
        "desk@example.org",
    )
    assert found["Subject"] == "2 new {houses}"


def test_answers_go_where_the_account_says() -> None:
    run(f"email (rel, {TO} : out)", rel=HOUSES, accounts={"home": account(reply_to="desk@example.org")})
    assert mails()[0]["Reply-To"] == "desk@example.org"


def test_a_body_of_ones_own() -> None:
    template = "{% for house in rows %}{{ house.address }}: {{ house.price }}\\n{% endfor %}{{ table }}"
    run(f"email (rel, {TO} : out) {{BODY: {template!r}}}".replace("\\\\n", "\\n"), rel=HOUSES)
    [found] = mails()
    assert found.get_content_type() == "text/plain"
    assert body(found).startswith("Elm St: 549000\nOak <St>: \naddress")


def test_a_body_of_html_is_escaped() -> None:
    template = "<ul>{% for house in rows %}<li>{{ house.address }}</li>{% endfor %}</ul>{{ table }}"
    run(f"email (rel, {TO} : out) {{BODY_HTML: {template!r}}}", rel=HOUSES)
    [found] = mails()
    assert "<li>Oak &lt;St&gt;</li></ul><div" in body(found, "html")
    assert "Elm St" in body(found)


def test_files_with_all_tuples() -> None:
    accounts = {"default": account(most_rows=1)}
    run(f"email (rel, {TO} : out) {{ATTACH: csv, json, xml}}", rel=HOUSES, accounts=accounts)
    [found] = mails()
    files = {part.get_filename(): part.get_payload(decode=True) for part in found.iter_attachments()}
    assert list(files) == ["test.csv", "test.json", "test.xml"]
    assert files["test.csv"] == b"\xef\xbb\xbfaddress,price\r\nElm St,549000\r\nOak <St>,\r\n"
    assert "… and 1 more row; all are attached" in body(found)
    assert "Oak" not in body(found)


def test_files_that_are_too_large_fail_the_run_and_nothing_is_sent() -> None:
    accounts = {"default": account(most_bytes="8KiB", most_rows=1)}
    many = [{"text": "x" * 100}] * 200
    with pytest.raises(RunError, match=r"attachment test.csv the message is larger than 8 KiB") as caught:
        run(f"email (rel, {TO} : out) {{ATTACH: csv}}", rel=many, accounts=accounts)
    assert "most_bytes" in str(caught.value)
    assert mails() == []


def test_a_relation_that_does_not_fit_in_memory_is_mailed_and_passed_on() -> None:
    many = [{"n": number} for number in range(5000)]
    result = run(f"email (rel, {TO} : out)", rel=many, memory_bytes=NO_MEMORY)
    assert len(given(result)) == 5000
    assert "… and 4,900 more rows\n" in body(mails()[0])


def test_the_account_that_a_statement_names() -> None:
    accounts = {"home": account(), "work": account(url="maildir:work")}
    run(f"email (rel, {TO} : out) {{VIA: work}}", rel=HOUSES, accounts=accounts)
    assert len(mails("work")) == 1
    assert mails() == []


# --- several relations in one message -----------------------------------------------------------

SOLD = [{"url": "/9", "address": "Old Rd"}]
NOTHING = rows(schema="url")
NEWS = f"email (new, sold-houses, {TO} : out)"


def news(options: str = "", **inputs: Any) -> Result:
    text = f"""PLAN test {{ INPUT: new, sold OUTPUT: out BODY {{
      project (sold, "*" : sold-houses) {NEWS} {options} }} }}"""
    configuration = {"email": {"default": account()}}
    return run_plan(text, configuration=configuration, **{"new": HOUSES, "sold": SOLD, **inputs})


def test_several_relations_are_one_mail_with_a_section_each() -> None:
    assert given(news()) == [("Elm St", 549000), ("Oak <St>", None)]
    [found] = mails()
    assert "New (2)\n=======\n" in body(found)
    assert "Sold houses (1)\n===============\n" in body(found)
    assert body(found).index("Elm St") < body(found).index("Old Rd")
    assert "3 rows, sent by the plan test" in body(found)
    assert body(found, "html").count("<h2") == 2


@pytest.mark.parametrize("headings", ['"Fresh, Gone for good"', '["Fresh", "Gone for good"]'])
def test_sections_have_the_headings_that_one_says(headings: str) -> None:
    news(f"{{HEADINGS: {headings}}}")
    [found] = mails()
    assert "Fresh (2)" in body(found)
    assert "Gone for good (1)" in body(found)


def test_several_relations_of_which_all_are_empty_are_not_mailed_unless_one_says_so() -> None:
    assert given(news(new=NOTHING, sold=NOTHING)) == []
    assert mails() == []
    assert given(news("{EVEN_IF_EMPTY}", new=NOTHING, sold=NOTHING)) == []
    assert body(mails()[0]).startswith("No rows.")


def test_one_relation_of_several_is_enough() -> None:
    assert given(news(new=NOTHING)) == []
    [found] = mails()
    assert "New" not in body(found)
    assert "Sold houses (1)" in body(found)


def test_templates_and_subjects_have_the_relations_by_name() -> None:
    template = "{% for h in new %}{{ h.address }},{% endfor %}{{ sold_houses|length }} of {{ count }}\\n"
    news(f'{{BODY: "{template}"}}')
    assert body(mails()[0]).startswith("Elm St,Oak <St>,1 of 3")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            f"email (rel, o, {TO} : out) {{EACH}}",
            "with EACH there is a message for each tuple of one rel",
        ),
        (f"email (rel, rel, {TO} : out)", "two of the relations are called 'rel': set NAMES"),
        (f'email (rel, o, {TO} : out) {{HEADINGS: "A"}}', "1 heading for 2 relations"),
        (f'email (rel, o, {TO} : out) {{BODY: "{{{{ rows|length }}}}"}}', "unknown name 'rows' in the"),
        (
            f'email (rel, o, {TO} : out) {{BODY: "{{% for x in o %}}{{{{ x.nmae }}}}{{% endfor %}}"}}',
            "unknown attribute 'nmae'",
        ),
        (f'email (rel, o, {TO} : out) {{NAMES: ["a b", "c"]}}', "'a b' is no name"),
    ],
)
def test_mistakes_with_several_relations_are_found_before_anything_runs(statement: str, message: str) -> None:
    text = f"PLAN test {{ INPUT: rel (n number), o (name char) OUTPUT: out BODY {{ {statement} }} }}"
    found = [each.message for each in Engine().check(loads(text))]
    assert len(found) == 1
    assert message in found[0]


def test_relations_of_one_name_are_told_apart_by_names() -> None:
    run(f"email (rel, rel, {TO} : out) {{NAMES: first, second; ATTACH: csv}}", rel=HOUSES)
    names = [part.get_filename() for part in mails()[0].iter_attachments()]
    assert names == ["first.csv", "second.csv"]


def test_files_of_several_relations_have_their_names() -> None:
    news("{ATTACH: csv}")
    names = [part.get_filename() for part in mails()[0].iter_attachments()]
    assert names == ["new.csv", "sold-houses.csv"]


def test_several_relations_that_do_not_fit_in_memory() -> None:
    many = [{"n": number} for number in range(3000)]
    text = plan(f"email (a, b, {TO} : out)", ["a", "b"])
    configuration = {"email": {"default": account()}}
    result = run_plan(text, configuration=configuration, memory_bytes=NO_MEMORY, a=many, b=many)
    assert len(given(result)) == 3000
    assert "6,000 rows" in body(mails()[0])


def test_a_dead_relation_beside_a_live_one_counts_as_empty() -> None:
    run(f"null (rel, rel, rel : nothing, live) email (nothing, live, {TO} : out)", rel=HOUSES)
    assert "Live (2)" in body(mails()[0])


def test_new_changed_and_gone_houses_in_one_mail() -> None:
    text = """PLAN market { INPUT: houses (url char, price number) BODY {
      diff (houses, "market" : new, changed, gone) {KEY: "url"; GUARD: off; FIRST: news}
      email (new, changed, gone, to="me@example.org",
        subject="{{ new|plural('house') }} new, {{ changed|length }} changed, {{ gone|length }} gone")
    } }"""
    configuration = {"email": {"default": account()}}
    for prices in ({"/1": 5, "/2": 6}, {"/2": 7, "/3": 8}):
        houses = [{"url": url, "price": price} for url, price in prices.items()]
        run_plan(text, configuration=configuration, houses=houses)
    subjects = {str(found["Subject"]): found for found in mails()}
    assert set(subjects) == {"2 houses new, 0 changed, 0 gone", "1 house new, 1 changed, 1 gone"}
    found = subjects["1 house new, 1 changed, 1 gone"]
    assert re.findall(r"^\w+ \(1\)$", body(found), re.MULTILINE) == ["New (1)", "Changed (1)", "Gone (1)"]
    assert "price  6 → 7" in body(found)
    assert "old-price" not in body(found) + body(found, "html")


# --- subjects -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "written"),
    [
        ("{count} houses", "2 houses"),
        ("{count} new {{houses}}", "2 new {houses}"),
        ("{{ count }} new {{ 'house' if count == 1 else 'houses' }}", "2 new houses"),
        ("{{ count | plural('house', 'houses') }}", "2 houses"),
        ("{{ rel|plural('house') }} from {{ rows[0].address }}", "2 houses from Elm St"),
        ("{% if count > 1 %}Houses{% else %}House{% endif %}", "Houses"),
        ("100 % {sure}", None),
        ("no braces", "no braces"),
    ],
)
def test_a_subject_is_a_template(subject: str, written: str | None) -> None:
    statement = f'email (rel, to="me@example.org", subject="{subject}" : out)'
    if written is None:
        with pytest.raises(PlanError):
            run(statement, rel=HOUSES)
        return
    run(statement, rel=HOUSES)
    assert mails()[0]["Subject"] == written


def test_one_house_is_told_in_the_singular() -> None:
    statement = "email (rel, to=\"me@example.org\", subject=\"{{ count|plural('house', 'houses') }}\" : out)"
    run(statement, rel=HOUSES[:1])
    assert mails()[0]["Subject"] == "1 house"


def test_a_subject_of_each_tuple_has_its_attributes() -> None:
    run('email (rel, to="me@example.org", subject="Hello {{ name|upper }}" : out) {EACH}', rel=PEOPLE[:1])
    assert mails()[0]["Subject"] == "Hello ANN"


@pytest.mark.parametrize(
    "text", ["a\r\nBcc: x@y.z\r\n\r\n b", "a\nBcc: x@y.z\n\n b", "a\x00\u2028\x85Bcc: x@y.z b", "\ud800 <b>"]
)
def test_no_value_in_a_subject_becomes_a_header(text: str) -> None:
    run(
        'email (rel, to="me@example.org", subject="{{ text }}\\n{{ text }}" : out) {EACH}',
        rel=[{"text": text}],
    )
    run('email (rel, to="me@example.org", subject="{{ rows[0].text }}" : out)', rel=[{"text": text}])
    for found in mails():
        assert found["Bcc"] is None
        assert [name for name in found if name == "Subject"] == ["Subject"]
        assert "\n" not in found["Subject"]
        assert found["To"] == "me@example.org"


@pytest.mark.parametrize(
    "subject",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ 'x' * 100000000 }}",
        "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}",
        "{{ count / 0 }}",
    ],
)
def test_a_subject_stays_in_the_sandbox(subject: str) -> None:
    with pytest.raises(RunError, match="the template"):
        run(f'email (rel, to="me@example.org", subject="{subject}" : out)', rel=HOUSES)
    assert mails() == []


# --- a message for each tuple -------------------------------------------------------------------

EACH = 'email (rel, to="{name} <{email}>", subject="Hello {name}" : out)'
ALLOWING = {"default": account(allow=["example.org"])}


def test_each_tuple_has_its_message() -> None:
    statement = f'email (rel, {TO} : out) {{EACH; BODY: "Dear {{{{ name }}}}, {{{{ row.email }}}}"}}'
    assert len(given(run(statement, rel=PEOPLE))) == 2
    assert sorted(body(found).strip() for found in mails()) == [
        "Dear Ann, ann@example.org",
        "Dear Bob, bob@evil.example",
    ]


def test_recipients_from_data_must_be_allowed() -> None:
    result = run(f"{EACH} {{EACH; ERRORS: failed}}", outputs="out, failed", rel=PEOPLE, accounts=ALLOWING)
    assert given(result) == [("Ann", "ann@example.org")]
    [(name, address, error, kind, attempts)] = given(result, "failed")
    assert (name, address, kind, attempts) == ("Bob", "bob@evil.example", "AddressError", 1)
    assert error == (
        "'bob@evil.example' comes from data, and is not allowed: [email.default] allow has example.org"
    )
    [found] = mails()
    assert (found["To"], found["Subject"]) == ("Ann <ann@example.org>", "Hello Ann")


def test_a_recipient_from_data_must_not_lead_elsewhere_through_an_allowed_domain() -> None:
    people = [{"name": "Eve", "email": "eve%evil.example@example.org"}]
    with pytest.raises(
        RunError, match=r"allow must have it as a whole, since % or ! in it can lead elsewhere"
    ):
        run(f"{EACH} {{EACH}}", rel=people, accounts=ALLOWING)
    assert mails() == []


def test_one_recipient_that_is_not_allowed_fails_the_run_and_nothing_is_sent() -> None:
    with pytest.raises(RunError, match="is not allowed") as caught:
        run(f"{EACH} {{EACH}}", rel=PEOPLE, accounts=ALLOWING)
    assert "input tuple: name='Bob'" in str(caught.value)
    assert mails() == []


NASTY = [
    "ann@example.org\r\nBcc: eve@example.org",
    "ann@example.org>\r\nRCPT TO:<eve@evil.example",
    "ann@example.org, eve@evil.example",
    "eve@evil.example\x00@example.org",
    "eve@evil.example@example.org",
    "<eve@evil.example> x@example.org",
    None,
    "",
    "nobody",
]


@pytest.mark.parametrize("address", NASTY)
def test_no_value_becomes_another_recipient(address: str | None) -> None:
    people = [{"name": "Ann", "email": address}, {"name": "B\r\nBcc: x@y.z", "email": "b@example.org"}]
    result = run(f"{EACH} {{EACH; ERRORS: failed}}", outputs="out, failed", rel=people, accounts=ALLOWING)
    assert given(result) == []
    assert [row[3] for row in given(result, "failed")] == ["AddressError", "AddressError"]
    assert mails() == []


def test_white_space_in_a_subject_from_data_is_collapsed() -> None:
    texts = [{"text": "a\r\nBcc: x@y.z\r\n\r\n b\x00\u2028c"}]
    run('email (rel, to="me@example.org", subject="{text}" : out) {EACH}', rel=texts)
    [found] = mails()
    assert found["Subject"] == "a Bcc: x@y.z b c"
    assert found["Bcc"] is None


def test_a_subject_that_cannot_be_written_does_not_lose_the_message() -> None:
    run('email (rel, to="me@example.org", subject="{n:.2f} EUR" : out) {EACH}', rel=[{"n": "many"}])
    assert mails()[0]["Subject"] == "{n:.2f} EUR"


def test_a_template_that_fails_for_a_tuple_is_its_error() -> None:
    statement = f'email (rel, {TO} : out) {{EACH; ERRORS: failed; BODY: "{{{{ 1 / n }}}}"}}'
    result = run(statement, outputs="out, failed", rel=[{"n": 0}, {"n": 2}])
    assert given(result) == [(2,)]
    assert given(result, "failed")[0][1] == "the template: division by zero"


# --- the run ------------------------------------------------------------------------------------


def test_a_run_that_fails_sends_nothing() -> None:
    with pytest.raises(AioflowError, match="gone"):
        run(
            f"email (a, {TO} : out) union (b, b : more)",
            outputs="out, more",
            a=HOUSES,
            b=Script({"n": 1}).fail(OSError("gone")),
        )
    assert mails() == []


def test_a_dead_input_sends_nothing() -> None:
    run(
        f"null (rel, rel, rel : nothing, live) email (nothing, {TO} : out) {{EVEN_IF_EMPTY}}",
        rel=HOUSES,
    )
    assert mails() == []


def test_a_reader_that_leaves_early_does_not_stop_the_mail() -> None:
    people = [{"name": str(number), "email": "ann@example.org"} for number in range(20)]
    run(f"{EACH.replace('out)', 'all)')} {{EACH}} limit (all, 1 : out)", rel=people, accounts=ALLOWING)
    assert len(mails()) == 20


def test_done_and_enable_follow_the_outbox() -> None:
    result = run(
        f"email (rel, {TO}) {{DONE: mailed; ENABLE: begun}} "
        'project (rel, "address" : out) {WAIT: mailed} project (rel, "price" : other) {WAIT: begun}',
        outputs="out, other",
        rel=HOUSES,
    )
    assert (len(given(result)), len(given(result, "other"))) == (2, 2)


async def test_mail_arrives_at_a_real_server_after_the_run() -> None:
    async with SmtpServer() as server:
        configuration = {"email": {"default": account(url=f"smtp://127.0.0.1:{server.port}")}}
        async with Engine(configuration=configuration) as engine:
            await engine.run(loads(plan(f"email (rel, {TO} : out)", ["rel"])), {"rel": HOUSES})
    [kept] = server.kept
    assert kept.recipients == ("me@example.org",)
    assert "Elm St" in body(kept.message)


# --- before the run -----------------------------------------------------------------------------


GOOD = 'to="a@x.org", subject="x"'


@pytest.mark.parametrize(
    ("settings", "options", "message", "place"),
    [
        ('to="{email}", subject="x"', "", "'{email}' takes an address from each tuple: say EACH", "{email"),
        ('to="me", subject="x"', "", "'me' is no address: it has no @", "me"),
        ('to="a@x.org", subject="{{ cuont }}"', "", "unknown name 'cuont' in the template", "cuont"),
        ('to="a@x.org", subject="{{ table }}"', "", "unknown name 'table' in the template", "table"),
        (GOOD, '{HEADINGS: "A, B"}', "2 headings for 1 relation", '"A'),
        ('to="a@x.org, b", subject="x"', "", "'b' is no address", "b"),
        ('to="a@x.org", subject="{cuont}"', "", "'cuont'; did you mean 'count'?", "cuont"),
        ('to="{emial}", subject="x"', "{EACH}", "unknown attribute 'emial'", "emial"),
        ('to="a@x.org", subject="{nmae}"', "{EACH}", "unknown attribute 'nmae'", "nmae"),
        (GOOD, '{BODY: "Dear {{ name }}"}', "unknown name 'name'", "name }}"),
        (GOOD, '{EACH; BODY: "{% if %}"}', "Expected an expression", "{% if"),
        (GOOD, '{EACH; BODY_HTML: "{{ name|safe }}"}', "No filter named 'safe'", "{{"),
        (GOOD, "{ATTACH: pdf}", "must be one of csv, json, xml, not 'pdf'", "pdf"),
        (GOOD, "{EACH; EVEN_IF_EMPTY}", "with EACH there is a message for each tuple", "EACH"),
        (GOOD, '{REPLY_TO: "a@x.org, b@x.org"}', "answers go to one address", '"a@x'),
        (GOOD, '{EACH; REPLY_TO: "{email}"}', "answers do not go to addresses from data", "{email"),
        (GOOD, "{DELIVERY: twice}", "must be one of at-least-once, at-most-once", "twice"),
    ],
)
def test_mistakes_are_found_before_anything_runs(
    settings: str, options: str, message: str, place: str
) -> None:
    statement = f"email (rel, {settings} : out) {options}"
    text = f"PLAN test {{ INPUT: rel (name char, email char) OUTPUT: out BODY {{\n{statement}\n}} }}"
    with pytest.raises(PlanError) as caught:
        run_plan(text, configuration={"email": ALLOWING}, rel=PEOPLE)
    assert message in str(caught.value)
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.span is not None
    assert statement[diagnostic.span.column - 1 :].startswith(place), diagnostic


def missing(statement: str, accounts: Any) -> str:
    with pytest.raises(PlanError) as caught:
        run(statement, rel=PEOPLE, accounts=accounts)
    return str(caught.value)


def test_without_an_account_it_is_told_how_to_make_one_before_anything_runs() -> None:
    told = missing(f"email (rel, {TO} : out)", {})
    assert "no mail account is configured: write [email.default] url =" in told
    assert 'url = "maildir:mail" to try it out' in told
    assert list(Path().iterdir()) == []


def test_recipients_from_data_need_an_account_that_allows_some() -> None:
    told = missing(f"{EACH} {{EACH}}", {"default": account()})
    assert 'addresses from data must be allowed: write allow = ["example.org"]' in told


def test_an_account_that_does_not_exist_is_told() -> None:
    told = missing(f"email (rel, {TO} : out) {{VIA: wrok}}", {"work": account()})
    assert "there is no email account 'wrok'; did you mean 'work'?" in told


def test_a_database_that_does_not_exist_is_told() -> None:
    told = missing(f"email (rel, {TO} : out) {{DB: nowhere}}", {"default": account()})
    assert "nowhere" in told


# --- doubt --------------------------------------------------------------------------------------

# Elm St is missing from the right side of minus, so the first house is no news at all.
DOUBT = """
apply (rel, "email_halting" : known) {ERRORS: skip}
project (known, "address, price" : old)
minus (rel, old : new)
"""


@function(pure=True, returns="ok boolean")
def email_halting(row: Any) -> bool:
    """Fails for one house."""
    if row["address"] == "Elm St":
        raise ValueError("the page broke off")
    return True


@pytest.mark.parametrize(
    "clauses", ["", "{EACH}", '{BODY: "{{ count }} houses"}', '{BODY_HTML: "<html><body>x</body></html>"}']
)
def test_a_mail_made_from_what_is_doubtful_says_so_first(clauses: str) -> None:
    run(f'{DOUBT} email (new, to="me@example.org", subject="News" : out) {clauses}', rel=HOUSES)
    (found,) = mails()
    assert found["Subject"] == "May be wrong: News"
    assert body(found).startswith("This may be wrong: ")
    assert "the page broke off" in body(found).splitlines()[0]
    if "BODY:" not in clauses:
        assert "<body" in body(found, "html")
        assert "<p><strong>This may be wrong:</strong>" in body(found, "html").partition("<body")[2][:400]


def test_one_doubtful_relation_of_several_is_enough() -> None:
    run(f'{DOUBT} email (rel, new, to="me@example.org", subject="News" : out)', rel=HOUSES)
    (found,) = mails()
    assert found["Subject"] == "May be wrong: News"


def test_what_only_lacks_rows_is_mailed_as_it_is() -> None:
    run(f'{DOUBT} email (old, to="me@example.org", subject="News" : out)', rel=HOUSES)
    (found,) = mails()
    assert found["Subject"] == "News"
