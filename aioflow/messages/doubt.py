"""What a message says of rows that may be wrong: in its subject and in its first line."""

from __future__ import annotations

import re
from html import escape

_BODY = re.compile(r"<body[^>]*>", re.IGNORECASE)


def doubtful_subject(subject: str, doubt: str) -> str:
    """Return a subject that says so."""
    return f"May be wrong: {subject}".strip() if doubt else subject


def doubtful_text(text: str, doubt: str) -> str:
    """Return a text whose first line says so, and why."""
    return f"This may be wrong: {doubt}\n\n{text}" if doubt else text


def doubtful_html(html: str, doubt: str) -> str:
    """Return a page that says so first; none stays none."""
    if not doubt or not html:
        return html
    told = f"<p><strong>This may be wrong:</strong> {escape(doubt)}</p>"
    body = _BODY.search(html)
    end = body.end() if body is not None else 0
    return html[:end] + told + html[end:]
