"""Text messages: how long they are, and how they are cut and split."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.messages.sms.segments import clean, cut, encoding_of, places, segments, split

# 3GPP TS 23.038, section 6.2.1: the code points of the default alphabet in the order of the table, without
# the escape (0x1B), and of its extension.
TABLE = [
    *(0x40, 0xA3, 0x24, 0xA5, 0xE8, 0xE9, 0xF9, 0xEC, 0xF2, 0xC7, 0x0A, 0xD8, 0xF8, 0x0D, 0xC5, 0xE5),
    *(0x394, 0x5F, 0x3A6, 0x393, 0x39B, 0x3A9, 0x3A0, 0x3A8, 0x3A3, 0x398, 0x39E, 0xC6, 0xE6, 0xDF, 0xC9),
    *(0x20, 0x21, 0x22, 0x23, 0xA4, *range(0x25, 0x40)),
    *(0xA1, *range(0x41, 0x5B), 0xC4, 0xD6, 0xD1, 0xDC, 0xA7),
    *(0xBF, *range(0x61, 0x7B), 0xE4, 0xF6, 0xF1, 0xFC, 0xE0),
]
EXTENSION = [0x0C, 0x5E, 0x7B, 0x7D, 0x5C, 0x5B, 0x7E, 0x5D, 0x7C, 0x20AC]
SEVEN_BIT = {**dict.fromkeys(map(chr, TABLE), 1), **dict.fromkeys(map(chr, EXTENSION), 2)}

FAMILY = "👩‍👩‍👧‍👦"
FLAG = "🇩🇪"
PIECES = [
    "a",
    "word",
    " ",
    "\n",
    "€",
    "^",
    "é",
    "e\u0301",
    "a\u0301\u0302",
    "😀",
    FAMILY,
    FLAG,
    "🇩",
    "\u0301",
    "漢",
]
texts = st.one_of(
    st.text(st.sampled_from([*map(chr, TABLE), *map(chr, EXTENSION)]), max_size=700),
    st.lists(st.sampled_from(PIECES), max_size=300).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=400),
    st.tuples(st.sampled_from(PIECES), st.integers(0, 400), st.sampled_from(PIECES)).map(
        lambda made: made[0] * made[1] + made[2]
    ),
)


def septets_or_units(text: str) -> tuple[str, int]:
    """An oracle: the standard's table, or Python's own UTF-16."""
    if all(character in SEVEN_BIT for character in text):
        return "GSM-7", sum(SEVEN_BIT[character] for character in text)
    return "UCS-2", len(text.encode("utf-16-le")) // 2


@given(texts)
def test_a_text_is_as_long_as_the_standard_says(text: str) -> None:
    encoding, length = septets_or_units(text)
    assert encoding_of(text) == encoding
    assert places(text, encoding_of(text)) == length


def test_every_character_of_the_standard_is_known_and_no_other() -> None:
    assert len(TABLE) == 127
    known = {chr(code) for code in range(0x3000) if encoding_of(chr(code)) == "GSM-7"}
    assert known == set(SEVEN_BIT)


@given(texts)
def test_segments_are_the_text_and_none_is_too_long(text: str) -> None:
    found = segments(text)
    assert "".join(found) == text
    gsm = septets_or_units(text)[0] == "GSM-7"
    alone, joined = (160, 153) if gsm else (70, 67)
    room = alone if len(found) == 1 else joined
    for segment in found:
        size = sum(SEVEN_BIT[each] for each in segment) if gsm else len(segment.encode("utf-16-le")) // 2
        assert size <= room
    if len(found) > 1:
        assert septets_or_units(text)[1] > alone


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 1),
        ("a" * 160, 1),
        ("a" * 161, 2),
        ("a" * 306, 2),
        ("a" * 307, 3),
        ("€" * 80, 1),
        ("€" * 81, 2),
        ("€" * 152, 2),  # the escape and its character are not divided: 76 in each
        ("€" * 153, 3),
        ("ж" * 70, 1),
        ("ж" * 71, 2),
        ("ж" * 134, 2),
        ("ж" * 135, 3),
        ("😀" * 35, 1),
        ("😀" * 66, 2),  # 33 in each, since half of one cannot be sent
        ("😀" * 67, 3),
    ],
)
def test_a_text_takes_as_many_segments_as_phones_count(text: str, count: int) -> None:
    assert len(segments(text)) == count


@pytest.mark.parametrize(
    "whole", ["😀", FAMILY, FLAG, "e\u0301", "👍🏽", "❤\ufe0f", "🏴\U000e0067\U000e0062\U000e007f"]
)
def test_what_is_one_character_for_a_reader_stays_together(whole: str) -> None:
    for shift in range(12):
        found = segments("ж" * (60 + shift) + whole * 20)
        assert len(found) > 1
        assert all(segment.lstrip("ж").replace(whole, "") == "" for segment in found)


def test_a_character_longer_than_a_segment_is_divided_at_last() -> None:
    assert list(map(len, segments("e" + "\u0301" * 150))) == [67, 67, 17]


@given(texts, st.integers(1, 4))
def test_a_cut_text_fits_and_is_marked(text: str, most: int) -> None:
    found = cut(text, most)
    assert len(segments(found)) <= most
    if len(segments(text)) <= most:
        assert found == text
    else:
        mark = "..." if encoding_of(found) == "GSM-7" else "…"
        assert found.endswith(mark)
        assert text.startswith(found.removesuffix(mark))


def test_a_text_is_cut_between_words() -> None:
    words = "house " * 40
    assert cut(words, 1) == ("house " * 26).rstrip() + "..."
    assert cut("ж" * 10 + " " + "ж" * 100, 1) == "ж" * 10 + "…"


def test_a_mark_does_not_make_a_text_longer_than_it_must_be() -> None:
    # The only character that needs UCS-2 is cut off with the rest.
    assert cut("a" * 200 + "漢", 1) == "a" * 157 + "..."


@given(texts, st.integers(1, 3))
def test_a_split_text_is_whole_and_its_parts_fit(text: str, most: int) -> None:
    parts = split(text, most)
    assert "".join(parts) == text
    assert all(len(segments(part)) <= most for part in parts)
    assert all(parts) or parts == [""]


def test_parts_end_behind_words() -> None:
    parts = split("house " * 60, 1)
    assert all(part.startswith("house") and part.split() for part in parts)
    assert [len(part) for part in parts] == [156, 156, 48]


@given(st.text(max_size=50))
def test_a_clean_text_is_composed_and_has_no_controls(text: str) -> None:
    found = clean(text)
    assert found == unicodedata.normalize("NFC", found)
    assert not any(unicodedata.category(each) in ("Cc", "Cs") and each != "\n" for each in found)


def test_accents_are_joined_to_their_letters_so_that_the_text_stays_short() -> None:
    assert encoding_of(clean("cafe\u0301\r\n")) == "GSM-7"
