"""Checks of a wrapper in its program: LIKE, the request and its templates, the reader, its selectors, paging.

Each finding has its place in the wrapper's own text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from aioflow.errors import AioflowError, Diagnostic, SettingError, suggestion
from aioflow.plan import Program
from aioflow.source import Span
from aioflow.wrappers.definition import Extraction, Field
from aioflow.wrappers.inheritance import (
    BODIES,
    GRAMMAR_READER,
    LIKE_AT_MOST,
    MergedWrapper,
    extraction_of,
    like_chain,
    merge,
    options_of,
    request_of,
)
from aioflow.wrappers.language import WrapperText
from aioflow.wrappers.language.cutting import place_in
from aioflow.wrappers.language.directives import SECRET
from aioflow.wrappers.language.wrapper_text import (
    Directive,
    PagingText,
    Part,
    ReaderChoice,
    Removal,
    RequestLine,
)
from aioflow.wrappers.readers.reader import Reader, reader
from aioflow.wrappers.templates import Authority, Mistake, TextTemplate, UrlTemplate


class WrapperFindings:
    """The mistakes and warnings of one wrapper."""

    def __init__(self, text: WrapperText) -> None:
        self._text = text
        self._found: list[Diagnostic] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def has_mistakes(self) -> bool:
        return any(found.severity == "error" for found in self._found)

    def add(self, message: str, span: Span | None, severity: Literal["error", "warning"] = "error") -> None:
        self._found.append(Diagnostic(message, span or self._text.span, severity))

    def warn(self, message: str, span: Span | None) -> None:
        self.add(message, span, "warning")

    def add_in_text(self, mistakes: Iterable[Mistake], literal: Span | None, hint: str = "") -> None:
        """Mistakes at places in a string of the source."""
        for mistake in mistakes:
            span = None if literal is None else place_in(literal, mistake.start, mistake.end)
            self.add(mistake.message + hint, span)

    def without(self, known: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Everything that is not known already, once, in the order of the text.

        What is wrong in this wrapper only, though it stands in one that LIKE brings, is placed at LIKE.
        """
        reported = set(known)
        found = dict.fromkeys(self._at_home(each) for each in self._found if each not in reported)
        return sorted(found, key=lambda each: each.span.start if each.span else -1)

    def _at_home(self, found: Diagnostic) -> Diagnostic:
        if self._text.like is None or self._text.owns(found.span):
            return found
        message = f"{found.message} (from LIKE {self._text.like})"
        return msgspec.structs.replace(found, message=message, span=self._text.like_span)


_COUNTING = ("number", "offset")
# Their pages are one item unless EACH says otherwise; pages of other kinds are made of items.
_WHOLE_PAGES = ("html", "xml")


def check_reading(merged: MergedWrapper, findings: WrapperFindings) -> None:
    """Add every mistake and warning in what a wrapper reads."""
    _check_paging(merged, findings)
    _check_shape(merged, findings)
    read = merged.directives.get("READ")
    choice = read.value if read else None
    extraction = extraction_of(merged)
    try:
        chosen = reader(extraction.reader)
    except AioflowError as error:
        findings.add(str(error), choice.span if choice else None)
        return
    if extraction.reader == GRAMMAR_READER and not _finds_grammar(merged, extraction, findings):
        return
    _ReaderCheck(chosen, extraction, choice or ReaderChoice(extraction.reader), findings).run()


def _finds_grammar(merged: MergedWrapper, extraction: Extraction, findings: WrapperFindings) -> bool:
    """Return whether there are the grammar and the rule of READ; mistakes of a grammar are reported there."""
    from aioflow.grammars import GrammarError, GrammarRecords, find_grammar

    choice: ReaderChoice = merged.value("READ")
    spans = {option.name: option.span for option in choice.options}
    try:
        text = find_grammar(options_of(choice)["name"], merged.program)
        GrammarRecords(text.grammar(), extraction.options.get("start"))
    except SettingError as error:
        findings.add(error.message, spans.get(error.setting or "name") or spans["name"])
        return False
    except GrammarError:
        return False
    return True


def _check_paging(merged: MergedWrapper, findings: WrapperFindings) -> None:
    paging, most = merged.directives.get("PAGING"), merged.directives.get("MAX_PAGES")
    if most is not None and paging is None:
        findings.add("MAX_PAGES limits PAGING, and there is none", most.span)
    if paging is None:
        return
    text: PagingText = paging.value
    if text.kind in _COUNTING:
        ends = f"PAGING {text.kind} ends at a page without items"
        if _is_one_item(merged):
            findings.add(f"{ends}, and without EACH every page is one", text.span)
        elif merged.value("OUTER"):
            findings.add(f"{ends}, and OUTER makes one of it", text.span)


def _is_one_item(merged: MergedWrapper) -> bool:
    extraction = extraction_of(merged)
    is_whole = extraction.reader in _WHOLE_PAGES or (extraction.reader == "text" and not extraction.options)
    return extraction.each is None and is_whole


def _check_shape(merged: MergedWrapper, findings: WrapperFindings) -> None:
    outer = merged.directives.get("OUTER")
    is_one_item, extraction = _is_one_item(merged), extraction_of(merged)
    if outer is not None and outer.value and is_one_item and not request_of(merged).empty:
        findings.warn("OUTER is for pages without items, and without EACH every page is one", outer.span)
    if extraction.empty and is_one_item:
        message = "a selector in EMPTY is for pages without items, and without EACH every page is one"
        findings.warn(message, extraction.empty_spans[0])
    request = merged.value("REQUEST")
    if not merged.fields and request is not None and request.method == "GET":
        findings.warn(f"wrapper {merged.text.name!r} has no fields", merged.text.span)


class _ReaderCheck:
    """Has the reader compile what is wrong selector by selector, so that each wrong one is found."""

    def __init__(
        self, chosen: Reader, extraction: Extraction, choice: ReaderChoice, findings: WrapperFindings
    ) -> None:
        self._reader = chosen
        self._whole = extraction
        self._bare = replace(extraction, each=None, fields=(), next_page=None, empty=(), empty_spans=())
        self._choice = choice
        self._findings = findings

    def run(self) -> None:
        # Nearly all are sound, and then there is no need to look at each part.
        if self._error(self._whole) is not None:
            self._find_mistakes()

    def _find_mistakes(self) -> None:
        options_are_sound = self._check_options()
        bare, each_is_sound = self._bare, True
        if self._whole.each is not None:
            bare = replace(self._bare, each=self._whole.each)
            element = Field("EACH", self._whole.each, selector_span=self._whole.each_span)
            each_is_sound = self._compiles(bare, {"EACH": element}, self._whole.each_span)
            bare = bare if each_is_sound else self._bare
        sound = each_is_sound and options_are_sound
        for field in self._whole.fields:
            if each_is_sound or field.selector:
                sound = self._check_field(bare, field) and sound
        following = self._whole.next_page
        if following is not None:
            with_next = replace(bare, next_page=following)
            sound = self._compiles(with_next, {following.name: following}, following.selector_span) and sound
        for text, span in zip(self._whole.empty, self._whole.empty_spans, strict=True):
            proof = Field("EMPTY", text, selector_span=span)
            sound = self._compiles(replace(bare, empty=(text,)), {"EMPTY": proof}, span) and sound
        if sound:
            fields = {path: field for each in self._whole.fields for path, field in _paths(each)}
            self._compiles(self._whole, fields, self._choice.span)

    def _check_options(self) -> bool:
        """Find the options that are wrong, and go on without them."""
        error = self._error(self._bare)
        if error is None:
            return True
        sound: dict[str, Any] = {}
        reported = False
        for option in self._choice.options:
            candidate = {**sound, option.name: self._whole.options[option.name]}
            if self._compiles(replace(self._bare, options=candidate), {}, option.span):
                sound = candidate
            else:
                reported = True
        if not reported:
            self._report(error, None, self._choice.span)
        self._bare = replace(self._bare, options=sound)
        return False

    def _check_field(self, bare: Extraction, field: Field) -> bool:
        sound = True
        for variant in _variants(field):
            paths = dict(_paths(variant))
            *_, (path, leaf) = paths.items()
            place = leaf.selector_span or leaf.span
            error = self._error(replace(bare, fields=(variant,)))
            if error is None:
                continue
            sound = False
            self._report(error, paths.get(_setting(error)), place)
            if path.startswith(f"{_setting(error)}."):
                # What is around it hides what may be wrong with the field itself.
                self._compiles(replace(bare, fields=(leaf,)), {leaf.name: leaf}, place)
        return sound

    def _compiles(self, extraction: Extraction, fields: dict[str, Field], place: Span | None) -> bool:
        error = self._error(extraction)
        if error is not None:
            self._report(error, fields.get(_setting(error)), place)
        return error is None

    def _error(self, extraction: Extraction) -> AioflowError | None:
        try:
            self._reader.compile(extraction)
        except AioflowError as error:
            return error
        return None

    def _report(self, error: AioflowError, field: Field | None, place: Span | None) -> None:
        message = str(error)
        offset = error.offset if isinstance(error, SettingError) else None
        if field is not None:
            message = message.removeprefix(f"field {field.name!r}: ")
            place = field.selector_span or field.span or place
            if offset is not None and field.selector_span is not None:
                place = place_in(field.selector_span, offset)
        self._findings.add(message, place)


def _setting(error: AioflowError) -> str:
    return (error.setting or "") if isinstance(error, SettingError) else ""


def _variants(field: Field) -> Iterator[Field]:
    """The field itself, or for an embedded relation one for each field in it."""
    if not field.fields:
        yield field
    for inner in field.fields:
        for variant in _variants(inner):
            yield replace(field, fields=(variant,))


def _paths(field: Field, path: str = "") -> Iterator[tuple[str, Field]]:
    yield f"{path}{field.name}", field
    for inner in field.fields:
        yield from _paths(inner, f"{path}{field.name}.")


_LOOKS_SECRET = re.compile(r"(?:^|[-_])(?:key|token|secret|password|apikey)$", re.IGNORECASE)
_NO_SECRET = re.compile(r"\S*secret:\S*")
_LOOKS_LIKE_JSON = re.compile(r"\s*[{\[][\s\S]*[}\]]\s*")


def problems(text: WrapperText, program: Program) -> list[Diagnostic]:
    """Every mistake and warning, in the order of the text.

    What LIKE brings is reported where it stands, unless it is only wrong in this wrapper.
    """
    try:
        chain = list(like_chain(text, program))
    except SettingError as error:
        return [Diagnostic(error.message, text.like_span)] if _answers_for_like(text, program) else []
    merged = merge(text, program)
    findings = WrapperFindings(text)
    base = merge(chain[1], program) if len(chain) > 1 else None
    _check_removals(text, base, findings)
    RequestCheck(merged, findings).run()
    check_reading(merged, findings)
    known = problems(chain[1], program) if findings and base is not None else []
    return findings.without(known)


def _answers_for_like(text: WrapperText, program: Program) -> bool:
    """Return whether a LIKE that leads nowhere or back is this wrapper's own mistake, reported once."""
    way = [text.name.lower()]
    current = text
    while current.like is not None and len(way) <= LIKE_AT_MOST:
        item = program.item("wrapper", current.like)
        if item is None or not isinstance(item.content, WrapperText):
            return current is text
        current = item.content
        if current.name.lower() == way[0]:
            members = [each.name.lower() for each in program.items if each.name.lower() in way]
            return members[0] == way[0]
        if current.name.lower() in way:
            return False
        way.append(current.name.lower())
    return len(way) > LIKE_AT_MOST


def _check_removals(text: WrapperText, base: MergedWrapper | None, findings: WrapperFindings) -> None:
    """`none` takes back what is there."""
    for directive in text.directives:
        if directive.value is None and (base is None or directive.name not in base.directives):
            brought = f"LIKE {text.like} brings no {directive.name}" if base else "there is no LIKE"
            findings.add(f"'none' takes back what LIKE brings, and {brought}", directive.span)
    names = [field.name for field in base.fields] if base else []
    for field in text.fields:
        if isinstance(field, Removal) and field.name not in names:
            brought = f"LIKE {text.like} brings no field {field.name!r}" if base else "there is no LIKE"
            hint = suggestion(field.name, names)
            findings.add(f"'none' takes back what LIKE brings, and {brought}{hint}", field.span)


class RequestCheck:
    """Checks the request of a wrapper: its templates, what it carries, and where its secrets go."""

    def __init__(self, merged: MergedWrapper, findings: WrapperFindings) -> None:
        self._merged = merged
        self._findings = findings
        self._places = {given.name: place for place, given in enumerate(merged.inputs)}
        self._used: set[str] = set()
        self._secrets: list[Span | None] = []

    def run(self) -> None:
        given = self._merged.directives.get("REQUEST")
        if given is None:
            message = f'wrapper {self._merged.text.name!r} makes no request; write GET: "https://…"'
            self._findings.add(message, self._merged.text.span)
        self._check_parts()
        self._check_body_text()
        if given is not None:
            self._check_carried(given)
            self._check_url(given)
            self._warn_of_unused()

    # --- the URL --------------------------------------------------------------------------------

    def _check_url(self, given: Directive) -> None:
        line: RequestLine = given.value
        hint = _field_hint(given, line.method)
        if "secret:" in line.url:
            message = "a URL is logged and stored, so no secret can stand in it; use HEADERS or AUTH"
            self._findings.add(message, given.value_span)
        template = UrlTemplate(line.url, self._places)
        self._used.update(template.used)
        self._findings.add_in_text(template.mistakes, given.value_span, hint)
        if template.mistakes:
            return
        authority = Authority(template)
        self._findings.add_in_text(authority.mistakes, given.value_span, hint)
        if not authority.mistakes and not authority.is_fixed:
            for span in self._secrets:
                message = "a secret is for one host, and this URL can lead to any"
                hint = 'put it under [host."…"] in aioflow.toml'
                self._findings.add(f"{message}; {hint}", span)

    # --- what it carries ------------------------------------------------------------------------

    def _check_carried(self, given: Directive) -> None:
        method = given.value.method
        bodies = [self._merged.directives[name] for name in BODIES if name in self._merged.directives]
        for other in bodies[1:]:
            message = f"{bodies[0].name} and {other.name} cannot stand together: a request has one body"
            self._findings.add(message + _field_hint(other), other.span)
        if method != "GET":
            self._check_restart(method)
            return
        for body in bodies:
            message = f'GET sends no {body.name}; values stand in its URL, as "…{{?name}}"'
            self._findings.add(message + _field_hint(body), body.span)
        safe = self._merged.directives.get("SAFE")
        if safe is not None:
            self._findings.warn("SAFE says nothing new: a GET is safe anyway", safe.span)

    def _check_restart(self, method: str) -> None:
        restart = self._merged.directives.get("RESTART")
        if restart is not None and restart.value.is_on and not self._merged.value("SAFE"):
            message = f"RESTART sends a request again, and a {method} may change something"
            self._findings.add(f"{message}; SAFE says that it does not", restart.span)

    def _check_parts(self) -> None:
        for name in ("FORM", "JSON", "HEADERS"):
            directive = self._merged.directives.get(name)
            if directive is not None:
                for part in directive.value:
                    self._check_part(part, directive)
        auth = self._merged.directives.get("AUTH")
        if auth is not None:
            self._secrets.append(auth.value_span)

    def _check_part(self, part: Part, directive: Directive) -> None:
        for value, span in part.values:
            if isinstance(value, str):
                self._check_text(value, span, part.name, directive)

    def _check_text(self, text: str, span: Span | None, name: str, directive: Directive) -> None:
        template = TextTemplate(text, self._places)
        has_secret = SECRET.search(text) is not None
        for match in _NO_SECRET.finditer(SECRET.sub("", text)):
            message = f"{match[0]!r} is no secret; write 'secret:' and a name of letters, digits, '_' and '-'"
            self._findings.add(f"{message}, apart from other text", span)
        if has_secret and "{" in text:
            self._findings.add("a text with a secret can hold no values beside it", span)
        elif has_secret:
            self._secrets.append(span)
        else:
            self._used.update(template.used)
            self._findings.add_in_text(template.mistakes, span, _field_hint(directive))
        is_literal = not has_secret and not template.used and not template.mistakes
        if is_literal and directive.name == "HEADERS" and _LOOKS_SECRET.search(name):
            message = f"{name!r} looks like a credential, which stands in a plan by reference only"
            self._findings.warn(f'{message}: "secret:NAME"', span)

    def _check_body_text(self) -> None:
        directive = self._merged.directives.get("BODY")
        if directive is None:
            return
        template = TextTemplate(directive.value, self._places)
        self._used.update(template.used)
        self._findings.add_in_text(template.mistakes, directive.value_span, _field_hint(directive))
        if template.used and _LOOKS_LIKE_JSON.fullmatch(directive.value):
            message = "values stand in BODY just as they are, and a quote in one would break this text"
            self._findings.warn(f"{message}; JSON: writes them right", directive.value_span)

    def _warn_of_unused(self) -> None:
        if self._findings.has_mistakes:
            return  # a misspelt name would be told twice
        for given in self._merged.inputs:
            if given.name not in self._used and self._merged.text.owns(given.span):
                self._findings.warn(f"input {given.name!r} is used nowhere", given.span)


def _field_hint(directive: Directive, written: str | None = None) -> str:
    """Return a hint: a keyword in small letters may be meant as a field."""
    if not directive.small:
        return ""
    return f"; a field of this name stands in backticks: `{(written or directive.name).lower()}`"
