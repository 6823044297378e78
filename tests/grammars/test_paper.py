"""Every example of the paper on Jedi: Huck, Fankhauser, Aberer and Neuhold (1998)."""

import pytest

from aioflow.grammars import ParseError, ParseLimitError, ParseLimits, XmlElement, compile
from tests.grammars.oracle import CODE_POINTS, Oracle, PlainRule

DATES = """
rule day is [0-9]+ end
rule month is [0-9]+ end
rule year is [0-9]+ end
"""

STOCK = (
    "The following articles are on stock (4/7/98):\n\n"
    "Article\tPrice/$\tQuantity\n"
    "Psion Computer\t560\t23\n"
    "8MB memory\t100 bargain!\t15\n"
)


def test_numbers_are_prices_or_quantities_by_their_place_in_the_line() -> None:
    grammar = compile(r"""
        strict rule string is [^\t\n]+ end
        strict rule blanks is [ \t]+ end
        rule number is [0-9]+ end       // not strict: it skips what nobody anticipated
        strict rule article : record is
          name=string() '\t' price=number() blanks() quantity=number() '\n'
        end
        rule articles : list is 'Quantity\n' (list += article())+ end
    """)
    assert grammar.parse(STOCK).value == [
        {"name": "Psion Computer", "price": "560", "quantity": "23"},
        {"name": "8MB memory", "price": "100", "quantity": "15"},
    ]


def test_a_strict_number_anticipates_no_bargain() -> None:
    grammar = compile(r"""
        strict rule number is [0-9]+ end
        strict rule line is [^\t\n]+ '\t' number() '\t' number() '\n' end
    """)
    assert grammar.parse("Psion Computer\t560\t23\n", "line").skipped == []
    with pytest.raises(ParseError) as failure:
        grammar.parse("8MB memory\t100 bargain!\t15\n", "line")
    assert failure.value.offset == len("8MB memory\t100")


@pytest.mark.parametrize(
    ("body", "matched", "refused"),
    [
        ("'1' '2' '3'", ["123"], ["12", "1234"]),
        ("'1'?", ["", "1"], ["11"]),
        ("'1'*", ["", "1", "111"], ["12"]),
        ("'1'+", ["1", "111"], [""]),
        ("'1' | '2'", ["1", "2"], ["", "12"]),
        ("('1' '2')+", ["12", "1212"], ["121"]),
        (".", ["x", "\n"], ["", "xy"]),
        ("[A-Z]", ["A", "Q", "Z"], ["a", "["]),
        ("[^A-Z]", ["a", "\n"], ["A"]),
        ("'text'", ["text"], ["tex", "Text"]),
        (r"'\t\n\r'", ["\t\n\r"], [r"\t\n\r"]),
    ],
)
def test_productions_match_what_section_3_says(body: str, matched: list[str], refused: list[str]) -> None:
    grammar = compile(f"strict rule r is {body} end")
    for source in matched:
        assert grammar.parse(source).value == source
    for source in refused:
        with pytest.raises(ParseError):
            grammar.parse(source)


def test_dates_are_found_in_a_text() -> None:
    grammar = compile(
        DATES
        + """
        rule date is
          month() '/' day() '/' year()
        end

        rule dates is
        (
          .+ // skip anything which is not a date
          | list += date()
        )+
        end
    """
    )
    found = grammar.parse("Invoice 17 of 4/7/98, due 05/09/1998.", start="dates")
    assert found.variables == {"list": ["4/7/98", "05/09/1998"]}


def test_any_rule_is_an_entry() -> None:
    grammar = compile(DATES + "rule date : r is m=month() '/' d=day() '/' y=year() end")
    assert grammar.parse("4/7/98", start="date").value == {"m": "4", "d": "7", "y": "98"}
    assert grammar.parse("12", start="day").value == "12"


ADDRESS = r"""
    rule streetname is [A-Z][a-z]+ end
    rule cityname is [A-Z][a-z]+ end
    rule address : record is
      street=streetname()
      (
        accept
          number=[0-9]+ // pattern for street numbers
          if $$ .length < 5;
      )?
      .* // skip non relevant characters
      (
        accept
          zipcode=[0-9]+ // same pattern for zipcode
          if $$ .length == 5;
      )?
      .* // skip non relevant characters
      city=cityname()
    end
"""


@pytest.mark.parametrize(
    ("source", "number", "zipcode"),
    [
        ("Dolivostr15, 64293 Darmstadt", "15", "64293"),
        ("Dolivostr, 64293 Darmstadt", None, "64293"),
        ("Dolivostr15, Darmstadt", "15", None),
        ("Dolivostr64293 Darmstadt", None, "64293"),
    ],
)
def test_predicates_tell_street_numbers_from_zip_codes(
    source: str, number: str | None, zipcode: str | None
) -> None:
    found = compile(ADDRESS).parse(source, start="address").value
    assert (found.get("number"), found.get("zipcode")) == (number, zipcode)
    assert (found["street"], found["city"]) == ("Dolivostr", "Darmstadt")


def test_dates_become_xml_elements() -> None:
    grammar = compile(
        DATES
        + """
        rule date : res
          // declares res as result variable
        is
          m=month() '/' d=day() '/' y=year()
          // assign matched data portions to variables m,d,y
        do
          // definition of result in code block
          res = xml_element("date");
          res.addChild(xml_element("month",m));
          res.addChild(xml_element("year",y));
          res.addChild(xml_element("day",d));
        end
        end
        rule dates is
        (
          .+ // skip anything which is not a date
        |
          list += date()
          // rule variable list holds a sequence of XML 'date' elements returned by rule date.
        )+
        do
          res = xml_element("dates");
          res.addChild(list);
          res.prettyPrint();
        end
        end
    """
    )
    found = grammar.parse("on 4/7/98 or 5/8/99", start="dates")
    assert found.output == (
        "<dates>\n"
        "  <date>\n    <month>4</month>\n    <year>98</year>\n    <day>7</day>\n  </date>\n"
        "  <date>\n    <month>5</month>\n    <year>99</year>\n    <day>8</day>\n  </date>\n"
        "</dates>\n"
    )
    assert isinstance(found.variables["res"], XmlElement)
    assert [each.name for each in found.variables["list"]] == ["date", "date"]


def test_numbers_are_found_though_anything_matches_them_as_well() -> None:
    grammar = compile("rule numbers is (num+=[0-9]+ | .+)* end")
    assert grammar.parse("ab12c345").variables == {"num": ["12", "345"]}
    assert compile("rule r is (num=[0-9]+ | .+)* end").parse("12").variables == {"num": "12"}
    assert grammar.parse("a number 7").skipped == []


# 'a' ('b' | .)+
ABB = PlainRule(
    "r",
    (
        "sequence",
        (("text", "a"), ("repeat", "+", ("choice", (("bind", "b", True, ("text", "b")), ("any",))))),
    ),
    is_strict=True,
)


def test_the_four_solutions_of_abb_are_ranked_as_printed() -> None:
    ways = sorted(Oracle([ABB], "abb").interpretations("r"), key=lambda way: way[1])
    anything = CODE_POINTS
    assert [way[1] for way in ways] == [
        (1, 1, 1),
        (1, 1, anything),
        (1, anything, 1),
        (1, anything, anything),
    ]
    assert compile("strict rule r is 'a' (b+='b' | .)+ end").parse("abb").variables == {"b": ["b", "b"]}


def test_anything_or_a_number_is_a_number_where_it_can_be() -> None:
    grammar = compile("strict rule r is n=[0-9]+ | (t=.+)* end")
    assert grammar.parse("123").variables == {"n": "123"}
    assert grammar.parse("12a").variables == {"t": "12a"}


def test_the_automaton_of_figure_2_matches() -> None:
    grammar = compile("strict rule r is a='a'* m=.* b='b'+ end")
    assert grammar.parse("abb").variables == {"a": "a", "m": "", "b": "bb"}
    assert grammar.parse("axbxbb").variables == {"a": "a", "m": "xbx", "b": "bb"}
    with pytest.raises(ParseError):
        grammar.parse("aa")


# --- rankings that the paper tried ------------------------------------------------------------------

# price='$' .* '</B>' rest=.*
TAGGED = PlainRule(
    "r",
    (
        "sequence",
        (
            ("bind", "price", False, ("repeat", "*", ("any",))),
            ("text", "</B>"),
            ("bind", "rest", False, ("repeat", "*", ("any",))),
        ),
    ),
    is_strict=True,
)


def test_the_rejected_rankings_run_over_the_first_end_tag() -> None:
    """Lexicographic from the start stops at the first end tag; the other two rankings do not."""
    oracle = Oracle([TAGGED], "$5</B>per</B>kg")
    ways = list(oracle.interpretations("r"))

    def prices(rank: object) -> str:
        best = min(ways, key=rank)  # type: ignore[call-overload]  # sequences or sums of numbers
        return str(oracle.interpreted(best[2]).variables["price"])

    assert prices(lambda way: way[1]) == "$5"
    assert prices(lambda way: way[1][::-1]) == "$5</B>per"
    assert prices(lambda way: sum(way[1])) == "$5</B>per"
    grammar = compile("strict rule r is price=.* '</B>' rest=.* end")
    assert grammar.parse("$5</B>per</B>kg").variables == {"price": "$5", "rest": "per</B>kg"}


# --- complexity -----------------------------------------------------------------------------------


def test_the_source_that_takes_backtracking_3_to_the_21_steps_is_parsed() -> None:
    grammar = compile("strict rule r is x=('a' | [a-z] | [a-z0-9])+ | y=.* end")
    found = grammar.parse("a" * 21 + "$")
    assert found.variables == {"y": "a" * 21 + "$"}


CALL_ME_OFTEN = PlainRule(
    "call_me_often",
    ("sequence", (("repeat", "+", ("any",)), ("call", "call_me_often"))),
    is_strict=True,
)


@pytest.mark.parametrize("length", range(1, 11))
def test_call_me_often_is_evaluated_2_to_the_l_minus_1_times(length: int) -> None:
    oracle = Oracle([CALL_ME_OFTEN], "x" * length)
    assert list(oracle.interpretations("call_me_often")) == []
    # Calls at the end of the source have no character left to match.
    at_the_end = 2 ** (length - 1)
    assert oracle.evaluations["call_me_often"] - at_the_end == 2 ** (length - 1)


def test_call_me_often_fails_at_once_since_it_can_never_finish() -> None:
    grammar = compile("rule call_me_often is .+ call_me_often() end")
    with pytest.raises(ParseError, match="can never finish") as failure:
        grammar.parse("x" * 1_000_000)
    assert failure.value.offset == 0


def test_a_recursion_with_an_end_is_evaluated_once_for_each_state() -> None:
    grammar = compile("strict rule often is part=.+ often()? end")
    assert grammar.parse("x" * 2000).variables == {"part": "x" * 2000}


def test_the_predicate_of_section_4_is_asked_for_each_part_of_the_source() -> None:
    asked = []

    def predicate(text: str) -> bool:
        asked.append(text)
        return text == "cde"

    grammar = compile(
        "strict rule r is .* accept x=.* if predicate($$); .* end", functions={"predicate": predicate}
    )
    assert grammar.parse("abcdef").variables == {"x": "cde"}
    # Equal texts are asked about once: 21 parts and the empty one.
    assert len(asked) == len(set(asked)) == 6 * 7 // 2 + 1


def test_the_predicate_of_section_4_on_a_long_source_ends_within_the_limits() -> None:
    grammar = compile(
        "strict rule r is .* accept x=.* if predicate($$); .* end",
        functions={"predicate": lambda text: False},
    )
    with pytest.raises(ParseLimitError, match=r"interpretations are alive at once.*in the rule 'r'"):
        grammar.parse("abcdefghij" * 1000, limits=ParseLimits(live_solutions=100))


# --- section 5 ------------------------------------------------------------------------------------

ARTICLE = """
rule Article is
  '<B>'   code = ('MP' .*)
  '</B>'  description = .*
  '<B>'   price = ('$'[0-9.]+)
do
  println(
    "<Article>",
    "<Code>", code, "</Code>",
    "<Price>", price, "</Price>",
    "<Description>", description,
    "</Description></Article>"
  );
end
end

rule ArticleList is
do
  println("<ArticleList>");
end
(list += Article())%s
do
  println("</ArticleList>");
end
end
"""
SHOP = (
    "<HTML><B>Palmtops</B><FORM>We sell <B>MP10</B> Psion 3c <I>new</I> for <B>$399.50</B> (or <B>less</B>)"
    "<P><B>MP22</B> Psion Siena <B>now only!</B> <B>$199</B></FORM> natural language text <B>bye</B>"
)


def test_articles_are_extracted_from_an_irregular_page() -> None:
    found = compile(ARTICLE % "+").parse(SHOP, start="ArticleList")
    assert found.output == (
        "<ArticleList>\n"
        "<Article><Code>MP10</Code><Price>$399.50</Price><Description> Psion 3c <I>new</I> for </Description>"
        "</Article>\n"
        "<Article><Code>MP22</Code><Price>$199</Price><Description> Psion Siena <B>now only!</B> "
        "</Description></Article>\n"
        "</ArticleList>\n"
    )
    first, _, last = found.skipped
    assert SHOP[slice(*first)] == "<HTML><B>Palmtops</B><FORM>We sell "
    assert SHOP[slice(*last)] == "</B></FORM> natural language text <B>bye</B>"


def test_the_list_as_printed_has_no_repetition_and_finds_one_article() -> None:
    found = compile(ARTICLE % "").parse(SHOP, start="ArticleList")
    assert found.output.count("<Code>") == 1


def test_a_price_up_to_the_end_tag_is_the_variant_of_section_5() -> None:
    variant = (ARTICLE % "+").replace("price = ('$'[0-9.]+)", "price = ('$' .*) '</B>'")
    found = compile(variant).parse(SHOP, start="ArticleList")
    assert "<Price>$399.50</Price>" in found.output
    assert "<Price>$199</Price>" in found.output
