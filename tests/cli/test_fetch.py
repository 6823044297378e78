"""`aioflow fetch`: what it tells of an answer, and of requests that were refused or failed."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended
from tests.cli.program import aioflow, start
from tests.cli.site import HOUSES, Site, served

Command = Callable[..., Ended]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with served() as running:
        yield running


@pytest.fixture
def fetch(command: Command, site: Site, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, with leave to reach the site."""
    monkeypatch.setenv("AIOFLOW_HTTP_ALLOW", site.host)
    site.requests.clear()
    return lambda path, *arguments: command("fetch", site.url(path), *arguments)


def facts(text: str) -> dict[str, str]:
    """The named lines of a report."""
    head = text.split("\n\n")[0].splitlines()[1:]
    return {line[:10].strip(): line[12:] for line in head}


def test_status_headers_and_size_are_told_but_not_the_body(fetch: Command, site: Site) -> None:
    ended = fetch("/houses")
    assert (ended.code, ended.messages) == (0, "")
    assert ended.output.startswith(f"200 OK  GET {site.url('/houses')}\n")
    told = facts(ended.output)
    assert told["answer"] == "from the network"
    assert told["body"].endswith("bytes, utf-8 by the header")
    assert "s waited" in told["time"]
    assert "s to the first byte" in told["time"]
    assert "s in all" in told["time"]
    assert "\nX-Test: one\n" in ended.output
    assert "Oak Street" not in ended.output


def test_the_body_has_stdout_for_itself(fetch: Command) -> None:
    for option in (("--body",), ("-o", "-")):
        ended = fetch("/houses", *option)
        assert ended.output.startswith("<!doctype html>")
        assert ended.messages.startswith("200 OK  GET ")


def test_the_body_is_written_to_a_file_byte_for_byte(fetch: Command, folder: Path) -> None:
    assert fetch("/bytes", "-o", "all.bin").code == 0
    assert (folder / "all.bin").read_bytes() == bytes(range(256))


def test_the_file_is_there_when_nobody_reads_the_report(site: Site, folder: Path) -> None:
    arguments = ("fetch", site.url("/bytes"), "-o", "all.bin")
    with start(*arguments, cwd=folder, AIOFLOW_HTTP_ALLOW=site.host) as process:
        process.output.close()
        assert (process.end(), process.messages.read()) == (0, b"")
    assert (folder / "all.bin").read_bytes() == bytes(range(256))


def test_a_file_that_cannot_be_written_is_told_before_anything_is_sent(fetch: Command, site: Site) -> None:
    ended = fetch("/bytes", "-o", "no/such")
    assert ended == Ended(2, "", "error: cannot write: no such file or directory: 'no/such'\n")
    assert site.requests == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_told_with_the_name_of_the_file(fetch: Command) -> None:
    ended = fetch("/houses", "-o", "/dev/full")
    assert (ended.code, ended.messages) == (1, "error: no space left on device: '/dev/full'\n")


def test_a_failed_fetch_leaves_the_old_file_and_nothing_else(fetch: Command, folder: Path) -> None:
    (folder / "old").write_text("old")
    before = sorted(folder.iterdir())
    assert fetch("/private/page", "-o", "old").code == 1
    assert (sorted(folder.iterdir()), (folder / "old").read_text()) == (before, "old")


def test_redirects_are_told(fetch: Command, site: Site) -> None:
    ended = fetch("/old")
    assert ended.output.startswith(f"200 OK  GET {site.url('/houses')}\n")
    assert facts(ended.output)["redirected"] == site.url("/old")


def test_a_packed_body_is_told_in_both_sizes(fetch: Command) -> None:
    assert facts(fetch("/packed").output)["body"].startswith("10,000 bytes, sent as gzip in ")


def test_an_error_status_is_shown_and_ends_with_1(fetch: Command) -> None:
    ended = fetch("/none")
    assert ended.code == 1
    assert ended.output.startswith("404 Not Found  GET ")


def test_head_asks_for_headers_only(fetch: Command, site: Site) -> None:
    ended = fetch("/houses", "--head")
    assert "HEAD /houses" in site.requests
    assert facts(ended.output)["body"] == "none"


def test_method_headers_and_data_are_sent(
    fetch: Command, site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOFLOW_SECRET_KEY", "hunter2")
    (folder / "body.txt").write_text("from a file")
    ended = fetch("/echo", "--data", "@body.txt", "-H", "X-Key: secret:KEY", "--body")
    assert json.loads(ended.output).items() >= {"body": "from a file", "key": "hunter2"}.items()
    assert "hunter2" not in ended.messages
    fetch("/echo", "--method", "put", "--data", "x")
    assert [each for each in site.requests if "/echo" in each] == ["POST /echo", "PUT /echo"]


def test_data_is_a_form_unless_a_header_says_otherwise(fetch: Command) -> None:
    def sent(*arguments: str) -> str:
        content_type: str = json.loads(fetch("/echo", *arguments, "--body").output)["type"]
        return content_type

    assert sent("--data", "q=x") == "application/x-www-form-urlencoded"
    assert sent("--data", "{}", "-H", "content-type: application/json") == "application/json"


def test_the_report_as_json(fetch: Command, site: Site) -> None:
    told = json.loads(fetch("/old", "--json").output)
    assert (told["status"], told["url"], told["hops"]) == (200, site.url("/houses"), [site.url("/old")])
    assert told["charset"] == "utf-8 by the header"
    assert told["body-bytes"] == told["sent-bytes"] > 0
    assert told["stored"] is None
    assert told["total-seconds"] >= told["first-byte-seconds"] >= 0
    assert ["X-Test", "one"] in told["headers"]


def test_a_private_address_is_refused_with_the_setting_that_would_allow_it(
    command: Command, site: Site
) -> None:
    site.requests.clear()
    ended = command("fetch", site.url("/houses"))
    assert (ended.code, ended.output) == (1, "")
    assert ended.messages.startswith("refused: ")
    assert site.host in ended.messages
    assert "allow" in ended.messages
    assert site.requests == []
    told = json.loads(command("fetch", site.url("/houses"), "--json").output)
    assert (told["refused"], told["error-kind"]) == (True, "AddressRefusedError")


def test_what_robots_txt_forbids_is_refused(
    fetch: Command, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = fetch("/private/page")
    assert ended.code == 1
    assert ended.messages.startswith("refused: ")
    assert "robots.txt" in ended.messages
    assert "GET /private/page" not in site.requests
    monkeypatch.setenv("AIOFLOW_HTTP_ROBOTS", "no")
    fetch("/private/page")
    assert "GET /private/page" in site.requests


def test_no_connection_is_a_failure(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOFLOW_HTTP_ALLOW", "127.0.0.1:1")
    monkeypatch.setenv("AIOFLOW_HTTP_RETRIES", "0")
    monkeypatch.setenv("AIOFLOW_HTTP_ROBOTS", "no")
    ended = command("fetch", "http://127.0.0.1:1/")
    assert ended.code == 1
    message = "http://127.0.0.1:1/: no connection to 127.0.0.1:1: connection refused"
    assert ended.messages.startswith(f"failed: {message}")


def test_what_was_recorded_can_be_replayed(fetch: Command, site: Site) -> None:
    assert fetch("/houses", "--record", "pages").code == 0
    asked = list(site.requests)
    ended = fetch("/houses", "--replay", "pages", "--body")
    assert ended.output.startswith("<!doctype html>")
    assert facts(ended.messages)["answer"] == "from the recording"
    assert site.requests == asked
    refused = fetch("/other", "--replay", "pages")
    assert (refused.code, refused.messages[:9]) == (1, "refused: ")


def test_offline_answers_come_from_the_cache(fetch: Command, site: Site) -> None:
    refused = fetch("/houses", "--offline")
    assert (refused.code, refused.messages[:9]) == (1, "refused: ")
    assert site.requests == []


def test_an_answer_offline_is_not_called_fresh(fetch: Command, site: Site) -> None:
    assert facts(fetch("/changing", "--cache").output)["answer"] == "from the network"
    asked = list(site.requests)
    told = facts(fetch("/changing", "--offline").output)["answer"]
    assert re.fullmatch(r"from the cache, \d+ s old; the server was not asked", told)
    assert site.requests == asked


def test_text_of_the_server_cannot_command_the_terminal(fetch: Command) -> None:
    assert "\x9b" not in fetch("/evil").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("example.org",), "'example.org' is no http:// or https:// address"),
        (("file:///etc/passwd",), "'file:///etc/passwd' is no http:// or https:// address"),
        (("http://x/", "-H", "nonsense"), "--header nonsense: expected 'NAME: VALUE'"),
        (("http://x/", "-H", "Xé: 1"), "--header 'Xé': a name is made of ASCII letters, digits and signs"),
        (("http://x/", "-H", "X: 1\rY: 2"), "--header X: its value must not have line breaks"),
        (("http://x/", "-X", "GO AWAY"), "--method GO AWAY: not a method of HTTP"),
        (("http://x/", "--head", "-X", "POST"), "--head asks by HEAD, --method by POST: give one of them"),
        (("http://x/", "--data", "@none"), "cannot read --data: no such file or directory: 'none'"),
        (
            ("http://x/", "-H", "X-Key: secret:NONE"),
            "there is no secret 'NONE'; set the environment variable",
        ),
    ],
)
def test_bad_input_is_told(command: Command, arguments: tuple[str, ...], message: str) -> None:
    ended = command("fetch", *arguments)
    assert (ended.code, ended.output) == (2, "")
    assert ended.messages.startswith(f"error: {message}")


def test_it_runs_as_a_process_of_its_own(site: Site, folder: Path) -> None:
    changes: dict[str, Any] = {"AIOFLOW_HTTP_ALLOW": site.host}
    ended = aioflow("fetch", site.url("/houses"), "--body", cwd=folder, **changes)
    assert (ended.returncode, ended.stdout[:9]) == (0, "<!doctype")
    assert ended.stderr.startswith("200 OK")


# --- runs ---------------------------------------------------------------------------------------

PLAN = """\
WRAPPER houses ()
{
  GET: "http://SITE/houses"
  EACH: "li.house"
  address: "a.title"
}

PLAN houses
{
  OUTPUT: found
  BODY
  {
    wrapper ("houses" : found)
  }
}
"""
FOUND = [f'{{"address": "{address}"}}' for address, _ in HOUSES]


def test_a_run_is_recorded_and_replayed_without_the_network(
    command: Command, site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "houses.plan").write_text(PLAN.replace("SITE", site.host))
    monkeypatch.setenv("AIOFLOW_HTTP_ALLOW", site.host)
    first = command("run", "houses.plan", "--record", "pages")
    assert (first.code, first.messages, first.output.splitlines()) == (0, "", FOUND)
    site.requests.clear()
    again = command("run", "houses.plan", "--replay", "pages")
    assert (again.code, again.messages, again.output.splitlines()) == (0, "", FOUND)
    assert site.requests == []


def test_a_run_offline_fails_where_the_cache_has_no_answer(
    command: Command, site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "houses.plan").write_text(PLAN.replace("SITE", site.host))
    monkeypatch.setenv("AIOFLOW_HTTP_ALLOW", site.host)
    site.requests.clear()
    ended = command("run", "houses.plan", "--offline")
    assert (ended.code, ended.output, site.requests) == (1, "", [])
    assert "houses.plan:13:5" in ended.messages


def test_the_file_beside_a_plan_lets_its_run_reach_a_private_address(
    command: Command, site: Site, folder: Path
) -> None:
    (folder / "plans").mkdir()
    (folder / "plans" / "houses.plan").write_text(PLAN.replace("SITE", site.host))
    refused = command("run", "plans/houses.plan")
    assert (refused.code, refused.output) == (1, "")
    assert f'allow "{site.host}"' in refused.messages
    (folder / "plans" / "aioflow.toml").write_text(f'[http]\nallow = ["{site.host}"]\n')
    assert command("run", "plans/houses.plan").output.splitlines() == FOUND


@pytest.mark.parametrize("as_json", [False, True])
def test_a_body_that_is_no_text_is_called_so_and_can_be_saved(
    fetch: Command, folder: Path, as_json: bool
) -> None:
    ended = fetch("/paper", "-o", "paper.pdf", *(["--json"] if as_json else []))
    assert ended.code == 0
    assert (folder / "paper.pdf").read_bytes() == b"%PDF-1.7\n\xe2\xe3\xcf\xd3"
    if as_json:
        told = json.loads(ended.output)
        assert (told["kind"], told["charset"]) == ("application/pdf", None)
        assert json.loads(fetch("/houses", "--json").output)["kind"] is None
    else:
        words = "a PDF document (application/pdf), which no wrapper can read"
        assert facts(ended.output)["body"] == f"13 bytes, {words}"
        assert facts(fetch("/bytes").output)["body"].startswith("256 bytes, binary data")
