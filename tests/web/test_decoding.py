"""Content encodings: what comes out, what is refused, and how much may come out."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from contextlib import suppress
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.web import decoding
from aioflow.web.decoding import BodyDecoder, accepted_encodings
from aioflow.web.errors import BadResponseError, ResponseTooLargeError
from aioflow.web.settings import HttpSettings

TEXT = b"".join(b"<li>house %d</li>" % number for number in range(5000))
MEBIBYTE = 1024 * 1024


def bare(data: bytes) -> bytes:
    """Deflate without the header that its specification asks for."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def bomb(size_mebibytes: int) -> bytes:
    """A gzip stream of zeros; its end is left out, since nobody may get so far."""
    compressor = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    first = compressor.compress(bytes(MEBIBYTE)) + compressor.flush(zlib.Z_FULL_FLUSH)
    block = compressor.compress(bytes(MEBIBYTE)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return first + block * (size_mebibytes - 1)


def decode(
    header: str, data: bytes, *, slice_bytes: int = 1 << 20, http: HttpSettings | None = None
) -> bytes:
    decoder = BodyDecoder([header], http or HttpSettings(), "http://x/")
    out = []
    for start in range(0, len(data), slice_bytes):
        decoder.feed(data[start : start + slice_bytes])
        while pieces := decoder.pieces(100_000):
            out += pieces
    decoder.finish()
    return b"".join(out)


@pytest.mark.parametrize("slice_bytes", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize(
    ("header", "data"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT)),
        ("GZIP , identity", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", bare(TEXT)),
        ("gzip, gzip", gzip.compress(gzip.compress(TEXT))),
        ("deflate, gzip", gzip.compress(zlib.compress(TEXT))),
        ("gzip", gzip.compress(TEXT[:10]) + gzip.compress(b"") + gzip.compress(TEXT[10:])),
        ("gzip", gzip.compress(TEXT) + bytes(40_000)),
        ("gzip", gzip.compress(TEXT) + b"\r\n"),
        ("gzip", gzip.compress(TEXT[:99]) + b"\0\0" + gzip.compress(TEXT[99:])),
        ("deflate", zlib.compress(TEXT) + b"\n"),
    ],
)
def test_a_body_is_decoded_however_it_is_cut(header: str, data: bytes, slice_bytes: int) -> None:
    assert decode(header, data, slice_bytes=slice_bytes) == TEXT


def test_several_header_lines_are_one_list() -> None:
    decoder = BodyDecoder(["deflate", "gzip"], HttpSettings(), "http://x/")
    decoder.feed(gzip.compress(zlib.compress(TEXT)))
    assert b"".join(decoder.pieces(1 << 30)) == TEXT


def test_an_empty_body_is_not_cut_off() -> None:
    assert decode("gzip", b"") == b""


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ("gzip", gzip.compress(TEXT)[:-1]),
        ("gzip", gzip.compress(TEXT)[:1000]),
        ("gzip", gzip.compress(TEXT)[:1]),
        ("gzip", gzip.compress(TEXT) + gzip.compress(TEXT)[:5]),
        ("deflate", zlib.compress(TEXT)[:-1]),
        ("deflate", bare(TEXT)[:1000]),
        ("deflate, gzip", gzip.compress(zlib.compress(TEXT)[:1000])),
    ],
)
def test_a_body_that_is_cut_off_fails(header: str, data: bytes) -> None:
    with pytest.raises(
        BadResponseError, match=r"http://x/: the (gzip|deflate) body is cut off after \d+ bytes"
    ):
        decode(header, data)


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ("gzip", TEXT),
        ("gzip", gzip.compress(TEXT)[:500] + b"broken" + gzip.compress(TEXT)[506:]),
        ("gzip", gzip.compress(TEXT)[:-8] + bytes(8)),  # a checksum that is wrong
        ("gzip", gzip.compress(TEXT) + b"<!-- more -->"),
        ("deflate", zlib.compress(TEXT) + zlib.compress(TEXT)),
        pytest.param("deflate", b"\xff" * 100, id="noise"),
    ],
)
def test_a_body_that_is_not_what_it_says_fails(header: str, data: bytes) -> None:
    with pytest.raises(BadResponseError, match=r"http://x/: not (gzip|deflate), as its headers say"):
        decode(header, data)


def test_an_unknown_encoding_says_which_are_known() -> None:
    with pytest.raises(BadResponseError, match="encoded as 'compress', and only gzip, deflate"):
        decode("compress", b"")


def test_encodings_over_encodings_are_refused() -> None:
    with pytest.raises(BadResponseError, match="encoded 5 times over"):
        decode("gzip, gzip, gzip, gzip, gzip", b"")


def test_a_bomb_is_refused_before_it_takes_memory() -> None:
    data = bomb(1024)
    tracemalloc.start()
    try:
        with pytest.raises(ResponseTooLargeError, match="over 100 times as many"):
            decode("gzip", data)
        assert tracemalloc.get_traced_memory()[1] < 10 * MEBIBYTE
    finally:
        tracemalloc.stop()


def test_a_bomb_inside_another_encoding_is_refused() -> None:
    with pytest.raises(ResponseTooLargeError, match="over 100 times as many"):
        decode("gzip, gzip", gzip.compress(bomb(200)))


def test_members_without_end_are_refused() -> None:
    with pytest.raises(BadResponseError, match="more than 10000 members"):
        decode("gzip, gzip", gzip.compress(gzip.compress(b"") * 100_000))


def test_a_small_body_may_be_as_regular_as_it_likes() -> None:
    assert decode("gzip", gzip.compress(bytes(MEBIBYTE))) == bytes(MEBIBYTE)


def test_the_size_of_what_comes_out_is_limited() -> None:
    http = HttpSettings(body_bytes=len(TEXT) - 1)
    with pytest.raises(ResponseTooLargeError, match=f"more than {len(TEXT) - 1} bytes when decoded"):
        decode("gzip", gzip.compress(TEXT), http=http)
    assert decode("gzip", gzip.compress(TEXT), http=HttpSettings(body_bytes=len(TEXT))) == TEXT


def test_no_more_comes_at_once_than_was_asked_for() -> None:
    decoder = BodyDecoder(["gzip"], HttpSettings(), "http://x/")
    decoder.feed(gzip.compress(bytes(MEBIBYTE)))
    assert 100_000 <= sum(map(len, decoder.pieces(100_000))) <= 100_000 + 65_536


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "gzip, deflate"]), st.integers(1, 50))
def test_no_bytes_make_it_fail_otherwise(data: bytes, header: str, slice_bytes: int) -> None:
    with suppress(BadResponseError, ResponseTooLargeError):
        decode(header, data, slice_bytes=slice_bytes)


class FakeBrotli:
    """The interface of brotli 1.2, over zlib."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj()
        self._left = b""

    def process(self, data: bytes, output_buffer_limit: int | None = None) -> bytes:
        piece = self._inner.decompress(self._left + data, output_buffer_limit or 0)
        self._left = self._inner.unconsumed_tail
        return piece

    def can_accept_more_data(self) -> bool:
        return not self._left

    def is_finished(self) -> bool:
        return self._inner.eof


def test_brotli_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("brotli")
    module.Decompressor = FakeBrotli  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "brotlicffi", None)
    monkeypatch.setitem(sys.modules, "brotli", module)
    decoding._formats.cache_clear()
    try:
        assert "br" in accepted_encodings().split(", ")
        assert decode("br", zlib.compress(TEXT), slice_bytes=100) == TEXT
    finally:
        monkeypatch.undo()
        decoding._formats.cache_clear()
