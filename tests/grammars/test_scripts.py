"""Code blocks and predicates."""

from decimal import Decimal
from typing import Any

import pytest

from aioflow.grammars import ParseLimits, ScriptError, compile


def run(code: str, source: str = "12", **functions: Any) -> tuple[dict[str, Any], str]:
    """Return the variables and the output of code after x has matched the source."""
    grammar = compile(f"strict rule r is x=.* do {code} end end", functions=functions)
    found = grammar.parse(source)
    return found.variables, found.output


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 - 2 - 1", 4),
        ("5 / 2", Decimal("2.5")),
        ("6 / 2", 3),
        ("7 % 4", 3),
        ("-x", -12),
        ("x * 2", 24),
        ("x + 1", 13),
        ("'a' + x", "a12"),
        ("'a' + 1", "a1"),
        ("0.1 + 0.2", Decimal("0.3")),
        ("x == 12", True),
        ("x == '12'", True),
        ("x < 5", False),
        ("x < '5'", True),
        ("x != 12.0", False),
        ("'a' == 1", False),
        ("'a' < 1 || 'a' >= 1 || null < 1", False),
        ("1 < 2 && 2 < 1", False),
        ("1 < 2 || 2 < 1", True),
        ("!(1 < 2)", False),
        ("x.length", 2),
        ("x.length()", 2),
        ("length(x)", 2),
        ("x[0]", "1"),
        ("list(1, 2)[1]", 2),
        ("list(1) + 2", [1, 2]),
        ("' a '.trim().upper()", "A"),
        ("'a,b'.split(',').length", 2),
        ("'aXb'.replace('X', '-')", "a-b"),
        ("'abc'.contains('b')", True),
        ("null.length", 0),
        ("true", True),
        ("number('4.50')", Decimal("4.50")),
        ("number('four')", None),
        ("text(1, 'a', null)", "1a"),
        ("record()", {}),
    ],
)
def test_expressions_have_their_value(expression: str, value: object) -> None:
    variables, _ = run(f"y = {expression};")
    assert variables["y"] == value
    assert type(variables["y"]) is type(value)


def test_statements_are_carried_out() -> None:
    variables, output = run(
        """
        total = 0;
        for (part in x.split(',')) { if (part > 1) { total = total + part; } else println("small ", part); }
        if total == 5 { println('five'); } else if total == 9 println('nine'); else { println('other'); }
        goods.price = total;
        goods.unit = 'kg';
        total += 1;
    """,
        source="1,2,3",
    )
    assert variables == {"x": "1,2,3", "total": 6, "goods": {"price": 5, "unit": "kg"}}
    assert output == "small 1\nfive\n"


def test_code_runs_in_the_order_of_the_path_with_the_variables_bound_so_far() -> None:
    grammar = compile(
        "strict rule r is do println(x); end x='a' do println(x); end x='b' do println(x); end end"
    )
    assert grammar.parse("ab").output == "\na\nb\n"


def test_code_of_interpretations_that_lose_does_not_run() -> None:
    grammar = compile("""
        strict rule r is
          (.+ do println('loses'); end | [0-9]+ do println('wins'); end | 'x'+ do println('x'); end)
        end
    """)
    assert grammar.parse("123").output == "wins\n"


def test_registered_functions_are_called_in_code_and_in_predicates() -> None:
    thesaurus = {"palmtop": "computer"}
    grammar = compile(
        "rule r : kind is accept word=[a-z]+ if known($$); do kind = lookup(word); end end",
        functions={"known": thesaurus.__contains__, "lookup": thesaurus.get},
    )
    assert grammar.parse("a cheap palmtop here").value == "computer"


def test_a_rule_without_result_returns_its_text_and_one_with_result_a_record() -> None:
    grammar = compile("""
        strict rule all : r is a=plain() b=named() c=coded() end
        strict rule plain is x='1' end
        strict rule named : r is x='2' (y='n')? end
        strict rule coded : r is x='3' do r = x * 2; end end
    """)
    assert grammar.parse("123").value == {"a": "1", "b": {"x": "2"}, "c": 6}


def test_bindings_of_options_and_lists() -> None:
    grammar = compile("strict rule r is x='a'? (y='b')? (z+='c')* end")
    assert grammar.parse("").variables == {"x": "", "z": []}
    assert grammar.parse("abcc").variables == {"x": "a", "y": "b", "z": ["c", "c"]}


def test_a_repeated_call_is_collected_call_by_call() -> None:
    grammar = compile("strict rule r : all is all += d()* end strict rule d is [0-9] end")
    assert grammar.parse("123").value == ["1", "2", "3"]
    assert grammar.parse("").value == []


def test_skipped_text_is_in_no_value() -> None:
    grammar = compile("rule r is x=(a() b()) end rule a is 'a' end rule b is 'b' end")
    found = grammar.parse("--a--b--")
    assert (found.value, found.variables, found.skipped) == ("ab", {"x": "ab"}, [(0, 2), (3, 5), (6, 8)])


def test_predicates_see_the_exact_text_and_skip_nothing_inside() -> None:
    grammar = compile(
        "rule r is accept x=pair() if $$ == '1-2'; end rule pair is n() '-' n() end rule n is [0-9] end"
    )
    assert grammar.parse("1--2 1-2").variables == {"x": "1-2"}


def test_rules_that_are_called_in_a_predicate_skip_nothing() -> None:
    grammar = compile("""
        rule r is accept x=pair() if $$.length > 0; end
        rule pair is n() '-' n() end
        rule n is [0-9] end
    """)
    found = grammar.parse("1--2 1-2")
    assert (found.variables, found.skipped) == ({"x": "1-2"}, [(0, 5)])


def test_only_the_first_iteration_of_a_repetition_may_be_empty() -> None:
    text = "strict rule r is (word()){} end rule word is ([ab]* do println('word'); end) end"
    # The first word is begun rather than 1 skipped before it.
    assert compile(text.format("+")).parse("1ab", "r").output == "word\nword\n"
    assert compile(text.format("*")).parse("1ab", "r").output == "word\n"


def test_prune_drops_every_lower_ranked_solution() -> None:
    text = "strict rule r is (a=[0-9]+ {} '!' | b=.+) end"
    assert compile(text.replace("{}", "")).parse("12?").variables == {"b": "12?"}
    with pytest.raises(Exception, match="no interpretation"):
        compile(text.replace("{}", "prune;")).parse("12!?")


def test_xml_is_escaped_and_has_attributes() -> None:
    _, output = run('e = xml_element("a", "<&>"); e.id = "\\"1\\""; e.prettyPrint();')
    assert output == '<a id="&quot;1&quot;">&lt;&amp;&gt;</a>\n'


@pytest.mark.parametrize(
    ("code", "column", "message"),
    [
        ("y = 1 / 0;", 32, "division by zero"),
        ("y = 'a' * 2;", 34, "'*' needs numbers, not 'a' and 2"),
        ("y = null < 'a' || list() < 1;", 51, "a list and 1 have no order"),
        ("y = fails(1);", 30, "ValueError: no luck"),
        ("y = x.upper(1, 2);", 32, "TypeError"),
        ("y = x.nothing;", 32, "'12' has no member 'nothing'"),
        ("x.nothing();", 28, "'12' has no method 'nothing' with 0 arguments"),
        ("for y in 5 { println(y); }", 26, "5 has no elements to go through"),
        ("y = xml_element('<');", 30, "'<' is no name for an XML element"),
        (
            "y = list(1); for z in list(1,2) { y.add(y); } println(y);",
            72,
            "the value is nested more than 200",
        ),
    ],
)
def test_code_that_fails_has_a_place_in_the_grammar_and_in_the_source(
    code: str, column: int, message: str
) -> None:
    def fails(value: object) -> None:
        raise ValueError("no luck")

    with pytest.raises(ScriptError) as failure:
        run(code, fails=fails)
    error = failure.value
    assert error.message.startswith(f"<grammar>:1:{column}: {message}")
    assert (error.line, error.column, error.offset, error.rule) == (1, column, 2, "r")


def test_a_predicate_that_fails_has_a_place() -> None:
    grammar = compile("strict rule r is 'a' accept [0-9]+ if $$ / 0 == 1; end")
    with pytest.raises(ScriptError, match="division by zero") as failure:
        grammar.parse("a12")
    assert (failure.value.line, failure.value.column, failure.value.offset) == (1, 42, 2)


@pytest.mark.parametrize(
    "code",
    [
        "y = '0123456789'; for i in list(1,2,3,4,5,6,7,8) for j in list(1,2,3,4,5,6) y = y + y;",
        "y = 9999999999; for i in list(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15) y = y * y;",
        "y = list(1,2,3,4); for i in y for j in y for k in y y = y + y;",
        "e = xml_element('a'); for i in 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' "
        "{ n = xml_element('a'); n.addChild(e); n.addChild(e); e = n; } y = text(e);",
    ],
)
def test_code_that_grows_without_end_is_stopped(code: str) -> None:
    with pytest.raises(ScriptError):
        run(code)


def test_code_that_takes_too_long_is_stopped() -> None:
    loops = "".join(f"for v{number} in x " for number in range(12))
    grammar = compile(f"strict rule r is x=.* do n = 0; {loops} n = n + 1; end end")
    with pytest.raises(ScriptError, match="the time of the parse is over"):
        grammar.parse("x" * 100, limits=ParseLimits(seconds=0.2))
