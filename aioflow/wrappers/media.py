"""Detection of pages that are not text, by their first bytes and by their media type.

puremagic knows more kinds, but its present release needs Python 3.12, and takes texts that begin with two
letters such as `BM` or `MZ` for pictures or programs; filetype had its last release in 2022. The kinds listed
here begin with bytes that no text has.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder

import msgspec

from aioflow.values.quantities import count_text
from aioflow.web.errors import BinaryPageError
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.charsets import detect
from aioflow.wrappers.definition import Extraction
from aioflow.wrappers.readers.reader import PageHead, reader

SNIFFED_BYTES = 1024
_TELLING_BYTES = 16  # so few tell most kinds


class Medium(msgspec.Struct, frozen=True):
    """A kind of file: its media type, and what people call it."""

    type: str
    words: str


_OFFICE = "application/vnd.openxmlformats-officedocument"
_NAMES = {
    "application/pdf": "a PDF document",
    "application/zip": "a ZIP archive",
    "application/gzip": "a gzip archive",
    "application/x-bzip2": "a bzip2 archive",
    "application/x-xz": "an xz archive",
    "application/zstd": "a Zstandard archive",
    "application/x-7z-compressed": "a 7z archive",
    "application/vnd.rar": "a RAR archive",
    "application/x-tar": "a tar archive",
    "application/msword": "a Word document",
    "application/vnd.ms-excel": "an Excel workbook",
    "application/x-ole-storage": "an old Office document",
    f"{_OFFICE}.wordprocessingml.document": "a Word document",
    f"{_OFFICE}.spreadsheetml.sheet": "an Excel workbook",
    f"{_OFFICE}.presentationml.presentation": "a PowerPoint presentation",
    "application/vnd.oasis.opendocument": "an OpenDocument file",
    "application/epub+zip": "an EPUB book",
    "application/vnd.apache.parquet": "a Parquet file",
    "application/vnd.sqlite3": "an SQLite database",
    "application/wasm": "a WebAssembly program",
    "application/x-executable": "a program",
    "application/octet-stream": "binary data",
    "image/jpeg": "a JPEG image",
    "image/png": "a PNG image",
    "image/gif": "a GIF image",
    "image/webp": "a WebP image",
    "image/bmp": "a BMP image",
    "image/tiff": "a TIFF image",
    "image/x-icon": "an icon",
    "image/avif": "an AVIF image",
    "image/heic": "a HEIC image",
    "audio/mpeg": "MP3 audio",
    "audio/ogg": "Ogg audio or video",
    "audio/flac": "FLAC audio",
    "audio/wav": "WAV audio",
    "video/mp4": "MP4 video",
    "video/webm": "WebM or Matroska video",
    "video/x-msvideo": "AVI video",
    "font/woff": "a WOFF font",
    "font/woff2": "a WOFF2 font",
    "font/ttf": "a TrueType font",
    "font/otf": "an OpenType font",
}
# What a file of each kind begins with.
_MAGIC = tuple(
    (media_type, re.compile(magic, re.DOTALL))
    for media_type, magic in (
        ("application/pdf", rb"(?:\xef\xbb\xbf)?\s*%PDF-\d"),
        ("application/epub+zip", rb"PK\x03\x04.{26}mimetypeapplication/epub\+zip"),
        ("application/vnd.oasis.opendocument", rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis"),
        (f"{_OFFICE}.wordprocessingml.document", rb"PK\x03\x04.*?word/"),
        (f"{_OFFICE}.spreadsheetml.sheet", rb"PK\x03\x04.*?xl/"),
        (f"{_OFFICE}.presentationml.presentation", rb"PK\x03\x04.*?ppt/"),
        ("application/zip", rb"PK(?:\x03\x04|\x05\x06|\x07\x08)"),
        ("application/gzip", rb"\x1f\x8b\x08"),
        ("application/x-bzip2", rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
        ("application/x-xz", rb"\xfd7zXZ\0"),
        ("application/zstd", rb"\x28\xb5\x2f\xfd"),
        ("application/x-7z-compressed", rb"7z\xbc\xaf\x27\x1c"),
        ("application/vnd.rar", rb"Rar!\x1a\x07"),
        ("application/x-tar", rb".{257}ustar(?:\0|  \0)"),
        ("application/x-ole-storage", rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        ("application/vnd.apache.parquet", rb"PAR1\x15"),
        ("application/vnd.sqlite3", rb"SQLite format 3\0"),
        ("application/wasm", rb"\0asm[\x01-\x0f]\0"),
        ("application/x-executable", rb"\x7fELF|MZ.{58}[^\0]..{0,960}PE\0\0|\xcf\xfa\xed\xfe"),
        ("image/jpeg", rb"\xff\xd8\xff"),
        ("image/png", rb"\x89PNG\r\n\x1a\n"),
        ("image/gif", rb"GIF8[79]a.{0,6}[\0-\x08\x0e-\x1f\x80-\xff]"),
        ("image/webp", rb"RIFF.{4}WEBPVP8"),
        ("image/bmp", rb"BM.{4}\0{4}.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0"),
        ("image/tiff", rb"II\*\0|MM\0\*"),
        ("image/x-icon", rb"\0\0[\x01\x02]\0[\x01-\x40]\0"),
        ("image/avif", rb"\0\0\0.ftypavi[fs]"),
        ("image/heic", rb"\0\0\0.ftyp(?:hei[cx]|mif1|hevc)"),
        ("video/mp4", rb"\0\0\0.ftyp"),
        ("audio/mpeg", rb"ID3[\x02-\x04][\0-\x0f][\0-\xf0]"),
        ("audio/ogg", rb"OggS\0[\0-\x07]"),
        ("audio/flac", rb"fLaC[\0\x80]"),
        ("audio/wav", rb"RIFF.{4}WAVEfmt "),
        ("video/x-msvideo", rb"RIFF.{4}AVI LIST"),
        ("video/webm", rb"\x1aE\xdf\xa3"),
        ("font/woff", rb"wOFF(?:\0\x01\0\0|OTTO|true)"),
        ("font/woff2", rb"wOF2(?:\0\x01\0\0|OTTO|true)"),
        ("font/ttf", rb"\0\x01\0\0\0[\x04-\x40]|true\0"),
        ("font/otf", rb"OTTO\0"),
    )
)
# What hosts say of files that are no text; of the rest they know nothing, or it is text.
_SAYS_BINARY = re.compile(
    r"(?:image/(?!svg)|audio/|video/|font/|model/)[\w.+-]+"
    r"|application/(?:pdf|zip|gzip|x-gzip|zstd|x-tar|x-bzip2?|x-xz|x-7z-compressed|x-rar.*|vnd\.rar|wasm|protobuf"
    r"|x-protobuf|msword|vnd\.ms-.*|vnd\.openxmlformats-.*|vnd\.oasis\..*|epub\+zip|java-archive|x-msdownload"
    r"|x-executable|x-shockwave-flash|vnd\.apache\.parquet|x-sqlite3|vnd\.sqlite3|font-.*|x-font-.*)"
)
_SAYS_NOTHING = frozenset(
    {"", "text/plain", "application/octet-stream", "binary/octet-stream", "unknown/unknown"}
)
_BEGINNINGS_OF_TEXT = (b"<", b"{", b"[", b"")  # of most pages; no kind of file above begins so
# Bytes that no text has (WHATWG MIME Sniffing, section 7.2), beside those of UTF-16.
_BINARY_BYTE = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def medium_of(start: bytes, content_type: str = "", charset: str | None = None) -> Medium | None:
    """The kind of a file that begins so; None for a text.

    What a host says counts where the bytes do not tell: a page that is called an image may be one that says
    why there is none. `charset` is what a wrapper says of it.
    """
    if start[:1] in _BEGINNINGS_OF_TEXT:
        return None
    said = content_type.partition(";")[0].strip().lower()
    start = start[:SNIFFED_BYTES]
    for media_type, magic in _MAGIC:
        if magic.match(start):
            return _named(media_type, said)
    if _SAYS_BINARY.fullmatch(said):
        return None if _is_text(start, strictly=True) else _named(said, said)
    if said not in _SAYS_NOTHING or charset is not None or _is_text(start):
        return None
    is_utf16 = detect(start, content_type).codec.startswith("utf-16")
    return None if is_utf16 else _named("application/octet-stream", said)


def is_undecided(start: bytes) -> bool:
    """Return whether a page that begins so may be of any kind yet; a line that is whole shows a text."""
    if len(start) >= _TELLING_BYTES or start[:1] in _BEGINNINGS_OF_TEXT[:3]:
        return False
    return b"\n" not in start or not start.isascii()


def check_is_text(extraction: Extraction, head: PageHead, start: bytes, size_bytes: int | None) -> None:
    """Refuse a page that is no text, unless it is of a kind that its reader is made for."""
    medium = medium_of(start, head.content_type, extraction.charset)
    if medium is None or medium.type in reader(extraction.reader).content_types:
        return
    url = without_userinfo(head.url)
    raise BinaryPageError(
        f"{url}: the page is {described(medium, size_bytes)}; no reader of aioflow reads it"
    )


def described(medium: Medium, size_bytes: int | None) -> str:
    """`a PDF document (application/pdf), 12,345 bytes`."""
    size = "" if size_bytes is None else f", {count_text(size_bytes, 'byte')}"
    return f"{medium.words} ({medium.type}){size}"


def _named(media_type: str, said: str) -> Medium:
    """A kind by its first bytes; where these are those of a container, what the host says tells more."""
    if media_type in ("application/zip", "application/x-ole-storage") and _SAYS_BINARY.fullmatch(said):
        media_type = said
    return Medium(media_type, _NAMES.get(media_type) or _family(media_type))


def _family(media_type: str) -> str:
    family = media_type.partition("/")[0]
    if family == "application":
        return "a file"
    return f"an {family}" if family in ("image", "audio") else f"a {family}"


def _is_text(start: bytes, *, strictly: bool = False) -> bool:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    if _BINARY_BYTE.search(start):
        return False
    if not strictly:
        return True
    try:
        # The last character may be cut.
        getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True
