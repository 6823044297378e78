"""The short form of the soak: `python -m tests.soak` is the long one, 200 days of 3, 20 and 2,000 items."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.watching import LieError, soak


@pytest.mark.parametrize(
    ("items", "days", "seed"), [(3, 120, 1), (3, 120, 2), (20, 60, 3), (20, 60, 4), (400, 20, 5)]
)
def test_every_true_change_is_told_once_and_nothing_else(
    items: int, days: int, seed: int, tmp_path: Path
) -> None:
    account = soak(items, days, seed, tmp_path)
    assert account.failed_runs == 0
    assert all(account.told[name] for name in ("added", "changed", "removed"))
    assert account.suspicions


def test_the_soak_finds_a_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks that get lost on their way make it tell what did not happen."""
    monkeypatch.setattr("aioflow.wholeness.Marks.united", lambda self, other: self)
    with pytest.raises(LieError):
        soak(20, 120, 1, tmp_path)
