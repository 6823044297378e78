"""Watches of changedetection.io as plans: their text, schedules, accounts and notes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, loads
from aioflow.service.importing.changedetection import read_backup
from aioflow.service.importing.imported import ImportedWatch
from aioflow.service.schedules.schedule import parse_schedule
from tests.service.backups import DATA, backup, old_backup, packed

MAIL = "mailtos://ann:pw-in-backup@mail.example.org?to=ann@example.org&from=watch@example.org"
PAGE = "https://news.example/town"


def only(path: Path) -> ImportedWatch:
    [watch] = read_backup(path)
    return watch


def checked(watch: ImportedWatch) -> str:
    """Return the plan of a watch, after a check of plan, schedule and settings."""
    with_accounts = Engine(configuration=tomllib.loads(watch.settings))
    assert [str(each) for each in with_accounts.check(loads(watch.plan_text, f"{watch.name}.plan"))] == []
    parse_schedule(watch.schedule, watch.zone or "UTC")
    return watch.plan_text


@pytest.mark.parametrize("layout", ["new", "old"])
def test_a_backup_of_changedetection_itself_becomes_plans(layout: str, tmp_path: Path) -> None:
    watches = {each.name: each for each in read_backup(packed(DATA / layout, tmp_path / "backup.zip"))}
    assert list(watches) == ["api-example-state", "lamp", "shop-example-chair", "town-news"]
    assert read_backup(DATA / layout) == list(watches.values())
    news, lamp = watches["town-news"], watches["lamp"]
    assert (news.schedule, news.paused, lamp.schedule, lamp.tags) == (
        "every 1h30m",
        False,
        "every 3h",
        ("Shops",),
    )
    assert 'line: "#news li"' in checked(news)
    assert "last update" in news.plan_text
    assert 'to="ann@example.org"' in news.plan_text
    assert 'excluded: "nav, footer"' in checked(lamp)
    assert "cookies" in lamp.plan_text
    assert "notify (" in lamp.plan_text
    assert watches["shop-example-chair"].paused
    assert "price:" in checked(watches["shop-example-chair"])
    assert "TYPE: semi" in checked(watches["api-example-state"])


@pytest.mark.parametrize("layout", ["new", "old"])
def test_no_credential_of_a_backup_stands_in_a_plan_or_in_settings(layout: str) -> None:
    for watch in read_backup(DATA / layout):
        shown = f"{watch.plan_text} {watch.settings} {watch.notes} {watch!r}"
        for credential in ("pw-in-backup", "tok-in-backup", "hooktoken"):
            assert credential not in shown
    values = {each.name: each.value for watch in read_backup(DATA / layout) for each in watch.secrets}
    assert values == {
        "LAMP_AUTHORIZATION": "Bearer tok-in-backup",
        "MAIL_MAIL_EXAMPLE_ORG": "pw-in-backup",
        "NOTIFY_DISCORD": "discord://hookid/hooktoken",
    }


@pytest.mark.parametrize("make", [backup, old_backup])
def test_both_layouts_mean_the_same(make: Any, tmp_path: Path) -> None:
    tags = {"t1": {"title": "Shops", "notification_urls": [MAIL], "include_filters": [".price"]}}
    watch = only(make(tmp_path, {"url": PAGE, "tags": ["t1"], "include_filters": ["h1"]}, tags=tags))
    assert 'line: "h1, .price"' in checked(watch)
    assert "email (" in watch.plan_text


@pytest.mark.parametrize(
    ("watch", "line"),
    [
        ({}, 'line: "title, body" raw join "\\n" split "\\n" required'),
        ({"include_filters": ["#a", ".b li"]}, 'line: "#a, .b li" raw'),
        ({"include_filters": ["xpath://h1/text()"]}, 'line: "//h1/text()" raw'),
        ({"include_filters": ["/html/body/p"]}, 'line: "/html/body/p" raw'),
        ({"include_filters": ["xpath1:string(//h1)"]}, 'line: "(string(//h1))" raw'),
        ({"include_filters": ["json:$.price"]}, 'value: "$.price"'),
        ({"include_filters": ["json:$.items[*].name"]}, 'line: "$.items[*].name" char all'),
        ({"include_filters": ["jq:.items[].name"]}, 'line: "$.items[*].name" char all'),
        ({"css_filter": "#old"}, 'line: "#old" raw'),
        ({"subtractive_selectors": ["nav", ".ads"]}, 'excluded: "nav, .ads" raw'),
        ({"url": f"source:{PAGE}"}, "READ: text lines"),
        ({"content-type": "application/rss+xml"}, 'EACH: "//item | //entry"'),
        ({"processor": "restock_diff"}, "availability:"),
        (
            {"ignore_text": ["Cookies", "/v[0-9]+/"]},
            "contains(lower(line), 'cookies') or line matches '(?i)v[0-9]+'",
        ),
        ({"ignore_text": ["it's ${x} {y}"]}, "contains(lower(line), 'it''s $${x} {y}')"),
        ({"extract_text": [r"/(\d+) EUR/"]}, r"regexp_extract(line, '(?i)(\d+) EUR') as line"),
        ({"extract_lines_containing": ["EUR"]}, "contains(lower(line), 'eur')"),
        ({"trigger_text": ["sold"]}, 'join (new, triggers, "true" : new-triggered) {TYPE: semi}'),
        ({"text_should_not_be_present": ["sold"]}, "{TYPE: anti}"),
        (
            {"filter_text_removed": False},
            'diff (lines, "news-example-town" : new) {GUARD: off}'.replace("-", "_"),
        ),
        ({"method": "POST", "body": '{"q": "a"}'}, """BODY: '{"q": "a"}'"""),
        ({"headers": {"Accept-Language": "de"}}, 'HEADERS: Accept-Language = "de"'),
        ({"url": "https://me:pw@news.example/x"}, 'AUTH: basic "me" "secret:NEWS_EXAMPLE_X_PASSWORD"'),
        ({"url": "https://news.example/a b{c}?q=ü#top"}, 'GET: "https://news.example/a%20b%7Bc%7D?q=%C3%BC"'),
        ({"title": "Select"}, "PLAN watch-select"),
        ({"notification_muted": True}, "OUTPUT: new, gone"),
        ({"notification_title": "{{watch_title}} moved", "title": "Town"}, 'subject="Town moved"'),
        ({"notification_body": "See {{watch_url}}:\n{{diff}}"}, 'BODY: """See https://news.example/town:\n'),
    ],
)
def test_a_setting_becomes_a_part_of_the_plan(watch: dict[str, Any], line: str, tmp_path: Path) -> None:
    found = only(backup(tmp_path, {"url": PAGE, **watch}, notification_urls=[MAIL]))
    assert line in checked(found)


def test_filters_of_several_kinds_become_wrappers_of_one_plan(tmp_path: Path) -> None:
    filters = ["h1", "xpath://p", "json:$.a", "json:$..b"]
    watch = only(
        backup(tmp_path, {"url": PAGE, "include_filters": filters}, notification_urls=[MAIL, "json://a"])
    )
    plan = checked(watch)
    assert plan.count("WRAPPER") == 4
    assert "union (lines, lines-2, lines-4 : all-lines)" in plan


@pytest.mark.parametrize(
    ("watch", "note", "has_plan"),
    [
        ({"fetch_backend": "html_webdriver"}, "fetched by a browser", True),
        ({"browser_steps": [{"operation": "Click"}]}, "browser steps", True),
        ({"include_filters": ["jq:.a | map(.b)"]}, "jq is a language of its own", True),
        ({"include_filters": ["li..x"]}, "The filter 'li..x' cannot be taken over", True),
        ({"processor": "image_ssim_diff"}, "does not compare screenshots", False),
        ({"content-type": "application/pdf"}, "does not compare PDF documents", False),
        ({"url": "file:///etc/passwd"}, "is no http or https address", False),
        ({"url": "https://x.example/{% now 'utc' %}"}, "has a template in it", False),
        ({"url": None}, "is no http or https address", False),
        ({"url": ["https://x.example"]}, "The setting url is no text", False),
        ({"url": "https://x.example/?api_key=abc"}, "api_key=, which looks like a credential", True),
        ({"method": "POST", "body": "password=abc"}, "The body of the request was left out", True),
    ],
)
def test_a_watch_that_cannot_be_taken_over_as_it_is_says_why_and_is_paused(
    watch: dict[str, Any], note: str, has_plan: bool, tmp_path: Path
) -> None:
    found = only(backup(tmp_path, {"url": PAGE, **watch}, notification_urls=[MAIL]))
    assert note in " ".join(found.notes)
    assert found.paused
    assert bool(found.plan_text) == has_plan
    assert "abc" not in found.plan_text
    if has_plan:
        checked(found)


@pytest.mark.parametrize(
    ("watch", "note"),
    [
        ({"ignore_text": ["/(?=x)/"]}, "The rule '/(?=x)/' of ignore_text was left out"),
        ({"ignore_text": ["/a.*b/s"]}, "goes over several lines"),
        ({"notification_body": "{{ current_snapshot }}"}, "The template for the text"),
        ({"notification_urls": ["posts://x.example"]}, "an invention of changedetection.io"),
        ({"proxy": "ui-1"}, "Its proxy was left out"),
        ({"url": "http://192.168.1.7:8080/x"}, "The host 192.168.1.7 is private: add it to `allow`"),
        ({"url": "http://printer.local/"}, "The host printer.local is private"),
        ({"conditions": [{"field": "x"}]}, "Its conditions were left out"),
        ({"headers": {"Host": "x"}}, "The header 'Host' was left out"),
        ({"ignore_text": [1, "a"]}, "ignore_text has a value that is no text"),
        ({"headers": {"X-A": {}}}, "The header X-A has a value that is no text"),
    ],
)
def test_a_part_that_is_left_out_is_named_in_a_note(watch: dict[str, Any], note: str, tmp_path: Path) -> None:
    found = only(backup(tmp_path, {"url": PAGE, **watch}, notification_urls=[MAIL]))
    assert note in " ".join(found.notes)
    assert not found.paused
    checked(found)


@pytest.mark.parametrize(
    ("watch", "schedule"),
    [
        ({"time_between_check": {"days": 1, "minutes": 5}}, "every 1d5m"),
        ({"time_between_check": {"days": 1}, "time_between_check_use_default": True}, "every 2h"),
        ({"time_between_check": {"weeks": None, "hours": 0}}, "every 2h"),
        ({"minutes_between_check": 30}, "every 30m"),
        ({"time_between_check": {"hours": "x"}}, "every 2h"),
        ({"time_between_check": 7.5}, "every 7m"),
    ],
)
def test_the_time_between_checks_is_the_interval(
    watch: dict[str, Any], schedule: str, tmp_path: Path
) -> None:
    path = backup(tmp_path, {"url": PAGE, **watch}, requests={"time_between_check": {"hours": 2}})
    assert only(path).schedule == schedule


def hours(start: str, length: str, *, days: str = "monday tuesday") -> dict[str, Any]:
    every = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    day = {"start_time": start, "duration": {"hours": length, "minutes": "00"}}
    return {name: {**day, "enabled": name in days.split()} for name in every} | {"enabled": True}


@pytest.mark.parametrize(
    ("minutes", "limit", "schedule"),
    [
        (30, hours("09:00", "8"), "*/30 9-16 * * 1,2"),
        (60, hours("00:00", "24"), "0 * * * 1,2"),
        (120, hours("08:00", "10", days="sunday"), "0 8-17/2 * * 0"),
        (1440, hours("08:00", "10"), "0 8 * * 1,2"),
        (7, hours("08:00", "10"), "every 7m"),
        (30, hours("08:30", "10"), "every 30m"),
        (30, hours("20:00", "10"), "every 30m"),
        (30, {"enabled": False, **{}}, "every 30m"),
    ],
)
def test_hours_of_the_week_become_a_cron_line_if_one_can_say_them(
    minutes: int, limit: dict[str, Any], schedule: str, tmp_path: Path
) -> None:
    watch = {"url": PAGE, "time_between_check": {"minutes": minutes}, "time_schedule_limit": limit}
    found = only(backup(tmp_path, watch, scheduler_timezone_default="Europe/Berlin"))
    assert found.schedule == schedule
    assert found.zone == (None if schedule.startswith("every") else "Europe/Berlin")
    is_limited = limit["enabled"] and schedule.startswith("every")
    assert is_limited == any("limited to hours" in note for note in found.notes)


@pytest.mark.parametrize(
    ("url", "account", "to"),
    [
        (
            "mailto://ann:pw@gmail.com",
            {"url": "smtp://ann%40gmail.com@smtp.gmail.com:587", "from": "ann@gmail.com"},
            "ann@gmail.com",
        ),
        (
            "mailtos://a%40x.org:pw@mail.x.org:465?mode=ssl&to=b@x.org",
            {"url": "smtps://a%40x.org@mail.x.org:465", "from": "a@x.org"},
            "b@x.org",
        ),
        (
            "mailto://localhost:2525/b@x.org?from=Watch%20%3Cw@x.org%3E",
            {"url": "smtp+insecure://localhost:2525", "from": "Watch <w@x.org>"},
            "b@x.org",
        ),
        (
            "mailto://x.org?smtp=out.x.org&user=u&pass=pw&from=w@x.org&to=b@x.org,c@x.org",
            {"url": "smtp://u@out.x.org:587", "from": "w@x.org"},
            "b@x.org, c@x.org",
        ),
    ],
)
def test_a_mailto_url_becomes_a_mail_account(
    url: str, account: dict[str, str], to: str, tmp_path: Path
) -> None:
    watch = only(backup(tmp_path, {"url": PAGE, "notification_urls": [url]}))
    [settings] = tomllib.loads(watch.settings)["email"].values()
    assert {key: settings[key] for key in ("url", "from")} == account
    assert settings.get("password", "secret:").startswith("secret:")
    assert f'to="{to}"' in checked(watch)


def test_names_are_unique_and_can_stand_in_plans(tmp_path: Path) -> None:
    titles = ["News", "news!", "", "", "Zürich: Häuser", "日本", "12 houses", "diff", "x" * 300]
    watches = read_backup(backup(tmp_path, *({"url": PAGE, "title": title} for title in titles)))
    assert [each.name for each in watches] == [
        *("news", "news-2", "news-example-town", "news-example-town-2", "news-example-town-3"),
        *("watch-12-houses", "watch-diff", "x" * 48, "zurich-hauser"),
    ]
    for watch in watches:
        checked(watch)
