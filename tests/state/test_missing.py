"""Databases and tables that are not there: reading makes no file, and what is wrong is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioflow.errors import OperatorError
from aioflow.testing import rows
from tests.operators.database_plans import out, run

URLS = rows(("a",), ("b",), schema="url")


@pytest.fixture
def missing(tmp_path: Path) -> Path:
    return tmp_path / "nowhere.db"


def test_an_import_from_a_missing_file_names_the_file_and_makes_none(missing: Path) -> None:
    with pytest.raises(OperatorError, match=r"there is no file .*nowhere\.db.* 'houses'.*IF_MISSING: empty"):
        run(f"sqlite:{missing}", 'dbimport ("houses" : out)', outputs="out")
    assert list(missing.parent.iterdir()) == []


def test_a_missing_file_that_may_be_missing_is_empty_and_stays_missing(missing: Path) -> None:
    statements = 'dbimport ("houses" : houses) {IF_MISSING: empty} union (urls, houses : out)'
    assert out(f"sqlite:{missing}", statements, urls=URLS) == [("a",), ("b",)]
    assert list(missing.parent.iterdir()) == []


def test_queries_to_a_missing_file_find_an_empty_database_and_make_none(missing: Path) -> None:
    url = f"sqlite:{missing}"
    assert out(url, 'dbquery ("select 1 as n" : out)') == [(1,)]
    again = out(url, 'dbquery ("select :url as again", urls : out)', urls=URLS)
    assert sorted(again) == [("a", "a"), ("b", "b")]
    with pytest.raises(OperatorError, match=r"nowhere\.db: there is no table 'houses'"):
        run(url, 'dbquery ("select * from houses" : out)', outputs="out")
    assert list(missing.parent.iterdir()) == []


def test_a_comparison_with_a_missing_file_makes_it_when_the_run_has_ended_well(missing: Path) -> None:
    url, statement = f"sqlite:{missing}", 'diff (urls, "seen" : out, _, _) {KEY: "url"; FIRST: news}'
    with pytest.raises(OperatorError):
        run(url, f'{statement} dbimport ("houses" : _)', outputs="out", urls=URLS)
    assert not missing.exists()
    assert out(url, statement, urls=URLS) == [("a",), ("b",)]
    assert out(url, statement, urls=URLS) == []


def test_an_import_of_a_missing_table_says_that_it_may_be_missing(missing: Path) -> None:
    run(f"sqlite:{missing}", 'dbappend (urls, "seen")', urls=URLS)
    with pytest.raises(
        OperatorError, match=r"there is no table 'houses' \(tables: seen\).*IF_MISSING: empty"
    ):
        run(f"sqlite:{missing}", 'dbimport ("houses" : out)', outputs="out")
