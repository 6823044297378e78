"""Databases by name: their URLs, of which nothing secret is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioflow import InputError
from aioflow.config.masking import mask
from aioflow.state.databases import Databases


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:tea@host/db",
        "postgresql://ann:1/tea@host/db",
        "postgresql://ann:1?tea@host/db",
        "postgresql://ann:1@tea@host/db",
        "postgresql://ann@host/db?password=tea",
        "postgresql://ann@host/db?sslmode=prefer&PassWord=tea",
        "postgresql://ann@host/db?sslpassword=tea",
        "postgresql://ann@host/db?passfile=tea",
    ],
)
def test_a_url_with_a_password_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InputError) as caught:
        Databases({"database": {"default": {"url": url}}})
    assert "database.default.url must be a URL" in str(caught.value)
    assert "tea" not in str(caught.value)


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("postgresql://ann:pw@h/db?password=hunter2xyz", "postgresql://h/db"),
        ("postgresql://ann:hunter2xyz@one:1,[::1]:2/db?sslmode=prefer", "postgresql://one:1,[::1]:2/db"),
        ("postgresql://h/db?user=ann&password=hunter2xyz", "postgresql://h/db"),
    ],
)
def test_a_url_that_is_a_secret_shows_where_the_database_is(
    monkeypatch: pytest.MonkeyPatch, secret: str, shown: str
) -> None:
    monkeypatch.setenv("AIOFLOW_SECRET_ALL", secret)
    address = Databases({"database": {"default": {"url": "secret:ALL"}}}).address(None, Path())
    assert (address.url, address.shown) == (secret, shown)
    assert "hunter2" not in mask('server "h": no user "hunter2xyz"')


@pytest.mark.parametrize(
    "secret",
    [
        "postgresql://ann:hun/ter2@h/db",
        "postgresql://ann:12/hunter2@h/db",
        "postgresql://ann:hun@ter2?x@h/db",
        "postgresql://ann:hunter2",
        "Hunter2",
        "hunter2:x",
    ],
)
def test_a_secret_that_is_no_url_is_told_and_not_shown(monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    monkeypatch.setenv("AIOFLOW_SECRET_ALL", secret)
    databases = Databases({"database": {"default": {"url": "secret:ALL", "password": "secret:ALL"}}})
    (problem,) = databases.problems(None, Path())
    assert problem.startswith("[database.default]: its secret")
    assert "hun" not in problem.lower()
    assert "ter2" not in problem


def test_a_password_for_no_user_is_told_without_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOFLOW_SECRET_ALL", "postgresql://h/db?password=hunter2xyz")
    databases = Databases({"database": {"default": {"url": "secret:ALL", "password": "secret:ALL"}}})
    assert databases.problems(None, Path()) == [
        "[database.default]: a password needs a user in the URL: postgresql://user@host/name"
    ]
