"""Pages that say in words that they are not there, with a status that says they are: soft 404s.

A page that sounds so is compared with the answer to an address beside it that cannot exist, as in Bar-Yossef
et al., Sic Transit Gloria Telae (2004). There every page is compared; here few are, so few requests are made.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import ClassVar, Final
from urllib.parse import urlsplit

from aioflow.authoring.context import Context
from aioflow.authoring.services import Scope, ServiceHost
from aioflow.crawl.documents import is_heavy, page_text, page_title
from aioflow.crawl.downloads import CrawlSession
from aioflow.crawl.media_types import MARKUP_TYPES
from aioflow.relation import Document, Value
from aioflow.web.errors import WebError
from aioflow.web.http import BodyLimits, Request, Response
from aioflow.wrappers.charsets import decode_as, detect

SOFT_404: Final = "soft 404"

_PHRASES = (
    *("not found", "not be found", "no such page", "no longer exist", "not exist", "doesn't exist"),
    *("doesn’t exist", "no longer available", "error 404", "404 error", "nicht gefunden", "existiert nicht"),
    *("introuvable", "n'existe pas", "n’existe pas", "no encontrad", "no existe", "non trovat"),
    *("niet gevonden", "não encontrad", "nie znaleziono", "не найден", "見つかりません", "不存在", "未找到"),
)
_STATUS_IN_TITLE = re.compile(r"(?<![\w.,])404(?![\w,])")
_SEARCHED = 16 * 1024  # characters of a page
_SEARCHED_TEXT = 500  # of what people read
_READ = 64 * 1024  # characters of a page that is compared
_MOST_BYTES = 1_000_000
_MOST_PROBES = 100  # of one host
_LEAST_SHARE = 0.7  # of the words of two pages that both have
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[^/]*/?$")
_EXTENSION = re.compile(r"\.[A-Za-z]{1,5}$")


def sounds_missing(document: Value) -> bool:
    """Return whether a page says near its beginning that there is no such page."""
    if not isinstance(document, Document) or document.kind != "html":
        return False
    if _STATUS_IN_TITLE.search(page_title(document) or ""):
        return True
    beginning = Document(document.text[:_SEARCHED], "html")
    if not _has_phrase(beginning.text) or is_heavy(beginning):
        return False
    page = page_text(beginning)
    return _has_phrase(page.title or "") or _has_phrase((page.text or "")[:_SEARCHED_TEXT])


def _has_phrase(text: str) -> bool:
    lower = text.lower()
    return any(phrase in lower for phrase in _PHRASES)


def words_of(document: Document, url: str) -> frozenset[str]:
    """Return the words of a page that are not those of its URL; none of one that takes long to read."""
    beginning = Document(document.text[:_READ], "html")
    if is_heavy(beginning):
        return frozenset()
    found = _WORD.findall((page_text(beginning).text or "").lower())
    return frozenset(found).difference(_WORD.findall(url.lower()))


def are_alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two pages have most of their words in common."""
    return len(first & second) > _LEAST_SHARE * len(first | second)


def address_beside(url: str) -> str | None:
    """Return an address in the folder of a page that no site has; None for the first page of a site.

    It is the same at each run, so that it can be recorded, and has the extension of the page.
    """
    path = urlsplit(url).path
    if path in ("", "/"):
        return None
    base = url.partition("?")[0].partition("#")[0]
    folder = _NAME.sub("", base)
    extension = _EXTENSION.search(base)
    name = blake2b(folder.encode(), digest_size=8).hexdigest()
    return f"{folder}no-such-page-{name}{extension[0] if extension else ''}"


class MissingPages:
    """The ways in which the hosts of a crawl say that a page is missing. It is a service of the run."""

    scope: ClassVar[Scope] = "run"

    def __init__(self, session: CrawlSession) -> None:
        self._session = session
        self._known: dict[str, list[frozenset[str]]] = {}  # by host: the words of pages that do not exist
        self._probed: dict[str, set[str]] = {}  # by host: the addresses that were asked for

    @classmethod
    def open_service(cls, host: ServiceHost) -> MissingPages:
        return cls(host.service(CrawlSession))

    async def has(self, url: str, document: Value, context: Context) -> bool:
        """Return whether a page is what its host sends for pages that do not exist."""
        if not sounds_missing(document):
            return False
        assert isinstance(document, Document)
        words = words_of(document, url)
        site = urlsplit(url).netloc
        known = self._known.setdefault(site, [])
        if any(are_alike(words, each) for each in known):
            return True
        probe = address_beside(url)
        probed = self._probed.setdefault(site, set())
        if probe is None or probe in probed or len(probed) >= _MOST_PROBES:
            return False
        probed.add(probe)
        context.count("probes")
        answer = await self._answer(probe, context)
        if answer is None:
            return False
        known.append(answer)
        return are_alike(words, answer)

    async def _answer(self, url: str, context: Context) -> frozenset[str] | None:
        """Return the words of what comes for an address that cannot exist; None if the host says so."""
        web = self._session.web
        request = Request(
            url,
            limits=BodyLimits(_MOST_BYTES, MARKUP_TYPES.accepts),
            kind="download",
            permit=context.permit,
            watch=web.watch(context),
            cookies=web.cookies,
            urgent=context.urgent,
            may_be_absent=True,
        )
        try:
            response = await web.fetch(request)
        except WebError:
            return None
        if response.unread or not 200 <= response.status < 300 or not isinstance(response.body, bytes):
            return None
        return words_of(_document(response.body, response), url)

    async def close(self) -> None:
        """Do nothing: the client belongs to the engine."""


def _document(body: bytes, response: Response) -> Document:
    said = response.headers.get("Content-Type", "")
    return Document(decode_as(body, detect(body, said, markup=True)), "html")
