"""No mutation of a valid text leads to anything but a plan or its mistakes; the long form is a command."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.language.fuzz import TOKENS, examine, fuzz


def test_mutated_plans_are_plans_or_have_mistakes() -> None:
    report = fuzz(count=400, seed=0)
    assert report.failures == []
    assert report.plans > 10
    assert report.mistakes > 100


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=30).map("".join))
def test_any_sequence_of_tokens_is_a_plan_or_has_mistakes(text: str) -> None:
    examine(text)
    examine(f"PLAN p {{ BODY {{ {text} }} }}")
    examine(f"PLAN p {{ BODY {{ op ( {text} ) }} }}")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_plan_or_have_mistakes(content: bytes) -> None:
    examine(content)
    examine(b'PLAN p { BODY { op ("' + content + b'") } }')
