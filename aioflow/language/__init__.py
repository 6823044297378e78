"""The plan language: reading, checking of syntax, printing and formatting of plan files."""

from aioflow.language.kinds import ItemKind, end_of_body, item_kind, item_kinds
from aioflow.language.loader import PlanSnapshot, load, load_snapshot, loads, take_snapshot
from aioflow.language.parser import parse
from aioflow.language.printer import format_text, print_file, print_plan

__all__ = [
    "ItemKind",
    "PlanSnapshot",
    "end_of_body",
    "format_text",
    "item_kind",
    "item_kinds",
    "load",
    "load_snapshot",
    "loads",
    "parse",
    "print_file",
    "print_plan",
    "take_snapshot",
]
