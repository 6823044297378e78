"""The text of HIDDEN items: `QUERY: search; LIMIT: 50; price: range "min-price" "max-price" from 0`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, get_args

from aioflow.errors import PlanError, suggestion
from aioflow.hidden.algorithms.choice import ALGORITHMS
from aioflow.hidden.forms.definition import KINDS, FormField, HiddenForm, Near, Unit
from aioflow.language.kinds import ItemKind
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import CONSTANT, Token
from aioflow.source import Source, Span
from aioflow.wrappers.language.cutting import (
    Line,
    UnexpectedError,
    WrapperEntry,
    closing_token,
    entries_of,
    is_quoted,
    name_of,
    report_bad,
    tokens_of,
)

DIRECTIVES = ("QUERY", "LIMIT", "TOTAL", "MORE", "ALGORITHM", "EXCLUDES", "QUOTA", "KEY", "NEAR")
_OPTIONS = ("from", "to", "step", "in", "of", "required")
_ENDS: dict[str, int] = {"range": 2, "at_most": 1, "at_least": 1, "value": 1, "menu": 1}


class _BodyReader:
    """Reads the entries of a body, and collects every mistake."""

    def __init__(self, name: str, mistakes: Mistakes) -> None:
        self._name = name
        self._mistakes = mistakes
        self._values: dict[str, Any] = {"excludes": ()}
        self._fields: dict[str, FormField] = {}
        self._has_fields = False  # or lines that should be some
        self._spans: dict[str, Span] = {}
        self._directives: dict[str, Callable[[Line], None]] = {
            "QUERY": self._read_query,
            "LIMIT": lambda line: self._read_number(line, "limit"),
            "TOTAL": lambda line: self._read_name(line, "total"),
            "MORE": lambda line: self._read_name(line, "more"),
            "ALGORITHM": self._read_algorithm,
            "EXCLUDES": self._read_excludes,
            "QUOTA": lambda line: self._read_number(line, "quota"),
            "KEY": self._read_key,
            "NEAR": self._read_near,
        }

    def read(self, entries: list[WrapperEntry], whole: Span) -> HiddenForm | None:
        for entry in entries:
            try:
                self._read_entry(entry)
            except UnexpectedError as mistake:
                mistake.report(self._mistakes)
        if "query" not in self._values:
            self._mistakes.add(
                "a form needs QUERY: the wrapper that asks a query", whole.start, whole.start + 1
            )
        if not self._has_fields:
            self._mistakes.add(
                "a form needs attributes: name: range, value or menu", whole.start, whole.start + 1
            )
        if "near" in self._values:
            self._check_near()
        if self._mistakes:
            return None
        return HiddenForm(self._name, fields=tuple(self._fields.values()), spans=self._spans, **self._values)

    def _read_entry(self, entry: WrapperEntry) -> None:
        if not entry.is_keyed:
            token = entry.key
            self._has_fields = True
            raise UnexpectedError(f"expected 'NAME: …', found {token.text!r}", token.start, token.end)
        line = Line(entry.tokens, entry.opening or entry.end, 2)
        key = entry.key.text
        if key in DIRECTIVES:
            self._note(key, entry)
            self._directives[key](line)
        elif key.isupper() and len(key) > 2 and not is_quoted(entry.key):
            hint = suggestion(key, DIRECTIVES) or f" (there are: {', '.join(DIRECTIVES)})"
            raise UnexpectedError(f"unknown directive {key!r}{hint}", entry.key.start, entry.key.end)
        else:
            self._has_fields = True
            self._read_field(entry.key, line)
        line.expect_end()

    def _note(self, key: str, entry: WrapperEntry) -> None:
        """Each directive stands once, but for EXCLUDES."""
        values = entry.tokens[2:] or [entry.key]
        span = Span(entry.key.source, values[0].start, values[-1].end)
        first = self._spans.setdefault(key, span)
        if first is not span and key != "EXCLUDES":
            message = f"{key} stands twice; the first is in line {first.line}"
            self._mistakes.add(message, entry.key.start, entry.key.end)

    def _check_near(self) -> None:
        places = list(self._fields.values())[:2]
        is_bound = len(places) == 2 and all(
            each.kind == "range" and None not in (each.low, each.high) for each in places
        )
        if not is_bound:
            message = "NEAR needs two ranges first, latitude and longitude, each with from and to"
            span = self._spans["NEAR"]
            self._mistakes.add(message, span.start, span.end)
        if self._values.setdefault("algorithm", "squares") not in ("squares", "rank-shrink", "binary-shrink"):
            span = self._spans["ALGORITHM"]
            self._mistakes.add("with NEAR, the algorithm is squares", span.start, span.end)

    # --- directives ---------------------------------------------------------------------------------

    def _read_query(self, line: Line) -> None:
        self._values["query"] = name_of(line.name("the name of a wrapper"))

    def _read_name(self, line: Line, what: str) -> None:
        self._values[what] = name_of(line.name("an attribute of the wrapper"))

    def _read_number(self, line: Line, what: str) -> None:
        token, value = line.constant("a whole number")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UnexpectedError(
                f"expected a whole number, at least 1, found {token.text}", token.start, token.end
            )
        self._values[what] = value

    def _read_algorithm(self, line: Line) -> None:
        token = line.name("an algorithm")
        name = name_of(token).lower()
        if name not in ALGORITHMS:
            hint = suggestion(name, ALGORITHMS) or f" (there are: {', '.join(ALGORITHMS)})"
            raise UnexpectedError(f"unknown algorithm {name!r}{hint}", token.start, token.end)
        self._values["algorithm"] = name

    def _read_excludes(self, line: Line) -> None:
        token = line.text('a dependency, such as "make = BMW excludes body = truck"')
        self._values["excludes"] += (token.value,)
        self._spans[f"EXCLUDES {token.value}"] = token.span

    def _read_key(self, line: Line) -> None:
        names = [name_of(line.name("an attribute of the wrapper"))]
        while line.accept(","):
            names.append(name_of(line.name("an attribute of the wrapper")))
        self._values["key"] = tuple(names)

    def _read_near(self, line: Line) -> None:
        names = [
            name_of(line.name(f"the input for the {what}")) for what in ("latitude", "longitude", "radius")
        ]
        unit = "km" if line.at_end else line.word("km, miles or m").text.lower()
        if unit not in get_args(Unit):
            raise UnexpectedError("a radius is in km, miles or m", line.previous.start, line.previous.end)
        self._values["near"] = Near(names[0], names[1], names[2], cast(Unit, unit))

    # --- attributes ---------------------------------------------------------------------------------

    def _read_field(self, key: Token, line: Line) -> None:
        name = name_of(key)
        if name in self._fields:
            self._mistakes.add(f"the attribute {name!r} stands here twice", key.start, key.end)
        token = line.word("range, at_most, at_least, value or menu")
        kind = token.text.lower().replace("-", "_")
        if kind not in KINDS:
            hint = suggestion(kind, KINDS) or f" (there are: {', '.join(KINDS)})"
            raise UnexpectedError(f"unknown kind of attribute {token.text!r}{hint}", token.start, token.end)
        found = [name_of(each) for each in _inputs(line)]
        if len(found) > _ENDS[kind] or (kind == "range" and len(found) == 1):
            wanted = "two inputs of the wrapper" if kind == "range" else "one input of the wrapper"
            raise UnexpectedError(f"{kind} needs {wanted}", token.start, token.end)
        inputs = tuple(found) or ((f"min-{name}", f"max-{name}") if kind == "range" else (name,))
        options = self._read_options(line)
        self._check_options(kind, options, token)
        self._fields[name] = FormField(name, kind, inputs, **options, span=key.span)

    def _read_options(self, line: Line) -> dict[str, Any]:
        options: dict[str, Any] = {}
        while not line.at_end:
            if not line.is_word(*_OPTIONS):
                line.expect("from, to, step, in, of, required or the end of the line")
            word = line.take().text.lower()
            if word == "required":
                options["required"] = True
            elif word == "in":
                options["values"] = _values(line)
            elif word == "of":
                options["menu_of"] = name_of(line.name("the name of a wrapper"))
                options["menu_attribute"] = name_of(line.name("an attribute of that wrapper"))
            else:
                names = {"from": "low", "to": "high", "step": "step"}
                options[names[word]] = line.constant()[1]
        return options

    def _check_options(self, kind: str, options: dict[str, Any], token: Token) -> None:
        message = ""
        if kind != "menu" and {"values", "menu_of", "required"} & set(options):
            message = f"in, of and required belong to a menu, not to {kind}"
        elif kind == "menu" and {"low", "high", "step"} & set(options):
            message = "from, to and step belong to ranges and values, not to a menu"
        elif kind == "value" and not {"low", "high"} <= set(options):
            message = "value needs from and to: each value is a query of its own"
        elif options.get("required") and not {"values", "menu_of"} & set(options):
            message = "a required menu needs its values: in or of"
        elif {"values", "menu_of"} <= set(options):
            message = "the values of a menu come from in or of, not from both"
        if message:
            self._mistakes.add(message, token.start, token.end)


def _inputs(line: Line) -> list[Token]:
    found = []
    while not line.at_end and (
        (line.token.type == CONSTANT and isinstance(line.token.value, str)) or not line.is_word(*_OPTIONS)
    ):
        found.append(line.name("an input of the wrapper"))
    return found


def _values(line: Line) -> tuple[Any, ...]:
    _, first = line.constant("the values of the menu")
    if isinstance(first, tuple):
        return first
    values = [first]
    while line.accept(","):
        values.append(line.constant("a value of the menu")[1])
    return tuple(values)


def parse_form(name: str, header: Span, body: Span) -> HiddenForm:
    """Return the form of a text; a PlanError lists every mistake in it."""
    mistakes = Mistakes(body.source)
    for token in tokens_of(header):
        mistakes.add("a form has no header: inputs are those of its wrapper", token.start, token.end)
        break
    tokens = tokens_of(body, dotted=False)
    report_bad(tokens, mistakes)
    form = _BodyReader(name, mistakes).read(entries_of(tokens, closing_token(body, "}"), mistakes), body)
    if form is None:
        raise PlanError(mistakes.diagnostics())
    return form


def form_of_text(name: str, header: str, body: str) -> HiddenForm:
    """Return the form of an item that was built in Python, which has texts only."""
    text = f"{header}\n{{\n{body}\n}}"
    source = Source(f"<HIDDEN {name}>", text)
    start = len(header) + 3
    return parse_form(name, Span(source, 0, len(header)), Span(source, start, start + len(body)))


def parse(name: str, header: str, body: str, header_span: Span, body_span: Span) -> HiddenForm:
    return parse_form(name, header_span, body_span)


KIND = ItemKind("HIDDEN", parse)
