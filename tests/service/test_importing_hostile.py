"""Backups that are broken or hostile: a clear error, or a watch with a note."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from aioflow.errors import InputError
from aioflow.service.importing import backup_files
from aioflow.service.importing.changedetection import read_backup
from tests.service.backups import DATA, UUID, backup, packed

SETTINGS = json.dumps({"settings": {}})


def archive(folder: Path, **members: bytes | str) -> Path:
    path = folder / "backup.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return path


def test_a_backup_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no backup .*nowhere\.zip"):
        read_backup(tmp_path / "nowhere.zip")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a ZIP archive", b"\0" * 1000])
def test_a_file_that_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "backup.zip").write_bytes(content)
    with pytest.raises(InputError, match="is no ZIP archive"):
        read_backup(tmp_path / "backup.zip")


def test_an_archive_without_the_files_of_changedetection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"it has neither changedetection\.json nor url-watches\.json"):
        read_backup(archive(tmp_path, **{"readme.txt": "hello", "a/b/c/d/changedetection.json": SETTINGS}))


def test_a_backup_without_watches_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no watches"):
        read_backup(archive(tmp_path, **{"changedetection.json": SETTINGS}))


@pytest.mark.parametrize("content", ["{", "[1]", "null", b"\xff\xfe", "[" * 100_000, '{"a": 1e999999}x'])
def test_settings_that_are_no_json_object_are_refused(content: str | bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"changedetection.json in .* is not"):
        read_backup(archive(tmp_path, **{"changedetection.json": content}))


def test_a_broken_watch_has_a_note_and_the_others_are_read(tmp_path: Path) -> None:
    good = json.dumps({"url": "https://news.example/"})
    members = {"changedetection.json": SETTINGS, "u1/watch.json": '{"url": ', "u2/watch.json": good}
    broken, read = sorted(read_backup(archive(tmp_path, **members)), key=lambda each: each.uuid)
    assert broken.plan_text == ""
    assert broken.paused
    assert "u1/watch.json" in broken.notes[0]
    assert read.plan_text


@pytest.mark.parametrize(
    "name", ["../u1/watch.json", "/etc/watch.json", "u1/../../watch.json", "C:\\x\\watch.json"]
)
def test_a_member_that_leads_out_of_the_archive_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which leads out of it"):
        read_backup(archive(tmp_path, **{"changedetection.json": SETTINGS, name: "{}"}))


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_files, "LARGEST_FILE_BYTES", 1 << 20)
    bomb = archive(tmp_path, **{"changedetection.json": b" " * (2 << 20)})
    assert bomb.stat().st_size < 10_000
    with pytest.raises(InputError, match="is larger than 1,048,576 bytes when it is unpacked"):
        read_backup(bomb)


def test_files_that_unpack_to_more_than_the_limit_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_files, "MOST_BYTES", 1 << 20)
    watch = json.dumps({"url": "https://x.example/"}) + " " * (1 << 18)
    members = {f"u{number}/watch.json": watch for number in range(10)}
    with pytest.raises(InputError, match="when it is unpacked"):
        read_backup(archive(tmp_path, **{"changedetection.json": SETTINGS, **members}))


def test_more_watches_than_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_files, "MOST_WATCHES", 3)
    with pytest.raises(InputError, match="more than 3 watches"):
        read_backup(backup(tmp_path, *({"url": "https://x.example/"} for _ in range(5))))


def test_a_member_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "backup.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        target.writestr("changedetection.json", SETTINGS)
    path.write_bytes(path.read_bytes().replace(b'"settings"', b'"sittings"', 1))
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_backup(path)


def test_a_link_in_a_folder_that_leads_out_of_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(SETTINGS)
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "changedetection.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(InputError, match="leads out of the folder"):
        read_backup(tmp_path / "backup")


def test_a_data_folder_may_lie_in_a_folder_of_the_archive(tmp_path: Path) -> None:
    path = packed(DATA / "new", tmp_path / "backup.zip", inside="datastore/")
    assert read_backup(path) == read_backup(DATA / "new")


def test_a_folder_of_both_layouts_is_read_as_the_new_one(tmp_path: Path) -> None:
    watch = json.dumps({"url": "https://new.example/"})
    old = json.dumps({"watching": {"u9": {"url": "https://old.example/"}}})
    members = {"changedetection.json": SETTINGS, "url-watches.json": old, "u1/watch.json": watch}
    assert [each.name for each in read_backup(archive(tmp_path, **members))] == ["new-example"]


VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        1e308,
        "",
        "x",
        "{{",
        "${x}",
        '"',
        "\\",
        "\n",
        "\x00",
        "\ud800",
        "é" * 50,
        "/(/",
        "json:",
        "//",
    ),
    *(
        [],
        [[]],
        [None],
        {},
        {"a": {}},
        {"enabled": True},
        [{"a": 1}],
        ["", " "],
        {"weeks": 1e300},
        "mailto://",
        "a://[",
    ),
]

VALUES_OF_SETTINGS = [each for each in VALUES if each != "\ud800"]  # half a character is no JSON


def test_a_broken_group_has_a_note_in_its_watches(tmp_path: Path) -> None:
    watch = json.dumps({"url": "https://news.example/", "tags": ["t1"]})
    members = {"changedetection.json": SETTINGS, "t1/tag.json": "{", "u1/watch.json": watch}
    [found] = read_backup(archive(tmp_path, **members))
    assert found.plan_text
    assert "Its group was left out: t1/tag.json" in " ".join(found.notes)


@pytest.mark.parametrize("seed", range(6))
def test_values_of_any_type_in_any_setting_never_raise_anything_else(seed: int, tmp_path: Path) -> None:
    """The keys are those of real watches, groups and settings; some of their values are replaced."""
    chance = random.Random(seed)
    template = json.loads(next((DATA / "new").glob("3a79*/watch.json")).read_text())
    settings = json.loads((DATA / "new" / "changedetection.json").read_text())
    keys = [*template, "css_filter", "minutes_between_check", "extract_lines_containing", "tag"]
    watches = [
        {**template, **{key: chance.choice(VALUES) for key in chance.sample(keys, 12)}} for _ in range(25)
    ]
    for level in ("application", "requests"):
        for key in chance.sample(list(settings["settings"][level]), 4):
            settings["settings"][level][key] = chance.choice(VALUES_OF_SETTINGS)
    tag = {key: chance.choice(VALUES) for key in chance.sample(keys, 20)}
    members = {f"{UUID.format(number)}/watch.json": json.dumps(each) for number, each in enumerate(watches)}
    members |= {
        "changedetection.json": json.dumps(settings),
        f"{template['tags'][0]}/tag.json": json.dumps(tag),
    }
    found = read_backup(archive(tmp_path, **members))
    assert len(found) == len(watches)
    assert len({each.name for each in found}) == len(found)


@pytest.mark.parametrize(
    "watch",
    [
        {"url": "https://evil.example/", "headers": {"X-Data": "secret:BANK"}},
        {"url": "https://evil.example/", "headers": {"X-Data": "my secret:BANK !"}},
        {"url": "https://evil.example/", "headers": {"Cookie": "secret:BANK"}},
        {"url": "https://secret%3ABANK:x@evil.example/"},
    ],
)
def test_a_watch_does_not_refer_to_a_secret_of_this_machine(watch: dict[str, Any], tmp_path: Path) -> None:
    (found,) = read_backup(backup(tmp_path, watch))
    assert "BANK" not in found.plan_text
    assert found.paused
    assert any("the name of a secret" in note for note in found.notes)


def test_a_server_of_mail_is_the_name_of_a_host(tmp_path: Path) -> None:
    url = "mailto://user:word@example.org?to=a@example.org&smtp=secret:BANK"
    (found,) = read_backup(backup(tmp_path, {"url": "https://a.example/", "notification_urls": [url]}))
    assert "BANK" not in found.settings
    assert any("no address that mail can be sent to" in note for note in found.notes)


def test_a_long_path_is_no_burden(tmp_path: Path) -> None:
    watch = {"url": "https://a.example/", "include_filters": [f"json:{'a' * 60}[*]", "json:$.a.b[0]"]}
    (found,) = read_backup(backup(tmp_path, watch))  # it would go on for years
    assert f"{'a' * 60}[*]" in found.plan_text
