"""The plan language: reading, checking of syntax, printing and formatting of plan files."""

from aioflow.language.kinds import ItemKind, end_of_body, item_kind, item_kinds
from aioflow.language.loader import load, loads
from aioflow.language.parser import parse
from aioflow.language.printer import format_text, print_file, print_plan

__all__ = [
    "ItemKind",
    "end_of_body",
    "format_text",
    "item_kind",
    "item_kinds",
    "load",
    "loads",
    "parse",
    "print_file",
    "print_plan",
]
