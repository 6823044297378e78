"""A reader whose language has one rule, so that tests need no other reader: no selector holds `!`."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from aioflow.errors import SettingError
from aioflow.relation import Type
from aioflow.wrappers.definition import Extraction, Field
from aioflow.wrappers.readers.reader import forget_reader, register_reader

OPTIONS = ("quick", "separator", "alias")


class TinyReader:
    """Refuses `!` in selectors, and options that it does not know."""

    name: ClassVar[str] = "tiny"
    content_types: ClassVar[tuple[str, ...]] = ("text/tiny",)
    default_type: ClassVar[Type | None] = Type.CHAR

    def compile(self, extraction: Extraction) -> Any:
        for option in extraction.options:
            if option not in OPTIONS:
                raise SettingError(f"the reader tiny has no option {option!r}")
        if extraction.each is not None:
            _check(extraction.each, "EACH")
        _check_all(extraction.fields, "")
        if extraction.next_page is not None:
            _check(extraction.next_page.selector, extraction.next_page.name)
        return extraction


def _check_all(fields: tuple[Field, ...], path: str) -> None:
    for field in fields:
        _check(field.selector, f"{path}{field.name}")
        _check_all(field.fields, f"{path}{field.name}.")


def _check(selector: str, name: str) -> None:
    if "!" in selector:
        raise SettingError("'!' stands in no selector", setting=name, offset=selector.index("!"))


@pytest.fixture(autouse=True)
def tiny_reader() -> Iterator[None]:
    register_reader(TinyReader())
    yield
    forget_reader("tiny")
