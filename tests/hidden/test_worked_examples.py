"""The examples of Sheng, Zhang, Tao and Jin (2012), with the figures' data as far as the text tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aioflow.hidden import Categorical, Numeric
from tests.hidden.crawls import Attribute, Extracted, Row, comparable, extracted
from tests.hidden.plain_forms import PlainForm

# Figure 3: t6, t7 and t8 are 55, t2 is 20, and nothing is above 55 (q4 is a leaf of type 3, with k / 4 = 1).
FIGURE_3 = [(value,) for value in (10, 20, 30, 35, 45, 55, 55, 55)]
R_OF_FIGURE_3 = {
    (): [(35,), (55,), (55,), (55,)],  # R1: t4, t6, t7, t8
    (("A1", (None, 54)),): [(10,), (20,), (35,), (45,)],  # R2: t1, t2, t4, t5
}

# Figure 4: t6 to t10 lie on the line A1 = 80, which takes 3 queries; q2 is split at 40, which is t3.
FIGURE_4 = [
    (10, 30),
    (30, 70),
    (40, 20),
    (50, 60),
    (60, 45),
    (80, 10),
    (80, 25),
    (80, 40),
    (80, 55),
    (80, 75),
]
R_OF_FIGURE_4 = {
    (): [FIGURE_4[number - 1] for number in (4, 7, 8, 9)],
    (("A1", (None, 79)),): [FIGURE_4[number - 1] for number in (2, 3, 4, 5)],
}

# Figure 5, as the lookup table of figure 6 has it: t1 to t10.
FIGURE_5 = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 4), (3, 1), (3, 2), (3, 3), (3, 3), (4, 2)]
MENUS = [Categorical("A1", range(1, 5)), Categorical("A2", range(1, 5))]


class ScriptedForm(PlainForm):
    """A form that answers some queries as the paper supposes."""

    def __init__(self, rows: list[Row], k: int, script: Mapping[Any, list[Row]], names: list[str]) -> None:
        super().__init__(names, rows, k)
        self._script = script

    def matching(self, query: Mapping[str, Any]) -> list[Row]:
        found = super().matching(query)
        first = self._script.get(tuple(query.items()), [])
        rest = list(found)
        for row in first:
            rest.remove(row)
        return [*first, *rest]


def _of_figure_3() -> tuple[ScriptedForm, Extracted]:
    form = ScriptedForm(FIGURE_3, 4, R_OF_FIGURE_3, ["A1"])
    return form, extracted(form, [Numeric("A1")], k=4, algorithm="rank-shrink")


def _of_figure_4() -> tuple[ScriptedForm, Extracted]:
    form = ScriptedForm(FIGURE_4, 4, R_OF_FIGURE_4, ["A1", "A2"])
    return form, extracted(form, [Numeric("A1"), Numeric("A2")], k=4, algorithm="rank-shrink")


def _of_figure_5(algorithm: str) -> tuple[PlainForm, Extracted]:
    form = PlainForm(["A1", "A2"], FIGURE_5, 3)
    attributes: list[Attribute] = [*MENUS]
    return form, extracted(form, attributes, k=3, algorithm=algorithm)


def test_rank_shrink_asks_the_six_queries_of_figure_3() -> None:
    form, _ = _of_figure_3()
    extents = [(None, 54), (55, 55), (56, None), (None, 19), (20, 54)]
    assert comparable(form.queries) == comparable([{}, *({"A1": extent} for extent in extents)])


def test_rank_shrink_extracts_the_tuples_of_figure_3() -> None:
    _, result = _of_figure_3()
    assert (sorted(result.rows), result.report.complete) == (FIGURE_3, True)


def test_rank_shrink_splits_figure_4_into_the_rectangles_of_the_text() -> None:
    form, _ = _of_figure_4()
    extents = [(None, 79), (80, 80), (81, None), (None, 39), (40, 79)]
    asked = comparable(query for query in form.queries if "A2" not in query)
    assert asked == comparable([{}, *({"A1": extent} for extent in extents)])


def test_rank_shrink_settles_the_line_at_80_of_figure_4_by_three_queries() -> None:
    form, _ = _of_figure_4()
    assert sum(query.get("A1") == (80, 80) for query in form.queries) == 3


def test_rank_shrink_extracts_the_tuples_of_figure_4() -> None:
    _, result = _of_figure_4()
    assert (sorted(result.rows), result.report.complete) == (sorted(FIGURE_4), True)


def test_dfs_visits_the_thirteen_nodes_of_figure_5() -> None:
    form, _ = _of_figure_5("dfs")
    nodes: list[dict[str, Any]] = [{}, *({"A1": value} for value in range(1, 5))]
    nodes += [{"A1": first, "A2": second} for first in (1, 3) for second in range(1, 5)]
    assert comparable(form.queries) == comparable(nodes)


def test_dfs_visits_the_nodes_of_figure_5_depth_first() -> None:
    form, _ = _of_figure_5("dfs")
    assert form.queries[:4] == [{}, {"A1": 1}, {"A1": 1, "A2": 1}, {"A1": 1, "A2": 2}]


def test_slice_cover_asks_the_eight_slices_of_figure_6_and_nothing_more() -> None:
    form, _ = _of_figure_5("slice-cover")
    slices = [{name: value} for name in ("A1", "A2") for value in range(1, 5)]
    assert form.queries == slices


def test_the_slices_are_answered_as_the_lookup_table_of_figure_6_says() -> None:
    form, _ = _of_figure_5("slice-cover")
    table = [len(form.matching(query)) for query in form.queries]
    assert table == [4, 1, 4, 1, 2, 3, 3, 2]


def test_lazy_slice_cover_asks_the_root_and_the_slices_it_needs_of_figure_5() -> None:
    form, _ = _of_figure_5("lazy-slice-cover")
    slices = [{name: value} for name in ("A1", "A2") for value in range(1, 5)]
    assert (len(form.queries), comparable(form.queries)) == (9, comparable([{}, *slices]))


def test_the_algorithms_for_menus_extract_the_tuples_of_figure_5() -> None:
    for algorithm in ("dfs", "slice-cover", "lazy-slice-cover", "hybrid", "auto"):
        _, result = _of_figure_5(algorithm)
        assert (sorted(result.rows), result.report.complete) == (sorted(FIGURE_5), True), algorithm
