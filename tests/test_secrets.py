"""Secrets by reference: where they are looked up, who may read them, and that they are not shown."""

import copy
import pickle
from pathlib import Path

import pytest

from aioflow.config import secrets
from aioflow.config.masking import mask
from aioflow.config.secrets import Secrets, references
from aioflow.errors import InputError


@pytest.fixture(autouse=True)
def _nothing_revealed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("AIOFLOW_SECRETS", raising=False)


def stored(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


# --- where they are -----------------------------------------------------------------------------


def test_a_secret_comes_from_the_environment() -> None:
    found = Secrets({"AIOFLOW_SECRET_TOKEN": "hunter2", "AIOFLOW_SECRET_HOMES_KEY": "k"})
    assert found.get("TOKEN").reveal() == "hunter2"
    assert found.get("secret:TOKEN").reveal() == "hunter2"
    assert found.get("homes-key").reveal() == "k"


def test_a_secret_comes_from_the_users_file(tmp_path: Path) -> None:
    stored(tmp_path / "config" / "aioflow" / "secrets.toml", 'TOKEN = "hunter2"\nhomes-key = "k"\n')
    found = Secrets({})
    assert found.get("TOKEN").reveal() == "hunter2"
    assert found.get("homes-key").reveal() == "k"


def test_a_variable_names_another_file_and_the_environment_wins(tmp_path: Path) -> None:
    stored(tmp_path / "config" / "aioflow" / "secrets.toml", 'TOKEN = "a"\nKEY = "a"\n')
    path = stored(tmp_path / "mine.toml", 'TOKEN = "b"\nKEY = "b"\n')
    found = Secrets({"AIOFLOW_SECRETS": str(path), "AIOFLOW_SECRET_KEY": "c"})
    assert (found.get("TOKEN").reveal(), found.get("KEY").reveal()) == ("b", "c")


def test_an_unknown_secret_says_how_to_set_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    stored(tmp_path / ".config" / "aioflow" / "secrets.toml", 'TOKENS = "a"\n')
    with pytest.raises(InputError) as caught:
        Secrets({}).get("TOKEN")
    assert str(caught.value) == (
        "there is no secret 'TOKEN'; did you mean 'TOKENS'? Or set the environment variable "
        'AIOFLOW_SECRET_TOKEN, or write TOKEN = "…" into ~/.config/aioflow/secrets.toml and chmod 600 it'
    )


@pytest.mark.parametrize("name", ["", "a b", "1st", "a.b", "../x", "TÖKEN", "A\nB"])
def test_names_are_checked(name: str) -> None:
    with pytest.raises(InputError, match="is no name of a secret: letters, digits, _ and -"):
        Secrets({}).get(name)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = stored(tmp_path / "mine.toml", 'TOKEN = "hunter2"\n', mode)
    with pytest.raises(InputError, match=r"others may read these secrets; say chmod 600 .*mine\.toml"):
        Secrets({"AIOFLOW_SECRETS": str(path)}).get("TOKEN")


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"there is no file .*none\.toml with secrets, which AIOFLOW_SECRETS"
    ):
        Secrets({"AIOFLOW_SECRETS": str(tmp_path / "none.toml")}).get("TOKEN")


@pytest.mark.parametrize("text", ['TOKEN = "hunter2', "hunter2", "TOKEN = hunter2", 'TOKEN = "\x00"'])
def test_a_file_that_is_not_toml_is_told_without_what_stands_in_it(tmp_path: Path, text: str) -> None:
    path = stored(tmp_path / "mine.toml", text)
    with pytest.raises(InputError, match=r'mine\.toml: not TOML; write NAME = "…"') as caught:
        Secrets({}, path).get("TOKEN")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("text", ["TOKEN = 3", 'TOKEN = ""', '[TOKEN]\nvalue = "x"'])
def test_a_value_must_be_a_text(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="TOKEN must be a text that is not empty"):
        Secrets({}, stored(tmp_path / "mine.toml", text)).get("TOKEN")


def test_the_file_is_not_read_while_the_environment_has_the_secret(tmp_path: Path) -> None:
    path = stored(tmp_path / "mine.toml", "", 0o644)
    assert Secrets({"AIOFLOW_SECRET_TOKEN": "x"}, path).get("TOKEN").reveal() == "x"


# --- how they are used --------------------------------------------------------------------------


def test_references_in_a_text_are_filled_in() -> None:
    found = Secrets({"AIOFLOW_SECRET_A": "1", "AIOFLOW_SECRET_B_C": "2"})
    assert found.fill_in("Bearer secret:A") == "Bearer 1"
    assert found.fill_in("secret:A:secret:b-c") == "1:2"
    assert found.fill_in("a top-secret:A and none") == "a top-secret:A and none"
    assert found.fill_in("nothing") == "nothing"
    assert list(references("x secret:A, secret:b-c")) == ["A", "b-c"]


@pytest.mark.parametrize("text", ["secret:", "secret:1x"])
def test_a_reference_without_a_name_is_a_mistake(text: str) -> None:
    with pytest.raises(InputError, match="is no name of a secret"):
        list(references(text))
    with pytest.raises(InputError, match="is no name of a secret"):
        Secrets({}).fill_in(text)


# --- that they are not shown --------------------------------------------------------------------


def test_a_secret_does_not_show_itself() -> None:
    secret = Secrets({"AIOFLOW_SECRET_TOKEN": "hunter2"}).get("TOKEN")
    assert (
        f"{secret} {secret!s} {secret!r} {[secret]}"
        == "secret:TOKEN secret:TOKEN Secret('TOKEN') [Secret('TOKEN')]"
    )
    for write in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="not written anywhere"):
            write(secret)


def test_what_was_revealed_is_masked_everywhere() -> None:
    found = Secrets({"AIOFLOW_SECRET_A": "hunter", "AIOFLOW_SECRET_B": "hunter 2/x", "AIOFLOW_SECRET_C": "c"})
    for name in ("A", "B"):
        found.get(name).reveal()
    found.get("C")
    assert mask("a hunter 2/x of hunters, c") == "a ******** of ********s, c"
    assert mask("?key=hunter%202%2Fx") == "?key=********"


def test_what_is_made_of_a_secret_can_be_masked_too() -> None:
    secrets.conceal("aHVudGVyMg==")
    assert mask("Basic aHVudGVyMg==") == "Basic ********"
