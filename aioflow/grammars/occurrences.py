"""The places of marked records in a page: their values, also with markup and entities inside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from html.entities import codepoint2name
from itertools import islice, pairwise, product
from operator import itemgetter

import msgspec

from aioflow.errors import InputError
from aioflow.grammars.replay import SourceSpan
from aioflow.values.display import visible

OCCURRENCES_AT_MOST = 200
_PLACEMENTS_AT_MOST = 12
_CONTEXT = 30
_BETWEEN = r"(?:[ \t\r\n]|&nbsp;|&#160;|\xa0|<[^<>]{0,300}>)+"
_CLOSING = re.compile(r"</([A-Za-z][A-Za-z0-9]{0,20})>")
_COMPARED_CHARACTERS = 300_000
_COMPARED_VALUE = 60
_COMBINATIONS_AT_MOST = 243
_LEAST_ALIKE = 3
_OTHER_ORDER = 60


class Placement(msgspec.Struct, frozen=True):
    """The span of each value of one example."""

    spans: Mapping[str, SourceSpan]

    @property
    def start(self) -> int:
        return min(start for start, _ in self.spans.values())

    @property
    def end(self) -> int:
        return max(end for _, end in self.spans.values())

    def order(self) -> list[str]:
        """Return the fields in the order of their places."""
        return sorted(self.spans, key=lambda name: self.spans[name])


def occurrences(page: str, value: str) -> list[SourceSpan]:
    """Return the spans of a value: as it is written, or else with markup, blanks and entities in it."""
    for pattern in (re.escape(value), _loosely(value)):
        matches = islice(re.finditer(pattern, page), OCCURRENCES_AT_MOST)
        found = [_with_closed_tags(page, *match.span()) for match in matches]
        whole = [span for span in found if _is_whole(page, value, span)]
        if found:
            return whole or found
    return []


def _with_closed_tags(page: str, start: int, end: int) -> SourceSpan:
    """Return a span that takes in the closing tags right after it that belong to its opening ones."""
    while "<" in page[start:end] and (closing := _CLOSING.match(page, end)):
        text = page[start:end].lower()
        tag = closing[1].lower()
        if len(re.findall(rf"<{tag}\b", text)) <= text.count(f"</{tag}"):
            break
        end = closing.end()
    return start, end


def _is_whole(page: str, value: str, span: SourceSpan) -> bool:
    """Return whether no word or number goes on at either end."""
    start, end = span
    before, after = page[start - 1 : start], page[end : end + 1]
    return not (_goes_on(before, value[0]) or _goes_on(after, value[-1]))


def _goes_on(one: str, other: str) -> bool:
    return (one.isalpha() and other.isalpha()) or (one.isdigit() and other.isdigit())


def _loosely(value: str) -> str:
    words = ["".join(map(_character, word)) for word in value.split()]
    return _BETWEEN.join(words)


def _character(character: str) -> str:
    code = ord(character)
    forms = [re.escape(character), f"&#{code};", f"&#[xX]0*{code:x};"]
    if name := codepoint2name.get(code):
        forms.append(f"&{name};")
    if character == "'":
        forms += ["&apos;", "’"]
    return f"(?:{'|'.join(forms)})" if len(forms) > 3 or character in "'/-" else re.escape(character)


def nearest_text(page: str, value: str) -> str:
    """Return the text of a page that is most like a value; empty if none is."""
    # Comparing takes time in proportion to both lengths.
    page, value = page[:_COMPARED_CHARACTERS], value[:_COMPARED_VALUE]
    matcher = SequenceMatcher(None, page.lower(), value.lower(), autojunk=False)
    match = matcher.find_longest_match()
    if match.size < min(_LEAST_ALIKE, len(value)):
        return ""
    start = max(0, match.a - match.b)
    return visible(page[start : start + len(value)].strip())


# --- records ------------------------------------------------------------------------------------


def place_examples(page: str, examples: Sequence[Mapping[str, str]]) -> list[Placement]:
    """Return where the examples stand: their values close together, in contexts that are most alike."""
    candidates = [_candidates(page, number, example) for number, example in enumerate(examples, 1)]
    best: tuple[float, list[Placement]] | None = None
    for base in candidates[0]:
        total = -_length_cost(base)
        chosen = [base]
        for others in candidates[1:]:
            score, placement = max(
                ((_likeness(page, base, each) - _length_cost(each), each) for each in others),
                key=itemgetter(0),
            )
            total += score
            chosen.append(placement)
        if best is None or total > best[0]:
            best = (total, chosen)
    assert best is not None
    return best[1]


def _length_cost(placement: Placement) -> float:
    """Return how far apart the values stand; values in another order than they were given count as far."""
    is_as_given = placement.order() == list(placement.spans)
    return (placement.end - placement.start) / 20 + (0 if is_as_given else _OTHER_ORDER)


def _likeness(page: str, one: Placement, other: Placement) -> float:
    common = [name for name in one.order() if name in other.spans]
    score = 0.0 if common == [name for name in other.order() if name in one.spans] else -1000.0
    if one.start < other.end and other.start < one.end:
        score -= 1000.0
    for name in common:
        (start, end), (its_start, its_end) = one.spans[name], other.spans[name]
        before = page[max(0, start - _CONTEXT) : start], page[max(0, its_start - _CONTEXT) : its_start]
        score += _shared(before[0][::-1], before[1][::-1])
        score += _shared(page[end : end + _CONTEXT], page[its_end : its_end + _CONTEXT])
    return score


def _shared(one: str, other: str) -> int:
    return next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), _CONTEXT)


def _candidates(page: str, number: int, example: Mapping[str, str]) -> list[Placement]:
    found = {name: occurrences(page, value) for name, value in example.items()}
    for name, spans in found.items():
        if not spans:
            near = nearest_text(page, example[name])
            hint = f"; the nearest text is {near!r}" if near else "; nothing on it is like that"
            raise InputError(f"example {number}: {name} {example[name]!r} is not on the page{hint}")
    rarest = min(found, key=lambda name: (len(found[name]), -len(example[name])))
    placements: list[Placement] = []
    for anchor in found[rarest]:
        choices = [_near(found[name], anchor) if name != rarest else [anchor] for name in found]
        combinations = islice(product(*choices), _COMBINATIONS_AT_MOST)
        placements += [
            Placement(dict(zip(found, each, strict=True))) for each in combinations if not _overlap(each)
        ]
    if not placements:
        raise InputError(f"example {number}: its values stand on the page only within one another")
    placements.sort(key=_length_cost)
    return placements[:_PLACEMENTS_AT_MOST]


def _near(spans: Sequence[SourceSpan], anchor: SourceSpan) -> list[SourceSpan]:
    """Return the nearest span before an anchor, and the two nearest after it."""
    before = [span for span in spans if span[1] <= anchor[0]][-1:]
    after = [span for span in spans if span[0] >= anchor[1]][:2]
    return before + after or list(spans[:1])


def _overlap(spans: Sequence[SourceSpan]) -> bool:
    ordered = sorted(spans)
    return any(one[1] > other[0] for one, other in pairwise(ordered))
