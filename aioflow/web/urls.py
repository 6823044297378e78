"""URLs as text, at little cost: resolves links, and extracts hosts and origins.

Common forms are cut and joined as text. Unusual forms go through urllib.parse, with the same result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

# The characters that browsers strip from both ends of a link, and those that they remove inside it.
BLANK = "".join(map(chr, range(0x21)))
LEFT_OUT = str.maketrans("", "", "\t\n\r")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST_KEPT = 300  # hosts have 253 characters at most; pages may hold anything
_LONGEST_HOST = 254  # with a dot at its end
_LONGEST_PAGE = 2000  # likewise, of the pages whose links were resolved last
_LONGEST_LINK = 64 * 1024
_SLASH, _QUESTION, _DOT = "/", "?", "."
_PLAIN_ORIGIN = re.compile(
    r"https?://[A-Za-z0-9_][A-Za-z0-9_.-]*(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?", re.ASCII
)
# In a page's own URL: a fragment, parameters, an empty query, empty or dotted parts of the path.
_ODD_PATH = re.compile(r"[^?]*(?://|/\.)|.*(?:[#;]|\?$)")
_QUERY = re.compile("[?#]")
# Links of one page, each on a line of its own, that need only be put after the origin.
_ROOTED_LINKS = re.compile(r"(?:/(?![/.])(?:[A-Za-z0-9_~%=&+,:@!$*()'?.-]++|/(?!\.))*+(?<!\?)\n)+", re.ASCII)
_END_OF_HOST = re.compile("[/?#]|$")
_DOTTED = re.compile(r"/(?:\.|%2e)", re.IGNORECASE)
NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_SENT_AS_IT_IS = "%!$&'()*+,/:;=?@[]"
_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*:)?(//)[^/?#]*@")


class PortError(ValueError):
    """The text in place of a port is not a port number."""


class Base:
    """The base of the links of a page: its own URL, or that of its <base href>."""

    __slots__ = ("_directory", "_origin", "_page", "url")

    def __init__(self, url: str) -> None:
        end = url.find("/", 8)
        is_plain = 0 < end <= _LONGEST_KEPT and _is_plain_origin(url[:end]) and url.isprintable()
        if is_plain and not _ODD_PATH.match(url, end):
            self.url = url
            self._origin = url[:end]
            question = url.find("?", end)
            self._page = url if question < 0 else url[:question]
            self._directory = self._page[: self._page.rindex("/") + 1]
        else:
            self._begin_slowly(url)

    def _begin_slowly(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in _DEFAULT_PORTS or not parts.netloc:
            raise ValueError(f"{without_userinfo(url)!r} is no http(s) URL that links could be relative to")
        self.url = urlunsplit(parts._replace(fragment=""))
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._page = urljoin(url, "?x")[:-2]
        self._directory = urljoin(url, "x")[:-1]

    def resolve(self, link: str) -> str | None:  # noqa: C901  # one call for each link of a page
        """Return the absolute http(s) URL of a link, without fragment; None if it leads elsewhere."""
        text = link
        if "#" in text:
            text = text[: text.index("#")]
        if not text:
            return self.url
        if len(text) > _LONGEST_LINK:  # an embedded picture, or a trap
            return None
        # Browsers remove unprintable characters, and strip some at the ends; urllib drops others there.
        if not text.isprintable() or text[-1] in " ?" or ";" in text:
            return self._resolve_slowly(link)
        first = text[0]
        if first == _SLASH:
            if text[1:2] != _SLASH and "/." not in text:
                return self._origin + text
        elif first == _QUESTION:
            return self._page + text
        elif ":" not in text:
            if "//" not in text and first != " ":
                if first != _DOT and "/." not in text:
                    return self._directory + text
                if text.startswith("../"):
                    return self._resolve_upwards(text) or self._resolve_slowly(link)
        elif text.startswith(("http://", "https://")):
            end = text.find("/", 8)
            if 0 < end <= _LONGEST_KEPT and _is_plain_origin(text[:end]):
                return text
        return self._resolve_slowly(link)

    def resolve_all(self, links: Sequence[str]) -> list[str | None]:
        """Return `resolve` of each link; fast if all begin at the root of the site and are ordinary."""
        lines = "\n".join(links) + "\n"
        if _ROOTED_LINKS.fullmatch(lines) and lines.count("\n") == len(links):
            origin = self._origin
            return [origin + link for link in links]
        return [self.resolve(link) for link in links]

    def rebased(self, href: str) -> Base:
        """Return the base of a page that has a <base href>; an invalid one changes nothing."""
        url = self.resolve(href)
        return self if url is None else Base(url)

    def _resolve_upwards(self, text: str) -> str | None:
        directory = self._directory
        while text.startswith("../"):
            text = text[3:]
            directory = directory[: max(directory.rindex("/", 0, -1), len(self._origin)) + 1]
        return None if text[:1] == _DOT or "/." in text else directory + text

    def _resolve_slowly(self, link: str) -> str | None:
        try:
            joined = urljoin(self.url, link.strip(BLANK).translate(LEFT_OUT))
            parts = urlsplit(joined)
            if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.port == 0:
                return None
            joined.encode()
            _known_parts(_head(joined))  # so that later code can ask for the host of the URL
        except ValueError:  # a port, a bracket or a character that no URL has
            return None
        return urlunsplit(parts._replace(fragment=""))


def resolve(base: str, link: str) -> str | None:
    """Return the absolute http(s) URL that a link on the page `base` leads to; see `Base` for many links."""
    return (_base(base) if len(base) <= _LONGEST_PAGE else Base(base)).resolve(link)


def host_key(url: str) -> str:
    """Return the host as the key of its limits: `host:port`, in lower case and ASCII.

    Raises a ValueError for anything but an http(s) URL with a host.
    """
    return _known_parts(_head(url))[1]


def shown_host(key: str) -> str:
    """Return a host key for people, without a default port."""
    name, _, port = key.rpartition(":")
    return name if port in ("80", "443") else key


def origin(url: str) -> str:
    """Return scheme, host and port, for which credentials are meant; raises as `host_key` does."""
    return _known_parts(_head(url))[0]


def with_host(url: str, host: str) -> str:
    """Return the URL at another host, `example.org` or `example.org:8080`."""
    return urlunsplit(urlsplit(url)._replace(netloc=host))


def has_host(url: str) -> bool:
    """Return whether this is an http(s) URL with a host, so that `host_key` and `origin` work."""
    try:
        _known_parts(_head(url))
    except ValueError:
        return False
    return True


def without_userinfo(url: str) -> str:
    """Return the URL without a user and password before the host, to be shown."""
    return _USERINFO.sub(r"\1\2", url) if "@" in url else url


def target(url: str) -> tuple[str | None, str]:
    """Return path and query as written, with escapes for characters that cannot be sent.

    The path is None if it has to be normalized first, as in `/a/../b`.
    """
    text = url.strip(BLANK).translate(LEFT_OUT).partition("#")[0]
    found = _END_OF_HOST.search(text, text.find("//") + 2)
    path, _, query = text[found.start() if found else len(text) :].partition("?")
    return None if _DOTTED.search(path) else _escaped(path) or "/", _escaped(query)


def _escaped(text: str) -> str:
    return quote(NO_ESCAPE.sub("%25", text), safe=_SENT_AS_IT_IS)


def _head(url: str) -> str:
    """Return the URL up to its path; there are few different ones, so results for them can be cached."""
    end = url.find("/", 8)
    head = url if end < 0 else url[:end]
    if "?" in head or "#" in head:
        head = _QUERY.split(head, maxsplit=1)[0]
    return head


def _known_parts(head: str) -> tuple[str, str]:
    return _kept_parts(head) if len(head) <= _LONGEST_KEPT else _parts(head)


def _parts(head: str) -> tuple[str, str]:
    """Return the origin and the host key."""
    parts = urlsplit(head)
    host, scheme = parts.hostname, parts.scheme
    if scheme not in _DEFAULT_PORTS or not host:
        raise ValueError(f"{without_userinfo(head)!r} is no http(s) URL with a host")
    if not host.isascii() or "%" in host:
        host = _ascii_host(head)
    if len(host) > _LONGEST_HOST:
        # Much is stored by host, and a page must not be able to fill the memory with hosts.
        raise ValueError(f"a host has at most {_LONGEST_HOST} characters")
    if ":" in host:
        host = f"[{host}]"
    port = _port(parts)
    return f"{scheme}://{host}:{port}", f"{host.removesuffix('.')}:{port}"


def _port(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise PortError(f"{parts.netloc.rpartition(':')[2][:20]!r} is no port; they go from 1 to 65535")
    return _DEFAULT_PORTS[parts.scheme] if port is None else port


_kept_parts = lru_cache(maxsize=4096)(_parts)


def _ascii_host(url: str) -> str:
    from yarl import URL

    return URL(url).raw_host or ""


@lru_cache(maxsize=256)
def _base(url: str) -> Base:
    return Base(url)


@lru_cache(maxsize=4096)
def _is_plain_origin(text: str) -> bool:
    return _PLAIN_ORIGIN.fullmatch(text) is not None
