"""What texts mean: names, constants, clauses, headers, and where each of them stands."""

import subprocess
import sys

import pytest

from aioflow.language import parse, print_plan
from aioflow.plan import (
    InputDeclaration,
    Item,
    Option,
    Parameter,
    ParameterReference,
    Plan,
    Setting,
    Statement,
    Use,
    Variable,
    Word,
)
from aioflow.relation import Schema, Type
from aioflow.source import Span
from tests.clocks import effort_at_most
from tests.language.samples import EVERYTHING, EXAMPLE_PLAN, GET_HOUSES, GET_URLS, PARENT_PLAN, WATCH_HOUSES
from tests.language.tabulate import TABLES, tables


def read_plan(text: str) -> Plan:
    (plan,) = (entry for entry in parse(text).entries if isinstance(entry, Plan))
    return plan


def read_header(text: str) -> Plan:
    return read_plan(f"PLAN p {{ {text} BODY {{ }} }}")


def read_statement(text: str) -> Statement:
    (statement,) = read_plan(f"PLAN p {{ BODY {{ {text} }} }}").statements
    return statement


def read_value(text: str) -> object:
    (argument,) = read_statement(f"op ({text})").arguments
    assert isinstance(argument, Setting)
    return argument.value


def variables(*names: str) -> tuple[Variable, ...]:
    return tuple(map(Variable, names))


def test_figure_5() -> None:
    assert read_plan(EXAMPLE_PLAN) == Plan(
        "example_plan",
        (InputDeclaration("a"), InputDeclaration("b")),
        variables("f"),
        (
            Statement("Op1", variables("a", "b"), variables("c")),
            Statement("Op2", variables("c"), variables("d")),
            Statement("Op3", variables("c"), enable=variables("e")),
            Statement("Op4", variables("d"), variables("f", "g")),
            Statement("Op5", variables("g"), wait=variables("e")),
        ),
    )


def test_figure_8() -> None:
    assert read_plan(PARENT_PLAN).statements[1] == Statement(
        "example_plan", variables("x", "y"), variables("z")
    )


def test_the_mistakes_in_figure_13_are_none_of_syntax() -> None:
    assert read_plan(GET_HOUSES).statements[0] == Statement(
        "project", (Variable("criteria"), Setting("price-range"), Variable("price-info"))
    )
    assert len(read_plan(GET_URLS).statements) == 5


def test_the_example_of_the_language() -> None:
    use, search, like, plan = parse(WATCH_HOUSES).entries
    assert use == Use("persistent_diff.plan")
    assert isinstance(search, Item)
    assert (search.kind, search.name, search.header) == ("WRAPPER", "search", "(city, max-price)")
    assert search.body.startswith('GET: "https')
    assert like == Item("WRAPPER", "result-page", "(next-page-link) LIKE search", 'GET: "{+next-page-link}"')
    assert isinstance(plan, Plan)
    assert plan.statements[3] == Statement(
        "wrapper",
        (Setting("detail"), Variable("new-urls")),
        variables("details"),
        errors=Variable("failed"),
        options=(Option("WORKERS", (8,)),),
    )
    assert plan.statements[5] == Statement(
        "email",
        (Variable("houses"), Setting("me@example.org", "to"), Setting("New houses", "subject")),
        done=variables("mailed"),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a"', "a"),
        ("'a'", "a"),
        ('""', ""),
        ('"""a"""', "a"),
        ('"""a\n"b" c"""', 'a\n"b" c'),
        (r'"\\ \" \' \n \r \t \x41 \u00e9 \U0001F600"', "\\ \" ' \n \r \t A é \U0001f600"),
        (r"'it\'s \"so\"'", 'it\'s "so"'),
        ('"# no comment // nor this"', "# no comment // nor this"),
        ("1", 1),
        ("-1", -1),
        ("2.5", 2.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("true", True),
        ("False", False),
        ("NULL", None),
        ("$table", ParameterReference("table")),
        ("[]", ()),
        ('[1, "a", true, null, -2.5]', (1, "a", True, None, -2.5)),
    ],
)
def test_constants(text: str, value: object) -> None:
    assert repr(read_value(text)) == repr(value)


@pytest.mark.parametrize(
    "keyword", ["input", "output", "plan", "use", "body", "wait", "param", "once", "skip"]
)
def test_keywords_are_names_like_any_other(keyword: str) -> None:
    plan = read_plan(
        f"PLAN {keyword} {{ INPUT: {keyword}, x\n OUTPUT: {keyword}\n BODY {{ "
        f"{keyword} ({keyword}, {keyword}=1 : {keyword}) {{TYPE: {keyword}; WAIT: {keyword}}} }} }}"
    )
    assert plan == Plan(
        keyword,
        (InputDeclaration(keyword), InputDeclaration("x")),
        variables(keyword),
        (
            Statement(
                keyword,
                (Variable(keyword), Setting(1, keyword)),
                variables(keyword),
                wait=variables(keyword),
                options=(Option("TYPE", (Word(keyword),)),),
            ),
        ),
    )


def test_an_operator_may_be_called_null() -> None:
    assert read_statement("null (d, dt, df : t, f)").operator == "null"


def test_names_have_letters_of_any_alphabet_and_dashes() -> None:
    statement = read_statement("größe-2 (_x, price-info, 価格 : _)")
    assert statement == Statement("größe-2", variables("_x", "price-info", "価格"), variables("_"))


def test_clauses_are_parted_by_semicolons_or_lines() -> None:
    one = read_statement(
        'op (a : b) {WAIT: c, d; ENABLE: e; DONE: f; ERRORS: g; ALL; BY: "x", "y"; TYPE: inner}'
    )
    other = read_statement(
        'op (a : b)\n{ wait : c,\n d\nall\nBY:\n"x",\n"y"; type: inner\nenable: e; done: f\nErrors: g;; }'
    )
    assert other == Statement(
        "op",
        variables("a"),
        variables("b"),
        variables("c", "d"),
        variables("e"),
        variables("f"),
        Variable("g"),
        (Option("ALL"), Option("BY", ("x", "y")), Option("TYPE", (Word("inner"),))),
    )
    assert other == one


@pytest.mark.parametrize("text", ["ERRORS: skip", "errors: SKIP"])
def test_errors_can_be_skipped(text: str) -> None:
    assert read_statement(f"op (a : b) {{{text}}}").errors == "skip"


def test_inputs_and_outputs_may_be_none() -> None:
    empty = Statement("op")
    assert read_statement("op ()") == empty
    assert read_statement("op ( : )") == empty
    assert read_statement("op (: x)") == Statement("op", (), variables("x"))


def test_inputs_with_and_without_attributes() -> None:
    plan = read_header("INPUT: a, b (city char, beds NUMBER, any), c (), d (`left.x` date)")
    assert plan.inputs == (
        InputDeclaration("a"),
        InputDeclaration("b", Schema(("city", "beds", "any"), (Type.CHAR, Type.NUMBER, None))),
        InputDeclaration("c", Schema(())),
        InputDeclaration("d", Schema(("left.x",), (Type.DATE,))),
    )


def test_parameters_with_and_without_defaults() -> None:
    plan = read_header('PARAM: table = "seen", limit, nothing = null, list = [1, 2], since = $started')
    assert plan.parameters == (
        Parameter("table", "seen"),
        Parameter("limit", required=True),
        Parameter("nothing", None),
        Parameter("list", (1, 2)),
        Parameter("since", ParameterReference("started")),
    )


@pytest.mark.parametrize(
    ("text", "depth", "stop"),
    [("MAX_DEPTH: 50", 50, False), ("max_depth: 50 stop", 50, True), ("MAX_DEPTH: 5, STOP", 5, True)],
)
def test_a_recursion_can_be_bounded(text: str, depth: int, stop: bool) -> None:
    plan = read_header(text)
    assert (plan.max_depth, plan.stop_at_max_depth) == (depth, stop)


def test_other_entries_of_the_header() -> None:
    plan = read_header('ONCE: "url" COMMIT: batch')
    assert plan.once == "url"
    assert plan.options == (Option("COMMIT", (Word("batch"),)),)


def test_header_entries_stand_in_any_order_and_may_be_empty() -> None:
    plan = parse("PLAN p { BODY { op (a : b) } OUTPUT: ; INPUT: }").entries[0]
    assert plan == Plan("p", statements=(Statement("op", variables("a"), variables("b")),))
    assert read_header("INPUT: OUTPUT:") == Plan("p")
    assert read_header("INPUT:\n output\n, plan OUTPUT: body") == Plan(
        "p", (InputDeclaration("output"), InputDeclaration("plan")), variables("body")
    )


def test_words_that_begin_items_can_end_a_header() -> None:
    plan = read_plan("PLAN p\n{\nOUTPUT: a,\nplan\nBODY\n{\nop (\nuse\n, plan :\nplan) {TYPE:\nplan}\n}\n}\n")
    assert plan.outputs == variables("a", "plan")
    assert plan.statements[0].arguments == variables("use", "plan")


def text_of(span: Span | None) -> str:
    assert span is not None
    return span.source.text[span.start : span.end]


def test_everything_has_its_place() -> None:
    plan = next(entry for entry in parse(EVERYTHING).entries if isinstance(entry, Plan))
    assert text_of(plan.name_span) == "Every_thing-1"
    assert text_of(plan.span).startswith("plan Every_thing-1 // name")
    assert [text_of(each.span) for each in plan.inputs] == ["input", "page", "plan", "body"]
    assert [text_of(each.span) for each in plan.outputs] == ["output", "output2"]
    assert [text_of(each.default_span) for each in plan.parameters if each.default_span][2] == "$started"
    first, second, *_ = plan.statements
    assert text_of(first.name_span) == "op"
    settings = [each for each in first.arguments if isinstance(each, Setting)]
    assert text_of(settings[0].span) == r'''"a \"quoted\" 'text'\n"'''
    assert (text_of(settings[-1].name_span), text_of(settings[-1].span)) == ("to", "$limit")
    assert text_of(first.outputs[1].span) == "_"
    assert text_of(second.span).endswith("d2 }")
    (option,) = (each for each in second.options if each.name == "N")
    assert (text_of(option.span), [text_of(span) for span in option.spans]) == (
        "N",
        ["5", "$limit", "[1, 2]"],
    )
    assert [text_of(each.span) for each in second.wait] == ["input", "t"]
    assert plan.statements[2].errors == "skip"


def test_places_are_told_by_line_and_column() -> None:
    plan = read_plan("\ufeffPLAN p\r\n{\r\n  BODY\r\n  {\r\n    op (é, a : b)\r\n  }\r\n}\r\n")
    span = plan.statements[0].outputs[0].span
    assert span is not None
    assert span.place == "<plan>:5:16"


def test_a_long_plan_is_read_quickly() -> None:
    lines = "\n".join(f'    select (v{n}, "price < {n}" : v{n + 1}) {{WORKERS: 3}}' for n in range(2000))
    text = f"PLAN long {{\n  INPUT: v0\n  OUTPUT: v2000\n  BODY {{\n{lines}\n  }}\n}}\n"
    parse("PLAN p { BODY { } }")
    with effort_at_most(80):
        assert len(read_plan(text).statements) == 2000


def test_lark_is_not_needed_to_read_a_text() -> None:
    reading = "aioflow.language.parse('PLAN p { BODY { } }')"
    script = f"import sys, aioflow.language; {reading}; print('lark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_tables_are_those_of_the_grammar() -> None:
    assert TABLES.read_text("utf-8") == tables(), "run python -m tests.language.tabulate"


@pytest.mark.parametrize(
    "text",
    [
        "30m",
        "1h30m",
        "500ms",
        "08:00",
        "daily 08:00",
        "weekly mon 8:05",
        "22:00-07:00",
        "daily 08:00 Europe/Berlin",
    ],
)
def test_times_and_durations_are_words_of_options(text: str) -> None:
    plan = parse(f"PLAN p {{ BODY {{ email (x) {{WHEN: {text}; ALL}} }} }}").entries[0]
    assert isinstance(plan, Plan)
    (statement,) = plan.statements
    assert [(option.name, option.values) for option in statement.options] == [
        ("WHEN", (Word(text),)),
        ("ALL", ()),
    ]
    assert f"WHEN: {text}" in print_plan(plan)
