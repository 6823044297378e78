"""GRAMMAR items, and files of rules: every mistake has its place, and the layout is left alone."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow import Engine, PlanError, SettingError, function, load, loads
from aioflow.authoring.function import functions
from aioflow.cli.program import load_modules
from aioflow.compiler.check import check_rest
from aioflow.errors import Diagnostic
from aioflow.grammars.items import GrammarText, find_grammar
from aioflow.language import format_text, load_snapshot, take_snapshot
from aioflow.plan import Item, Program
from tests.cli.program import aioflow

# Braces, quotes and comments mean in grammars what they do not in plans.
TRICKY = """GRAMMAR tricky
{
  // It's here: }
  strict rule brace is '}' | '"' | "'" | [}'"] | '//' | '/*' end   /* } ' " */
  rule all : list is
    (list += brace())+
    do if (list.length > 1) { println("}"); } end
  end
}
"""
PLAN = """
PLAN p
{
  INPUT: rel (text)
  OUTPUT: a

  BODY
  {
    select (rel, "text = 1" : a)
  }
}
"""


def mistakes_in(text: str, name: str = "bad.plan") -> list[str]:
    try:
        found: list[Diagnostic] = list(Engine().check(loads(text, name)))
    except PlanError as error:
        found = check_rest(error, load_modules(()))
    return [str(each) for each in found]


def grammar_of(program: Program, name: str) -> GrammarText:
    return find_grammar(name, program)


@pytest.fixture
def registered() -> Iterator[None]:
    before = dict(functions._functions)
    yield
    functions._functions = before


def test_an_item_ends_where_its_rules_do() -> None:
    program = loads(TRICKY + PLAN)
    assert [plan.name for plan in program] == ["p"]
    found = grammar_of(program, "Tricky").grammar().parse("a }\"'", start="all")
    assert found.value == ["}", '"', "'"]
    assert found.output == "}\n"


def test_formatting_keeps_the_text_and_the_comments_of_a_grammar() -> None:
    formatted = format_text(TRICKY.replace("GRAMMAR", "grammar") + PLAN.replace("  ", " "))
    assert formatted == TRICKY + PLAN
    assert format_text(formatted) == formatted


def test_a_grammar_with_mistakes_can_be_formatted() -> None:
    text = "GRAMMAR g { rule a is b() end }" + PLAN
    assert format_text(text) == "GRAMMAR g\n{\n  rule a is b() end\n}\n" + PLAN


def test_mistakes_of_grammars_are_reported_beside_those_of_plans() -> None:
    text = """GRAMMAR dates
{
  rule date is [9-0]+ end
  rule dates is (dat() | .+)* end
}
PLAN p
{
  INPUT: rel (text)
  OUTPUT: a
  BODY { select (rel, "texd = '1'" : a) }
}
"""
    assert mistakes_in(text) == [
        "bad.plan:3:17: the range '9-0' is reversed\n      rule date is [9-0]+ end\n                    ^^^",
        "bad.plan:4:18: unknown rule 'dat'; did you mean 'date'?\n"
        "      rule dates is (dat() | .+)* end\n"
        "                     ^^^",
        "bad.plan:10:24: unknown attribute 'texd'; did you mean 'text'? (there are: text)\n"
        "      BODY { select (rel, \"texd = '1'\" : a) }\n"
        "                           ^",
    ]


def test_mistakes_of_grammars_are_reported_beside_those_of_syntax() -> None:
    text = "GRAMMAR g\n{\n  rule a is b() end\n}\nPLAN p { INPUT: rel BODY { select (rel } }\n"
    assert [each.partition("\n")[0] for each in mistakes_in(text)] == [
        "bad.plan:3:13: unknown rule 'b'",
        "bad.plan:5:40: expected ',', ':', '=' or ')' after 'rel', found '}'",
    ]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("rule a is 'x end", "3:13: the literal that begins here has no end on its line"),
        ("rule a is x='y' do z = 1; end", "3:32: expected 'end' after the body of the rule"),
    ],
)
def test_a_mistake_that_hides_the_closing_brace_is_found_itself(rules: str, expected: str) -> None:
    (found, *_) = mistakes_in(f"GRAMMAR g\n{{\n  {rules}\n}}\n{PLAN}")
    assert expected in found


def test_a_grammar_has_no_header() -> None:
    (found,) = mistakes_in("GRAMMAR g (a)\n{\n  rule a is 'x' end\n}\n" + PLAN)
    assert found.startswith("bad.plan:1:11: a grammar has no header; rules stand between its braces")


def test_two_grammars_of_one_name_are_a_mistake() -> None:
    one = "GRAMMAR g { rule a is 'x' end }\n"
    (found,) = mistakes_in(one + one.lower() + PLAN)
    assert "GRAMMAR 'g' stands here and at bad.plan:1:9" in found


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(SettingError, match="unknown grammar 'trick'; did you mean 'tricky'"):
        find_grammar("trick", loads(TRICKY + PLAN))
    with pytest.raises(SettingError, match="unknown grammar 'g'; the program has none"):
        find_grammar("g", loads(PLAN))


def test_a_mistake_that_takes_the_closing_brace_along_is_found_itself() -> None:
    (found, *_) = mistakes_in("GRAMMAR g { rule a is 'x end }\n" + PLAN)
    assert found.startswith("bad.plan:1:23: the literal that begins here has no end on its line")


@given(st.integers(0, len(TRICKY)), st.integers(0, 40), st.text("'\"{}[]/*#;.$\\\n doend", max_size=6))
def test_damaged_grammars_are_refused_or_formatted_once(place: int, length: int, added: str) -> None:
    text = TRICKY[:place] + added + TRICKY[place + length :] + PLAN
    with suppress(PlanError):
        loads(text)
    with suppress(PlanError):
        formatted = format_text(text)
        assert format_text(formatted) == formatted


# --- files of rules -----------------------------------------------------------------------------


def test_use_makes_a_grammar_of_a_file_of_rules(tmp_path: Path) -> None:
    (tmp_path / "article-list.jedi").write_text("// Articles }\nrule a is x=[0-9]+ end\n")
    (tmp_path / "p.plan").write_text('USE "article-list.jedi"\n' + PLAN)
    program, snapshot = take_snapshot(tmp_path / "p.plan")
    for each in (program, load_snapshot(snapshot)):
        assert grammar_of(each, "article-list").grammar().parse("no 12").variables == {"x": "12"}


def test_mistakes_of_a_file_of_rules_have_their_places(tmp_path: Path) -> None:
    (tmp_path / "g.jedi").write_text("rule a is b() end\n")
    (tmp_path / "p.plan").write_text('USE "g.jedi"\n' + PLAN)
    with pytest.raises(PlanError) as caught:
        load(tmp_path / "p.plan")
    (found,) = caught.value.diagnostics
    assert str(found).splitlines()[0] == f"{tmp_path / 'g.jedi'}:1:11: unknown rule 'b'"


def test_the_commands_take_files_of_rules(tmp_path: Path) -> None:
    (tmp_path / "g.jedi").write_text("rule  a is b()   end // }\n")
    checked = aioflow("check", "g.jedi", cwd=tmp_path)
    assert (checked.returncode, checked.stderr.splitlines()[0]) == (2, "g.jedi:1:12: unknown rule 'b'")
    formatted = aioflow("fmt", "--check", "g.jedi", cwd=tmp_path)
    assert (formatted.returncode, formatted.stdout) == (0, "")


def test_a_file_whose_name_is_none_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "my rules.jedi").write_text("rule a is 'x' end\n")
    (tmp_path / "p.plan").write_text('USE "my rules.jedi"\n' + PLAN)
    with pytest.raises(PlanError, match="the name of this file cannot name a GRAMMAR"):
        load(tmp_path / "p.plan")


def test_a_misspelt_file_of_rules_gets_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "goods.jedi").write_text("rule a is 'x' end\n")
    (tmp_path / "p.plan").write_text('USE "good.jedi"\n' + PLAN)
    with pytest.raises(PlanError, match=r"did you mean 'goods\.jedi'\?"):
        load(tmp_path / "p.plan")


# --- functions ----------------------------------------------------------------------------------


def shout(word: str) -> str:
    return word.upper()


def test_a_grammar_calls_registered_functions(registered: None) -> None:
    text = "GRAMMAR g { rule a is accept x=[a-z]+ if known($$); do y = shout(x); end end }" + PLAN
    program = loads(text)
    function(pure=True, name="known")({"palmtop", "modem"}.__contains__)
    function(pure=True)(shout)
    assert Engine().check(program) == []
    assert grammar_of(program, "g").grammar().parse("a modem").variables == {"x": "modem", "y": "MODEM"}


def test_functions_that_are_not_pure_cannot_be_called(registered: None) -> None:
    function(name="known")({"modem"}.__contains__)
    function(name="shout", pure=True)(shout)
    text = "GRAMMAR g {\n  rule a is accept x=[a-z]+ if known($$); do x = shut(x); end end\n}" + PLAN
    assert [each.partition("\n")[0] for each in mistakes_in(text)] == [
        "bad.plan:2:32: a grammar cannot call the function 'known': it is not declared as pure",
        "bad.plan:2:50: unknown function 'shut'; did you mean 'shout'?",
    ]


def test_a_grammar_takes_its_functions_to_another_process(registered: None) -> None:
    function(pure=True)(shout)
    program = loads("GRAMMAR g { rule a is x=[a-z]+ do y = shout(x); end end }" + PLAN)
    carried = pickle.dumps(grammar_of(program, "g"))
    functions._functions = {}
    again: GrammarText = pickle.loads(pickle.dumps(pickle.loads(carried)))
    assert again.grammar().parse("a").variables == {"x": "a", "y": "A"}


def test_a_grammar_that_was_built_in_python_has_texts_only() -> None:
    plan = loads(PLAN).main
    built = Program(plan, (plan,), (Item("GRAMMAR", "g", body="rule a is x='b' end"),))
    assert grammar_of(built, "g").grammar().parse("abc").variables == {"x": "b"}
    wrong = Program(plan, (plan,), (Item("GRAMMAR", "g", body="rule a is b() end"),))
    with pytest.raises(
        SettingError, match="the grammar 'g' has mistakes:\n<GRAMMAR g>:1:11: unknown rule 'b'"
    ):
        grammar_of(wrong, "g")
