"""Diagrams as Mermaid, DOT and SVG text."""

import re
import sys
from itertools import combinations
from xml.etree import ElementTree

import pytest

from aioflow.drawing import draw
from aioflow.drawing.layout import lay_out
from aioflow.errors import InputError, MissingExtraError
from aioflow.plan import InputDeclaration, Plan, Program
from tests.drawing.plans import PROGRAM, statement, variables

SVG = "{http://www.w3.org/2000/svg}"


def test_mermaid_shows_kinds_labels_and_signals() -> None:
    lines = draw(PROGRAM, "mermaid").splitlines()
    assert lines[0] == "flowchart TD"
    assert '    in1(["criteria"])' in lines
    assert '    s2[["get_urls"]]' in lines
    assert '    s4["<b>select</b><br/>beds #gt;= 3 and price #lt; 550000"]' in lines
    assert '    s1 -->|"page"| s2' in lines
    assert '    s5 -.->|"mailed"| s6' in lines
    assert "    s4 --> out1" in lines


def test_mermaid_draws_several_plans_as_subgraphs() -> None:
    text = draw(PROGRAM, "mermaid", all_plans=True)
    assert '    subgraph p2["get_urls"]' in text
    assert '        p2s4[["get_urls ↻"]]' in text


def test_dot_shows_kinds_labels_and_signals() -> None:
    text = draw(PROGRAM, "dot")
    assert text.startswith('digraph "watch_houses" {')
    assert 's2 [label="get_urls", peripheries=2]' in text
    assert 's5 -> s6 [style=dashed, label=" mailed"]' in text
    assert "in1 -> s1\n" in text


def test_dot_escapes_quotes_and_backslashes() -> None:
    plan = Plan("p", statements=(statement("select", "", 'a = "x" and b = "\\"'),))
    assert 'label="select\\na = \\"x\\" and b = \\"\\\\\\""' in draw(Program(plan), "dot")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match=r"no drawing format 'png' \(mermaid, dot, svg\)"):
        draw(PROGRAM, "png")


def test_svg_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fast_sugiyama", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aioflow\[graph\]'"):
        draw(PROGRAM, "svg")


def test_svg_draws_every_box_label_and_edge() -> None:
    root = ElementTree.fromstring(draw(PROGRAM, "svg"))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"criteria", "wrapper", "get_urls", "WORKERS 8", "mailed", "failed", "details"} <= set(texts)
    assert texts.count("houses") == 2  # the output, and the label of what is mailed
    classes = [element.get("class") or "" for element in root.iter()]
    assert classes.count("edge signal") == 2  # to the label, and from it
    assert classes.count("end") == 2
    # Two borders for the call, one for each of the other six statements.
    assert classes.count("box") == 8


def test_svg_is_the_same_every_time() -> None:
    assert draw(PROGRAM, "svg", all_plans=True) == draw(PROGRAM, "svg", all_plans=True)


def test_svg_stays_well_formed_whatever_a_setting_holds() -> None:
    plan = Plan("p", statements=(statement("select", "", "a < '\x00&<>]]>\ud800'"),))
    root = ElementTree.fromstring(draw(Program(plan), "svg"))
    assert any("&<>" in (element.text or "") for element in root.iter(f"{SVG}text"))


def rectangles(svg: str) -> list[tuple[float, float, float, float]]:
    found = []
    for x, y, width, height in re.findall(
        r'class="(?:box|end)" x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"', svg
    ):
        found.append((float(x), float(y), float(x) + float(width), float(y) + float(height)))
    return found


def wide_plan(size: int) -> Program:
    """Every statement reads what the two before it give, and the last one of five back."""
    statements = [statement("read", out="v0"), statement("read", out="v1")]
    for number in range(2, size):
        inputs = f"v{number - 1} v{number - 2} v{max(0, number - 5)}"
        statements.append(
            statement("join", inputs, f"a{number} = b{number}" * (number % 3), out=f"v{number}")
        )
    return Program(Plan("wide", (InputDeclaration("i"),), variables(f"v{size - 1}"), tuple(statements)))


def test_no_two_boxes_of_an_svg_overlap() -> None:
    boxes = rectangles(draw(wide_plan(40), "svg"))
    assert len(boxes) == 42
    overlapping = [
        (first, second)
        for first, second in combinations(boxes, 2)
        if first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
    ]
    assert overlapping == []


def test_parts_that_do_not_touch_stand_side_by_side() -> None:
    layout = lay_out([(40, 20)] * 5, [(0, 1), (2, 3)])
    lefts = [layout.places[node].x for node in (0, 2, 4)]
    assert lefts == sorted(lefts)
    assert lefts[1] - lefts[0] >= 40
    assert lefts[2] - lefts[1] >= 40
    assert layout.places[1].y > layout.places[0].y


def test_a_chain_stands_in_one_straight_line() -> None:
    layout = lay_out([(30 + 10 * node, 20) for node in range(8)], [(node, node + 1) for node in range(7)])
    assert {round(place.x, 3) for place in layout.places.values()} == {50.0}


def test_a_long_edge_keeps_clear_of_the_boxes_it_passes() -> None:
    layout = lay_out([(100, 20)] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    [first, second] = layout.links[0, 3]
    assert abs(first.x - layout.places[1].x) > 50
    assert abs(second.x - layout.places[2].x) > 50
