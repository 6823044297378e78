"""Wrappers: web sources as relations. Names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioflow.wrappers.calls import wrapper_calls
    from aioflow.wrappers.definition import (
        Extraction,
        Field,
        Processing,
        RequestTemplate,
        Wrapper,
        WrapperInput,
    )
    from aioflow.wrappers.language import WrapperText, parse_wrapper, print_wrapper
    from aioflow.wrappers.naming import AnyWrapper, WrapperName
    from aioflow.wrappers.page_reader import PackedRows
    from aioflow.wrappers.paging import Pages
    from aioflow.wrappers.python import PythonWrapper, Web, wrapper
    from aioflow.wrappers.reading import Extractor, Found, PageHead, Reader, Reading
    from aioflow.wrappers.registry import compiled, reader, reader_names, register_reader
    from aioflow.wrappers.requests import RequestMaker
    from aioflow.wrappers.resolving import resolve

__all__ = [
    "AnyWrapper",
    "Extraction",
    "Extractor",
    "Field",
    "Found",
    "PackedRows",
    "PageHead",
    "Pages",
    "Processing",
    "PythonWrapper",
    "Reader",
    "Reading",
    "RequestMaker",
    "RequestTemplate",
    "Web",
    "Wrapper",
    "WrapperInput",
    "WrapperName",
    "WrapperText",
    "compiled",
    "parse_wrapper",
    "print_wrapper",
    "reader",
    "reader_names",
    "register_reader",
    "resolve",
    "wrapper",
    "wrapper_calls",
]

_HOMES = {
    "calls": ("wrapper_calls",),
    "definition": ("Extraction", "Field", "Processing", "RequestTemplate", "Wrapper", "WrapperInput"),
    "language": ("WrapperText", "parse_wrapper", "print_wrapper"),
    "naming": ("AnyWrapper", "WrapperName"),
    "page_reader": ("PackedRows",),
    "paging": ("Pages",),
    "python": ("PythonWrapper", "Web", "wrapper"),
    "reading": ("Extractor", "Found", "PageHead", "Reader", "Reading"),
    "registry": ("compiled", "reader", "reader_names", "register_reader"),
    "requests": ("RequestMaker",),
    "resolving": ("resolve",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
