"""The text of a page from its bytes, as browsers decode it: by wrapper, byte order mark, header, or the page.

Labels mean what the WHATWG Encoding Standard says: latin-1 is windows-1252. Invalid bytes are replaced;
nothing here fails.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

import msgspec

from aioflow.errors import SettingError, suggestion

SEARCHED_BYTES = 1024  # of a page, for a <meta> that says its charset
UTF8 = "utf-8"
_FALLBACK = "cp1252"
_C1 = "aioflow-c1"  # bytes without a meaning are read as control characters, as browsers do

# Labels of one encoding, each for Python's codec that reads it.
_LABELS = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    "cp866": "866 cp866 csibm866 ibm866",
    "iso8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 "
    "iso_8859-5:1988",
    "iso8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e "
    "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 "
    "iso_8859-7 iso_8859-7:1987 sun_eu_greek",
    "iso8859-8": "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 "
    "iso_8859-8 iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical",
    "iso8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9 latin9 latin-9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "mac-roman": "csmacintosh mac macintosh x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "cp1250": "cp1250 windows-1250 x-cp1250",
    "cp1251": "cp1251 windows-1251 x-cp1251",
    "cp1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
    "iso_8859-1 iso_8859-1:1987 l1 latin1 latin-1 us-ascii windows-1252 x-cp1252",
    "cp1253": "cp1253 windows-1253 x-cp1253",
    "cp1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 "
    "latin5 windows-1254 x-cp1254",
    "cp1255": "cp1255 windows-1255 x-cp1255",
    "cp1256": "cp1256 windows-1256 x-cp1256",
    "cp1257": "cp1257 windows-1257 x-cp1257",
    "cp1258": "cp1258 windows-1258 x-cp1258",
    "gb18030": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk gb18030",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "iso2022-jp": "csiso2022jp iso-2022-jp",
    "cp932": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "cp949": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 "
    "windows-949",
    "utf-16-be": "unicodefffe utf-16be",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
}
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}
_MARKS = ((b"\xef\xbb\xbf", UTF8), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_BARE_UTF16 = ((b"<\0?\0x\0", "utf-16-le"), (b"\0<\0?\0x", "utf-16-be"))
_PARAMETER = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META = re.compile(rb"<meta(?=[\s/])([^>]*)", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""([^\s=/"'>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_DECLARATION = re.compile(rb"""^\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']([^"'>]+)["']""")


def _as_control(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start]
    return (chr(byte) if 0x80 <= byte < 0xA0 else "\ufffd"), error.start + 1


codecs.register_error(_C1, _as_control)


class Charset(msgspec.Struct, frozen=True):
    """The encoding of a page: Python's name of it, its origin, and a note on labels that are unknown."""

    codec: str
    said_by: str  # wrapper, mark, header, page, or nobody
    note: str | None = None

    @property
    def errors(self) -> str:
        return _C1 if self.codec.startswith("cp12") else "replace"


@lru_cache(maxsize=256)
def codec_of(label: str) -> str | None:
    """Return Python's codec for a label of pages and headers; None if it is unknown."""
    return _CODECS.get(label.strip().strip("\"'").lower())


def check_charset(label: str) -> str:
    """Return the codec for a wrapper's CHARSET, by any name of Python's; raise a SettingError if unknown."""
    if (known := codec_of(label)) is not None:
        return known
    try:
        found = codecs.lookup(label)
        b"x".decode(found.name, "replace")  # which only codecs of texts can do
    except (LookupError, ValueError):
        message = f"unknown charset {label!r}{suggestion(label, _CODECS)}"
        raise SettingError(message, setting="CHARSET") from None
    return found.name


def detect(
    start: bytes, content_type: str = "", charset: str | None = None, *, markup: bool = True
) -> Charset:
    """Return the charset of a page that begins so. It is `said_by` nobody if only its bytes show it.

    `charset` is that of the wrapper. With `markup` a <meta> or an XML declaration counts.
    """
    notes: list[str] = []
    if charset:
        return Charset(check_charset(charset), "wrapper")
    for mark, codec in _MARKS:
        if start.startswith(mark):
            return Charset(codec, "mark", _joined(notes))
    label = _of_header(content_type) if content_type else None
    if label and (known := _known(label, "the Content-Type", notes)):
        return Charset(known, "header", _joined(notes))
    label = _of_markup(start[:SEARCHED_BYTES]) if markup else None
    if label and (known := _known(label, "the page", notes)):
        # It could not be read so far if it were UTF-16.
        said = UTF8 if known.startswith("utf-16") and not start.startswith((b"<\0", b"\0<")) else known
        return Charset(said, "page", _joined(notes))
    return Charset(UTF8, "nobody", _joined(notes))


def decode(body: bytes, content_type: str = "", charset: str | None = None, *, markup: bool = True) -> str:
    """Return the text of a page. Without a declared charset it is read as UTF-8 if possible, else
    windows-1252.
    """
    return decode_as(body, detect(body, content_type, charset, markup=markup))


def decode_as(body: bytes, charset: Charset) -> str:
    """Return the text of a page whose charset was detected."""
    if charset.said_by == "nobody":
        try:
            return body.decode(UTF8)
        except UnicodeDecodeError:
            charset = Charset(_FALLBACK, "nobody")
    for mark, codec in _MARKS:
        if codec == charset.codec and body.startswith(mark):
            body = body[len(mark) :]
    return body.decode(charset.codec, charset.errors)


def _known(label: str, where: str, notes: list[str]) -> str | None:
    codec = codec_of(label)
    if codec is None:
        notes.append(f"unknown charset {label[:40]!r} in {where}")
    return codec


def _joined(notes: list[str]) -> str | None:
    return "; ".join(notes) or None


@lru_cache(maxsize=256)
def says_utf8(content_type: str) -> bool:
    """Return whether the header says UTF-8, which all but a byte order mark believe."""
    label = _of_header(content_type)
    return label is not None and codec_of(label) == UTF8


@lru_cache(maxsize=256)
def _of_header(content_type: str) -> str | None:
    found = _PARAMETER.search(content_type)
    if found is None:
        return None
    label: str = found[1] or found[2] or found[3]
    return label


def _of_markup(start: bytes) -> str | None:
    for prefix, codec in _BARE_UTF16:
        if start.startswith(prefix):
            return codec.replace("16-", "16")
    if found := _DECLARATION.search(start):
        return found[1].decode("latin-1")
    for meta in _META.finditer(_COMMENT.sub(b"", start)):
        if label := _of_meta(meta[1]):
            return label
    return None


def _of_meta(text: bytes) -> str | None:
    """Return the charset that a <meta> with these attributes says."""
    attributes: dict[bytes, str] = {
        name.lower(): (double or single or bare).decode("latin-1")
        for name, double, single, bare in reversed(_ATTRIBUTE.findall(text))
    }
    if label := attributes.get(b"charset"):
        return label
    if attributes.get(b"http-equiv", "").strip().lower() != "content-type":
        return None
    return _of_header(attributes.get(b"content", ""))


class TextDecoder:
    """Decodes a page that comes piece by piece.

    What says nothing of its charset is UTF-8 if the first bytes beyond ASCII are, else windows-1252.
    """

    def __init__(self, content_type: str = "", charset: str | None = None, *, markup: bool = True) -> None:
        self.charset: Charset | None = None
        self._content_type = content_type
        self._said = charset
        self._markup = markup
        self._held = b""
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes) -> str:
        """As much text as is certain."""
        if self._decoder is not None:
            return self._decoder.decode(data)
        self._held += data
        if self.charset is None:
            if len(self._held) < (SEARCHED_BYTES if self._markup else 4):
                return ""
            self.charset = detect(self._held, self._content_type, self._said, markup=self._markup)
        return self._begin(final=False)

    def end(self) -> str:
        """Return the rest."""
        if self._decoder is not None:
            return self._decoder.decode(b"", True)
        if self.charset is None:
            self.charset = detect(self._held, self._content_type, self._said, markup=self._markup)
        return self._begin(final=True)

    def _begin(self, *, final: bool) -> str:
        """Go on with the bytes that were held, once their charset is known."""
        assert self.charset is not None
        held = self._held
        if self.charset.said_by == "nobody":
            if held.isascii() and not final:
                self._held = b""
                return held.decode("ascii")
            first = next((place for place, byte in enumerate(held) if byte > 0x7F), len(held))
            if not final and len(held) - first < _LONGEST_SEQUENCE:
                self._held = held[first:]
                return held[:first].decode("ascii")
            self.charset = Charset(
                UTF8 if _begins_utf8(held[first:]) else _FALLBACK, "nobody", self.charset.note
            )
        for mark, codec in _MARKS:
            if codec == self.charset.codec and held.startswith(mark):
                held = held[len(mark) :]
        self._held = b""
        self._decoder = codecs.getincrementaldecoder(self.charset.codec)(self.charset.errors)
        return self._decoder.decode(held, final)


_LONGEST_SEQUENCE = 4


def _begins_utf8(data: bytes) -> bool:
    """Return whether the first character, which is not ASCII, is one of UTF-8."""
    for length in range(2, _LONGEST_SEQUENCE + 1):
        try:
            data[:length].decode(UTF8)
        except UnicodeDecodeError:
            continue
        return True
    return not data
