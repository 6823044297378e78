"""`python -m tests.language.tabulate`: writes aioflow/language/lalr_tables.py, the automaton of plan.lark.

Lark makes it of the grammar; whoever reads plans needs the tables alone, and does not wait for lark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lark import Lark
from lark.grammar import Rule, Symbol
from lark.lexer import Lexer
from lark.parsers.lalr_analysis import Shift

import aioflow.language

FOLDER = Path(aioflow.language.__file__).parent
TABLES = FOLDER / "lalr_tables.py"
STARTS = ("statement", "inputs", "names", "parameters", "values")
HEADING = '''"""The automaton of plan.lark, written by `python -m tests.language.tabulate`."""

# ruff: noqa: E501
# fmt: off
'''


class NoLexer(Lexer):
    """Stands in for a lexer: the scanner makes the tokens."""

    def __init__(self, configuration: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:
        return iter(())


def tables() -> str:
    """The text of lalr_tables.py."""
    parser = Lark((FOLDER / "plan.lark").read_text("utf-8"), parser="lalr", lexer=NoLexer, start=[*STARTS])
    # Not public, but what lark's own `save` keeps.
    table = parser.parser.parser._parse_table
    rules = list(dict.fromkeys((_origin(rule), _shape(rule)) for rule in parser.rules))
    numbers = _numbered(table)
    rows = []
    for state in numbers:
        row = {}
        for symbol, (action, what) in sorted(table.states[state].items()):
            row[symbol] = numbers[what] if action is Shift else ~rules.index((_origin(what), _shape(what)))
        rows.append(row)
    ends = {start: (numbers[table.start_states[start]], numbers[table.end_states[start]]) for start in STARTS}
    return "\n".join(_lines(rules, rows, ends))


def _numbered(table: Any) -> dict[int, int]:
    """States in the order in which they are reached; lark's own numbers differ from run to run."""
    reached = [table.start_states[start] for start in STARTS]
    for state in reached:
        following = [what for _, (action, what) in sorted(table.states[state].items()) if action is Shift]
        reached += [state for state in dict.fromkeys(following) if state not in reached]
    return {state: number for number, state in enumerate(reached)}


def _origin(rule: Rule) -> str:
    return str(rule.origin.name)


def _shape(rule: Rule) -> str:
    return "".join(map(_fate, rule.expansion))


def _fate(part: Symbol) -> str:
    """What becomes of a part of a rule: see `RULES`."""
    if part.is_term:
        return "-" if part.name.startswith("_") else "+"
    return "*" if part.name.startswith("_") else "+"


def _lines(rules: list[tuple[str, str]], rows: list[dict[str, int]], ends: dict[str, Any]) -> Iterator[str]:
    yield HEADING
    yield "# Where each piece begins and where it has been read."
    yield f"STARTS = {ends}".replace("'", '"')
    yield "\n# What a rule makes, and of what: + a part, * the parts of a list, - a mark that is left out."
    yield "RULES = ("
    for rule in rules:
        yield f'    ("{rule[0]}", "{rule[1]}"),'
    yield ")\n"
    yield "# For each state, what can follow: the next state, or as its complement the rule that ends here."
    yield "STATES: tuple[dict[str, int], ...] = ("
    for row in rows:
        yield "    " + str(row).replace("'", '"') + ","
    yield ")\n"


if __name__ == "__main__":
    TABLES.write_text(tables(), "utf-8")
