"""`aioflow config`, and settings of commands from their options, the environment and files."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from aioflow.cli.config import effective_settings
from aioflow.version import __version__
from tests.cli.conftest import Ended


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def listed(text: str) -> dict[str, tuple[str, str]]:
    """Value and origin of each setting, from the columns of the command."""
    lines = [[part for part in line.split("  ") if part] for line in text.splitlines()]
    return {name: (value.strip(), where.strip()) for name, value, where in lines}


def test_options_that_were_not_given_leave_everything_to_the_engine() -> None:
    settings = effective_settings({"workers": None, "ops": None, "http": {"offline": None}})
    assert settings.engine_arguments() == {}
    assert settings.ops == ()


def test_an_option_wins_and_is_shown_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOFLOW_WORKERS", "3")
    settings = effective_settings({"workers": 4, "http": {"offline": True}})
    assert settings.engine_arguments() == {"workers": 4}
    assert settings.where("workers") == "--workers"
    assert settings.where("http", "offline") == "--offline"
    for cache, option in ((True, "--cache"), (False, "--no-cache")):
        settings = effective_settings({"http": {"cache": cache}})
        assert (settings["http"], settings.where("http", "cache")) == ({"cache": cache}, option)


def test_the_option_cache_keeps_the_place_that_is_configured(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "aioflow.toml").write_text('[http]\ncache = "pages.cache"\n')
    settings = effective_settings({"http": {"cache": True}})
    assert settings["http"] == {"cache": folder / "pages.cache"}
    assert settings.where("http", "cache") == "aioflow.toml"
    assert effective_settings({"http": {"cache": False}})["http"] == {"cache": False}
    monkeypatch.setenv("AIOFLOW_HTTP_CACHE", "no")
    assert effective_settings({"http": {"cache": True}})["http"] == {"cache": True}


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "double.plan", "-i", "[]"),
        ("explain", "double.plan"),
        ("fetch", "http://example.org/"),
        ("shell", "http://example.org/"),
        ("wrapper", "test", "double.plan", "houses"),
    ],
)
def test_a_recording_that_is_not_there_is_a_bad_option(
    command: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    ended = command(*arguments, "--replay", "none.rec")
    assert ended == Ended(2, "", "error: --replay: there is no recording none.rec\n")
    monkeypatch.setenv("AIOFLOW_HTTP_REPLAY", "none.rec")
    message = "error: AIOFLOW_HTTP_REPLAY: http.replay: there is no recording none.rec\n"
    assert command(*arguments) == Ended(2, "", message)
    assert command("check", "double.plan").code == command("config").code == 0


def test_config_shows_every_setting_with_its_origin(
    command: Callable[..., Ended], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "aioflow.toml").write_text(
        'memory = "64MB"\n[http]\ncontact = "me@example.org"\n[host."Example.org:8080"]\nconcurrency = 4\n'
    )
    monkeypatch.setenv("AIOFLOW_HTTP_CONNECT_SECONDS", "1m30s")
    ended = command("config")
    assert ended.code == 0
    found = listed(ended.output)
    assert found["workers"] == ("15", "default")
    assert found["memory"] == ("64 MB", "aioflow.toml")
    assert found["http.contact"] == ("me@example.org", "aioflow.toml")
    assert found["http.connect_seconds"] == ("90 s", "AIOFLOW_HTTP_CONNECT_SECONDS")
    assert found["http.body_bytes"] == ("32 MiB", "default")
    assert found['host."example.org:8080".concurrency'] == ("4", "aioflow.toml")
    assert found['host."example.org:8080".rate'] == ("-", "default")


def test_config_of_a_plan_reads_the_file_beside_it(command: Callable[..., Ended], folder: Path) -> None:
    (folder / "plans").mkdir()
    (folder / "plans" / "some.plan").touch()
    (folder / "plans" / "aioflow.toml").write_text("workers = 2\n[http]\nrobots = false\n")
    (folder / "aioflow.toml").write_text("workers = 3\n")
    found = listed(command("config", "plans/some.plan").output)
    assert found["workers"] == ("3", "aioflow.toml")
    assert found["http.robots"] == ("false", "plans/aioflow.toml")
    assert listed(command("config").output)["http.robots"] == ("true", "default")
    assert command("config", "plans/none.plan").messages == "error: there is no file plans/none.plan\n"


def test_config_as_json_has_an_object_for_each_setting(command: Callable[..., Ended], folder: Path) -> None:
    (folder / "aioflow.toml").write_text('[http]\nallow = ["127.0.0.1:80"]\nrecord = "pages.jsonl"\n')
    entries = {
        entry["setting"]: entry for entry in map(json.loads, command("config", "--json").output.splitlines())
    }
    assert entries["http.allow"] == {
        "setting": "http.allow",
        "value": ["127.0.0.1:80"],
        "from": "aioflow.toml",
    }
    assert entries["http.record"]["value"] == str(folder / "pages.jsonl")
    assert entries["workers"] == {"setting": "workers", "value": 15, "from": "default"}


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_config_masks_credentials_and_shows_references(
    command: Callable[..., Ended], folder: Path, form: tuple[str, ...]
) -> None:
    (folder / "aioflow.toml").write_text(
        '[http]\nproxy = "http://me:hunter2@proxy.example:3128"\n'
        '[host."example.org"]\nauth = "bearer secret:TOKEN"\n'
        'headers = {Authorization = "Bearer hunter2", X-Api-Key = "secret:KEY", Accept = "text/html"}\n'
    )
    output = command("config", *form).output
    assert "hunter2" not in output
    for shown in ("********@proxy.example:3128", "bearer secret:TOKEN", "secret:KEY", "text/html"):
        assert shown in output


def test_modules_beside_a_plan_are_found_from_elsewhere(command: Callable[..., Ended], folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    for name in ("houses.plan", "functions.py"):
        (folder / name).rename(folder / "elsewhere" / name)
    (folder / "elsewhere" / "aioflow.toml").write_text('ops = ["functions"]\n')
    ended = command("run", "elsewhere/houses.plan", "-i", '{"page": 3}')
    assert ended.messages == ""
    assert ended.output.splitlines() == ['{"house": "3-1"}', '{"house": "3-2"}']


def test_a_mistake_in_a_file_ends_a_command_with_a_message(
    command: Callable[..., Ended], folder: Path
) -> None:
    (folder / "aioflow.toml").write_text('[http]\nrate = "fast"\n')
    for arguments in (("config",), ("run", "double.plan", "-i", "[]"), ("check", "double.plan")):
        ended = command(*arguments)
        assert (ended.code, ended.output) == (2, "")
        assert ended.messages == "error: aioflow.toml: http.rate must be a number, not 'fast'\n"


def test_the_page_about_configuration_lists_every_setting_with_its_default(
    command: Callable[..., Ended], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIOFLOW_ACCOUNT")
    (folder / "aioflow.toml").write_text('[host."x"]\nheaders = {}\nrate = 0\n')
    described = {}
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    headings = (
        ("Settings of the engine", ""),
        ("http", "http."),
        ("host", "host.x."),
        ("files", "files."),
        ("history", "history."),
        ("outbox", "outbox."),
        ("plans", "plans."),
        ("service", "service."),
        ("jobs", "jobs."),
        ("xquery", "xquery."),
    )
    for heading, prefix in headings:
        section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
        for key, default in re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE):
            described[prefix + key] = default.strip("`").replace("none", "-").replace("VERSION", __version__)
    actual = {name: value for name, (value, _) in listed(command("config").output).items()}
    assert described == {**actual, "host.x.rate": "-"}


def test_urls_of_chats_and_gateways_show_their_schemes_only(
    command: Callable[..., Ended], folder: Path
) -> None:
    urls = 'url = ["slack://TokenA/TokenB", "secret:TEAM"]\n'
    (folder / "aioflow.toml").write_text(f"[notify.chat]\n{urls}")
    for form in ([], ["--json"]):
        output = command("config", *form).output
        assert "TokenA" not in output
        assert "slack://********" in output
        assert "secret:TEAM" in output
