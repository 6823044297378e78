"""A grammar from a few marked records of a page: their common context, and classes for their values.

Nothing is guessed by chance and no service is asked: equal examples give equal grammars.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from aioflow.errors import InputError
from aioflow.grammars.errors import ParseError
from aioflow.grammars.grammar import Grammar, ParsedSource, compile
from aioflow.grammars.limits import ParseLimits
from aioflow.grammars.occurrences import Placement, occurrences, place_examples
from aioflow.source import Source
from aioflow.values.display import visible

LONGEST_PAGE = 2_000_000
_EXAMPLES_AT_MOST = 20
_LONGEST_VALUE = 5_000
_CONTEXT = 200
_LINE = 100
_SECONDS = 20.0
_TOKEN = re.compile(r"</?|[A-Za-z]+|[0-9]+|[ \t\r\n]+|.", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS_OF_THE_LANGUAGE = frozenset(
    (
        "rule",
        "strict",
        "is",
        "end",
        "accept",
        "if",
        "do",
        "prune",
        "for",
        "in",
        "else",
        "true",
        "false",
        "null",
    )
)


class LearnedGrammar(msgspec.Struct, frozen=True):
    """A grammar that was proposed for a page, with what it extracts there and where it is unsure."""

    text: str
    grammar: Grammar
    parsed: ParsedSource
    doubts: tuple[str, ...]

    @property
    def records(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.parsed.value
        return found


class _Fixed(msgspec.Struct, frozen=True):
    """Text that all examples share."""

    text: str


class _Run(msgspec.Struct, frozen=True):
    """Characters of a class, written as it stands in a grammar with its sign."""

    written: str


class _Open(msgspec.Struct, frozen=True):
    """Texts that differ from example to example."""

    texts: tuple[str, ...]


_Part: TypeAlias = _Fixed | _Run | _Open


class _Field(msgspec.Struct, frozen=True):
    """A field with what stands between it and the field before."""

    name: str
    before: tuple[_Part, ...]
    values: tuple[str, ...]
    is_optional: bool


def learn(page: str, examples: Sequence[Mapping[str, Any]]) -> LearnedGrammar:
    """Return a grammar that extracts the examples and what looks like them.

    An example has the values of one record as they stand on the page, and null for a field that it lacks.
    Raise an InputError if a value is not there.
    """
    wanted = _checked(page, examples)
    placements = place_examples(page, wanted)
    doubts = [*_about_examples(page, wanted, placements)]
    order = _order(placements, doubts)
    placements = [each for each in placements if _is_in_order(each, order)]
    fields = [_field(page, name, order, placements) for name in order]
    doubts += _about_contexts(fields)
    after = _generalised([page[each.end : each.end + _CONTEXT] for each in placements])[:1]
    best: tuple[tuple[int, int], LearnedGrammar, str] | None = None
    for start in _beginnings(page, placements):
        text = _written(fields, start, _first_of(after))
        learned = _tried(text, page)
        if learned is None:
            continue
        found = sum(_values(page, each) in learned.records for each in placements)
        score = (found, len(learned.records))
        if best is None or score > best[0]:
            best = (score, learned, start)
    if best is None:
        raise InputError("no grammar of these examples reads the page; mark other records")
    (found, _), learned, start = best
    if found < len(placements):
        doubts.append(f"{len(placements) - found} of {len(placements)} examples are not read as marked")
    doubts += _about_records(page, learned, fields, start, placements)
    return msgspec.structs.replace(learned, doubts=tuple(doubts))


def _checked(page: str, examples: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    if not examples:
        raise InputError("mark at least one record as an example")
    if len(examples) > _EXAMPLES_AT_MOST:
        raise InputError(f"more than {_EXAMPLES_AT_MOST} examples; a few that differ are enough")
    if len(page) > LONGEST_PAGE:
        raise InputError(f"the page has more than {LONGEST_PAGE:,} characters; take a part of it")
    return [_checked_example(number, example) for number, example in enumerate(examples, 1)]


def _checked_example(number: int, example: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in example.items():
        if not _NAME.fullmatch(name) or name in _WORDS_OF_THE_LANGUAGE:
            raise InputError(f"example {number}: {name!r} cannot be the name of a variable")
        if isinstance(value, list | dict | bool):
            raise InputError(f"example {number}: {name} must be a text, a number or null")
        if value is None:
            continue
        text = str(value).strip()
        if not text or len(text) > _LONGEST_VALUE:
            raise InputError(f"example {number}: {name} is {'too long' if text else 'empty'}")
        found[name] = text
    if not found:
        raise InputError(f"example {number} has no value")
    return found


# --- the order of fields ------------------------------------------------------------------------


def _order(placements: Sequence[Placement], doubts: list[str]) -> list[str]:
    """Return the fields in the order that most examples have; those that some lack find their place."""
    orders = [each.order() for each in placements]
    order = max(orders, key=lambda one: (sum(_agree(one, other) for other in orders), len(one)))
    order = list(order)
    for other in orders:
        for place, name in enumerate(other):
            if name not in order:
                known = [each for each in other[:place] if each in order]
                order.insert(order.index(known[-1]) + 1 if known else 0, name)
    against = [number for number, each in enumerate(placements, 1) if not _is_in_order(each, order)]
    if against:
        listed = ", ".join(map(str, against))
        doubts.append(f"the fields of example {listed} stand in another order; the others count")
    return order


def _agree(one: Sequence[str], other: Sequence[str]) -> bool:
    return [name for name in one if name in other] == [name for name in other if name in one]


def _is_in_order(placement: Placement, order: Sequence[str]) -> bool:
    return _agree(placement.order(), order)


def _field(page: str, name: str, order: Sequence[str], placements: Sequence[Placement]) -> _Field:
    gaps, values = [], []
    for each in placements:
        if name not in each.spans:
            continue
        start, end = each.spans[name]
        values.append(page[start:end])
        earlier = [other for other in order[: order.index(name)] if other in each.spans]
        if earlier:
            gaps.append(page[each.spans[earlier[-1]][1] : start])
    return _Field(name, tuple(_generalised(gaps)), tuple(values), len(values) < len(placements))


def _values(page: str, placement: Placement) -> dict[str, str]:
    return {name: page[slice(*placement.spans[name])] for name in placement.order()}


# --- contexts -----------------------------------------------------------------------------------


def _generalised(texts: Sequence[str]) -> list[_Part]:
    """Return what texts have in common: parts that are equal or of one kind, and at most one that differs."""
    if not texts:
        return []
    listed = [_TOKEN.findall(text) for text in texts]
    shortest = min(map(len, listed))
    first: list[_Part] = []
    for place in range(shortest):
        part = _common([tokens[place] for tokens in listed])
        if part is None:
            break
        first.append(part)
    if len(first) == shortest and len(set(map(len, listed))) == 1:
        return _joined(first)
    last: list[_Part] = []
    for place in range(1, shortest - len(first) + 1):
        part = _common([tokens[-place] for tokens in listed])
        if part is None:
            break
        last.append(part)
    last.reverse()
    middles = ["".join(tokens[len(first) : len(tokens) - len(last)]) for tokens in listed]
    return _joined([*first, _between(middles), *last])


def _between(middles: Sequence[str]) -> _Part:
    for pattern, written in ((r"[ \t]*", r"[ \t]*"), (r"[ \t\r\n]*", r"[ \t\r\n]*"), ("[0-9]*", "[0-9]*")):
        if all(re.fullmatch(pattern, each) for each in middles):
            return _Run(written)
    return _Open(tuple(middles))


def _common(tokens: Sequence[str]) -> _Part | None:
    if len(set(tokens)) == 1:
        return _Fixed(tokens[0])
    if all(token.isspace() for token in tokens):
        return _Run(r"[ \t\r\n]+" if any("\n" in token for token in tokens) else r"[ \t]+")
    if all(re.fullmatch("[0-9]+", token) for token in tokens):
        return _Run("[0-9]+")
    return None


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    joined: list[_Part] = []
    for part in parts:
        if isinstance(part, _Fixed) and joined and isinstance(joined[-1], _Fixed):
            joined[-1] = _Fixed(joined[-1].text + part.text)
        else:
            joined.append(part)
    return joined


def _first_of(parts: Sequence[_Part]) -> str:
    """Return what must stand after a record: its first tag, or its first token."""
    if not parts or not isinstance(parts[0], _Fixed):
        return ""
    text = parts[0].text
    tag = re.match(r"</?[A-Za-z][^<>]*>", text)
    found = tag[0] if tag else _TOKEN.match(text)[0]  # type: ignore[index]  # it matches any character
    return "\n" if found.isspace() and found.startswith("\n") else found


def _beginnings(page: str, placements: Sequence[Placement]) -> list[str]:
    """Return texts that may begin a record, from the shortest on: a tag, the line, all that is common."""
    texts = [page[max(0, each.start - _CONTEXT) : each.start] for each in placements]
    parts = _generalised([text[::-1] for text in texts])[:1]
    common = parts[0].text[::-1] if parts and isinstance(parts[0], _Fixed) else ""
    if not common:
        return [""]
    cuts = [match.start() for match in re.finditer(r"</?[A-Za-z]|\n", common)]
    found = [common[cut:] for cut in reversed(cuts)][:6]
    token = _TOKEN.findall(common)[-1]
    return list(dict.fromkeys([*found, *([] if cuts else [token]), common]))


# --- the text of the grammar --------------------------------------------------------------------


def _written(fields: Sequence[_Field], start: str, end: str, *, is_loose: bool = False) -> str:
    """Return the grammar; a loose one takes any blanks and digits in the context."""
    items = [_literal(start)] if start else []
    for place, field in enumerate(fields):
        stops = _stops(fields[place + 1 :], end)
        before = _loosened(field.before) if is_loose and place else _items(field.before)
        own = [*before, f"{field.name}={_class(field.values, stops)}"]
        items += [f"({' '.join(own)})?"] if field.is_optional else own
    items += [_literal(end)] if end and not is_loose else []
    names = {field.name for field in fields}
    result = next(name for name in ("found", "result", "record_found", "the_record") if name not in names)
    lines = [f"rule record : {result} is", *_wrapped(items), "end", ""]
    return "\n".join([*lines, "rule records : list is", "  (list += record())+", "end", ""])


def _wrapped(items: Sequence[str]) -> Iterator[str]:
    line = " "
    for item in items:
        if len(line) + len(item) > _LINE and line.strip():
            yield line
            line = " "
        line += f" {item}"
    yield line


def _items(parts: Sequence[_Part]) -> Iterator[str]:
    for place, part in enumerate(parts):
        if isinstance(part, _Fixed):
            yield _literal(part.text)
        elif isinstance(part, _Run):
            yield part.written
        else:
            following = parts[place + 1] if place + 1 < len(parts) else None
            stop = following.text[0] if isinstance(following, _Fixed) else ""
            yield _up_to({stop} if stop else set(), part.texts, "*")


def _loosened(parts: Sequence[_Part]) -> Iterator[str]:
    blanks = r"[ \t\r\n]*"
    yield blanks
    for place, part in enumerate(parts):
        if isinstance(part, _Open):
            yield from list(_items(parts[place : place + 2]))[:1]
        elif isinstance(part, _Run):
            yield part.written if "0" in part.written else blanks
        else:
            for token in re.findall(r"\s+|[0-9]+|[^\s0-9]+", part.text):
                yield blanks if token.isspace() else "[0-9]+" if token.isdigit() else _literal(token)
        yield blanks


def _stops(following: Sequence[_Field], end: str) -> set[str]:
    """Return the characters that may follow a value."""
    stops: set[str] = set()
    for field in following:
        for part in field.before:
            if isinstance(part, _Fixed):
                stops.add(part.text[0])
            elif isinstance(part, _Run) and "0" not in part.written:
                stops |= {" ", "\n"} if "n" in part.written else {" "}
            if not (isinstance(part, _Run) and part.written.endswith("*")):
                break
        if not field.is_optional:
            return stops
    return stops | ({end[0]} if end else set())


def _class(values: Sequence[str], stops: set[str]) -> str:
    """Return the items for a value: digits and their signs, a word, or everything up to what follows."""
    characters = set("".join(values))
    signs = characters - set("0123456789")
    if signs != characters and signs <= set(".,/:-") and all(re.search("[0-9]", each) for each in values):
        return f"[0-9{''.join(map(_in_class, sorted(signs - {'-'})))}{'-' if '-' in signs else ''}]+"
    in_markup = stops & {"<", '"', "'"}
    if not in_markup and all(re.fullmatch("[A-Za-z]+", each) for each in values):
        return "[A-Za-z]+"
    return _up_to(stops, values, "+")


def _up_to(stops: set[str], texts: Sequence[str], sign: str) -> str:
    """Return the class of all characters but those that follow and stand in none of the texts."""
    excluded = {stop for stop in stops if not any(stop in text for text in texts)}
    if not excluded & {"<", '"'} and not any("\n" in text for text in texts):
        excluded.add("\n")
    if not excluded:
        return f".{sign}"
    return f"[^{''.join(map(_in_class, sorted(excluded)))}]{sign}"


def _in_class(character: str) -> str:
    return f"\\{character}" if character in "\\]^-[" else _escaped(character)


def _literal(text: str) -> str:
    quote = '"' if "'" in text and '"' not in text else "'"
    written = "".join(f"\\{each}" if each in (quote, "\\") else _escaped(each) for each in text)
    return f"{quote}{written}{quote}"


def _escaped(character: str) -> str:
    code = ord(character)
    named = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}.get(character)
    if named or character.isprintable() or code > 0xFFFF:
        return named or character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _tried(text: str, page: str) -> LearnedGrammar | None:
    grammar = compile(text, name="learned.jedi")
    try:
        parsed = grammar.parse(page, "records", limits=ParseLimits(seconds=_SECONDS), traces=True)
    except ParseError:
        return None
    return LearnedGrammar(text, grammar, parsed, ())


# --- doubts -------------------------------------------------------------------------------------


def _about_examples(
    page: str, wanted: Sequence[Mapping[str, str]], placements: Sequence[Placement]
) -> Iterator[str]:
    if len(wanted) == 1:
        yield "one example does not tell what differs from record to record; mark another one"
    source = Source("page", page)
    for number, (example, placement) in enumerate(zip(wanted, placements, strict=True), 1):
        counts = {name: len(occurrences(page, value)) for name, value in example.items()}
        several = [f"{name} {example[name]!r} {count} times" for name, count in counts.items() if count > 1]
        if several:
            line, _ = source.position(placement.start)
            listed = ", ".join(several)
            yield f"example {number} is taken from line {line:,}, but its values occur elsewhere: {listed}"
        for name, value in example.items():
            found = page[slice(*placement.spans[name])]
            if found != value:
                yield f"example {number}: {name} is written {visible(found)!r} on the page, and extracted so"


def _about_contexts(fields: Sequence[_Field]) -> Iterator[str]:
    for place, field in enumerate(fields):
        for part in field.before:
            if isinstance(part, _Open):
                shown = ", ".join(repr(visible(each[:40])) for each in dict.fromkeys(part.texts))
                before = fields[place - 1].name
                yield f"between {before} and {field.name} the examples differ: {shown}"
        if field.is_optional:
            yield f"{field.name} is optional: some examples lack it"


def _about_records(
    page: str,
    learned: LearnedGrammar,
    fields: Sequence[_Field],
    start: str,
    placements: Sequence[Placement],
) -> Iterator[str]:
    source = Source("page", page)
    alike = _alike(learned, _tried(_written(fields, start, "", is_loose=True), page))
    if alike:
        lines = ", ".join(f"line {source.position(place)[0]:,}" for place in alike[:5])
        more = ", …" if len(alike) > 5 else ""
        one = len(alike) == 1
        places = "1 place was" if one else f"{len(alike)} places were"
        differ = "differs" if one else "differ"
        yield f"{places} skipped that {differ} in blanks or digits only: {lines}{more}; mark one of them"
    fixed = [part.text for field in fields for part in field.before if isinstance(part, _Fixed)]
    mark = max([*fixed, start], key=len, default="")
    if len(mark.strip()) > 1 and not alike:
        found = [
            place for first, last in learned.parsed.skipped for place in _places(mark, page, first, last)
        ]
        if found:
            lines = ", ".join(f"line {source.position(place)[0]:,}" for place in found[:5])
            more = ", …" if len(found) > 5 else ""
            yield f"{len(found)} skipped places have {visible(mark)!r} too and may be records: {lines}{more}"
    for field in fields:
        longest = max(map(len, field.values))
        long = [
            n
            for n, each in enumerate(learned.records, 1)
            if len(each.get(field.name) or "") > 3 * longest + 50
        ]
        if long:
            yield (
                f"{field.name} of record {long[0]:,} is far longer than in the examples "
                f"({len(long)} such records)"
            )


def _alike(learned: LearnedGrammar, loose: LearnedGrammar | None) -> list[int]:
    """Return where a loose grammar finds records that the learned one skips."""
    if loose is None or loose.parsed.match is None:
        return []
    skipped = [(start, end) for start, end in learned.parsed.skipped if end > start]
    places = []
    at = 0
    for child in loose.parsed.match.children:
        first = child.bindings[0].start if child.bindings else child.start
        while at < len(skipped) and skipped[at][1] <= first:
            at += 1
        if at < len(skipped) and skipped[at][0] <= first:
            places.append(first)
    return places


def _places(mark: str, page: str, first: int, last: int) -> Iterator[int]:
    place = page.find(mark, first, last)
    while place >= 0:
        yield place
        place = page.find(mark, place + len(mark), last)
