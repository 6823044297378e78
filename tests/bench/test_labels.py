"""Names beside curves: they cover neither curves nor each other."""

from itertools import combinations, pairwise

from aioflow.bench.labels import Box, place_labels, thinned

AREA = Box(60, 20, 700, 340)


def test_labels_lie_inside_beside_the_curves_and_apart() -> None:
    ends = (180, 205, 400, 640)
    curves = [[(60.0, 340.0), (float(end), 40.0)] for end in ends]
    labels = place_labels(["D+S+", "D+S-", "Telegraph baseline", "D-"], curves, AREA)
    assert labels is not None
    for label in labels:
        assert AREA.contains(label.box)
        assert not any(label.box.is_crossed(*segment) for curve in curves for segment in pairwise(curve))
    assert not any(one.box.overlaps(other.box) for one, other in combinations(labels, 2))


def test_curves_that_cannot_be_told_apart_get_no_labels() -> None:
    near = [[(60.0, 340.0), (640.0, 40.0 + n)] for n in range(3)]
    assert place_labels(["one", "two", "three"], near, AREA) is None


def test_curves_that_fill_the_area_leave_no_place() -> None:
    comb = [(60.0 + 4 * n, 20.0 if n // 2 % 2 else 340.0) for n in range(161)]
    assert place_labels(["a long name"], [comb], AREA) is None


def test_points_that_nobody_could_tell_apart_are_left_out_and_the_last_is_kept() -> None:
    assert thinned([(0, 0), (0.1, 0.1), (0.5, 0), (0.6, 0)], 0.4) == [(0, 0), (0.5, 0), (0.6, 0)]
    assert thinned([], 1) == []


def test_a_line_crosses_a_box_or_passes_it() -> None:
    box = Box(10, 10, 20, 20)
    assert box.is_crossed((0, 0), (30, 30))
    assert box.is_crossed((12, 12), (13, 13))
    assert box.is_crossed((15, 0), (15, 30))
    assert not box.is_crossed((0, 0), (30, 5))
    assert not box.is_crossed((0, 25), (30, 25))
    assert not box.is_crossed((0, 15), (9, 15))
