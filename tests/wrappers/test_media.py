"""Pages that are no text: an error that names what they are, for every reader, whatever the host says."""

from __future__ import annotations

import gzip
import struct
import zipfile
import zlib
from io import BytesIO
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow import Result
from aioflow.testing import Answer, ScriptedSite, run_plan
from aioflow.wrappers.media import medium_of
from aioflow.wrappers.readers.csv import CsvReader
from aioflow.wrappers.readers.reader import forget_reader, register_reader
from tests.web.scripted import Chunks

URL = "http://homes.example/page"


def zipped(name: str, content: str = "x") -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def png() -> bytes:
    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + b"IHDR"
        + header
        + struct.pack(">I", zlib.crc32(header))
    )


OFFICE = "application/vnd.openxmlformats-officedocument"
FILES = {
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "a PDF document (application/pdf)"),
    "late pdf": (b"\r\n %PDF-1.4\n", "a PDF document (application/pdf)"),
    "png": (png(), "a PNG image (image/png)"),
    "jpeg": (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01", "a JPEG image (image/jpeg)"),
    "gif": (b"GIF89a\x01\x00\x01\x00\x80\x00\x00", "a GIF image (image/gif)"),
    "webp": (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "a WebP image (image/webp)"),
    "bmp": (b"BM\x3a\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00", "a BMP image (image/bmp)"),
    "zip": (zipped("a.txt"), "a ZIP archive (application/zip)"),
    "docx": (
        zipped("word/document.xml"),
        f"a Word document ({OFFICE}.wordprocessingml.document)",
    ),
    "xlsx": (zipped("xl/workbook.xml"), f"an Excel workbook ({OFFICE}.spreadsheetml.sheet)"),
    "epub": (zipped("mimetype", "application/epub+zip"), "an EPUB book (application/epub+zip)"),
    "gzip": (gzip.compress(b"<html>"), "a gzip archive (application/gzip)"),
    "tar": (b"a.txt".ljust(257, b"\0") + b"ustar\x0000", "a tar archive (application/x-tar)"),
    "doc": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00\x00",
        "an old Office document (application/x-ole-storage)",
    ),
    "mp3": (b"ID3\x04\x00\x00\x00\x00\x00\x00", "MP3 audio (audio/mpeg)"),
    "wav": (b"RIFF\x24\x00\x00\x00WAVEfmt \x10", "WAV audio (audio/wav)"),
    "ogg": (b"OggS\x00\x02\x00\x00", "Ogg audio or video (audio/ogg)"),
    "mp4": (b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00", "MP4 video (video/mp4)"),
    "woff2": (b"wOF2\x00\x01\x00\x00\x00\x00", "a WOFF2 font (font/woff2)"),
    "ttf": (b"\x00\x01\x00\x00\x00\x0c\x00\x80", "a TrueType font (font/ttf)"),
    "parquet": (b"PAR1\x15\x04\x15\x10", "a Parquet file (application/vnd.apache.parquet)"),
    "sqlite": (b"SQLite format 3\x00\x10\x00", "an SQLite database (application/vnd.sqlite3)"),
    "elf": (b"\x7fELF\x02\x01\x01\x00", "a program (application/x-executable)"),
}
READERS = {
    "html": 'EACH: "li"; t: "b"',
    "page": 't: "title"; OUTER',
    "xml": 'READ: xml; EACH: "item"; t: "title"',
    "rss": 'READ: xml; EACH: "/rss/channel/item"; t: "title"',
    "json": 'READ: json; EACH: "$.items[*]"; t: "title"',
    "lines": 'READ: json lines; t: "title"',
    "csv": 'READ: csv; t: "1"',
    "text": 'READ: text; EACH: "(?P<t>.+)"; t: "t"',
    "paged": 'EACH: "li"; t: "b"; PAGING: next "a @href"',
}


def read(
    reading: str, body: Any, content_type: str | None = None, hold_bytes: int = 1024, **headers: str
) -> Result:
    """What a wrapper that reads so gives for a page; failed tuples are the other output."""
    fields = {"Content-Type": content_type} if content_type else {}
    site = ScriptedSite({URL: Answer(body, headers={**fields, **headers})})
    plan = f"""
    WRAPPER w (n) {{ GET: "{URL}"; {reading} }}
    PLAN p {{ INPUT: x OUTPUT: out, failed BODY {{ wrapper ("w", x : out) {{ERRORS: failed}} }} }}
    """
    http = {"health": False, "robots": False, "hold_bytes": hold_bytes}
    result = run_plan(plan, network=site, configuration={"http": http}, x=[{"n": 1}])
    assert site.urls == [URL]  # it is not asked for again
    return result


def failure(result: Result) -> dict[str, Any]:
    assert result.outputs["out"] == []
    (failed,) = result.outputs["failed"]
    return dict(failed)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("said", [None, "text/html", "application/octet-stream", "right"])
def test_no_reader_reads_what_is_no_text(reader: str, said: str | None) -> None:
    for name, (body, words) in FILES.items():
        content_type = words.partition("(")[2].rstrip(")") if said == "right" else said
        found = failure(read(READERS[reader], body, content_type))
        size = f"{len(body):,} bytes"
        assert found == {
            "n": 1,
            "error": f"{URL}: the page is {words}, {size}; no reader of aioflow reads it",
            "error-kind": "BinaryPageError",
            "attempts": 1,
        }, name


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("body", "content_type", "words"),
    [
        (b"id\x00name\x00\x01\x02", "application/octet-stream", "binary data (application/octet-stream)"),
        (b"id\x00name\x00\x01\x02", None, "binary data (application/octet-stream)"),
        (b"id\x00name\x00\x01\x02", "text/plain", "binary data (application/octet-stream)"),
        (b"\xff\xfb\x90\x64\x00\x0f", "audio/mpeg", "MP3 audio (audio/mpeg)"),
        (b"\xe9\xe8\xff\xfe", "image/x-canon", "an image (image/x-canon)"),
        (b"\x08\x96\x01\x12", "application/x-protobuf", "a file (application/x-protobuf)"),
        (b"\xfe\xed", "IMAGE/PNG; q=1", "a PNG image (image/png)"),
        (zipped("x"), "application/java-archive", "a file (application/java-archive)"),
        (FILES["doc"][0], "application/msword", "a Word document (application/msword)"),
    ],
)
def test_what_the_host_says_counts_where_the_bytes_do_not_tell(
    reader: str, body: bytes, content_type: str | None, words: str
) -> None:
    found = failure(read(READERS[reader], body, content_type))
    assert found["error"].startswith(f"{URL}: the page is {words}, {len(body):,} bytes;")
    assert found["error-kind"] == "BinaryPageError"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"id,name\n1,a\n", "application/octet-stream"),
        (b"id,name\n1,a\n", "application/vnd.ms-excel"),  # what many call CSV
        (b"id,name\n1,\xc3\xa9\n", "image/png"),
        (b"id,name\n1,\xe9\n", "text/csv; charset=latin-1"),
        ("id,name\n1,é\n".encode("utf-16"), "application/octet-stream"),
        ("id,name\n1,é\n".encode("utf-16-le"), "text/plain; charset=utf-16le"),
        (b"id,name\n1,a\x00b\n", "text/csv"),
        (b"BM,name\n1,a\n", None),
        (b"MZ,name\n1,a\n", None),
        (b"ID3,name\n1,a\n", None),
        (b"PAR1,name\n1,a\n", None),
        (b"GIF89a\n1\n", "text/csv"),
        (b"OTTO,name\n1,a\n", None),
        (b"true,name\n1,a\n", None),
        (b"%PDF,name\n1,a\n", None),
        (b"\x1b[1mid,name\n1,a\n", None),
    ],
)
def test_a_text_is_read_whatever_the_host_calls_it(body: bytes, content_type: str | None) -> None:
    result = read('READ: csv header off; t: "1"', body, content_type)
    assert result.outputs["failed"] == []
    assert len(result.outputs["out"]) == 2


def test_an_svg_image_is_read_as_xml() -> None:
    body = b"\n<svg><title>A house</title></svg>"
    (row,) = read('READ: xml; t: "//title"', body, "image/svg+xml").outputs["out"]
    assert row["t"] == "A house"


def test_a_charset_of_the_wrapper_makes_a_text_of_bytes_with_nulls() -> None:
    body = "id;name\n".encode("utf-32-le")
    (row,) = read('READ: csv delimiter ";" header off; CHARSET: "utf-32-le"; t: "1"', body).outputs["out"]
    assert row["t"] == "id"


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_a_page_that_comes_in_pieces_is_looked_at_as_it_comes(pieces: int) -> None:
    body = FILES["png"][0]
    chunks = Chunks(*(body[start : start + pieces] for start in range(0, len(body), pieces)))
    length = {"Content-Length": "33"}
    found = failure(read(READERS["lines"], chunks, "application/json", hold_bytes=1, **length))
    assert "the page is a PNG image (image/png), 33 bytes; no" in found["error"]
    assert chunks.is_closed
    found = failure(read(READERS["lines"], Chunks(body[:9], body[9:]), hold_bytes=1))
    assert "the page is a PNG image (image/png); no" in found["error"]


def test_a_reader_that_is_made_for_a_kind_of_file_gets_it() -> None:
    class PdfReader(CsvReader):
        name: ClassVar[str] = "pdf"
        content_types: ClassVar[tuple[str, ...]] = ("application/pdf",)

    register_reader(PdfReader())
    try:
        result = read('READ: pdf; t: "1"', FILES["pdf"][0], "text/html")
        assert result.outputs["failed"] == []
        assert failure(read('READ: pdf; t: "1"', FILES["png"][0]))["error-kind"] == "BinaryPageError"
    finally:
        forget_reader("pdf")


@given(
    st.text(), st.sampled_from(["", "text/html", "text/csv", "application/json", "image/png", "video/mp4"])
)
def test_no_text_is_taken_for_anything_else(text: str, content_type: str) -> None:
    printable = "".join(each for each in text if each.isprintable() or each in "\r\n\t")
    assert medium_of(printable.encode(), content_type) is None
