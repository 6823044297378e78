"""What the tables of bad plans are made of."""

from dataclasses import dataclass

HOUSES = "houses (city char, price number, beds number)"


@dataclass(frozen=True)
class BadPlan:
    """A text with mistakes, and all messages about it as `line:column: message`."""

    name: str
    text: str
    messages: list[str]


def plan(
    *statements: str, inputs: str = HOUSES, outputs: str = "out", header: str = "", name: str = "p"
) -> str:
    """A plan's text. Its statements begin in line 5, or 6 when there is a header line, and column 5."""
    lines = [
        f"PLAN {name} {{",
        f"  INPUT: {inputs}",
        f"  OUTPUT: {outputs}",
        *([f"  {header}"] if header else []),
        "  BODY {",
        *(f"    {statement}" for statement in statements),
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"
