"""Settings: layers, types, tables, mistakes; what `aioflow.config.configuration` promises to services."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from aioflow.config import configuration as reading
from aioflow.config.configuration import Configuration, as_configuration, read_configuration
from aioflow.config.sections import MODES, Section, SettingValue, at_least
from aioflow.errors import InputError
from aioflow.runtime.session import MODES as ENGINE_MODES


@dataclass(frozen=True)
class Kitchen:
    """A table with a key of every type."""

    name: str = "kitchen"
    chef: str | None = None
    heat: float | None = None
    plates: int = 4
    open: bool = True
    dishes: tuple[str, ...] = ()
    wait_seconds: float = 10.0
    oven_bytes: int = 1024
    shelf_rows: int = 10
    log: bool | Path = False
    book: Path | None = None
    style: Literal["plain", "fine"] = "plain"


@dataclass(frozen=True)
class Guest:
    """A table of a named section."""

    seats: int | None = None
    password: str | None = None
    wishes: Mapping[str, str] = field(default_factory=dict)
    from_: str | None = None


def guest_name(text: str) -> str:
    if " " in text:
        raise InputError("a guest has one name")
    return text.lower()


KITCHEN = Section("kitchen", Kitchen, refine={"plates": at_least(1, "a whole number")})
GUEST = Section("guest", Guest, named=True, read_name=guest_name)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which packages have declared two tables."""
    for variable in list(os.environ):
        if variable.startswith("AIOFLOW_"):
            monkeypatch.delenv(variable)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    sections: dict[str, Section[Any]] = {"kitchen": KITCHEN, "guest": GUEST}
    monkeypatch.setattr(reading, "section_names", lambda: tuple(sections))
    monkeypatch.setattr(reading, "find_section", sections.__getitem__)
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_key_may_be_called_like_a_keyword_of_python(here: Path) -> None:
    write(here / "aioflow.toml", '[guest.ada]\nfrom = "London"\n')
    found = read_configuration()
    assert found.sections(GUEST) == {"ada": Guest(from_="London")}
    assert found["guest"] == {"ada": {"from": "London"}}


def test_a_password_in_an_address_is_not_repeated(here: Path) -> None:
    write(here / "aioflow.toml", '[kitchen]\nstyle = "smtp://ann:pepper@host"\n')
    with pytest.raises(InputError, match=r"one of plain, fine, not 'smtp://.*@host'") as caught:
        read_configuration()
    assert "pepper" not in str(caught.value)


# --- layers -------------------------------------------------------------------------------------


def test_nothing_set_leaves_everything_to_the_defaults() -> None:
    found = read_configuration()
    assert dict(found) == {}
    assert found.engine_arguments() == {}
    assert found.section(KITCHEN) == Kitchen()
    assert found.sections(GUEST) == {}
    assert found.where("kitchen", "plates") == "default"


def test_the_first_layer_that_sets_a_key_wins(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ("name", "chef", "heat", "plates", "open", "style")
    write(
        tmp_path / "config" / "aioflow" / "aioflow.toml",
        '[kitchen]\nname = "6"\nchef = "6"\nheat = 6\nplates = 6\nwait_seconds = 6\nstyle = "fine"\n',
    )
    write(
        here / "pyproject.toml",
        '[tool.aioflow.kitchen]\nname = "5"\nchef = "5"\nheat = 5\nplates = 5\nwait_seconds = 5\n',
    )
    write(here / "plans" / "aioflow.toml", '[kitchen]\nname = "4"\nchef = "4"\nheat = 4\nplates = 4\n')
    write(here / "aioflow.toml", '[kitchen]\nname = "3"\nchef = "3"\nheat = 3\n')
    monkeypatch.setenv("AIOFLOW_KITCHEN_NAME", "2")
    monkeypatch.setenv("AIOFLOW_KITCHEN_CHEF", "2")
    found = read_configuration("plans", {"kitchen": {"name": "1", "open": None}})
    assert found.section(KITCHEN) == Kitchen(
        name="1", chef="2", heat=3.0, plates=4, wait_seconds=5.0, style="fine"
    )
    assert {key: found.where("kitchen", key) for key in (*keys, "wait_seconds")} == {
        "name": "overrides",
        "chef": "AIOFLOW_KITCHEN_CHEF",
        "heat": "aioflow.toml",
        "plates": "plans/aioflow.toml",
        "wait_seconds": "pyproject.toml [tool.aioflow]",
        "style": str(tmp_path / "config" / "aioflow" / "aioflow.toml"),
        "open": "default",
    }


def test_the_users_file_is_shown_below_the_home(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / "home" / ".config" / "aioflow" / "aioflow.toml", "workers = 2\n")
    assert read_configuration().where("workers") == "~/.config/aioflow/aioflow.toml"


def test_a_plan_in_the_current_folder_has_no_second_file(here: Path) -> None:
    write(here / "aioflow.toml", 'ops = ["mine"]\n')
    found = read_configuration(here)
    assert found.ops == ("mine",)
    assert found.where("ops") == "aioflow.toml"


def test_tables_of_several_files_are_merged_key_by_key(here: Path) -> None:
    write(here / "aioflow.toml", '[guest.Ann]\nseats = 2\nwishes = {drink = "tea"}\n')
    write(
        here / "pyproject.toml",
        '[tool.aioflow.guest.ann]\nseats = 9\npassword = "secret:ANN"\n'
        'wishes = {drink = "beer", seat = "window"}\n'
        "[tool.aioflow.guest.bob]\nseats = 1\n",
    )
    assert read_configuration().sections(GUEST) == {
        "ann": Guest(2, "secret:ANN", {"drink": "tea", "seat": "window"}),
        "bob": Guest(1),
    }


def test_a_list_replaces_another_except_that_ops_come_from_everywhere(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(here / "aioflow.toml", 'ops = ["files", "shared"]\n[kitchen]\ndishes = ["soup"]\n')
    monkeypatch.setenv("AIOFLOW_OPS", "environment, shared")
    monkeypatch.setenv("AIOFLOW_KITCHEN_DISHES", "rice, fish")
    found = read_configuration(overrides={"ops": ["mine"]})
    assert found.ops == ("mine", "environment", "shared", "files")
    assert found.where("ops") == "overrides, AIOFLOW_OPS, aioflow.toml"
    assert found.section(KITCHEN).dishes == ("rice", "fish")


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("plates = 3", {"plates": 3}),
        ("heat = 3", {"heat": 3.0}),
        ("open = false", {"open": False}),
        ('dishes = "soup, with bread"', {"dishes": ("soup, with bread",)}),
        ('dishes = ["soup", "rice"]', {"dishes": ("soup", "rice")}),
        ("wait_seconds = 3", {"wait_seconds": 3.0}),
        ('wait_seconds = "1m30s"', {"wait_seconds": 90.0}),
        ('wait_seconds = "0s"', {"wait_seconds": 0.0}),
        ('oven_bytes = "2KiB"', {"oven_bytes": 2048}),
        ("oven_bytes = 7", {"oven_bytes": 7}),
        ("log = true", {"log": True}),
        ('chef = ""', {"chef": None}),
        ('style = "fine"', {"style": "fine"}),
    ],
)
def test_values_of_a_file(here: Path, written: str, expected: dict[str, Any]) -> None:
    write(here / "aioflow.toml", f"[kitchen]\n{written}\n")
    assert read_configuration().section(KITCHEN) == Kitchen(**expected)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("plates", "3", 3),
        ("heat", "2.5", 2.5),
        ("open", "no", False),
        ("open", "TRUE", True),
        ("log", "1", True),
        ("dishes", "soup,rice,", ("soup", "rice")),
        ("wait_seconds", "30s", 30.0),
        ("wait_seconds", "30", 30.0),
        ("oven_bytes", "1MB", 1_000_000),
        ("name", "3", "3"),
    ],
)
def test_values_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, key: str, text: str, expected: object
) -> None:
    monkeypatch.setenv(f"AIOFLOW_KITCHEN_{key.upper()}", text)
    assert getattr(read_configuration().section(KITCHEN), key) == expected


def test_an_empty_variable_sets_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here / "aioflow.toml", '[kitchen]\nchef = "Ann"\n')
    monkeypatch.setenv("AIOFLOW_KITCHEN_CHEF", "")
    assert read_configuration().section(KITCHEN).chef == "Ann"


def test_a_path_is_relative_to_the_file_that_names_it(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    write(tmp_path / "plans" / "aioflow.toml", '[kitchen]\nbook = "recipes"\nlog = "~/log"\n')
    found = read_configuration(tmp_path / "plans").section(KITCHEN)
    assert (found.book, found.log) == (tmp_path / "plans" / "recipes", Path("/home/ann/log"))
    monkeypatch.setenv("AIOFLOW_KITCHEN_BOOK", "mine")
    assert read_configuration().section(KITCHEN).book == here / "mine"


def test_what_the_engine_takes(here: Path) -> None:
    text = 'workers = 2\ncapacity = 3\nmemory = "2MB"\nmax_depth = 40\nmode = "d+s-"\n'
    write(here / "aioflow.toml", text)
    assert read_configuration().engine_arguments() == {
        "workers": 2,
        "capacity_rows": 3,
        "memory_bytes": 2_000_000,
        "max_depth": 40,
        "mode": "D+S-",
    }


def test_the_modes_are_those_of_the_engine() -> None:
    assert sorted(MODES) == sorted(ENGINE_MODES)


# --- mistakes -----------------------------------------------------------------------------------

MISTAKES = {
    "worker = 2": "unknown setting 'worker'; did you mean 'workers'?",
    "[kitchn]\nplates = 2": "unknown setting 'kitchn'; did you mean 'kitchen'?",
    "[kitchen]\nplate = 2": "unknown setting 'kitchen.plate'; did you mean 'plates'?",
    "[kitchen]\nwait = 2": "unknown setting 'kitchen.wait'; did you mean 'wait_seconds'?",
    "[kitchen]\nshelf = 2": "unknown setting 'kitchen.shelf'; did you mean 'shelf_rows'?",
    "workers = 0": "workers must be a whole number of at least 1, not 0",
    "workers = true": "workers must be a whole number, not true",
    "workers = 2.5": "workers must be a whole number, not 2.5",
    "workers = '2'": "workers must be a whole number, not '2'",
    "ops = [1]": "ops must be a list of texts, not [1]",
    "memory = 'much'": "memory must be a number of bytes or a text like '32MiB', not 'much'",
    "mode = 'fast'": "mode must be one of D-, D+S-, D+S+, not 'fast'",
    "kitchen = 3": "kitchen must be a table, not 3",
    "guest = {ann = 3}": "guest.ann must be a table, not 3",
    r'ops = ["a", "b\u0000c"]': (
        r"ops must be a list of texts, without the character NUL, not ['a', 'b\x00c']"
    ),
    r'kitchen.log = "a\u0000b"': (
        r"kitchen.log must be true or false, or a path, without the character NUL, not 'a\x00b'"
    ),
    "[kitchen]\nplates = 0": "kitchen.plates must be a whole number of at least 1, not 0",
    "[kitchen]\nheat = 'hot'": "kitchen.heat must be a number, not 'hot'",
    "[kitchen]\nheat = inf": "kitchen.heat must be a number, not inf",
    "[kitchen]\nopen = 1": "kitchen.open must be true or false, not 1",
    "[kitchen]\nname = 1": "kitchen.name must be a text, not 1",
    "[kitchen]\nlog = 3": "kitchen.log must be true or false, or a path, not 3",
    "[kitchen]\nstyle = 'x'": "kitchen.style must be one of plain, fine, not 'x'",
    "[kitchen]\nwait_seconds = 'long'": (
        "kitchen.wait_seconds must be a number of seconds or a text like '30s', not 'long'"
    ),
    "[guest.ann]\nwishes = {tea = 3}": "guest.ann.wishes.tea must be a text, not 3",
    "[guest.ann]\nwishes = 'tea'": "guest.ann.wishes must be a table, not 'tea'",
    "[guest.'ann.b']\nseat = 3": "unknown setting 'guest.\"ann.b\".seat'; did you mean 'seats'?",
    "[guest.ann]\npassword = 3": "guest.ann.password must be a text",
    "[guest.'ann b']\nseats = 3": "[guest.'ann b']: a guest has one name",
    "[guest.ann.example.org]\nseats = 3": ('a name with dots stands in quotes: [guest."ann.example.org"]'),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_a_file_names_file_and_key(here: Path, text: str) -> None:
    write(here / "aioflow.toml", text)
    with pytest.raises(InputError) as caught:
        read_configuration()
    assert str(caught.value) == f"aioflow.toml: {MISTAKES[text]}"


def test_a_file_that_is_not_toml_is_told(here: Path) -> None:
    write(here / "aioflow.toml", "workers = ")
    with pytest.raises(InputError, match=r"^aioflow.toml: Invalid value"):
        read_configuration()


def test_a_file_in_another_encoding_is_told_with_the_line(here: Path) -> None:
    (here / "aioflow.toml").write_bytes("workers = 2\n# für alle\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"^aioflow.toml: line 2 is not in UTF-8"):
        read_configuration()


def test_a_file_may_begin_with_a_byte_order_mark(here: Path) -> None:
    (here / "aioflow.toml").write_text("workers = 2", encoding="utf-8-sig")
    assert read_configuration()["workers"] == 2


@pytest.mark.parametrize(
    ("text", "expected"), [("yes", True), ("On", True), ("no", False), ("off", False), ("false", False)]
)
def test_a_word_for_true_or_false_is_no_path(here: Path, text: str, expected: bool) -> None:
    write(here / "aioflow.toml", f"[kitchen]\nlog = '{text}'\nbook = '{text}'")
    assert read_configuration()["kitchen"] == {"log": expected, "book": here / text}
    write(here / "aioflow.toml", f"[kitchen]\nlog = './{text}'")
    assert read_configuration()["kitchen"] == {"log": here / text}


def test_a_file_that_cannot_be_read_is_told(here: Path) -> None:
    (here / "aioflow.toml").mkdir()
    with pytest.raises(InputError, match=r"cannot read configuration: is a directory: 'aioflow.toml'"):
        read_configuration()


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("AIOFLOW_WORKERS", "many", "workers must be a whole number, not 'many'"),
        ("AIOFLOW_KITCHEN_HEAT", "hot", "kitchen.heat must be a number, not 'hot'"),
        ("AIOFLOW_KITCHEN_HEET", "1", "unknown setting 'kitchen.heet'; did you mean 'heat'?"),
        ("AIOFLOW_WORKRES", "1", "unknown setting; did you mean 'AIOFLOW_WORKERS'?"),
        ("AIOFLOW_KITHEN_HEAT", "1", "unknown setting; did you mean 'AIOFLOW_KITCHEN_HEAT'?"),
        ("AIOFLOW_HEAT", "1", "unknown setting; did you mean 'AIOFLOW_KITCHEN_HEAT'?"),
        ("AIOFLOW_GUEST_ANN_SEATS", "x", "guest.ann.seats must be a whole number, not 'x'"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, message: str
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(InputError) as caught:
        read_configuration()
    assert str(caught.value) == f"{variable}: {message}"


def test_the_environment_sets_named_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOFLOW_GUEST_ANN_SEATS", "3")
    found = read_configuration()
    assert found["guest"] == {"ann": {"seats": 3}}
    assert found.where("guest", "ann", "seats") == "AIOFLOW_GUEST_ANN_SEATS"


def test_other_variables_of_aioflow_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIOFLOW_DEBUG", "AIOFLOW_SECRET_KITCHEN", "AIOFLOW_SECRETS", "AIOFLOW_OF_OTHERS"):
        monkeypatch.setenv(name, "1")
    assert dict(read_configuration()) == {}


# --- as a value ---------------------------------------------------------------------------------


def test_a_configuration_is_a_mapping_of_what_was_set() -> None:
    tables = {"workers": 2, "kitchen": {"plates": 3}, "guest": {"ann": {"wishes": {"drink": "tea"}}}}
    found = as_configuration(tables)
    assert dict(found) == tables
    assert len(found) == 3
    assert "mode" not in found
    assert as_configuration(found) is found


def test_plain_tables_are_checked_like_files() -> None:
    with pytest.raises(
        InputError, match=r"^configuration: kitchen.plates must be a whole number, not 'two'$"
    ):
        as_configuration({"kitchen": {"plates": "two"}})


def test_all_settings_are_listed_with_their_defaults() -> None:
    found = as_configuration({"kitchen": {"plates": 3}, "guest": {"ann": {"seats": 2}}})
    listed = {setting.name: (str(setting), setting.where) for setting in found.settings()}
    assert listed["kitchen.plates"] == ("3", "configuration")
    assert listed["kitchen.wait_seconds"] == ("10 s", "default")
    assert listed["kitchen.oven_bytes"] == ("1 KiB", "default")
    assert listed["kitchen.dishes"] == ("-", "default")
    assert listed["guest.ann.seats"] == ("2", "configuration")
    assert listed["guest.ann.wishes"] == ("-", "default")


def test_credentials_are_not_shown() -> None:
    found = as_configuration(
        {
            "kitchen": {"name": "https://ann:hunter2@example.org/"},
            "guest": {"ann": {"password": "hunter2", "wishes": {"X-Token": "hunter2"}}},
        }
    )
    shown = [str(setting) for setting in found.settings()] + [repr(found)]
    assert "hunter2" not in "".join(shown)
    assert "https://********@example.org/" in shown
    assert str(Configuration()) == "Configuration()"


def test_addresses_in_lists_are_shown_without_their_passwords() -> None:
    urls = ("json://ann:tea@host/a", "json://host/b")
    shown = str(SettingValue(("database", "main", "url"), urls, "here"))
    assert shown == "json://********@host/a, json://host/b"


def test_addresses_of_chats_show_their_schemes_only() -> None:
    shown = str(SettingValue(("notify", "team", "url"), ("slack://A/B/C", "secret:TEAM"), "here"))
    assert shown == "slack://********, secret:TEAM"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:p/tea@host/db", "postgresql://********@host/db"),
        ("postgresql://ann:p@tea@host/db", "postgresql://********@host/db"),
        (
            "postgresql://ann@host/db?a=1&sslpassword=tea&b=2",
            "postgresql://********@host/db?a=1&sslpassword=********&b=2",
        ),
        ("json://host/a?Token=tea", "json://host/a?Token=********"),
        ("json://host/a?token=secret:TEA", "json://host/a?token=secret:TEA"),
    ],
)
def test_addresses_are_shown_without_what_may_be_a_credential(url: str, shown: str) -> None:
    assert str(SettingValue(("database", "main", "url"), url, "here")) == shown
