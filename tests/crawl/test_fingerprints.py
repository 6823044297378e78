"""Fingerprints of texts: near for similar texts, far for others; the bands find all that are near."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.crawl import MOST_DISTANCE, FingerprintBands, simhash64
from aioflow.crawl.fingerprints import BITS, distance

PAGES = sorted(Path(__file__).parents[2].glob("docs/*.md"))
ROOT = Path(__file__).parents[2]


def slow_simhash(text: str) -> int:
    """The definition, bit by bit, from the hashes of pairs of words."""
    from aioflow.crawl.fingerprints import _hashes

    words = text.lower().split()
    pairs: list[tuple[str, ...]] = [*pairwise(words)] or [(word,) for word in words]
    sums = [0] * BITS
    for pair in pairs:
        code = 0
        for place, word in enumerate(pair):
            code ^= int.from_bytes(_hashes(word)[place], "little")
        for bit in range(BITS):
            sums[bit] += 1 if code >> bit & 1 else -1
    found = sum(1 << bit for bit in range(BITS) if sums[bit] > 0)
    return (found or 1) if words else 0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("abcé", min_size=1, max_size=5), max_size=40))
def test_it_is_what_the_definition_says(words: list[str]) -> None:
    text = " ".join(words)
    assert simhash64(text) == slow_simhash(text)


def test_a_fingerprint_is_the_same_in_another_process() -> None:
    code = "from aioflow.crawl import simhash64; print(simhash64('The quick brown fox'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert int(done.stdout) == simhash64("the QUICK, brown fox!") == 0x7CCA111587A977BC


@pytest.mark.parametrize("text", ["", "  \n", "… — !", "\ud800"])
def test_a_text_without_words_has_none(text: str) -> None:
    assert simhash64(text) == 0


def test_scripts_without_spaces_have_words_too() -> None:
    text = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 10
    assert distance(simhash64(text), simhash64(text.replace("猫", "犬", 1))) <= 6
    assert distance(simhash64(text), simhash64(text[::-1])) > 10


def test_pages_with_one_changed_word_are_near_and_other_pages_are_far() -> None:
    texts = [" ".join(page.read_text("utf-8").split()[:800]) for page in PAGES]
    texts = [text for text in texts if text.count(" ") > 400]
    prints = list(map(simhash64, texts))
    assert len(prints) > 8
    assert min(distance(a, b) for place, a in enumerate(prints) for b in prints[:place]) > 10
    near = 0
    for place, text in enumerate(texts):
        words = text.split()
        words[random.Random(place).randrange(len(words))] = "something"
        near += distance(prints[place], simhash64(" ".join(words))) <= 3
    assert near >= len(texts) * 0.9


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**BITS - 1), st.integers(0, MOST_DISTANCE), st.randoms(use_true_random=False))
def test_near_fingerprints_share_a_band(fingerprint: int, most: int, generator: random.Random) -> None:
    other = fingerprint
    for bit in generator.sample(range(BITS), most):
        other ^= 1 << bit
    bands = FingerprintBands(most)
    assert set(bands.keys(fingerprint)) & set(bands.keys(other))
    assert len(bands.keys(fingerprint)) == most + 1


def test_the_first_near_page_is_found() -> None:
    bands = FingerprintBands(3)
    pages = [(3, 0b1, "c"), (1, 0b11111, "a"), (2, 0b111, "b")]
    assert bands.nearest(0, pages) == ("b", 3)
    assert bands.nearest(0, pages[:2]) == ("c", 1)
    assert bands.nearest(0, []) is None
