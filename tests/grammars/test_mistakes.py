"""Mistakes in grammars: all at once, each with its place, a caret and a suggestion."""

import pickle

import pytest

from aioflow.grammars import (
    Grammar,
    GrammarError,
    ParseError,
    RuleVariable,
    ScriptError,
    compile,
    compile_part,
    end_of_rules,
)
from aioflow.source import Source


def mistakes(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(GrammarError) as failure:
        compile(text)
    return [(each.line, each.column, each.message) for each in failure.value.errors]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the grammar has no rules"),
        ("rule a is b() end", 1, 11, "unknown rule 'b'"),
        ("rule date is 'x' end rule d is dat() end", 1, 32, "unknown rule 'dat'; did you mean 'date'?"),
        ("rule a is 'x' end\nrule a is 'y' end", 2, 6, "the rule 'a' is defined twice, first on line 1"),
        ("rule a is 'x end", 1, 11, "the literal that begins here has no end on its line"),
        ("rule a is [x end", 1, 11, "the class that begins here has no ']' on its line"),
        ("rule a is [] end", 1, 11, "the class is empty"),
        ("rule a is [^] end", 1, 11, "the class is empty: no character is in it"),
        ("rule a is [az-b] end", 1, 13, "the range 'z-b' is reversed"),
        (r"rule a is [\d] end", 1, 12, r"unknown escape '\d'; write [0-9]"),
        (r"rule a is '\x4' end", 1, 12, r"unknown escape '\x'; \x is followed by two hexadecimal digits"),
        (
            "rule a is a() end",
            1,
            11,
            "left recursion: 'a' calls itself before a character is consumed (a -> a)",
        ),
        ("rule a is b() end rule b is a() 'x' end", 1, 11, "left recursion: 'a' calls itself"),
        ("rule a is 'x'? a() end", 1, 16, "left recursion: 'a' calls itself"),
        ("rule a is b() a() end rule b is 'x'* end", 1, 15, "left recursion: 'a' calls itself"),
        ("rule a 'x' end", 1, 8, "expected 'is' before the body of the rule, found a literal"),
        ("rule a is 'x'", 1, 14, "expected 'end' after the body of the rule, found the end of the grammar"),
        ("rule a is ('x' end", 1, 16, "expected ')' after the group, found 'end'"),
        ("rule a is ('x' | ) end", 1, 18, "expected an item: a literal, a class, '.', a rule, or a group"),
        ("rule a is end", 1, 11, "expected an item"),
        ("rule a is * end", 1, 11, "'*' follows no item that it could repeat"),
        ("rule is is 'x' end", 1, 6, "expected the name of the rule, found 'is'"),
        ("rule a is b end rule b is 'x' end", 1, 11, "'b' is neither called nor assigned to; write b()"),
        ("rule a is b('x') end", 1, 13, "expected ')' after 'b('; rules take no arguments"),
        ("rule a is accept 'x' if $$ == 'x' end", 1, 35, "expected ';' after the condition, found 'end'"),
        ("rule a is accept 'x'; end", 1, 21, "expected 'if' and a condition"),
        ("rule a is prune 'x' end", 1, 17, "expected ';' after 'prune'"),
        ("rule a is “x” end", 1, 11, "unexpected character '“'; literals stand in straight quotes"),
        ("/* rule a is 'x' end", 1, 1, "the comment that begins here has no end"),
        ("rule a is x='y' do print(y); end end", 1, 26, "unknown variable 'y'"),
        (
            "rule a is prise='y' do print(price); end end",
            1,
            30,
            "unknown variable 'price'; did you mean 'prise'?",
        ),
        ("rule a is 'y' do prnt('x'); end end", 1, 18, "unknown function 'prnt'; did you mean 'print'?"),
        ("rule a is 'y' do x = $$; end end", 1, 22, "'$$' has a meaning in the condition of 'accept' only"),
        ("rule a is b='y' accept 'x' if b == 'y'; end", 1, 31, "'b' is not known in a condition"),
        (
            "rule a is accept 'x' if println($$); end",
            1,
            25,
            "a condition has no effects: 'println' is for code",
        ),
        ("rule a is 'y' do x = ; end end", 1, 22, "expected a value, found ';'"),
        ("rule a is x='y' do x; end end", 1, 20, "this statement has no effect"),
        ("rule a is x='y' do x + 1 = 2; end end", 1, 20, "only a variable or a member can be assigned to"),
        ("rule a is x='y' do print(x) end", 1, 32, "expected 'end' after the body of the rule"),
        ("strict a is 'x' end", 1, 8, "expected 'rule' after 'strict', found 'a'"),
        ("a is 'x' end", 1, 1, "expected 'rule', found 'a'"),
        ("rule a is " + "(" * 60 + "'x'" + ")" * 60 + " end", 1, 61, "nested too deeply"),
    ],
)
def test_a_mistake_has_a_line_a_column_and_a_message(text: str, line: int, column: int, message: str) -> None:
    ((found_line, found_column, found_message),) = mistakes(text)
    assert found_message.startswith(message)
    assert (found_line, found_column) == (line, column)


def test_all_mistakes_are_told_at_once() -> None:
    found = mistakes("""
rule a is b('x') end
rule c is [z-a] missing() end
rule d is x='1' do y = ; print(z); w = 1 +; end end
rule d is 'x
end
rule e is e() end
""")
    assert [(line, message.partition(",")[0]) for line, _, message in found] == [
        (2, "expected ')' after 'b('; rules take no arguments"),
        (3, "the range 'z-a' is reversed"),
        (3, "unknown rule 'missing'"),
        (4, "expected a value"),
        (4, "unknown variable 'z'"),
        (4, "expected a value"),
        (5, "the rule 'd' is defined twice"),
        (5, "the literal that begins here has no end on its line"),
        (7, "left recursion: 'e' calls itself before a character is consumed (e -> e)"),
    ]


def test_mistakes_are_shown_with_the_line_and_a_caret() -> None:
    with pytest.raises(GrammarError) as failure:
        compile("rule date is 'x' end\nrule d is dat() end", name="dates.jedi")
    assert str(failure.value) == (
        "dates.jedi:2:11: unknown rule 'dat'; did you mean 'date'?\n"
        "    rule d is dat() end\n"
        "              ^^^"
    )


def test_a_mistake_in_one_rule_makes_no_others_of_the_calls_of_it() -> None:
    assert len(mistakes("rule a is ( end rule b is a() end")) == 1


@pytest.mark.parametrize(
    ("body", "matched"),
    [
        (r"[-a]+", "a-"),
        (r"[a-]+", "a-"),
        (r"[a^]+", "^a"),
        (r"[a-zb-c]+", "xyz"),
        (r"[\]\\\-]+", "]\\-"),
        (r"[\x41\u00e9]+", "Aé"),
        (r"'\x41\u00e9\'\\'", "Aé'\\"),
        ('"it\'s"', "it's"),
        (r"'\n' /* a comment */ // and another" "\n'x'", "\nx"),
    ],
)
def test_classes_and_literals_are_read_as_described(body: str, matched: str) -> None:
    assert compile(f"strict rule r is {body} end").parse(matched).value == matched


def test_recursion_that_consumes_first_is_no_mistake() -> None:
    grammar = compile("strict rule list is '(' ([a-z] | list())* ')' end")
    assert grammar.parse("(a(b)(c(d)))").value == "(a(b)(c(d)))"


def test_a_grammar_names_its_rules_and_their_variables() -> None:
    grammar: Grammar = compile("""
        rule a : r is x='1' (y+=c())* do z = 1; end end
        rule b is a() w=c() | w='1' end
        strict rule c : s is '2' do s = 2; end end
    """)
    assert list(grammar.rules) == ["a", "b", "c"]
    assert grammar.variables("a") == {
        "x": RuleVariable(collects=False, rule="", is_computed=False),
        "y": RuleVariable(collects=True, rule="c", is_computed=False),
        "z": RuleVariable(collects=False, rule="", is_computed=True),
    }
    assert grammar.variables("b")["w"].rule == ""
    assert [grammar.returns_record(name) for name in grammar.rules] == [True, False, False]
    assert grammar.start_rule(None) == "b"


PLAN = """GRAMMAR dates {
  rule date is [^'}"{]+ '}' accept '{' if $$ != '}'; do if (true) { println("}"); } end end
  rule dates is dat() end
}
"""


def test_a_grammar_within_a_longer_text_has_its_mistakes_there() -> None:
    start = PLAN.index("{") + 1
    end = end_of_rules(PLAN, start)
    assert end == PLAN.rindex("}")
    with pytest.raises(GrammarError) as failure:
        compile_part(Source("dates.plan", PLAN), start, end)
    assert str(failure.value) == (
        "dates.plan:3:17: unknown rule 'dat'; did you mean 'date'?\n"
        "      rule dates is dat() end\n"
        "                    ^^^"
    )
    whole = PLAN.replace("dat()", "date()")
    grammar = compile_part(Source("dates.plan", whole), start, whole.rindex("}"))
    assert grammar.parse("ab}{", "dates").output == "}\n"
    assert end_of_rules(PLAN[:end], start) == -1


FAILING = "rule a is 'y' do x = 1 / 0; end end"


@pytest.mark.parametrize(
    ("grammar", "error"),
    [("rule a is b() end", GrammarError), ("strict rule a is 'x' end", ParseError), (FAILING, ScriptError)],
)
def test_errors_can_be_sent_from_one_process_to_another(grammar: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        compile(grammar).parse("y")
    sent = pickle.loads(pickle.dumps(caught.value))
    assert (type(sent), str(sent), vars(sent)) == (error, str(caught.value), vars(caught.value))
