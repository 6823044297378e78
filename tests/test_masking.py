"""What must not be shown: however it is written, wherever it stands, and nothing else."""

from __future__ import annotations

import json
import logging
from base64 import b64encode, urlsafe_b64encode
from html import escape
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow import InputError
from aioflow.config.masking import MASK, conceal, mask, mask_values, masked_logger, shows_secret
from aioflow.errors import AioflowError, Diagnostic, PlanError, message_of
from aioflow.source import Source, Span
from tests.clocks import effort_at_most

ODD = "hün/ter 2+\"<'&\\x"


@pytest.mark.parametrize(
    "written",
    [
        ODD,
        quote(ODD),
        quote(ODD, safe=""),
        quote_plus(ODD),
        quote(ODD).lower(),
        json.dumps(ODD),
        json.dumps(ODD, ensure_ascii=False),
        json.dumps(ODD).replace("/", r"\/"),
        escape(ODD),
        escape(ODD).replace("&#x27;", "&#39;"),
        repr(ODD),
        str(ODD.encode()),
        b64encode(ODD.encode()).decode(),
        urlsafe_b64encode(ODD.encode()).decode(),
        *(b64encode(f"{user}:{ODD}".encode()).decode() for user in ("", "m", "me", "you")),
        b64encode(f"me:{ODD}:more".encode()).decode(),
    ],
)
def test_a_value_is_masked_however_it_is_written(written: str) -> None:
    conceal(ODD)
    shown = mask(f"before {written} after")
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert MASK in shown
    # Of base64 the letters at both ends may say something of what stood around the value.
    assert len(shown) <= len(f"before {MASK} after") + 16
    assert shows_secret(f"before {written} after".encode())


@given(
    st.text(min_size=4, max_size=20),
    st.text(alphabet="abc:", max_size=4),
    st.text(alphabet="xyz", max_size=4),
)
def test_no_value_is_left_in_what_python_makes_of_it(value: str, before: str, after: str) -> None:
    if "*" in value or not value.isprintable():
        return
    conceal(value)
    for written in (value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value)):
        assert written not in mask(f"{before}{written}{after}").replace(MASK, "\0")


@pytest.mark.parametrize("secret", ["a", "to", "abc"])
def test_a_short_value_does_not_spoil_every_text(secret: str) -> None:
    conceal(secret)
    text = "a house to let: abcd, to a man called abcabc; see http://a.example/to/abc.html?to=day"
    assert mask(text) == text
    assert not shows_secret(text.encode())


@pytest.mark.parametrize("secret", ["a", "to", "abc", "%"])
@pytest.mark.parametrize(
    "text", ["Bearer {}", "password={}", "?key={}&more=1", "'{}'", '{{"key": "{}"}}', "key: {}", "x={};y=2"]
)
def test_a_short_value_is_masked_where_it_stands_like_one(secret: str, text: str) -> None:
    conceal(secret)
    assert mask(text.format(secret)) == text.format(MASK)
    assert shows_secret(text.format(secret).encode())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:pass@host/x", "http://********@host/x"),
        ("see https://user:pass@host:8080, please", "see https://********@host:8080, please"),
        ("http://token@host/", "http://********@host/"),
        ("http://u:p@ss@host/", "http://********@host/"),
        ("http://u:p#s/s?@host/", "http://********@host/"),
        ("http://u:@host/", "http://********@host/"),
        ("'smtp://u:p@h'", "'smtp://********@h'"),
        ("postgresql://u:p@h/db?x=1", "postgresql://********@h/db?x=1"),
        ("http://u:p@[::1]:80/", "http://********@[::1]:80/"),
        ("a http://u:p@h/ b http://v:q@i/ c", "a http://********@h/ b http://********@i/ c"),
    ],
)
def test_the_user_info_of_urls_is_masked(text: str, shown: str) -> None:
    assert mask(text) == shown
    assert mask(shown) == shown
    assert mask_values(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "http://host/path@2",
        "http://host:80/path?mail=a@b.example",
        "http://host:8080?mail=a@b",
        "http://[::1]:80/x@y",
        "http://host and me@example.org",
        '["http://host", "me@example.org"]',
        "postgresql://user@host/name",
        "smtp://user@mail.example.org:587",
        "mailto:me@example.org",
        "aioflow@1.0://",
    ],
)
def test_what_is_no_user_info_stays(text: str) -> None:
    assert mask(text) == text


def test_errors_and_logs_mask_what_they_say(caplog: pytest.LogCaptureFixture) -> None:
    conceal("hunter2")
    assert str(InputError("it was hunter2")) == f"it was {MASK}"
    assert str(AioflowError("http://u:p@h/")) == f"http://{MASK}@h/"
    assert message_of(ValueError("it was hunter2")) == f"it was {MASK}"
    logging.getLogger("aioflow.test_masking").propagate = True
    masked_logger("aioflow.test_masking").warning("%s and %s", "hunter2", "http://u:p@h/")
    assert caplog.messages == [f"{MASK} and http://{MASK}@h/"]


def test_credentials_in_passing_are_forgotten_in_time() -> None:
    conceal("hunter2")
    for number in range(200):
        conceal(f"passing-{number:03}", passing=True)
    assert mask("hunter2 passing-000 passing-199") == f"{MASK} passing-000 {MASK}"


# --- lines of a plan ----------------------------------------------------------------------------


def excerpt(line: str, marked: str) -> list[str]:
    start = line.index(marked)
    source = Source("x.plan", f"\n{line}\n")
    return str(Diagnostic("wrong", Span(source, start + 1, start + 1 + len(marked)))).split("\n")[1:]


@pytest.mark.parametrize(
    ("line", "marked", "shown"),
    [
        ('email (x, to="smtp://u:p@h") {OOPS}', "OOPS", 'email (x, to="smtp://********@h") {OOPS}'),
        (
            'HEADERS: Authorization = "Bearer abc"; OOPS',
            "OOPS",
            'HEADERS: Authorization = "Bearer ********"; OOPS',
        ),
        ('Authorization: "Bearer abc" OOPS', "OOPS", 'Authorization: "Bearer ********" OOPS'),
        ("HEADERS: authorization='abc' OOPS", "OOPS", "HEADERS: authorization='********' OOPS"),
        ('AUTH: bearer "abc" OOPS', "OOPS", 'AUTH: bearer "********" OOPS'),
        ('AUTH: basic "me" "abc" OOPS', "OOPS", 'AUTH: basic "me" "********" OOPS'),
        ('HEADERS: X-Api-Key = "abc"; OOPS', "OOPS", 'HEADERS: X-Api-Key = "********"; OOPS'),
        ('FORM: password = "abc", OOPS', "OOPS", 'FORM: password = "********", OOPS'),
        ('log (x, "my hunter2 here") {OOPS}', "OOPS", 'log (x, "my ******** here") {OOPS}'),
        ('AUTH: bearer "abc"', '"abc"', 'AUTH: bearer "********"'),
        ('to="smtp://u:p@h"', 'to="smtp://u:p@h"', 'to="smtp://********@h"'),
    ],
)
def test_the_source_line_shows_no_credential_and_the_caret_stays_where_it_belongs(
    line: str, marked: str, shown: str
) -> None:
    conceal("hunter2")
    text, carets = excerpt(line, marked)
    assert text.strip() == shown
    start, end = carets.index("^"), len(carets)
    is_secret = marked not in shown
    assert text[start:end] == (text[start:end] if is_secret else marked)
    assert text[start] == marked[0]
    assert text[end - 1] == marked[-1]


@pytest.mark.parametrize(
    "line",
    [
        'HEADERS: Authorization = "Bearer secret:TOKEN"; OOPS',
        'AUTH: bearer "secret:TOKEN" OOPS',
        'AUTH: basic "me" "secret:PASSWORD" OOPS',
        'FORM: token = "{token}", OOPS',
        'FORM: token = "$token", OOPS',
        'token: "input.token @value" OOPS',
        'GET: "https://homes.example/search{?city}" OOPS',
    ],
)
def test_what_is_no_credential_stays_in_the_source_line(line: str) -> None:
    assert excerpt(line, "OOPS")[0].strip() == line


def test_a_credential_is_masked_also_where_the_line_is_cut() -> None:
    conceal("hunter2-and-more")
    for before in range(80, 120):
        line = f"{'x' * 300}hunter2-and-more{'y' * before}OOPS"
        assert "hunter2" not in "".join(excerpt(line, "OOPS"))
        assert "and-more" not in "".join(excerpt(line, "OOPS"))


def test_mistakes_of_a_plan_mask_what_they_say() -> None:
    conceal("hunter2")
    error = PlanError([Diagnostic("unknown thing 'hunter2'", Span(Source("x", "say hunter2"), 0, 3))])
    assert "hunter2" not in str(error)


@pytest.mark.parametrize("unit", ["a://b:cx", "a.", "http://a", "http://u:p", "x@a://", "1://:"])
def test_a_page_cannot_make_masking_slow(unit: str) -> None:
    with effort_at_most(200):
        mask("@" + unit * (500_000 // len(unit)))
