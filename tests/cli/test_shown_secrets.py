"""A host that sends back all it was told, and every place that a command writes to: no secret is there."""

from __future__ import annotations

import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

import pytest

from tests.cli.program import aioflow

TOKEN = 'hush/t&"k+n%41'
PASSWORD = "pa55-w0rd!"
VARIABLES = {"AIOFLOW_SECRET_TOKEN": TOKEN, "AIOFLOW_SECRET_UNUSED": "never-asked-for"}


def forms(secret: str) -> set[str]:
    """Ways to write a secret that the host uses, and others that a library may use for it."""
    encoded = {b64encode(f"{before}{secret}".encode()).decode() for before in ("", "me:")}
    json_form = json.dumps(secret)[1:-1]
    return {
        secret,
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        escape(secret),
        json_form,
    } | encoded


FORMS = forms(TOKEN) | forms(PASSWORD) | {"never-asked-for"}


class Echo(BaseHTTPRequestHandler):
    """Answers with all credentials that it was sent, in whatever part of an answer the path asks for."""

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline()
        if not self.raw_requestline or not self.parse_request():
            return
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        told = [self.headers.get("Authorization", ""), self.headers.get("X-Key", ""), unquote(body), body]
        if told[0].startswith("Basic "):
            told.append(b64decode(told[0].removeprefix("Basic ")).decode().partition(":")[2])
        echo = " ".join(filter(None, told))
        path = self.path.partition("?")[0].rpartition("/")[2]
        self.wfile.write(self.answer(path, echo).encode("latin-1"))
        self.close_connection = True

    def answer(self, path: str, echo: str) -> str:
        page = f"<title>page</title><h1>{escape(echo)}</h1><p>{echo}</p>"
        if path == "robots.txt":
            return "HTTP/1.0 404 no\r\n\r\n"
        if path == "reason":
            return f"HTTP/1.0 500 {echo}\r\n\r\n{page}"
        if path == "status":
            return f"HTTP/1.0 {echo}\r\n\r\n"
        if path == "moved":
            return f"HTTP/1.0 302 x\r\nLocation: http://10.0.0.1/?k={quote(echo)}\r\n\r\n"
        if path == "away":
            return f"HTTP/1.0 302 x\r\nLocation: ftp://{quote_plus(echo)}@host/{echo}\r\n\r\n"
        if path == "header":
            return f"HTTP/1.0 200 x\r\n{echo}: {echo}\r\n\r\n{page}"
        if path == "cut":
            return f"HTTP/1.0 200 x\r\nContent-Length: 99999\r\n\r\n{page}"
        if path == "encoded":
            return f"HTTP/1.0 200 x\r\nContent-Encoding: {echo}\r\n\r\n{page}"
        headers = f"Cache-Control: public, max-age=99\r\nX-Echo: {echo}\r\nSet-Cookie: k={quote(echo)}"
        return f"HTTP/1.0 200 x\r\nContent-Type: text/html\r\n{headers}\r\n\r\n{page}"

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing is told."""


@contextmanager
def echoing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


WRAPPERS = {
    "header": 'GET: "http://HOST/{link}"; HEADERS: X-Key = "secret:TOKEN"',
    "basic": 'GET: "http://HOST/{link}"; AUTH: basic "me" "secret:TOKEN"',
    "form": 'POST: "http://HOST/{link}"; SAFE; FORM: p = "secret:TOKEN"',
    "user": 'GET: "{+link}"',
}
PLAN = """
WRAPPER site (link) { REQUEST; t: "title"; missing: "h7" }

PLAN ask
{
  INPUT: links (link char)
  OUTPUT: pages
  BODY
  {
    log (links, "asked")
    wrapper ("site", links : found)
    project (found, "t" : pages)
  }
}
"""


def found_in(folder: Path, *texts: str) -> list[str]:
    """The secrets in texts and in all files of a folder but those that were written by hand."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".plan"]
    everything = "\n".join([*texts, *(path.read_bytes().decode("latin-1") for path in files)])
    everything += "\n".join(str(path) for path in files)
    return sorted(form for form in FORMS if form in everything)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_no_output_of_a_run_shows_a_secret_that_a_host_sends_back(wrapper: str, tmp_path: Path) -> None:
    paths = ["reason", "status", "moved", "away", "header", "cut", "encoded", "fine"]
    with echoing() as host:
        (tmp_path / "ask.plan").write_text(PLAN.replace("REQUEST", WRAPPERS[wrapper].replace("HOST", host)))
        for number, path in enumerate(paths):
            keep = (
                {"AIOFLOW_HTTP_RECORD": "kept.jsonl"} if number % 2 else {"AIOFLOW_HTTP_CACHE": "kept.sqlite"}
            )
            link = f"http://me:{quote(PASSWORD)}@{host}/{path}" if wrapper == "user" else path
            done = aioflow(
                *("run", "ask.plan", "-i", json.dumps({"link": link}), "--trace", f"{path}.trace"),
                *("-o", f"{path}.csv"),
                cwd=tmp_path,
                AIOFLOW_DEBUG="1",
                AIOFLOW_HTTP_ALLOW=host,
                AIOFLOW_HTTP_RETRIES="0",
                **VARIABLES,
                **keep,
            )
            assert done.returncode == (0 if path == "fine" else 1), done.stderr
            assert ("Traceback" in done.stderr) == (path != "fine")
            assert found_in(tmp_path, done.stdout, done.stderr) == [], path


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("path", ["reason", "status", "moved", "away", "header", "cut", "encoded", "fine"])
def test_no_report_of_fetch_shows_a_secret_that_a_host_sends_back(
    path: str, as_json: bool, tmp_path: Path
) -> None:
    with echoing() as host:
        done = aioflow(
            *("fetch", f"http://me:{quote(PASSWORD)}@{host}/{path}", "-H", "X-Key: secret:TOKEN"),
            *(["--json"] if as_json else []),
            cwd=tmp_path,
            AIOFLOW_DEBUG="1",
            AIOFLOW_HTTP_ALLOW=host,
            AIOFLOW_HTTP_RETRIES="0",
            **VARIABLES,
        )
        assert found_in(tmp_path, done.stdout, done.stderr) == []
        assert "me:" not in done.stdout + done.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_no_report_on_a_wrapper_shows_a_secret_that_a_host_sends_back(as_json: bool, tmp_path: Path) -> None:
    with echoing() as host:
        text = PLAN.replace("REQUEST", WRAPPERS["basic"].replace("HOST", host)).replace('"title"', '"p"')
        (tmp_path / "ask.plan").write_text(text)
        for path in ("fine", "reason", "moved"):
            done = aioflow(
                *("wrapper", "test", "ask.plan", "site", "-i", f"link={path}"),
                *(["--json"] if as_json else []),
                cwd=tmp_path,
                AIOFLOW_HTTP_ALLOW=host,
                AIOFLOW_HTTP_RETRIES="0",
                **VARIABLES,
            )
            assert found_in(tmp_path, done.stdout, done.stderr) == [], path


FUNCTIONS = f"""
from aioflow import function

@function(returns="x char")
def fail(row):
    token = {TOKEN!r}
    raise ValueError(f"bad token {{token!r}} for http://me:{PASSWORD}@host/")
"""
BROKEN = """
PLAN broken { INPUT: rows (n number); OUTPUT: done; BODY { apply (rows, "fail" : done) CLAUSE } }
"""


@pytest.mark.parametrize("clause", ["", "{ERRORS: skip}"])
def test_no_message_of_a_function_shows_a_known_secret_or_user_info(clause: str, tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "broken.plan").write_text(BROKEN.replace("CLAUSE", clause))
    arguments = ("run", "broken.plan", "--ops", "functions", "-i", '{"n": 7}')
    done = aioflow(*arguments, cwd=tmp_path, PYTHONDONTWRITEBYTECODE="1", **VARIABLES)
    assert "bad token" in done.stderr
    assert found_in(tmp_path / "none", done.stdout, done.stderr) == []


MISTAKES = f"""
WRAPPER site (link)
{{
  GET: "http://me:{PASSWORD}@homes.example/{{link}}" oops
  HEADERS: Authorization = "Bearer abc-def" oops
  AUTH: bearer "ghi-jkl"
  FORM: x = "never-asked-for" oops
  t: "h1" oops
}}

PLAN tell
{{
  INPUT: rows (n number)
  BODY
  {{
    email (rows, to="smtp://u:{PASSWORD}@h", subjekt="never-asked-for")
    log (rows, "{PASSWORD}", oops="http://me:{PASSWORD}@h/")
  }}
}}
"""


@pytest.mark.parametrize("command", [("check",), ("check", "--json"), ("run",), ("explain",)])
def test_no_source_line_that_a_mistake_quotes_shows_a_credential(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "tell.plan").write_text(MISTAKES.replace(f'"{PASSWORD}", oops', '"x", oops'))
    done = aioflow(*command, "tell.plan", cwd=tmp_path, AIOFLOW_DEBUG="1", **VARIABLES)
    assert done.returncode == 2
    assert "tell.plan" in done.stdout + done.stderr
    assert found_in(tmp_path, done.stdout, done.stderr) == []
    assert "abc-def" not in done.stdout + done.stderr
    assert "ghi-jkl" not in done.stdout + done.stderr


def test_json_stays_json_where_a_number_is_also_a_secret(tmp_path: Path) -> None:
    with echoing() as host:
        changes = {"AIOFLOW_SECRET_PIN": "200", "AIOFLOW_HTTP_ALLOW": host}
        arguments = ("fetch", f"http://{host}/fine", "--json", "-H", "X-Key: secret:PIN")
        done = aioflow(*arguments, cwd=tmp_path, **changes)
    told = json.loads(done.stdout)
    assert told["status"] == 200
    assert ["X-Echo", "********"] in told["headers"]


def test_a_trace_stays_json_where_a_number_is_also_a_secret(tmp_path: Path) -> None:
    (tmp_path / "plain.plan").write_text("PLAN plain { INPUT: a OUTPUT: b BODY { limit (a, 200 : b) } }")
    arguments = ("run", "plain.plan", "-i", '{"n": 1}', "--trace", "trace.json")
    assert aioflow(*arguments, cwd=tmp_path, AIOFLOW_SECRET_PIN="1").returncode == 0
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
