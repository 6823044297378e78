"""Templates of pages: files with `$name` in them, filled with text, which is escaped, or with markup."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path
from string import Template

_FOLDER = Path(__file__).with_name("templates")


class Markup(str):
    """A piece of HTML or XML."""

    __slots__ = ()


def fill(template: str, **values: object) -> Markup:
    """Return a template's file with values in it; what is no markup is escaped."""
    shown = {
        name: value if isinstance(value, Markup) else escape(str(value)) for name, value in values.items()
    }
    return Markup(_template(template).substitute(shown))


def joined(pieces: Iterable[str], between: str = "\n") -> Markup:
    """Pieces of markup one after the other."""
    return Markup(between.join(pieces))


@cache
def file_text(name: str) -> Markup:
    """Return a file beside the templates, as it is."""
    return Markup((_FOLDER / name).read_text(encoding="utf-8").rstrip("\n"))


@cache
def _template(name: str) -> Template:
    return Template(file_text(name))
