"""Plans as boxes and edges."""

from aioflow.drawing import diagrams_of
from aioflow.drawing.diagram import LINES_AT_MOST, Edge
from aioflow.plan import Option, ParameterReference, Plan, Program, Setting, Statement, Variable, Word
from tests.drawing.plans import PROGRAM, statement, variables


def test_a_plan_alone_is_drawn_by_default_and_all_it_calls_on_request() -> None:
    assert [diagram.name for diagram in diagrams_of(PROGRAM)] == ["watch_houses"]
    assert [diagram.name for diagram in diagrams_of(PROGRAM, all_plans=True)] == ["watch_houses", "get_urls"]


def test_statements_calls_inputs_and_outputs_have_their_kinds_of_boxes() -> None:
    main, called = diagrams_of(PROGRAM, all_plans=True)
    kinds = [(box.title, box.kind, box.recursive) for box in main.boxes]
    assert kinds[0] == ("criteria", "input", False)
    assert kinds[1] == ("wrapper", "operator", False)
    assert kinds[2] == ("get_urls", "call", False)
    assert kinds[-1] == ("houses", "output", False)
    assert [(box.title, box.recursive) for box in called.boxes if box.kind == "call"] == [("get_urls", True)]


def test_edges_follow_data_errors_and_signals() -> None:
    [diagram] = diagrams_of(PROGRAM)
    assert Edge("in1", "s1", "criteria") in diagram.edges
    assert Edge("s3", "s7", "failed", "errors") in diagram.edges
    assert Edge("s5", "s6", "mailed", "signal") in diagram.edges
    assert Edge("s4", "out1", "houses") in diagram.edges


def test_a_wait_for_data_is_a_signal_edge_beside_the_data() -> None:
    plan = Plan(
        "p",
        statements=(
            statement("read", out="a"),
            statement("log", "a"),
            statement("dbupdate", wait=variables("a")),
        ),
    )
    [diagram] = diagrams_of(Program(plan))
    assert diagram.edges == (Edge("s1", "s2", "a"), Edge("s1", "s3", "a", "signal"))


def test_a_mutual_recursion_is_marked_on_both_sides() -> None:
    first = Plan("first", statements=(statement("second"),))
    second = Plan("second", statements=(statement("FIRST"),))
    diagrams = diagrams_of(Program(first, (second,)), all_plans=True)
    assert [diagram.boxes[0].recursive for diagram in diagrams] == [True, True]


def test_a_box_tells_settings_and_options_briefly() -> None:
    described = Statement(
        "sort",
        (
            Variable("a"),
            Setting("price desc"),
            Setting((1, None, True), "n"),
            Setting(ParameterReference("t")),
        ),
        options=(Option("all"), Option("type", (Word("inner"),)), Option("by", ("x", "y"))),
        errors="skip",
    )
    [diagram] = diagrams_of(Program(Plan("p", statements=(described,))))
    assert diagram.boxes[0].lines[: LINES_AT_MOST - 1] == ("price desc", "n = [1, null, true]", "$t", "ALL")
    assert diagram.boxes[0].lines[-1] == "…"


def test_long_conditions_are_cut_short() -> None:
    condition = " and ".join(f"attribute{number} = {number}" for number in range(20))
    [diagram] = diagrams_of(Program(Plan("p", statements=(statement("select", "", condition),))))
    lines = diagram.boxes[0].lines
    assert len(lines) == 2
    assert lines[0] == "attribute0 = 0 and attribute1 = 1"
    assert lines[1].endswith("…")
