"""The best interpretation, found by listing all of them in written order: slow and simple.

Grammars are trees of tuples, made by `random_grammars` or by hand, and written as text for the real parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

CODE_POINTS = 0x110000
SKIPPED = CODE_POINTS + 1

# ("text", literal) ("class", characters, written) ("not", characters, written) ("any",) ("sequence", items)
# ("choice", items) ("repeat", sign, item) ("call", name) ("bind", variable, collects, item)
# ("accept", item, condition) ("print", variable)
Item: TypeAlias = tuple[Any, ...]
Effect: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class PlainRule:
    name: str
    body: Item
    result: str = ""
    is_strict: bool = False


class TooManyError(Exception):
    """There are more interpretations than the oracle lists."""


@dataclass
class Found:
    """What the best interpretation gives."""

    value: Any
    variables: dict[str, Any]
    output: str
    skipped: list[tuple[int, int]]


_NOTHING = object()

Way: TypeAlias = tuple[int, tuple[int, ...], tuple[Effect, ...]]


class Oracle:
    """Lists the interpretations of one grammar over one source."""

    def __init__(self, rules: list[PlainRule], source: str, at_most: int = 8_000) -> None:
        self.rules = {rule.name: rule for rule in rules}
        self.source = source
        self.at_most = at_most
        self.listed = 0
        self.evaluations: dict[str, int] = {}

    def interpretations(self, start: str) -> Iterator[Way]:
        """Yield every interpretation of the whole source, in written order."""
        for end, sizes, effects in self.call(start, 0, False):
            rest = len(self.source) - end
            if rest == 0:
                yield end, sizes, effects
            elif not self.rules[start].is_strict:
                yield end, sizes + (SKIPPED,) * rest, (*effects, ("skip", end, len(self.source)))

    def best(self, start: str) -> Found | None:
        """Return the interpretation with the least sequence of sizes, of equal ones the first."""
        least: Way | None = None
        for way in self.interpretations(start):
            if least is None or way[1] < least[1]:
                least = way
        return None if least is None else self.interpreted(least[2])

    def call(self, name: str, place: int, in_predicate: bool) -> Iterator[Way]:
        rule = self.rules[name]
        self.evaluations[name] = self.evaluations.get(name, 0) + 1
        skips = 0 if rule.is_strict or in_predicate else len(self.source) - place
        for skipped in range(skips + 1):
            start = place + skipped
            before: tuple[Effect, ...] = (("enter", name, place),)
            if skipped:
                before = (*before, ("skip", place, start))
            for end, sizes, effects in self.ways(rule.body, start, in_predicate):
                yield end, (SKIPPED,) * skipped + sizes, (*before, ("begin", start), *effects, ("leave", end))

    def ways(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        self.listed += 1
        if self.listed > self.at_most:
            raise TooManyError
        yield from getattr(self, f"_{item[0]}")(item, place, in_predicate)

    def _text(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        if self.source.startswith(item[1], place):
            yield place + len(item[1]), (1,) * len(item[1]), ()

    def _class(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        if place < len(self.source) and self.source[place] in item[1]:
            yield place + 1, (len(set(item[1])),), ()

    def _not(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        if place < len(self.source) and self.source[place] not in item[1]:
            yield place + 1, (CODE_POINTS - len(set(item[1])),), ()

    def _any(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        if place < len(self.source):
            yield place + 1, (CODE_POINTS,), ()

    def _sequence(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        yield from self._rest(item[1], place, in_predicate)

    def _rest(self, items: tuple[Item, ...], place: int, in_predicate: bool) -> Iterator[Way]:
        if not items:
            yield place, (), ()
            return
        for middle, sizes, effects in self.ways(items[0], place, in_predicate):
            for end, more, others in self._rest(items[1:], middle, in_predicate):
                yield end, sizes + more, effects + others

    def _choice(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        for each in item[1]:
            yield from self.ways(each, place, in_predicate)

    def _repeat(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        _, sign, inner = item
        if sign == "?":
            yield from self.ways(inner, place, in_predicate)
            yield place, (), ()
        elif sign == "*":
            yield from self._iterations(inner, place, in_predicate)
        else:
            # Only the first iteration of + may be empty.
            for middle, sizes, effects in self.ways(inner, place, in_predicate):
                for end, more, others in self._iterations(inner, middle, in_predicate):
                    yield end, sizes + more, effects + others

    def _iterations(self, inner: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        for middle, sizes, effects in self.ways(inner, place, in_predicate):
            if middle > place:
                for end, more, others in self._iterations(inner, middle, in_predicate):
                    yield end, sizes + more, effects + others
        yield place, (), ()

    def _call(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        yield from self.call(item[1], place, in_predicate)

    def _bind(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        _, variable, collects, inner = item
        optional = inner[0] == "repeat" and inner[1] == "?"
        called = inner[0] == "call" or (optional and inner[2][0] == "call")
        for end, sizes, effects in self.ways(inner, place, in_predicate):
            bound = ("bind", variable, collects, called, place, end)
            yield end, sizes, (("open",), *effects, bound)

    def _accept(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        for end, sizes, effects in self.ways(item[1], place, True):
            if condition_holds(item[2], self.source[place:end]):
                yield end, sizes, effects

    def _print(self, item: Item, place: int, in_predicate: bool) -> Iterator[Way]:
        yield place, (), (item,)

    # --- effects --------------------------------------------------------------------------------

    def interpreted(self, effects: tuple[Effect, ...]) -> Found:
        """Carry out the effects of a path, in its order."""
        skipped = [(each[1], each[2]) for each in effects if each[0] == "skip"]
        output = ""
        frames: list[dict[str, Any]] = []
        results: list[Any] = []
        for each in effects:
            if each[0] == "enter":
                frames.append({"rule": self.rules[each[1]], "start": each[2], "variables": {}})
            elif each[0] == "begin":
                frames[-1]["start"] = each[1]
            elif each[0] == "leave":
                frame = frames.pop()
                results.append(self._result(frame, each[1], skipped))
                last = frame
            elif each[0] == "open":
                results.append(_NOTHING)
            elif each[0] == "bind":
                _, variable, collects, called, start, end = each
                value = self._text_between(start, end, skipped)
                if called and results[-1] is not _NOTHING:
                    value = results[-1]
                _assign(frames[-1]["variables"], variable, collects, value)
            elif each[0] == "print":
                output += _printed(frames[-1]["variables"].get(each[1])) + "\n"
        return Found(results[-1], _with_lists(last), output, skipped)

    def _result(self, frame: dict[str, Any], end: int, skipped: list[tuple[int, int]]) -> Any:
        rule, variables = frame["rule"], _with_lists(frame)
        if not rule.result:
            return self._text_between(frame["start"], end, skipped)
        if rule.result in assigned(rule.body):
            return variables.get(rule.result)
        return variables

    def _text_between(self, start: int, end: int, skipped: list[tuple[int, int]]) -> str:
        return "".join(
            self.source[place]
            for place in range(start, end)
            if not any(first <= place < last for first, last in skipped)
        )


def _with_lists(frame: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of a rule in written order; one that only collects begins as an empty list."""
    variables = {}
    for name, only_collects in assigned(frame["rule"].body).items():
        if name in frame["variables"] or only_collects:
            variables[name] = frame["variables"].get(name, [])
    return variables


def assigned(item: Item) -> dict[str, bool]:
    """Return the variables that are bound inside an item, and whether each only collects."""
    found: dict[str, bool] = {}
    if item[0] == "bind":
        found[item[1]] = item[2]
    for part in item[1:]:
        inner = part if isinstance(part, tuple) and part and isinstance(part[0], tuple) else (part,)
        for each in inner:
            if isinstance(each, tuple):
                for name, collects in assigned(each).items():
                    found[name] = found.get(name, True) and collects
    return found


def _assign(variables: dict[str, Any], name: str, collects: bool, value: Any) -> None:
    if not collects:
        variables[name] = value
    elif isinstance(variables.get(name, []), list):
        variables[name] = [*variables.get(name, []), value]
    else:
        variables[name] = [variables[name], value]


def _printed(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_printed, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_printed(each)}" for name, each in value.items())
    return str(value)


def condition_holds(condition: tuple[str, Any], text: str) -> bool:
    kind, value = condition
    if kind == "shorter":
        return bool(len(text) < value)
    if kind == "equal":
        return bool(text == value)
    return bool(len(text) % 2 == value)


# --- text ---------------------------------------------------------------------------------------


def written(rules: list[PlainRule]) -> str:
    """Return the rules as the text of a grammar."""
    return "\n".join(map(_rule, rules))


def _rule(rule: PlainRule) -> str:
    start = "strict rule" if rule.is_strict else "rule"
    result = f" : {rule.result}" if rule.result else ""
    return f"{start} {rule.name}{result} is\n  {_item(rule.body)}\nend"


def _item(item: Item) -> str:
    kind = item[0]
    if kind == "text":
        return f"'{item[1]}'"
    if kind in ("class", "not"):
        return str(item[2])
    if kind == "any":
        return "."
    if kind == "sequence":
        return "(" + " ".join(map(_item, item[1])) + ")"
    if kind == "choice":
        return "(" + " | ".join(map(_item, item[1])) + ")"
    if kind == "repeat":
        return f"({_item(item[2])}){item[1]}"
    if kind == "call":
        return f"{item[1]}()"
    return _with_name(item)


def _with_name(item: Item) -> str:
    if item[0] == "bind":
        return f"({item[1]} {'+=' if item[2] else '='} {_item(item[3])})"
    if item[0] == "accept":
        return f"(accept {_item(item[1])} if {_condition(item[2])};)"
    return f"do println({item[1]}); end"


def _condition(condition: tuple[str, Any]) -> str:
    kind, value = condition
    if kind == "shorter":
        return f"$$.length < {value}"
    return f"$$ == '{value}'" if kind == "equal" else f"$$.length % 2 == {value}"
