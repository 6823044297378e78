"""`check` and `fmt` take work in proportion to the size of a text, whatever its shape."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aioflow.authoring.operator import load_operators, registry
from aioflow.cli.commands.fmt import format_files
from aioflow.compiler.check import check
from aioflow.errors import InputError
from aioflow.language import format_text, load, loads
from tests.language import growth

# Twice the size, twice the work; what is done once, whatever the size, makes it less.
AT_MOST = 2.2


def check_text(text: str) -> None:
    load_operators()
    try:
        program = loads(text)
    except InputError:  # there is no main plan
        program = loads(text, plan=text.split()[1])
    for found in check(program, registry):
        str(found)


def ratio(work: Callable[[str], object], text: Callable[[int], str], size: int) -> float:
    small, large = text(size), text(2 * size)
    work(text(3))  # what is loaded and compiled once
    return growth.calls_of(lambda: work(large)) / growth.calls_of(lambda: work(small))


@pytest.mark.parametrize("shape", growth.SHAPES, ids=lambda shape: shape.__name__)
def test_checking_is_linear(shape: Callable[[int], str]) -> None:
    # Hints at near names are given for so many comparisons, and so many conditions are remembered.
    size = 600 if shape in (growth.unknown_operators, growth.mistakes_on_one_line) else 120
    assert ratio(check_text, shape, size) < AT_MOST


@pytest.mark.parametrize("shape", growth.SHAPES, ids=lambda shape: shape.__name__)
def test_formatting_is_linear(shape: Callable[[int], str]) -> None:
    assert ratio(format_text, shape, 60) < AT_MOST


def test_checking_a_folder_of_files_is_linear(tmp_path: Path) -> None:
    load_operators()
    work = []
    for size in (5, 60, 120):
        first = growth.write_folder(tmp_path / str(size), size)
        work.append(growth.calls_of(lambda first=first: check(load(first), registry)))  # type: ignore[misc]
    assert work[2] / work[1] < AT_MOST


@pytest.mark.parametrize("shape", [growth.plans, growth.statements, growth.one_line])
def test_showing_what_would_change_is_linear(
    shape: Callable[[int], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some.plan"

    def show(text: str) -> None:
        file.write_text(text.replace("    ", " "), "utf-8")
        assert format_files([str(file)], check_only=True) == 1

    assert ratio(show, shape, 60) < AT_MOST
    assert capsys.readouterr().out
