"""Readers by name: registered ones, those of installed packages, and clear errors for all others."""

import gc
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from aioflow.errors import SettingError
from aioflow.wrappers import Extraction, compiled, reader, reader_names, register_reader
from aioflow.wrappers.definition import IdentityCache
from aioflow.wrappers.readers.reader import forget_reader
from tests.wrappers.tiny_reader import TinyReader, tiny_reader  # noqa: F401  # registers it for each test

INSTALLED = TinyReader
NOT_A_READER = 42


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    def entry_points(group: str) -> list[EntryPoint]:
        assert group == "aioflow.readers"
        names = {"Extra": "INSTALLED", "wrong": "NOT_A_READER", "missing": "nowhere"}
        return [EntryPoint(name, f"{__name__}:{value}", group) for name, value in names.items()]

    monkeypatch.setattr("aioflow.wrappers.readers.reader.installed", entry_points)
    yield
    forget_reader("extra")


def test_a_registered_reader_is_found_in_any_case() -> None:
    assert isinstance(reader("TINY"), TinyReader)
    assert reader("tiny") is reader("Tiny")


def test_a_reader_may_be_registered_as_a_class_and_under_another_name() -> None:
    register_reader(TinyReader, "other")
    try:
        assert isinstance(reader("other"), TinyReader)
    finally:
        forget_reader("other")


@pytest.mark.usefixtures("installed")
def test_installed_packages_bring_readers() -> None:
    assert isinstance(reader("extra"), TinyReader)
    assert reader("extra") is reader("EXTRA")
    assert "extra" in reader_names()


@pytest.mark.usefixtures("installed")
def test_an_unknown_reader_is_an_error_with_a_suggestion_or_the_list() -> None:
    with pytest.raises(SettingError, match=r"unknown reader 'exrta'; did you mean 'extra'\?"):
        reader("exrta")
    with pytest.raises(SettingError, match=r"unknown reader 'pdf' \(there are: .*extra, .*wrong"):
        reader("pdf")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "reason"), [("wrong", "TypeError: 42 is no reader"), ("missing", "AttributeError: .*nowhere")]
)
def test_a_reader_that_cannot_be_loaded_is_named(name: str, reason: str) -> None:
    with pytest.raises(SettingError, match=f"the reader '{name}' .* cannot be loaded: {reason}"):
        reader(name)


def test_the_readers_that_come_along_are_known() -> None:
    assert {"csv", "html", "json", "text", "xml"} <= set(reader_names())


def test_an_extraction_is_compiled_once() -> None:
    extraction = Extraction("tiny", each="li")
    assert compiled(extraction) is compiled(extraction)
    with pytest.raises(SettingError, match="no selector"):
        compiled(Extraction("tiny", each="li!"))


class Thing:
    """Something that can be let go of."""


def test_what_is_kept_goes_with_what_it_was_made_of() -> None:
    made: list[int] = []

    def make(given: Thing) -> list[int]:
        made.append(1)
        return list(made)

    keep = IdentityCache(make)
    thing = Thing()
    assert keep(thing) is keep(thing)
    assert keep(Thing()) == [1, 1]
    del thing
    gc.collect()
    assert len(keep) == 0
