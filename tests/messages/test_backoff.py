"""How long a message waits for its next attempt, and when there is none."""

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.messages.outbox.attempt import MOST_RETRY_AFTER_SECONDS, judge, wait_seconds
from aioflow.messages.outbox.message import DeliveryError, Message
from aioflow.messages.outbox.settings import OutboxSettings

# No deadline: the machine may be busy with something else.
checked = settings(deadline=None, max_examples=100)
settings_of_any_kind = st.builds(
    OutboxSettings,
    retry_base_seconds=st.floats(0.001, 1e4),
    retry_most_seconds=st.floats(0.001, 1e6),
    most_attempts=st.integers(1, 100),
)


@checked
@given(settings_of_any_kind, st.integers(0, 10**9), st.floats(0, 1, exclude_max=True))
def test_waits_grow_twofold_up_to_the_most_and_chance_takes_at_most_half(
    outbox: OutboxSettings, attempts: int, chance: float
) -> None:
    longest = wait_seconds(attempts, outbox, lambda: 0.0)
    wait = wait_seconds(attempts, outbox, lambda: chance)
    assert longest / 2 <= wait <= longest <= outbox.retry_most_seconds
    assert longest >= min(outbox.retry_base_seconds, outbox.retry_most_seconds)
    following = wait_seconds(attempts + 1, outbox, lambda: 0.0)
    assert longest <= following <= longest * 2
    if following < outbox.retry_most_seconds and attempts > 0:
        assert math.isclose(following, longest * 2)


@checked
@given(settings_of_any_kind, st.integers(1, 50), st.floats(allow_nan=True, allow_infinity=True))
def test_what_the_receiver_asks_for_is_the_least_up_to_an_hour(
    outbox: OutboxSettings, attempts: int, asked: float
) -> None:
    plain = wait_seconds(attempts, outbox, lambda: 0.5)
    wait = wait_seconds(attempts, outbox, lambda: 0.5, asked)
    assert plain <= wait <= max(plain, MOST_RETRY_AFTER_SECONDS)
    if 0 < asked <= MOST_RETRY_AFTER_SECONDS:
        assert wait >= asked


@checked
@given(
    settings_of_any_kind,
    st.integers(1, 200),
    st.sampled_from(["at-least-once", "at-most-once"]),
    st.booleans(),
    st.booleans(),
)
def test_a_message_dies_for_a_reason_only(
    outbox: OutboxSettings, attempts: int, delivery: Any, final: bool, uncertain: bool
) -> None:
    message = Message("k", "test", "main", {}, delivery=delivery, attempts=attempts, progress={"a": 1})
    verdict = judge(message, DeliveryError("x", final=final, uncertain=uncertain), outbox, lambda: 0.0)
    twice = delivery == "at-most-once" and uncertain
    assert verdict.dead == (final or twice or attempts >= outbox.most_attempts)
    assert verdict.progress == {"a": 1}
