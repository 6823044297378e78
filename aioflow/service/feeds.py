"""Changes of tables as a feed: RSS 2.0, Atom (RFC 4287) and JSON Feed 1.1.

Texts come from web pages. They are escaped, characters that XML forbids are replaced, and only addresses of
the web are links. feedgen was considered: it has no JSON Feed, and its objects take more lines than the
elements themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5
from xml.etree.ElementTree import Element, SubElement, tostring

import msgspec

from aioflow.messages.content.tables import value_text
from aioflow.relation import Value
from aioflow.state.history import RowChange

_ATOM = "http://www.w3.org/2005/Atom"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINK = re.compile(r"https?://[^\s/<>\"\\^`{|}][^\s<>\"\\^`{|}]*", re.IGNORECASE)
# Attributes that people know a row by, the best first.
_NAMING = ("title", "name", "headline", "heading", "subject", "label", "summary", "address", "description")
_WORDS = {"added": "New", "changed": "Changed", "removed": "Gone"}
_MOST_TITLE_CHARACTERS = 120
_MOST_VALUE_CHARACTERS = 60
_MOST_CELL_CHARACTERS = 2000


class FeedInfo(msgspec.Struct, frozen=True):
    """The description of a feed: the page that it belongs to, its address, and the time of its last change.

    The `language` is a tag such as `en`.
    """

    title: str
    home: str
    address: str
    updated: datetime
    language: str = ""


class _Entry(msgspec.Struct, frozen=True):
    identity: str
    title: str
    link: str
    noticed: datetime
    html: str
    categories: tuple[str, ...]


def rss(changes: Iterable[RowChange], about: FeedInfo) -> bytes:
    """Return changes as RSS 2.0."""
    root = Element("rss", {"version": "2.0", "xmlns:atom": _ATOM})
    channel = SubElement(root, "channel")
    for name, text in (
        *(("title", about.title), ("link", about.home), ("description", about.title)),
        *(("language", about.language), ("lastBuildDate", _mail_date(about.updated))),
    ):
        _add(channel, name, text)
    _add(channel, "atom:link", href=about.address, rel="self", type="application/rss+xml")
    for entry in map(_entry, changes):
        item = SubElement(channel, "item")
        _add(item, "title", entry.title)
        _add(item, "link", entry.link)
        _add(item, "guid", entry.identity, isPermaLink="false")
        _add(item, "pubDate", _mail_date(entry.noticed))
        for category in entry.categories:
            _add(item, "category", category)
        _add(item, "description", entry.html)
    return _written(root)


def atom(changes: Iterable[RowChange], about: FeedInfo) -> bytes:
    """Return changes as Atom."""
    root = Element("feed", {"xmlns": _ATOM})
    if about.language:
        root.set("xml:lang", _clean(about.language))
    _add(root, "title", about.title)
    _add(root, "id", about.address)
    _add(root, "link", href=about.address, rel="self", type="application/atom+xml")
    _add(root, "link", href=about.home, rel="alternate")
    _add(root, "updated", _moment(about.updated))
    _add(SubElement(root, "author"), "name", "aioflow")
    for entry in map(_entry, changes):
        item = SubElement(root, "entry")
        _add(item, "title", entry.title)
        _add(item, "id", entry.identity)
        if entry.link:
            _add(item, "link", href=entry.link, rel="alternate")
        _add(item, "published", _moment(entry.noticed))
        _add(item, "updated", _moment(entry.noticed))
        for category in entry.categories:
            _add(item, "category", term=category)
        _add(item, "content", entry.html, type="html")
    return _written(root)


def json_feed(changes: Iterable[RowChange], about: FeedInfo) -> bytes:
    """Return changes as JSON Feed 1.1."""
    feed: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": _clean(about.title),
        "home_page_url": _clean(about.home),
        "feed_url": _clean(about.address),
    }
    if about.language:
        feed["language"] = _clean(about.language)
    feed["items"] = [_json_item(entry) for entry in map(_entry, changes)]
    return json.dumps(feed, ensure_ascii=False, indent=1).encode()


def _json_item(entry: _Entry) -> dict[str, Any]:
    return {
        "id": entry.identity,
        **({"url": entry.link} if entry.link else {}),
        "title": entry.title,
        "content_html": entry.html,
        "date_published": _moment(entry.noticed),
        "tags": list(entry.categories),
    }


# --- entries --------------------------------------------------------------------------------------


def _entry(change: RowChange) -> _Entry:
    # Places are used again after everything was forgotten, but never in one run.
    identity = uuid5(NAMESPACE_URL, json.dumps([change.run_id, change.table, change.place]))
    return _Entry(
        identity.urn,
        _title(change),
        next(filter(None, map(_link, change.row.values())), ""),
        change.noticed,
        _html(change),
        tuple(map(_clean, (_WORDS[change.kind].lower(), change.table))),
    )


def _title(change: RowChange) -> str:
    title = f"{_WORDS[change.kind]}: {_naming_text(change.row) or _line(change.table)}"
    if change.kind != "changed":
        return title
    before, after = change.before or {}, change.after or {}
    told = [
        f"{_line(name)}: {_short(before.get(name))} → {_short(after.get(name))}" for name in change.columns
    ]
    return f"{title} ({', '.join(told)})" if told else title


def _naming_text(row: Mapping[str, Value]) -> str:
    """Return the text that people know a row by: a title, another text, or the first value."""
    by_name = {name.lower(): value for name, value in row.items()}
    texts = [by_name[name] for name in _NAMING if name in by_name]
    texts += [value for value in row.values() if not _link(value)]
    words = [value for value in texts if isinstance(value, str) and any(map(str.isalpha, value))]
    lines = (_cut(_line(value_text(value)), _MOST_TITLE_CHARACTERS) for value in (*words, *row.values()))
    return next(filter(None, lines), "")


def _link(value: Value) -> str:
    """Return a value that is an address of the web, or ""."""
    text = value.strip() if isinstance(value, str) else ""
    if not _LINK.fullmatch(text) or _NO_XML.search(text):
        return ""
    try:
        return text if urlsplit(text).hostname else ""
    except ValueError:
        return ""


def _short(value: Value) -> str:
    return _cut(_line(value_text(value)), _MOST_VALUE_CHARACTERS) or "nothing"


def _html(change: RowChange) -> str:
    """Return a table of all values, with the old ones of a row that has changed."""
    before, row = change.before or {}, change.row
    heads: Sequence[str] = ("", "before", "after") if change.kind == "changed" else ()
    lines = [f"<tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"] if heads else []
    for name, value in row.items():
        cells = [_cell(value)]
        if change.kind == "changed":
            old = before.get(name)
            cells = [_cell(old), _cell(value)] if name in change.columns else [_cell(value)] * 2
        lines.append(f"<tr><th>{escape(_clean(name))}</th>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _cell(value: Value) -> str:
    return f"<td>{escape(_cut(_clean(value_text(value)), _MOST_CELL_CHARACTERS))}</td>"


# --- texts ----------------------------------------------------------------------------------------


def _clean(text: str) -> str:
    """Return a text without characters that XML forbids."""
    return _NO_XML.sub("\ufffd", text)


def _line(text: str) -> str:
    return " ".join(_clean(text).split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _mail_date(when: datetime) -> str:
    from email.utils import format_datetime

    return format_datetime(when.astimezone(UTC), usegmt=True)


# --- XML ------------------------------------------------------------------------------------------


def _add(parent: Element, name: str, text: str = "", **attributes: str) -> None:
    """Add an element, unless it would have neither text nor attributes."""
    if text or attributes:
        cleaned = {key: _clean(value) for key, value in attributes.items()}
        SubElement(parent, name, cleaned).text = _clean(text) or None


def _written(root: Element) -> bytes:
    written: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return written
