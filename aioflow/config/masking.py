"""Hides secrets in all output: their values in every form of writing, and the user-info of URLs.

`aioflow.config.secrets` finds the secrets.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from logging import Logger, LogRecord

MASK = "********"

# A shorter value would be masked in every text. It is masked only where it looks like a value.
_SHORT_CHARACTERS = 4
_TELLING_LETTERS = 6  # of base64: fewer may be part of any word
# The number of credentials kept from URLs in pages: only the latest, since a crawl may meet very many.
_PASSING_AT_MOST = 50
# The characters that different writers of URLs do not escape: none, those of paths, and those of queries.
_SAFE_IN_URLS = ("", "/", "!$'()*,/:;?@")
_ESCAPE = re.compile("%[0-9A-F]{2}")
_BEFORE_VALUE = r"""(?:(?<=[=:"'`])|(?<=[=:] )|(?<=Bearer )|(?<=bearer ))"""
_AFTER_VALUE = r"""(?=[&"'`;,)\s\\]|$)"""
# A user before the host, where it can be a token; and any user with a password, which may hold what should
# have been escaped, but is no port. The lengths are bounded: pages write such texts too, and an `@` would be
# looked for after every `://` in them, to the end.
_USER = re.compile(r"""\b((?:https?|wss?|ftps?)://)(?!\[)[^\s/?#"'<>`@]{1,1024}@""", re.IGNORECASE)
_USER_AND_PASSWORD = re.compile(
    r"""\b([A-Za-z][A-Za-z0-9+.-]{0,30}://)(?!\[)"""
    r"""[^\s/?#"'<>`@:]{0,256}:(?!\d{1,5}(?:[/?#\s"'`,;)]|$))[^\s"'<>`]{0,1024}@"""
)
# Literals of a plan: in AUTH, and in headers and fields with names of credentials.
_LITERAL = r"""(?![^"']*(?:[{$]|secret:))[^"']+(?=["'])"""
_LITERALS = (
    re.compile(rf"""\bAUTH\s*:\s*(?:bearer|basic\s*["'][^"']*["'])\s*["']({_LITERAL})""", re.IGNORECASE),
    re.compile(rf"""authorization["'`]?\s*[:=]\s*["'](?:[A-Za-z]+\s+)?+({_LITERAL})""", re.IGNORECASE),
    re.compile(
        rf"""(?:passw|token|secret|credential|api-?_?key)[\w-]*["'`]?\s*=\s*["']({_LITERAL})""", re.IGNORECASE
    ),
)

# The secrets of this process, with the forms in which each may be written.
_lasting: dict[str, tuple[str, ...]] = {}
_passing: dict[str, tuple[str, ...]] = {}
# All those forms, the longest first: one may be part of another.
_forms: list[str] = []


def conceal(value: str, *, passing: bool = False) -> None:
    """Have `mask` replace a text in all its forms; of texts that are `passing` only the latest are kept."""
    kept = _passing if passing else _lasting
    if not value or value in kept:
        return
    forms = set(_forms_of(value)) - {""}
    # Undecoded bytes are searched as Latin-1.
    kept[value] = (*forms, *(form.encode(errors="replace").decode("latin-1") for form in forms))
    if len(_passing) > _PASSING_AT_MOST:
        del _passing[next(iter(_passing))]
    known = {form for forms in (*_lasting.values(), *_passing.values()) for form in forms}
    _forms[:] = sorted(known, key=lambda form: (-len(form), form))


def mask(text: str) -> str:
    """Return a text without concealed values and without the user-info of URLs, to be shown."""
    text = mask_values(text)
    if "@" in text and "://" in text:
        text = _USER_AND_PASSWORD.sub(rf"\g<1>{MASK}@", text)
        text = _USER.sub(rf"\g<1>{MASK}@", text)
    return text


def mask_values(text: str) -> str:
    """Return a text without concealed values but otherwise unchanged, to be stored and read again."""
    for form in _forms:
        if form in text:
            text = (
                text.replace(form, MASK) if len(form) >= _SHORT_CHARACTERS else _alone(form).sub(MASK, text)
            )
    return text


def masked(value: Any) -> Any:
    """Return plain JSON without secrets in any of its texts, to be shown; numbers stay as they are."""
    if isinstance(value, str):
        return MASK if value in _forms else mask(value)
    if isinstance(value, Mapping):
        return {mask(str(name)): masked(each) for name, each in value.items()}
    return [masked(each) for each in value] if isinstance(value, list | tuple) else value


def mask_line(line: str, *offsets: int) -> tuple[str, list[int]]:
    """Return a line of a plan with credentials masked, and the new positions of the offsets.

    Literals that look like credentials are masked too, even if their values are not known as secrets.
    """
    shown = ""
    end = 0
    moved = list(offsets)
    for start, stop in _spans(line):
        shown += line[end:start] + MASK
        for place, offset in enumerate(offsets):
            if offset >= stop:
                moved[place] += len(MASK) - (stop - start)
            elif offset > start:
                moved[place] -= offset - start
        end = stop
    return shown + line[end:], moved


def mask_quoted(text: str, line: str) -> str:
    """Return a message about a line of a plan, without the credentials in that line."""
    for start, stop in _spans(line):
        part = line[start:stop]
        text = text.replace(part, MASK) if len(part) >= _SHORT_CHARACTERS else _alone(part).sub(MASK, text)
    return mask(text)


def shows_secret(data: bytes) -> bool:
    """Return whether these bytes contain any concealed value."""
    text = data.decode("latin-1")
    return any(
        form in text and (len(form) >= _SHORT_CHARACTERS or _alone(form).search(text) is not None)
        for form in _forms
    )


def masked_logger(name: str) -> Logger:
    """Return a logger of Python's whose messages are masked before any handler gets them."""
    import logging

    logger = logging.getLogger(name)
    logger.addFilter(_mask_record)
    return logger


def _mask_record(record: LogRecord) -> bool:
    record.msg, record.args = mask(record.getMessage()), ()
    return True


# --- how values are found -----------------------------------------------------------------------


def _forms_of(value: str) -> Iterator[str]:
    """Yield a text as it is, and as it is written in URLs, forms, JSON, markup, Python and Basic."""
    yield value
    for safe in _SAFE_IN_URLS:
        for quoted in (quote(value, safe, errors="replace"), quote_plus(value, safe, errors="replace")):
            yield quoted
            yield _ESCAPE.sub(lambda found: found[0].lower(), quoted)
    for written in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        yield written[1:-1]
        yield written[1:-1].replace("/", r"\/")
    yield from _in_markup(value)
    data = value.encode(errors="replace")
    yield from (repr(value)[1:-1], str(data)[2:-1])
    if len(data) >= _SHORT_CHARACTERS:
        yield from _in_base64(data)


def _in_markup(value: str) -> Iterator[str]:
    from html import escape

    yield escape(value, quote=False)
    whole = escape(value)
    yield whole
    yield whole.replace("&#x27;", "&#39;")
    yield whole.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield the base64 letters that stay the same whatever precedes and follows the data, such as a user."""
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(data).decode()
        for before in range(3):
            encoded = encode(bytes(before) + data).decode()
            letters = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
            if len(letters) >= _TELLING_LETTERS:
                yield letters


def _alone(form: str) -> re.Pattern[str]:
    """Return a pattern for a short value between signs such as = or quotes."""
    return re.compile(_BEFORE_VALUE + re.escape(form) + _AFTER_VALUE)


def _spans(line: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of a line of a plan that must not be shown, in order, with overlapping parts joined."""
    found = sorted({*_spans_of_values(line), *_spans_of_looks(line)})
    while found:
        start, stop = found.pop(0)
        while found and found[0][0] < stop:
            stop = max(stop, found.pop(0)[1])
        yield start, stop


def _spans_of_values(line: str) -> Iterator[tuple[int, int]]:
    for form in _forms:
        if form in line:
            searched = re.compile(re.escape(form)) if len(form) >= _SHORT_CHARACTERS else _alone(form)
            yield from (each.span() for each in searched.finditer(line))


def _spans_of_looks(line: str) -> Iterable[tuple[int, int]]:
    for user in (_USER_AND_PASSWORD, _USER):
        yield from ((each.end(1), each.end() - 1) for each in user.finditer(line))
    for literal in _LITERALS:
        yield from (each.span(1) for each in literal.finditer(line))
