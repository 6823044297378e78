"""Wrappers: web sources as relations."""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

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
    from aioflow.wrappers.inheritance import resolve
    from aioflow.wrappers.language import WrapperText, parse_wrapper, print_wrapper
    from aioflow.wrappers.page_reader import PackedRows
    from aioflow.wrappers.python import PythonWrapper, Web, wrapper
    from aioflow.wrappers.readers.reader import (
        Extractor,
        Found,
        PageHead,
        Reader,
        Reading,
        compiled,
        reader,
        reader_names,
        register_reader,
    )
    from aioflow.wrappers.requests import Pages, RequestMaker
    from aioflow.wrappers.wrapper_item import AnyWrapper, WrapperName

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

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "calls": ("wrapper_calls",),
        "definition": ("Extraction", "Field", "Processing", "RequestTemplate", "Wrapper", "WrapperInput"),
        "inheritance": ("resolve",),
        "language": ("WrapperText", "parse_wrapper", "print_wrapper"),
        "page_reader": ("PackedRows",),
        "python": ("PythonWrapper", "Web", "wrapper"),
        "readers.reader": (
            "Extractor",
            "Found",
            "PageHead",
            "Reader",
            "Reading",
            "compiled",
            "reader",
            "reader_names",
            "register_reader",
        ),
        "requests": ("Pages", "RequestMaker"),
        "wrapper_item": ("AnyWrapper", "WrapperName"),
    },
)
