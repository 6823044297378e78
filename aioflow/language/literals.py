"""Constants as text: reading and writing strings and numbers.

Escapes, the same in all three kinds of strings: `\\\\ \\" \\' \\n \\r \\t \\xHH \\uHHHH \\UHHHHHHHH`; none in
a raw one, `r"…"`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from aioflow.errors import InputError
from aioflow.plan import ParameterReference, Word, is_name

_SIMPLE = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "r": "\r", "t": "\t"}
_DIGITS = {"x": 2, "u": 4, "U": 8}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]*")
_NUMBER = re.compile(r"-?(?:[0-9]+(\.[0-9]+)?|(\.[0-9]+))([eE][+-]?[0-9]+)?")
# Python refuses to convert longer ones, as that takes quadratic time.
_DIGITS_AT_MOST = 4_000

# Words that begin with a digit or end with a time of day: `30m`, `weekly mon 08:00 UTC`. Options have them.
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?![\w:])"
_TIME = rf"(?:[A-Za-z]++[ ]++){{0,2}}{_CLOCK}(?:-{_CLOCK})?(?:[ ]++(?:[A-Z]\w*+(?:/[\w+-]++)++|UTC\b))?"
_DURATION = r"[0-9]++(?:\.[0-9]++)?(?:ms|[smhd])(?:[0-9]++(?:ms|[smhd]))*+(?![\w.-])"
TIME_PATTERN = rf"(?:{_TIME}|{_DURATION})"
_TIME_WORD = re.compile(TIME_PATTERN)

# A backslash in it is itself, also before a quote: it ends with the first one. For patterns that are VERBOSE.
RAW_STRING = r"""[rR](?:\"\"\"(?:[^"]|"(?!\"\"))*+\"\"\" | (?!\"\"\")"[^"\n]*+" | '[^'\n]*+')"""

# A mistake in a literal: its message, start and end inside it.
Problem = tuple[str, int, int]


def read_string(literal: str) -> tuple[str, tuple[Problem, ...]]:
    """Return the value of a string with its quotes, and its bad escapes."""
    is_raw = literal[0] in "rR"
    start = 1 if is_raw else 0
    width = 3 if literal.startswith('"""', start) else 1
    inside = literal[start + width : -width]
    if is_raw or "\\" not in inside:
        return inside, ()
    problems: list[Problem] = []
    return "".join(_pieces(inside, width, problems)), tuple(problems)


def _pieces(inside: str, width: int, problems: list[Problem]) -> Iterator[str]:
    end = 0
    while (escape := _ESCAPE.search(inside, end)) is not None:
        yield inside[end : escape.start()]
        letter, end = escape[1], escape.end()
        if letter in _SIMPLE:
            yield _SIMPLE[letter]
        elif letter in _DIGITS:
            digits = _HEXADECIMAL.match(inside, end, end + _DIGITS[letter])
            end = digits.end() if digits else end
            character = _character(digits[0] if digits else "", _DIGITS[letter])
            if character is None:
                problems.append(
                    (_bad_code(letter, inside[escape.end() : end]), width + escape.start(), width + end)
                )
            yield character or ""
        else:
            problems.append((_unknown_escape(letter), width + escape.start(), width + end))
    yield inside[end:]


def _character(digits: str, wanted: int) -> str | None:
    if len(digits) < wanted:
        return None
    code = int(digits, 16)
    return None if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)


def _bad_code(letter: str, digits: str) -> str:
    wanted = _DIGITS[letter]
    if len(digits) < wanted:
        return f"'\\{letter}' needs {wanted} hexadecimal digits, found {digits!r}"
    return f"'\\{letter}{digits}' is not a character"


def _unknown_escape(letter: str) -> str:
    shown = "a backslash at the end of a line" if letter == "\n" else f"'\\{letter}'"
    return f"unknown escape {shown}; a backslash is written '\\\\'"


def read_number(literal: str) -> tuple[int | float, str | None]:
    """Return the value of a number, and what is wrong with it."""
    match = _NUMBER.fullmatch(literal)
    if match is None:
        return 0, f"{shorten(literal)!r} is neither a number nor a name; names begin with a letter or '_'"
    if len(literal) > _DIGITS_AT_MOST:
        return 0, f"a number of {len(literal):,} characters is too long; at most {_DIGITS_AT_MOST:,}"
    if match[1] is None and match[2] is None and match[3] is None:
        return int(literal), None
    value = float(literal)
    return value, None if math.isfinite(value) else f"the number {shorten(literal)} is too large"


def shorten(text: str, length: int = 30) -> str:
    """Return the beginning of a text, for messages."""
    return text if len(text) <= length else text[: length - 1] + "…"


# --- writing ------------------------------------------------------------------------------------


def write_constant(value: object) -> str:
    """Return a constant as a plan writes it; raise an InputError for what no plan can say."""
    if isinstance(value, tuple):
        if any(isinstance(each, tuple | ParameterReference | Word) for each in value):
            raise InputError(f"a list in a plan holds strings, numbers, true, false and null only: {value!r}")
        return f"[{', '.join(map(write_constant, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return write_string(value)
    if isinstance(value, int | float):
        return _write_number(value)
    if isinstance(value, ParameterReference | Word):
        if not is_name(str(value).removeprefix("$")) and not _TIME_WORD.fullmatch(str(value)):
            raise InputError(f"{str(value)!r} is not a name that a plan can hold")
        return str(value)
    raise InputError(f"a plan cannot hold {value!r}, a value of type {type(value).__name__}")


def _write_number(value: int | float) -> str:
    if isinstance(value, int):
        if value.bit_length() > 3 * _DIGITS_AT_MOST:
            raise InputError("a plan cannot hold a number of so many digits")
        return str(int(value))
    if not math.isfinite(value):
        raise InputError(f"a plan cannot hold the number {value}")
    return repr(float(value))


def write_string(value: str) -> str:
    """Return a string with its quotes: in the kind of quotes that needs the fewest escapes."""
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InputError(f"a plan cannot hold text with half a character: {value!r}")
    if _reads_well_over_lines(value):
        escaped = value.replace("\\", "\\\\")
        return f'"""{escaped}"""'
    quote = "'" if '"' in value and "'" not in value else '"'
    return quote + "".join(_escaped(character, quote) for character in value) + quote


def _reads_well_over_lines(value: str) -> bool:
    return (
        "\n" in value.strip("\n")
        and '"""' not in value
        and not value.endswith('"')
        and all(character.isprintable() or character in "\n\t" for character in value)
    )


def _escaped(character: str, quote: str) -> str:
    if character in (quote, "\\"):
        return f"\\{character}"
    if character.isprintable():
        return character
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
