"""What random runs on databases are made of."""

from __future__ import annotations

from collections import Counter

from aioflow.plan import Program, Variable, Word

CONSTRUCTS = (
    "COMMIT: batch",
    "KEY",
    "ON_CONFLICT: update",
    "PARTIAL: allow",
    "dbappend",
    "dbexport",
    "dbimport",
    "dbimport after a signal",
    "dbquery",
    "dbquery after a signal",
    "dbquery for each tuple",
    "dbupdate",
    "dbupdate for each tuple",
    "diff",
    "written in a called plan",
)
HAPPENINGS = (
    "happened: diff of a whole relation",
    "happened: diff of a partial relation",
    "happened: diff of a doubtful relation",
    "happened: diff that told added",
    "happened: diff that told changed",
    "happened: diff that told removed",
    "happened: export refused",
    "happened: tuple failure taken",
    "happened: run failed",
)


def names() -> list[str]:
    return [*CONSTRUCTS, *HAPPENINGS]


def constructs(program: Program) -> Counter[str]:
    """The operators and clauses of a program, each as often as it stands there."""
    found: Counter[str] = Counter({"COMMIT: batch": int(program.main.commits_in_batches)})
    for plan in program:
        for statement in plan.statements:
            key = statement.operator.lower()
            if not key.startswith(("db", "diff")):
                continue
            found[key] += 1
            found["written in a called plan"] += plan is not program.main and key != "dbquery"
            inputs = any(isinstance(argument, Variable) for argument in statement.arguments)
            found[f"{key} for each tuple"] += inputs
            found[f"{key} after a signal"] += bool(statement.wait) and not inputs
            for option in statement.options:
                value = option.values[0] if option.values else None
                shown = value.text if isinstance(value, Word) else value
                found[option.name.upper()] += 1
                found[f"{option.name.upper()}: {shown}"] += 1
    return Counter({name: count for name, count in found.items() if name in CONSTRUCTS})
