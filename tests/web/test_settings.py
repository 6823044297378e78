"""`[http]` and `[host."…"]`: from the configuration to what the client is opened with."""

from pathlib import Path
from typing import Any

import pytest

from aioflow.config.configuration import read_configuration
from aioflow.errors import InputError
from aioflow.web.settings import HOST, HTTP, HostSettings, HttpSettings, WebSettings, web_settings


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_nothing_set_gives_the_defaults() -> None:
    assert web_settings({}) == WebSettings()
    assert web_settings(read_configuration()) == WebSettings()


def test_the_defaults_would_be_accepted_as_settings() -> None:
    written = {name: value for name, value in vars(HttpSettings()).items() if value not in (None, ())}
    assert web_settings({"http": written}) == WebSettings()


def test_settings_of_a_file(here: Path) -> None:
    (here / "aioflow.toml").write_text(
        """
        [http]
        allow = ["127.0.0.1:8080", "LocalHost:9"]
        contact = "me@example.org"
        rate = 2
        total_seconds = "5m"
        body_bytes = "64MiB"
        cache = "pages"

        [host."Example.org"]
        rate = 0
        auth = "bearer secret:TOKEN"
        headers = {Accept = "text/html"}

        [host."example.org:8080"]
        concurrency = 15
        robots = false
        """
    )
    assert web_settings(read_configuration()) == WebSettings(
        HttpSettings(
            allow=("127.0.0.1:8080", "localhost:9"),
            contact="me@example.org",
            rate=2.0,
            total_seconds=300.0,
            body_bytes=64 * 1024 * 1024,
            cache=here / "pages",
        ),
        {
            "example.org": HostSettings(rate=0, auth="bearer secret:TOKEN", headers={"Accept": "text/html"}),
            "example.org:8080": HostSettings(concurrency=15, robots=False),
        },
    )


@pytest.mark.parametrize("key", [key for key in HTTP.keys if key not in ("record", "replay")])
def test_every_setting_of_http_has_a_variable(key: str, monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    samples: dict[Any, tuple[str, Any]] = {
        bool: ("no", False),
        int: ("7", 7),
        float: ("7", 7.0),
        str: ("http://me", "http://me"),
        tuple[str, ...]: ("a:1,b:2", ("a:1", "b:2")),
    }
    own = {"restart": ("Hedge P95", "hedge p95")}
    text, expected = own.get(key) or samples[HTTP.keys[key].choices[0]]
    monkeypatch.setenv(f"AIOFLOW_HTTP_{key.upper()}", text)
    assert getattr(web_settings(read_configuration()).http, key) == expected


def test_a_rate_of_0_is_none() -> None:
    assert web_settings({"http": {"rate": 0}}).http.rate is None


def test_offline_answers_come_from_the_cache_even_if_nobody_turned_it_on(here: Path) -> None:
    assert web_settings({"http": {"offline": True}}).http.cache is True
    assert web_settings({"http": {"offline": True, "cache": "pages"}}).http.cache == here / "pages"


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"http": {"rate": -1}}, "http.rate must be a number of at least 0, not -1"),
        ({"http": {"concurrency": 0}}, "http.concurrency must be a whole number of at least 1, not 0"),
        ({"http": {"total_seconds": 0}}, "http.total_seconds must be a time greater than 0, not 0"),
        ({"http": {"body_bytes": 0}}, "http.body_bytes must be a size of at least 1, not 0"),
        ({"http": {"redirects": -1}}, "http.redirects must be a whole number of at least 0, not -1"),
        (
            {"http": {"allow": ["localhost"]}},
            "http.allow must be a list of hosts with their ports, like '127.0.0.1:8080', not ['localhost']",
        ),
        (
            {"http": {"allow": ["http://localhost:80/"]}},
            "http.allow must be a list of hosts with their ports, like '127.0.0.1:8080', "
            "not ['http://localhost:80/']",
        ),
        (
            {"http": {"proxy": "socks5://x"}},
            "http.proxy must be the http:// address of a proxy, not 'socks5://x'",
        ),
        ({"http": {"user_agent": "a\r\nb"}}, "http.user_agent must be a text on one line, not 'a\\r\\nb'"),
        (
            {"host": {"https://example.org": {"rate": 1}}},
            "[host.'https://example.org']: a host is written as example.org, example.org:8080 or [::1]:8080",
        ),
        (
            {"host": {"example.org:99999": {"rate": 1}}},
            "[host.'example.org:99999']: a host is written as example.org, example.org:8080 or [::1]:8080",
        ),
        (
            {"host": {"example.org": {"headers": {"X Y": "z"}}}},
            "'X Y' is no name of a header",
        ),
        (
            {"host": {"example.org": {"headers": {"Host": "z"}}}},
            "the header 'Host' is for the client to set",
        ),
        (
            {"host": {"example.org": {"headers": {"X": "a\nb"}}}},
            "host.\"example.org\".headers.X must be a text on one line, not 'a\\nb'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        web_settings(tables)
    assert str(caught.value) == f"configuration: {message}"


@pytest.mark.parametrize("auth", ["bearer hunter2", "basic me hunter2", "hunter2", "digest secret:HUNTER"])
def test_a_credential_stands_in_settings_by_reference_only(auth: str) -> None:
    with pytest.raises(InputError) as caught:
        web_settings({"host": {"example.org": {"auth": auth}}})
    assert str(caught.value) == (
        "configuration: host.\"example.org\".auth must be 'bearer secret:NAME' or 'basic USER secret:NAME', "
        "with the NAME of a secret"
    )


def test_recording_and_replaying_exclude_each_other(here: Path) -> None:
    (here / "aioflow.toml").write_text('[http]\nrecord = "a"\n')
    with pytest.raises(
        InputError, match=r"http.record \(aioflow.toml\) and http.replay \(overrides\) exclude"
    ):
        web_settings(read_configuration(overrides={"http": {"replay": "b"}}))


def test_offline_and_recording_exclude_each_other(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOFLOW_HTTP_OFFLINE", "true")
    with pytest.raises(
        InputError, match=r"http.offline \(AIOFLOW_HTTP_OFFLINE\) and http.record \(overrides\) exclude each"
    ):
        web_settings(read_configuration(overrides={"http": {"record": "a"}}))


def test_the_tables_are_declared_to_the_configuration() -> None:
    from aioflow.config.configuration import find_section, section_names

    assert {"http", "host"} <= set(section_names())
    assert (find_section("http"), find_section("host")) == (HTTP, HOST)
