"""What is usual for wrappers: what is counted in a run, and which figures are worse than earlier ones."""

from __future__ import annotations

import random
from collections.abc import Iterable

from aioflow.relation import Relation, Schema
from aioflow.state.health import RunHealth
from aioflow.wrappers.health import HealthBaseline, Tally

HOUSES = Schema.of("price", "address")


def run_of(rows: int, pages: int = 1, **nulls: int) -> RunHealth:
    return RunHealth("run", rows, pages, nulls)


def told(history: Iterable[RunHealth], run: RunHealth) -> list[str]:
    """What is worse about a run, in words."""
    usual = HealthBaseline(list(history))
    lack = usual.lack(run.rows, run.pages)
    return [*([lack] if lack else []), *usual.lost_columns(run), *usual.poorer_columns(run)]


def steady(count: int, rows: int, pages: int = 1, **nulls: int) -> list[RunHealth]:
    return [run_of(rows, pages, **nulls) for _ in range(count)]


# --- counting ------------------------------------------------------------------------------------


def test_a_tally_counts_rows_and_the_nulls_of_each_column() -> None:
    tally = Tally(("price", "address"), ())
    tally.add([(1, None), (None, None)])
    tally.add([])
    tally.add([(0, "")])
    assert (tally.rows, tally.by_column()) == (3, {"price": 1, "address": 2})


def test_an_embedded_relation_without_rows_counts_as_null() -> None:
    tally = Tally(("rooms",), ("rooms",))
    tally.add([(Relation(HOUSES, [(1, "a")]),), (Relation(HOUSES),), (None,)])
    assert tally.by_column() == {"rooms": 2}


def test_a_count_of_nothing_counts_as_null_as_an_empty_list_does() -> None:
    tally = Tally(("tags", "n", "price"), ("tags", "n"), ("n",))
    tally.add([(Relation.of_values([]), 0, 0), (Relation.of_values([]), 0, 0)])
    assert tally.by_column() == {"tags": 2, "n": 2, "price": 0}
    assert not tally.has_found
    tally.add([(Relation.of_values(["a"]), 1, 0)])
    assert tally.by_column() == {"tags": 2, "n": 2, "price": 0}
    assert tally.has_found


def test_something_was_found_when_a_column_of_the_page_has_a_value() -> None:
    tally = Tally(("city", "rooms"), ("rooms",), compared=False)
    tally.add([("a", None), ("b", Relation(HOUSES))])
    assert (tally.rows, tally.has_found) == (2, False)
    tally.add([("a", 0)])
    assert (tally.rows, tally.has_found) == (3, True)
    bare = Tally(("city",), ())
    bare.add([])
    assert not bare.has_found
    bare.add([("a",)])
    assert bare.has_found


# --- what is told --------------------------------------------------------------------------------


def test_rows_that_drop_by_more_than_half_are_told() -> None:
    history = [run_of(rows) for rows in (72, 70, 75, 71, 74)]
    assert told(history, run_of(40)) == []
    assert told(history, run_of(12)) == [
        "gave 12 rows on 1 page, where its last 5 runs had about 72 a page; has the page changed?"
    ]


def test_a_smaller_query_with_as_many_rows_on_each_page_is_not_told() -> None:
    history = [run_of(17, pages=3) for _ in range(10)]
    assert told(history, run_of(4, pages=1)) == []
    assert told([run_of(92, pages=4) for _ in range(10)], run_of(1, pages=1)) == []
    assert told(steady(10, 23, pages=23), run_of(1, pages=1)) == []


def test_pages_that_hold_fewer_rows_are_told_however_many_there_are() -> None:
    history = [run_of(rows, pages) for rows, pages in ((200, 10), (61, 3), (119, 6), (80, 4))]
    assert told(history, run_of(9, pages=10)) == [
        "gave 9 rows on 10 pages, where its last 4 runs had about 20 a page; has the page changed?"
    ]


def test_runs_that_read_no_page_to_its_end_are_no_measure_for_rows() -> None:
    assert told(steady(5, 72), run_of(0, pages=0)) == []
    assert told(steady(5, 72, pages=0), run_of(3)) == []
    assert told([*steady(5, 500, pages=0), *steady(3, 10)], run_of(10)) == []


def test_pages_without_any_row_are_told_of_a_wrapper_that_always_found_some() -> None:
    assert told(steady(3, 6), run_of(0)) == [
        "gave no rows on 1 page, where its last 3 runs had about 6 a page; has the page changed?"
    ]
    assert told(steady(3, 23, pages=23), run_of(0, pages=4)) == [
        "gave no rows on 4 pages, where its last 3 runs had about 1 a page; has the page changed?"
    ]
    assert told([*steady(3, 6), run_of(0)], run_of(0)) == []


def test_fewer_rows_and_nulls_are_told_once_three_runs_are_known() -> None:
    assert told(steady(2, 72, price=0), run_of(3, price=3)) == []
    assert len(told(steady(3, 72, price=0), run_of(3, price=3))) == 2


def test_no_rows_at_all_are_told_once_one_run_is_known() -> None:
    assert told([], run_of(0)) == []
    assert told(steady(1, 6), run_of(0)) == [
        "gave no rows on 1 page, where its last run had about 6 a page; has the page changed?"
    ]
    assert told(steady(1, 2), run_of(0)) == []
    assert told(steady(1, 2, pages=2), run_of(0, pages=3)) != []


def test_while_more_pages_may_come_only_rows_that_lead_on_are_missed() -> None:
    usual = HealthBaseline(steady(5, 500, pages=100))
    for rows, pages in ((0, 1), (0, 60), (1, 60)):
        assert usual.lack(rows, pages, more_may_come=True) is None
    assert usual.lack(0, 95, more_may_come=True) is not None
    assert usual.lack(20, 95, more_may_come=True) is not None
    assert usual.lack(0, 1, more_may_come=True, leads_on=True) is not None
    assert usual.lack(1, 60, more_may_come=True, leads_on=True) is None


def test_rows_that_always_varied_may_drop() -> None:
    history = [run_of(rows) for rows in (10, 300, 25, 120, 8, 700, 60)]
    assert told(history, run_of(9)) == []


def test_small_counts_do_not_cry_wolf() -> None:
    assert told([run_of(rows) for rows in (2, 1, 3, 2, 0, 2)], run_of(0)) == []
    assert told(steady(3, 2), run_of(0)) == []
    assert told(steady(3, 1, price=0), run_of(1, price=1)) == []
    assert told([run_of(3, price=nulls) for nulls in (0, 1, 0, 0, 2, 0, 0)], run_of(3, price=3)) == []


def test_a_steady_small_count_that_goes_to_nothing_is_told_once_it_is_known_to_be_steady() -> None:
    assert told(steady(4, 1), run_of(0)) == []
    assert told(steady(20, 1), run_of(0)) != []


def test_a_column_that_goes_null_is_told_with_its_share() -> None:
    history = [run_of(50, price=nulls, address=0) for nulls in (2, 3, 1, 2, 4)]
    assert told(history, run_of(48, price=40, address=0)) == [
        "price is null in 83% of 48 rows, where 4% is usual; has the page changed?"
    ]
    assert told(history, run_of(48, price=12, address=0)) == []


def test_a_column_that_was_often_null_may_vary_as_it_did() -> None:
    history = [run_of(20, price=nulls) for nulls in (2, 14, 8, 18, 5, 11)]
    assert told(history, run_of(20, price=18)) == []


def test_a_column_that_never_was_null_and_is_now_always_is_told_even_for_one_row() -> None:
    assert told(steady(5, 4, price=0), run_of(3, price=3)) == [
        "price is always null, and never was in the last 5 runs; has the page changed?"
    ]
    assert told(steady(20, 1, price=0), run_of(1, price=1)) != []


def test_columns_that_are_new_or_gone_are_not_compared() -> None:
    assert told(steady(5, 50, price=0), run_of(50, beds=50)) == []


def test_runs_without_rows_say_nothing_about_columns() -> None:
    history = [*steady(2, 50, price=0), *steady(10, 0, price=0)]
    assert told(history, run_of(50, price=50)) == []


def test_ordinary_fluctuation_is_hardly_ever_told() -> None:
    chance = random.Random(7)

    def drawn(rows: float, share: float) -> RunHealth:
        count = sum(chance.random() < rows / 200 for _ in range(200))
        return run_of(count, price=sum(chance.random() < share for _ in range(count)))

    alarms = 0
    for _ in range(40):
        rows, share = chance.uniform(1, 80), chance.random()
        runs = [drawn(rows, share) for _ in range(30)]
        alarms += sum(bool(told(runs[max(0, now - 20) : now], runs[now])) for now in range(3, 30))
    assert alarms <= 1  # of 1,080 runs
