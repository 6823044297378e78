"""One form for all ways to write a URL, for lists of URLs: `normalize_url`.

Most links of a site are in this form already, and one match of a pattern tells so. w3lib's canonicalize_url
was considered: it keeps default ports, dot segments and names in other scripts, and always sorts the query.
`aioflow.web.canonical_urls` has the function of expressions, which sorts and rewrites queries too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from aioflow.errors import SettingError
from aioflow.values.counters import NOT_A_URL, Counters
from aioflow.web.canonical_urls import ascii_host
from aioflow.web.urls import BLANK, LEFT_OUT, NO_ESCAPE

Slash: TypeAlias = Literal["keep", "drop"]

# A longer text is no address; escapes could make it three times as long.
LONGEST_URL = 16 * 1024
_KEPT_HOSTS = 10_000
_KEPT_NAMES = 10_000
_LONGEST_KEPT = 300
_DEFAULT_PORTS = {"http": "80", "https": "443"}

# In the form that this module makes: nothing to change but names in the query.
_NORMAL = re.compile(
    r"https?://(?=[^/:]{1,253}[/:])[a-z0-9_-]+(?:\.[a-z0-9_-]+)*+"
    r"(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3})(?<!:80)(?<!:443))?"
    r"(?:/(?!\.)[A-Za-z0-9_~!$&'()*+,:=@.-]*+)++"
    r"(?:\?(?!&)[A-Za-z0-9_~!$'()*+,:=@./-](?:[A-Za-z0-9_~!$'()*+,:=@./?-]++|&(?![&]))*+(?<!&))?",
    re.ASCII,
)
_PARTS = re.compile(r"(https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(?:(.*)@)?(\[[^\]]*\]|[^:@\[\]]*)(?::([0-9]*))?", re.DOTALL)
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPES = {f"%{code:02X}": chr(code) if code in _UNRESERVED else f"%{code:02X}" for code in range(256)}
_USER = "%!$&'()*+,;=:"
_PATH = "%!$&'()*+,/:;=@"
_QUERY = "%!$&'()*+,/:;=@?"
_DOTTED = re.compile(r"/\.")
_PARAMETER = re.compile(r";([^=;/]*)=([^;/]*)")

# Parameters that tell who follows a link, not what it leads to: those that browsers strip, those of Matomo,
# and those of the usual software of forums and shops.
TRACKING = (
    "utm_*, gclid, gclsrc, dclid, gbraid, wbraid, gad_source, gad_campaignid, srsltid, _ga, _gl, _gac, "
    "fbclid, fb_action_ids, fb_action_types, fb_source, msclkid, yclid, ymclid, ysclid, twclid, ttclid, "
    "igshid, igsh, li_fat_id, epik, rdt_cid, sccid, irclickid, wickedid, mc_cid, mc_eid, mkt_tok, _hsenc, "
    "_hsmi, __hssc, __hstc, __hsfp, hsctatracking, oly_anon_id, oly_enc_id, vero_id, vero_conv, "
    "rb_clickid, ml_subscriber, ml_subscriber_hash, pk_*, piwik_*, mtm_*, matomo_*, _openstat, ns_mchannel, "
    "ns_source, ns_campaign"
)
# A name that other sites use for a number is dropped only with a value as long as those of sessions.
SESSIONS = (
    "jsessionid, phpsessid, aspsessionid*, asp.net_sessionid, sessionid=????????????????*, "
    "session_id=????????????????*, sess_id=????????????????*, sid=????????????????????*, "
    "s=????????????????????????????????, cfid, cftoken, zenid, oscsid, osadminid, xtcsid, phpbb3_sid, "
    "mosessid, __viewstate"
)
DROPPED = f"{TRACKING}, {SESSIONS}"
_LIST_NAMES = {"default": DROPPED, "tracking": TRACKING, "sessions": SESSIONS, "none": ""}


class DroppedParameters:
    """A setting with the parameters that are left out of URLs: `utm_*, gclid, sid=????????????????*`.

    Capitals do not matter. `*` stands for any characters, `?` for one. A name with a value is dropped with
    such values only. The words default, tracking and sessions stand for the lists of this module, none for no
    name.
    """

    kind_name = "a list of parameters, with * for any characters"

    def __init__(self, text: str) -> None:
        self.text = text
        entries = list(_entries(text))
        self._names = frozenset(name for name, value in entries if value is None and "*" not in name)
        self._prefixes = tuple(name[:-1] for name, value in entries if value is None and _is_prefix(name))
        others = [each for each in entries if not self._is_simple(*each)]
        self._others = [(_glob(name), None if value is None else _glob(value)) for name, value in others]
        self._is_dropped = lru_cache(_KEPT_NAMES)(self._find)

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Any]) -> DroppedParameters:
        texts = value if isinstance(value, tuple) else (value,)
        if not texts or not all(isinstance(each, str) for each in texts):
            raise SettingError(f"must be {cls.kind_name}, not {value!r}")
        return _dropped(", ".join(texts))

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self._names or self._prefixes or self._others)

    def drops(self, name: str, value: str) -> bool:
        """Return whether a parameter is left out."""
        if len(name) > _LONGEST_KEPT:
            return False
        found = self._is_dropped(name)
        return found if isinstance(found, bool) else any(test.fullmatch(value) for test in found)

    def kept(self, parameters: Iterable[str]) -> list[str]:
        """Return the parameters that stay, of texts such as `page=2`; empty ones are left out."""
        return [each for each in parameters if each and not self.drops(*each.partition("=")[::2])]

    def _find(self, name: str) -> bool | list[re.Pattern[str]]:
        """Return whether a name is always dropped or never; else the values with which it is."""
        name = name.lower()
        if name in self._names or name.startswith(self._prefixes):
            return True
        values = []
        for names, value in self._others:
            if names.fullmatch(name):
                if value is None:
                    return True
                values.append(value)
        return values or False

    @staticmethod
    def _is_simple(name: str, value: str | None) -> bool:
        return value is None and ("*" not in name or _is_prefix(name)) and "?" not in name


def _entries(text: str) -> Iterable[tuple[str, str | None]]:
    for part in re.split(r"[,\s]+", text.strip()):
        if part.lower() in _LIST_NAMES:
            yield from _entries(_LIST_NAMES[part.lower()]) if _LIST_NAMES[part.lower()] else ()
        elif part:
            name, equals, value = part.partition("=")
            if not name.strip("*?"):
                raise SettingError(f"{part!r} would drop every parameter; name some, as in 'utm_*'")
            yield name.lower(), value.lower() if equals else None


def _is_prefix(name: str) -> bool:
    return name.endswith("*") and "*" not in name[:-1] and "?" not in name


def _glob(text: str) -> re.Pattern[str]:
    """Return a pattern that takes linear time, since there is one `*` at most."""
    if text.count("*") > 1:
        raise SettingError(f"{text!r} has more than one *")
    parts = (re.escape(each) for each in re.split(r"([*?])", text))
    return re.compile("".join({r"\*": ".*", r"\?": "."}.get(part, part) for part in parts), re.I | re.S)


@lru_cache(64)
def _dropped(text: str) -> DroppedParameters:
    return DroppedParameters(text)


class UrlNormalizer:
    """Brings URLs into one form. `counters` has the number of texts that are no http(s) URLs."""

    def __init__(
        self,
        drop: DroppedParameters | None = None,
        *,
        sort: bool = False,
        slash: Slash = "keep",
        counters: Counters | None = None,
    ) -> None:
        self._drop = _dropped("default") if drop is None else drop
        self._sort = sort
        self._drops_slash = slash == "drop"
        self.counters = Counters() if counters is None else counters

    def normal(self, urls: Sequence[Any]) -> list[str | None]:
        """Return the form of each URL; None for anything but an http(s) URL, which is counted."""
        match = _NORMAL.fullmatch
        slow, is_plain = self._slow, not self._drops_slash
        longest = LONGEST_URL
        found = [
            url
            if is_plain and isinstance(url, str) and len(url) <= longest and match(url) and "?" not in url
            else slow(url)
            for url in urls
        ]
        if None in found:
            self.counters[NOT_A_URL] += found.count(None)
        return found

    def _slow(self, url: Any) -> str | None:
        if not isinstance(url, str) or len(url) > LONGEST_URL:
            return None
        if _NORMAL.fullmatch(url):
            front, _, query = url.partition("?")
        else:
            parted = _parted(url)
            if parted is None:
                return None
            front, query = parted
            if ";" in front:
                front = self._without_sessions(front)
        if query:
            kept = self._drop.kept(query.split("&"))
            if self._sort:
                kept.sort(key=_name)
            query = "&".join(kept)
        if self._drops_slash and front.endswith("/") and front.count("/") > 3:
            front = front.rstrip("/")
            front += "/" if front.count("/") < 3 else ""
        form = f"{front}?{query}" if query else front
        return form if len(form) <= LONGEST_URL else None  # escapes may have made it longer

    def _without_sessions(self, front: str) -> str:
        """Return the URL without dropped parameters of its path, as in `/list;jsessionid=1A2B`."""
        start = front.index("/", 8)

        def kept(found: re.Match[str]) -> str:
            return "" if self._drop.drops(found[1], found[2]) else found[0]

        return front[:start] + _PARAMETER.sub(kept, front[start:])


def _name(parameter: str) -> str:
    return parameter.partition("=")[0]


def _parted(url: str) -> tuple[str, str] | None:
    """Return the URL up to its query, and the query, both with only the necessary escapes."""
    text = url.strip(BLANK).translate(LEFT_OUT)
    if "\\" in text:  # browsers take it for a slash
        front, question, rest = text.partition("?")
        text = front.replace("\\", "/") + question + rest
    parts = _PARTS.match(text)
    if parts is None:
        return None
    scheme, authority, path, query = parts.groups()
    try:
        head = (_known_head if len(authority) <= _LONGEST_KEPT else _head)(scheme.lower(), authority)
        path = _without_dots(_escaped(path, _PATH)) if path else "/"
        return head + path, _escaped(query, _QUERY) if query else ""
    except ValueError:  # a host or port that is none, or a lone surrogate
        return None


def _escaped(text: str, safe: str) -> str:
    """Return a text with just the necessary escapes, in one form."""
    if "%" in text:
        text = _ESCAPE.sub(lambda found: _ESCAPES[found[0].upper()], NO_ESCAPE.sub("%25", text))
    return quote(text, safe=safe)


def _without_dots(path: str) -> str:
    """Return the path without `.` and `..` (RFC 3986, section 5.2.4)."""
    if not _DOTTED.search(path):
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _head(scheme: str, authority: str) -> str:
    """Return scheme, user, host and port; raise a ValueError if there is no host or port."""
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or not parts[2]:
        raise ValueError("no host")
    user, host, port = parts.groups()
    name = ascii_host(host[1:-1] if host.startswith("[") else host)
    if host.startswith("[") != (":" in name) or name.endswith("."):
        raise ValueError("no host")
    number = (port or "").lstrip("0")
    if port and (not number or len(number) > 5 or int(number) > 65535):
        raise ValueError("no port")
    shown = f"[{name}]" if ":" in name else name
    tail = "" if not number or number == _DEFAULT_PORTS[scheme] else f":{number}"
    return f"{scheme}://{_escaped(user, _USER) + '@' if user else ''}{shown}{tail}"


_known_head = lru_cache(_KEPT_HOSTS)(_head)
