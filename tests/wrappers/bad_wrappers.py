"""Wrappers with mistakes, and every message about them as `line:column: message`.

They stand in text files: `=== name`, the text, and a line `--> …` for each message. A text that is only
a body belongs to a wrapper with the inputs a and b, and begins in line 3, column 3. Lists of what there
is (`(there are: …)`) are left out of messages: other packages may add to them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class BadWrapper:
    """A text with mistakes, and all messages about it."""

    name: str
    text: str
    messages: list[str]


def _read(file: str) -> Iterator[BadWrapper]:
    for block in Path(__file__).with_name(file).read_text(encoding="utf-8").split("=== ")[1:]:
        name, *lines = block.rstrip("\n").split("\n")
        text = "\n".join(line for line in lines if not line.startswith("--> "))
        messages = [line.removeprefix("--> ") for line in lines if line.startswith("--> ")]
        yield BadWrapper(name, text if text.startswith("WRAPPER") else _around(text), messages)


def _around(body: str) -> str:
    lines = "".join(f"  {line}\n" for line in body.split("\n"))
    return f"WRAPPER w (a, b optional)\n{{\n{lines}}}\n"


# Found in the text by itself.
TEXTS = list(_read("bad_texts.txt"))
# Found in the program.
PROGRAMS = list(_read("bad_programs.txt"))
