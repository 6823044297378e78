"""What is wrong with a wrapper in its program: LIKE, the request and its templates.

What concerns reading the answer is for `reading_checks`.
"""

from __future__ import annotations

import re

from aioflow.errors import Diagnostic, SettingError, suggestion
from aioflow.pattern import pattern
from aioflow.plan import Program
from aioflow.source import Span
from aioflow.wrappers.authority import Authority
from aioflow.wrappers.findings import Findings
from aioflow.wrappers.language import WrapperText
from aioflow.wrappers.language.parts import SECRET
from aioflow.wrappers.language.pieces import Directive, Part, Removal, RequestLine
from aioflow.wrappers.reading_checks import check_reading
from aioflow.wrappers.resolving import BODIES, LIKE_AT_MOST, Merged, like_chain, merge
from aioflow.wrappers.templates import TextTemplate, UrlTemplate

_LOOKS_SECRET = pattern(r"(?:^|[-_])(?:key|token|secret|password|apikey)$", re.IGNORECASE)
_NO_SECRET = pattern(r"\S*secret:\S*")
_LOOKS_LIKE_JSON = pattern(r"\s*[{\[][\s\S]*[}\]]\s*")


def problems(text: WrapperText, program: Program) -> list[Diagnostic]:
    """Every mistake and warning, in the order of the text.

    What LIKE brings is reported where it stands, unless it is only wrong in this wrapper.
    """
    try:
        chain = list(like_chain(text, program))
    except SettingError as error:
        return [Diagnostic(error.message, text.like_span)] if _answers_for_like(text, program) else []
    merged = merge(text, program)
    findings = Findings(text)
    base = merge(chain[1], program) if len(chain) > 1 else None
    _check_removals(text, base, findings)
    RequestCheck(merged, findings).run()
    check_reading(merged, findings)
    known = problems(chain[1], program) if findings and base is not None else []
    return findings.without(known)


def _answers_for_like(text: WrapperText, program: Program) -> bool:
    """Whether a LIKE that leads nowhere or back is this wrapper's own mistake; each is reported once."""
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


def _check_removals(text: WrapperText, base: Merged | None, findings: Findings) -> None:
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

    def __init__(self, merged: Merged, findings: Findings) -> None:
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
            return
        for body in bodies:
            message = f'GET sends no {body.name}; values stand in its URL, as "…{{?name}}"'
            self._findings.add(message + _field_hint(body), body.span)
        safe = self._merged.directives.get("SAFE")
        if safe is not None:
            self._findings.warn("SAFE says nothing new: a GET is safe anyway", safe.span)

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
    """Who writes a keyword in small letters may mean a field."""
    if not directive.small:
        return ""
    return f"; a field of this name stands in backticks: `{(written or directive.name).lower()}`"
