"""Functions on texts."""

from __future__ import annotations

from time import thread_time
from typing import Any

from aioflow.expressions.functions.table import char, expression_function
from aioflow.relation import Value
from aioflow.values.counters import PATTERN_TOO_SLOW, TEXT_TOO_LONG, UncomputableError
from aioflow.values.patterns import pattern_of
from aioflow.values.text import LONGEST_TEXT

_LONGEST_SECONDS = 0.2  # of the processor: everything else waits meanwhile


@expression_function("text", "lower(text char) char", "lower('Irvine') = 'irvine'")
def lower(text: str) -> str:
    """The text in lower case."""
    return text.lower()


@expression_function("text", "upper(text char) char", "upper('Irvine') = 'IRVINE'")
def upper(text: str) -> str:
    """The text in upper case."""
    return text.upper()


@expression_function("text", "initcap(text char) char", "initcap('new york') = 'New York'")
def initcap(text: str) -> str:
    """Each word with a capital first letter and the rest in lower case."""
    letters = []
    inside = False
    for letter in text:
        letters.append(letter.lower() if inside else letter.upper())
        inside = letter.isalnum()
    return "".join(letters)


@expression_function(
    "text", "trim(text char, [characters char]) char", "trim('  a ') = 'a'", "trim('--a-', '-') = 'a'"
)
def trim(text: str, characters: str | None = None) -> str:
    """The text without white space, or those characters, at both ends."""
    return text.strip(characters)


@expression_function("text", "ltrim(text char, [characters char]) char", "ltrim('  a ') = 'a '")
def ltrim(text: str, characters: str | None = None) -> str:
    """Like trim, at the beginning only."""
    return text.lstrip(characters)


@expression_function("text", "rtrim(text char, [characters char]) char", "rtrim('  a ') = '  a'")
def rtrim(text: str, characters: str | None = None) -> str:
    """Like trim, at the end only."""
    return text.rstrip(characters)


@expression_function("text", "normalize_space(text char) char", "normalize_space(' a   b ') = 'a b'")
def normalize_space(text: str) -> str:
    """The text with white space at its ends removed, and each run inside it made one space."""
    return " ".join(text.split())


@expression_function("text", "length(text char) number", "length('house') = 5")
def length(text: str) -> int:
    """The number of characters."""
    return len(text)


@expression_function(
    "text",
    "substr(text char, start whole, [length whole]) char",
    "substr('house', 2, 3) = 'ous'",
    "substr('house', -2) = 'se'",
)
def substr(text: str, start: int, length: int | None = None) -> str:
    """The part from the character number `start` on, counted from 1, or from the end if it is negative."""
    first = start - 1 if start > 0 else max(len(text) + start, 0) if start < 0 else 0
    if length is None:
        return text[first:]
    before = 1 if start == 0 else max(-start - len(text), 0)  # counted, but not there
    return text[first : first + max(length - before, 0)]


@expression_function("text", "left(text char, count whole) char", "left('house', 2) = 'ho'")
def left(text: str, count: int) -> str:
    """The first `count` characters; a negative count leaves that many out at the end."""
    return text[:count]


@expression_function("text", "right(text char, count whole) char", "right('house', 2) = 'se'")
def right(text: str, count: int) -> str:
    """The last `count` characters; a negative count leaves that many out at the beginning."""
    return text[max(len(text) - count, 0) :] if count >= 0 else text[-count:]


@expression_function(
    "text", "replace(text char, part char, by char) char", "replace('a-b-c', '-', '') = 'abc'"
)
def replace(text: str, part: str, by: str) -> str:
    """The text with every occurrence of `part` replaced."""
    if not part:
        return text
    if len(by) > len(part) and len(text) + text.count(part) * (len(by) - len(part)) > LONGEST_TEXT:
        raise UncomputableError(TEXT_TOO_LONG)
    return text.replace(part, by)


@expression_function("text", "reverse(text char) char", "reverse('abc') = 'cba'")
def reverse(text: str) -> str:
    """The characters in reverse order."""
    return text[::-1]


@expression_function("text", "repeat(text char, count whole) char", "repeat('ab', 2) = 'abab'")
def repeat(text: str, count: int) -> str:
    """The text `count` times."""
    if len(text) * count > LONGEST_TEXT:
        raise UncomputableError(TEXT_TOO_LONG)
    return text * count


@expression_function("text", "lpad(text char, length whole, [fill char]) char", "lpad('7', 3, '0') = '007'")
def lpad(text: str, length: int, fill: str = " ") -> str:
    """The text filled up on the left, or cut, to that length."""
    missing = _missing(text, length, fill)
    return fill_up(fill, missing) + text if missing > 0 else text[: max(length, 0)]


@expression_function("text", "rpad(text char, length whole, [fill char]) char", "rpad('a', 3, '.') = 'a..'")
def rpad(text: str, length: int, fill: str = " ") -> str:
    """The text filled up on the right, or cut, to that length."""
    missing = _missing(text, length, fill)
    return text + fill_up(fill, missing) if missing > 0 else text[: max(length, 0)]


def _missing(text: str, length: int, fill: str) -> int:
    if length > LONGEST_TEXT:
        raise UncomputableError(TEXT_TOO_LONG)
    return length - len(text) if fill else min(length - len(text), 0)


def fill_up(fill: str, count: int) -> str:
    return (fill * (count // len(fill) + 1))[:count]


@expression_function("text", "concat(value any …) char", "concat('a', null, 1) = 'a1'", takes_null=True)
def concat(*values: Value) -> str:
    """All values as one text; nulls are left out (`||` gives null for them)."""
    texts = ["" if value is None else char(value) for value in values]
    if sum(map(len, texts)) > LONGEST_TEXT:
        raise UncomputableError(TEXT_TOO_LONG)
    return "".join(texts)


@expression_function(
    "text",
    "split_part(text char, separator char, number whole) char",
    "split_part('a/b/c', '/', 2) = 'b'",
    "split_part('a/b/c', '/', -1) = 'c'",
)
def split_part(text: str, separator: str, number: int) -> str:
    """Part `number` between separators, from 1, or from the end if negative; '' if there is none."""
    parts = text.split(separator) if separator else [text]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if number and 0 <= index < len(parts) else ""


@expression_function("text", "starts_with(text char, part char) boolean", "starts_with('house', 'ho')")
def starts_with(text: str, part: str) -> bool:
    """Whether the text begins with `part`."""
    return text.startswith(part)


@expression_function("text", "ends_with(text char, part char) boolean", "ends_with('house', 'se')")
def ends_with(text: str, part: str) -> bool:
    """Whether the text ends with `part`."""
    return text.endswith(part)


@expression_function("text", "contains(text char, part char) boolean", "contains('house', 'us')")
def contains(text: str, part: str) -> bool:
    """Whether `part` occurs in the text."""
    return part in text


@expression_function(
    "text",
    "position(text char, part char) number",
    "position('house', 'us') = 3",
    "position('house', 'x') = 0",
)
def position(text: str, part: str) -> int:
    """Where `part` first occurs in the text, counted from 1; 0 if it does not."""
    return text.find(part) + 1


# --- regular expressions ------------------------------------------------------------------------


@expression_function(
    "text",
    "regexp_extract(text char, pattern pattern, [group whole]) char",
    "regexp_extract('3 beds', '[0-9]+') = '3'",
    "regexp_extract('3 beds, 2 baths', '([0-9]+) baths') = '2'",
)
def regexp_extract(text: str, pattern: str, group: int | None = None) -> str | None:
    """What the regular expression, or its group (the first if it has any), matches first; null if nothing."""
    compiled = pattern_of(pattern)
    if group is None:
        group = min(compiled.regexp.groups, 1)
    if not 0 <= group <= compiled.regexp.groups:
        return None
    found = compiled.search(text)
    return None if found is None else found[group]


@expression_function(
    "text",
    "regexp_replace(text char, pattern pattern, by char) char",
    r"regexp_replace('$1,200', '[^0-9]', '') = '1200'",
    r"regexp_replace('a b', '(\w) (\w)', '\2 \1') = 'b a'",
)
def regexp_replace(text: str, pattern: str, by: str) -> str:
    r"""The text with every match replaced; `\1` to `\9` stand for what a group matched, `\0` for all."""
    compiled = pattern_of(pattern)
    replace_match = _Replacement(by)
    result = compiled.regexp.sub(replace_match, compiled.checked(text))
    if len(result) > LONGEST_TEXT:
        raise UncomputableError(TEXT_TOO_LONG)
    return str(result)


class _Replacement:
    """What stands in the place of a match; gives up when all of them take too long or grow too large."""

    def __init__(self, by: str) -> None:
        self._pieces = by.split("\\") if "\\" in by else None
        self._by = by
        self._deadline = thread_time() + _LONGEST_SECONDS
        self._size = 0

    def __call__(self, match: Any) -> str:
        if thread_time() > self._deadline:
            raise UncomputableError(PATTERN_TOO_SLOW)
        text = self._by if self._pieces is None else self._expanded(self._pieces, match)
        self._size += len(text)
        if self._size > LONGEST_TEXT:
            raise UncomputableError(TEXT_TOO_LONG)
        return text

    @staticmethod
    def _expanded(pieces: list[str], match: Any) -> str:
        groups = [match[0], *match.groups(default="")]
        parts = [pieces[0]]
        rest = iter(pieces[1:])
        for piece in rest:
            number = ord(piece[0]) - ord("0") if piece else -1
            if 0 <= number <= 9:
                parts += groups[number] if number < len(groups) else "", piece[1:]
            elif not piece:  # a doubled backslash is one
                parts += "\\", next(rest, "")
            else:
                parts += "\\", piece
        return "".join(parts)
