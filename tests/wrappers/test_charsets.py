"""Bytes to text: who decides, what labels mean, and that no page can make it fail."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.errors import SettingError
from aioflow.wrappers.charsets import TextDecoder, check_charset, codec_of, decode, detect

EURO = "Preis: 12 €"


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "expected"),
    [
        pytest.param("ü".encode("latin-1"), "text/html; charset=utf-8", "latin-1", "ü", id="the wrapper"),
        pytest.param(b"\xef\xbb\xbf\xc3\xbc", "text/html; charset=latin-1", None, "ü", id="the mark"),
        pytest.param(b"\xff\xfe\xfc\x00", "text/html; charset=utf-8", None, "ü", id="the mark of UTF-16"),
        pytest.param(
            b"<meta charset=utf-8>\xfc", "text/html; charset=iso-8859-1", None, "<meta charset=utf-8>ü",
            id="the header before the page",
        ),
        pytest.param(b"<meta charset=koi8-r>\xc1", "", None, "<meta charset=koi8-r>а", id="the page"),
        pytest.param(b"\xc3\xbc", "text/html", None, "ü", id="UTF-8 if it can be"),
        pytest.param(b"\xfc", "text/html", None, "ü", id="else windows-1252"),
    ],
)  # fmt: skip
def test_who_says_the_charset(body: bytes, content_type: str, charset: str | None, expected: str) -> None:
    assert decode(body, content_type, charset) == expected


@pytest.mark.parametrize(
    ("markup", "codec"),
    [
        ('<meta charset="windows-1251">', "cp1251"),
        ("<META CHARSET='gb2312' />", "gb18030"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">', "cp932"),
        ('<meta content="text/html; charset=euc-kr" http-equiv=content-type>', "cp949"),
        ('<?xml version="1.0" encoding="ISO-8859-2"?><html>', "iso8859-2"),
        ("<!-- <meta charset=big5> --><meta charset=utf8>", "utf-8"),
        ('<meta name="charset" content="x; charset=big5"><meta charset=iso-8859-15>', "iso8859-15"),
        ("<meta charset=utf-16>", "utf-8"),
        ('<html><head><title>x</title>\n<meta\ncharset = "latin1" >', "cp1252"),
    ],
)
def test_a_page_can_say_its_charset_itself(markup: str, codec: str) -> None:
    found = detect(markup.encode())
    assert (found.codec, found.said_by) == (codec, "page")


def test_a_charset_is_looked_for_in_the_first_kilobyte_only() -> None:
    assert detect(b" " * 1020 + b"<meta charset=koi8-r>").said_by == "nobody"
    assert detect(b" " * 900 + b"<meta charset=koi8-r>").said_by == "page"


def test_what_is_no_markup_is_not_searched() -> None:
    assert detect(b"<meta charset=koi8-r>", markup=False).said_by == "nobody"


@pytest.mark.parametrize("label", ["latin1", "ISO-8859-1", "us-ascii", " cp1252 ", '"ansi_x3.4-1968"'])
def test_latin_1_means_what_browsers_make_of_it(label: str) -> None:
    assert codec_of(label) == "cp1252"
    assert decode(b"12 \x80", f"text/html; charset={label.strip()}") == "12 €"


def test_bytes_without_a_meaning_are_replaced_or_controls_as_in_browsers() -> None:
    assert decode(b"a\x81b\x9d", "text/html; charset=windows-1252") == "a\x81b\x9d"
    assert decode(b"a\xffb", "text/html; charset=utf-8") == "a\ufffdb"
    assert decode(b"a\xaab", "text/html; charset=windows-1253") == "a\ufffdb"


def test_an_unknown_label_is_noted_and_the_next_one_counts() -> None:
    found = detect(b"<meta charset=koi8-r>", "text/html; charset=klingon")
    assert (found.codec, found.note) == ("koi8-r", "unknown charset 'klingon' in the Content-Type")


def test_a_charset_of_the_wrapper_is_checked_before_a_page_is_read() -> None:
    assert check_charset("Latin-1") == "cp1252"
    assert check_charset("cp437") == "cp437"
    with pytest.raises(SettingError, match="unknown charset 'uft-8'; did you mean 'utf-8'"):
        check_charset("uft-8")
    with pytest.raises(SettingError, match="unknown charset 'rot13'"):
        check_charset("rot13")


def test_every_label_has_a_codec_that_can_decode_bit_by_bit() -> None:
    for label in ("utf-8", "gbk", "big5", "euc-jp", "iso-2022-jp", "x-sjis", "macintosh", "tis-620"):
        codec = codec_of(label)
        assert codec is not None
        assert codecs.getincrementaldecoder(codec)("replace").decode(b"abc", True) == "abc"


# --- bit by bit ----------------------------------------------------------------------------------


def fed(
    body: bytes, size: int, content_type: str = "", charset: str | None = None, markup: bool = False
) -> str:
    decoder = TextDecoder(content_type, charset, markup=markup)
    pieces = [decoder.feed(body[start : start + size]) for start in range(0, len(body), size)]
    return "".join(pieces) + decoder.end()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 5000])
@pytest.mark.parametrize(
    ("body", "how"),
    [
        (EURO.encode() * 300, {}),
        (EURO.encode("cp1252") * 300, {}),
        (EURO.encode("utf-16"), {}),
        (b"\xef\xbb\xbf" + EURO.encode(), {}),
        (EURO.encode("iso8859-15"), {"charset": "iso-8859-15"}),
        (EURO.encode("iso8859-15"), {"content_type": "text/plain; charset=iso-8859-15"}),
        (b"<meta charset=iso-8859-15>" + EURO.encode("iso8859-15") * 200, {"markup": True}),
        (b"plain ascii", {}),
        (b"", {}),
        (b"cut off \xe2\x82", {}),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_text_in_pieces_is_the_text_at_once(body: bytes, how: dict[str, str], size: int) -> None:
    whole = decode(body, **{"markup": False, **how})  # type: ignore[arg-type]
    assert fed(body, size, **how) == whole  # type: ignore[arg-type]


def test_text_leaves_before_the_page_has_ended() -> None:
    decoder = TextDecoder(markup=False)
    assert decoder.feed(b"first line\n") == "first line\n"
    assert decoder.feed("ünd".encode()) == "ünd"


@given(st.binary(max_size=200), st.integers(1, 9), st.sampled_from(["", "utf-8", "gbk", "utf-16", "x-sjis"]))
def test_no_bytes_make_decoding_fail(body: bytes, size: int, label: str) -> None:
    content_type = f"text/html; charset={label}"
    assert isinstance(decode(body, content_type), str)
    assert isinstance(fed(body, size, content_type), str)
