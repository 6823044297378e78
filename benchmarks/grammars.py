"""How fast grammars match pages, unseen ones and further ones of the same source; memory and growth.

`python -m aioflow.benchmarks.grammars PAGE` is the process whose memory is measured.
"""

from __future__ import annotations

import json
import re
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

from aioflow.benchmarks.breadth_first import BreadthFirst
from aioflow.benchmarks.contenders import expect_same, timed
from aioflow.benchmarks.growth import claim_growth, curve
from aioflow.benchmarks.harness import Bench, at_least, at_most, experiment
from aioflow.benchmarks.harness.processes import ROOT, run_process
from aioflow.grammars import Grammar, compile

_DATA = ROOT / "tests" / "data" / "pages"
_MODULE = "aioflow.benchmarks.grammars"
NEWSLETTER = "pgnews_2004_11.txt"
LATIN = "pgnews_1998_11.txt"
PAGES = ("ca8.html", "armfor.html", "okla.html", "ncctapp.html", LATIN, NEWSLETTER)
# What the regular expression below finds is what the grammar of the page extracts.
BY_HAND = re.compile(r"(?m)^([A-Z][a-z]{2}) (19\d\d) (.+?) *\[([^\]\n]+)\] *(\d+)$")
EXPONENTIAL = "strict rule r is ('a' | [a-z] | [a-z0-9])+ | .* end"
_MILLISECONDS = 1000
_MATCHING, _WHOLE = "matching", "whole parse"


@dataclass(frozen=True)
class Page:
    """A page with its grammar."""

    name: str
    text: str

    def grammar(self) -> Grammar:
        """Return the grammar as it is before its first page."""
        return compile((_DATA / self.name).with_suffix(".jedi").read_text(encoding="utf-8"))

    def halves(self) -> tuple[str, str]:
        """Return two pages of one source: each has half of the records."""
        match = self.grammar().parse(self.text, traces=True).match
        assert match is not None  # it was asked for
        middle = match.bindings[len(match.bindings) // 2].start
        return self.text[:middle], self.text[middle:]


def read_page(name: str) -> Page:
    encoding = "latin-1" if name == LATIN else "utf-8"
    return Page(name, (_DATA / name).read_bytes().decode(encoding))


def matching(grammar: Grammar, text: str) -> Callable[[], object]:
    """Return the matching of a page, which ends with the end of the page: nothing is replayed."""

    def match() -> object:
        stream = grammar.stream(settles=False)
        stream.feed(text)
        return None

    return match


@experiment(
    "How fast are irregular pages matched by grammars?",
    work="six real pages of 22,000 to 130,000 characters with a grammar each, by a matcher that has not seen "
    "the page, and further pages of the same source: the second half of the records after the first half; "
    "a plain breadth-first matcher, as in the paper on Jedi, on the same pages; the book lines of a "
    "newsletter by a regular expression written by hand; processor time",
    limit="none: a character has to be looked at",
)
def grammars(bench: Bench) -> None:
    pages = [read_page(name) for name in bench.size(PAGES, (*PAGES[:1], LATIN))]
    for each in bench.rounds(5):
        for page in each.shuffled(pages):
            _measure(bench, page)
            _measure_further(bench, page)
        _measure_by_hand(bench)
        _measure_exponential(bench)
    for _ in bench.rounds(1, warm_up=0):
        for page in pages:
            taken = run_process(_MODULE, page.name)
            bench.sample(f"{page.name}, memory a character", "bytes", taken["bytes"])
    _measure_growth(bench)
    _claim(bench, [page.name for page in pages])


def _measure(bench: Bench, page: Page) -> None:
    size = len(page.text)
    unseen, whole = page.grammar(), page.grammar()
    plain = BreadthFirst(page.grammar(), unseen.start_rule(None))
    matched, _ = timed(matching(unseen, page.text))
    parsed, value = timed(lambda: whole.parse(page.text).value)
    plainly, _ = timed(lambda: plain.match(page.text) and None)
    expect_same({"ordered subsets": value, "breadth first": plain.parse(page.text)})
    bench.moved(1)
    for what, seconds in (
        (f"unseen, {_MATCHING}", matched),
        (f"unseen, {_WHOLE}", parsed),
        ("breadth first, plain matching", plainly),
    ):
        bench.sample(f"{page.name} {what}", "characters/s", size / max(seconds, 1e-6))


def _measure_further(bench: Bench, page: Page) -> None:
    first, second = page.halves()
    grammar = page.grammar()
    grammar.parse(first)
    matched, _ = timed(matching(grammar, second))
    # New characters and new orders of fields are still learned, in the second half only once.
    again = page.grammar()
    again.parse(first)
    parsed, _ = timed(lambda: again.parse(second).value)
    for what, seconds in ((f"further, {_MATCHING}", matched), (f"further, {_WHOLE}", parsed)):
        bench.sample(f"{page.name} {what}", "characters/s", len(second) / max(seconds, 1e-6))


def _measure_by_hand(bench: Bench) -> None:
    page = read_page(LATIN)
    grammar = page.grammar()
    unseen, value = timed(lambda: grammar.parse(page.text).value)
    seen, _ = timed(lambda: grammar.parse(page.text).value)
    by_hand, found = timed(lambda: BY_HAND.findall(page.text))
    assert isinstance(value, list)
    assert isinstance(found, list)
    expect_same({"grammar": [tuple(each.values()) for each in value], "by hand": found})
    for what, seconds in (("grammar", unseen), ("grammar again", seen), ("re by hand", by_hand)):
        bench.sample(f"{what}, records of {LATIN}", "ms", seconds * _MILLISECONDS)


def _measure_exponential(bench: Bench) -> None:
    grammar = compile(EXPONENTIAL)
    seconds, _ = timed(lambda: grammar.parse("a" * 21 + "$").value)
    bench.sample(
        "3^21 steps by backtracking", "ms", seconds * _MILLISECONDS, figure="the example of the paper"
    )


def _measure_growth(bench: Bench) -> None:
    page = read_page(NEWSLETTER)
    sizes: tuple[int, ...] = bench.size((1, 2, 4, 8), (1, 2))
    for each in bench.rounds(3):
        for times in each.shuffled(sizes):
            grammar = page.grammar()
            seconds, _ = timed(matching(grammar, page.text * times))
            bench.sample(f"{times} x {NEWSLETTER}", "ms", seconds * _MILLISECONDS, figure="time of matching")
    lengths = [len(page.text) * times for times in sizes]
    drawn = curve(bench, "matching", lengths, [f"{times} x {NEWSLETTER}" for times in sizes])
    claim_growth(bench, "the time of matching with the length of the page", drawn)
    half, most = (f"{times} x {NEWSLETTER}" for times in sizes[-2:])
    bench.claim_ratio("time for a page of twice the length", most, half, at_most(2.2))
    bench.plot("Time over the length of the page", "characters", "ms", [drawn])


def _claim(bench: Bench, names: list[str]) -> None:
    for name in names:
        unseen = f"{name} unseen, {_MATCHING}"
        bench.claim_median(f"{name}: matching an unseen page", unseen, at_least(700_000))
        plain = f"{name} breadth first, plain matching"
        bench.claim_ratio(f"{name}: of a plain breadth-first matcher", unseen, plain, at_least(8))
        bench.claim_median(f"{name}: the whole parse of an unseen page", f"{name} unseen, {_WHOLE}")
        bench.claim_median(
            f"{name}: matching a further page", f"{name} further, {_MATCHING}", at_least(4_000_000)
        )
        bench.claim_median(f"{name}: the whole parse of a further page", f"{name} further, {_WHOLE}")
        bench.claim_median(f"{name}: memory a character", f"{name}, memory a character", at_most(75))
    bench.claim_median(
        "the example that backtracking takes 3^21 steps for", "3^21 steps by backtracking", at_most(10)
    )
    by_hand = f"re by hand, records of {LATIN}"
    bench.claim_ratio("time of the grammar, of re by hand", f"grammar, records of {LATIN}", by_hand)
    bench.claim_ratio("again, of re by hand", f"grammar again, records of {LATIN}", by_hand)


def memory(name: str) -> dict[str, float]:
    """Return the bytes a character that Python allocates at most while an unseen page is matched."""
    page = read_page(name)
    grammar = page.grammar()
    stream = grammar.stream(settles=False)
    tracemalloc.start()
    stream.feed(page.text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"bytes": most / len(page.text)}


if __name__ == "__main__":
    print(json.dumps(memory(sys.argv[1])))
