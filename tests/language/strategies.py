"""Random plans as data, and random texts of plans with comments in all places."""

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from aioflow.language.parser import OWN_CLAUSES
from aioflow.plan import (
    InputDeclaration,
    Item,
    Option,
    Parameter,
    ParameterReference,
    Plan,
    PlanFile,
    Setting,
    Statement,
    Use,
    Variable,
    Word,
    is_name,
)
from aioflow.relation import Schema, Type

words = st.one_of(
    st.text(alphabet="aZ_9-é", max_size=5).map("n".__add__),
    # Words that mean something elsewhere, and other alphabets.
    st.sampled_from(["input", "PLAN", "body", "skip", "stop", "use", "é", "日本-1", "_", "null", "True"]),
)
names = words.filter(is_name)
variables = st.builds(Variable, names)
few_variables = st.lists(variables, max_size=3).map(tuple)

texts = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="\"'\\\n\t\r${}#/*`;: aé\u200b\U0001f600\x00\x7f", max_size=12),
    st.sampled_from(['"""', "a\nb", 'a\nb"', "\\", "a\n\nb\\n", "# no comment", "*/", "}", "a\n", " \n "]),
)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.just(10**50))
scalars = st.one_of(texts, numbers, st.booleans(), st.none())
references = st.builds(ParameterReference, names)
constants = st.one_of(scalars, scalars, st.lists(scalars, max_size=4).map(tuple), references)
bare_words = st.builds(Word, names)

settings = st.one_of(st.builds(Setting, constants), st.builds(Setting, constants, names))
option_names = names.map(str.upper).filter(lambda name: is_name(name) and name not in OWN_CLAUSES)
options = st.builds(Option, option_names, st.lists(st.one_of(constants, bare_words), max_size=3).map(tuple))
errors = st.one_of(
    st.none(), st.just("skip"), variables.filter(lambda variable: variable.name.lower() != "skip")
)
statements = st.builds(
    Statement,
    operator=words,
    arguments=st.lists(st.one_of(variables, settings), max_size=6).map(tuple),
    outputs=few_variables,
    wait=few_variables,
    enable=few_variables,
    done=few_variables,
    errors=errors,
    options=st.lists(options, max_size=3).map(tuple),
)

attribute_names = st.one_of(
    names, st.text(alphabet="ab. ()-'\"#", min_size=1, max_size=6), st.sampled_from(["left.a", "true"])
)
types = st.one_of(st.none(), st.sampled_from(Type))


def _schema(attributes: dict[str, Type | None]) -> Schema:
    return Schema(tuple(attributes), tuple(attributes.values()))


schemas = st.dictionaries(attribute_names, types, max_size=4).map(_schema)
inputs = st.builds(InputDeclaration, names, st.one_of(st.none(), schemas))
parameters = st.one_of(
    st.builds(Parameter, names, constants), st.builds(Parameter, names, st.none(), st.just(True))
)
plan_options = st.lists(
    st.builds(
        Option,
        st.just("COMMIT"),
        st.lists(st.one_of(constants, bare_words), min_size=1, max_size=2).map(tuple),
    ),
    max_size=1,
).map(tuple)


def _with_depth(plan: Plan, depth: tuple[int, bool] | None) -> Plan:
    return plan if depth is None else replace(plan, max_depth=depth[0], stop_at_max_depth=depth[1])


bare_plans = st.builds(
    Plan,
    name=words,
    inputs=st.lists(inputs, max_size=3).map(tuple),
    outputs=few_variables,
    statements=st.lists(statements, max_size=5).map(tuple),
    parameters=st.lists(parameters, max_size=3).map(tuple),
    once=st.one_of(st.none(), texts),
    options=plan_options,
)
plans = st.builds(
    _with_depth, bare_plans, st.one_of(st.none(), st.tuples(st.integers(min_value=1), st.booleans()))
)

item_kinds = st.sampled_from(["RECIPE", "NOTES", "THING"])
item_headers = st.sampled_from(["", "(a, b)", "(x) LIKE search", "(a,\n b)"])
item_bodies = st.sampled_from(["", "a: b", 'GET: "{x}"\n  EACH: "}"', "# }\na { b }", "x\n\n    y"])
items = st.builds(Item, item_kinds, words, item_headers, item_bodies)
uses = st.builds(Use, texts)
files = st.lists(st.one_of(plans, items, uses), max_size=4).map(lambda entries: PlanFile(tuple(entries)))


# --- texts --------------------------------------------------------------------------------------

comments = st.sampled_from(
    [
        "# note\n",
        "// note\n",
        "/* note */",
        "/* over\n   two\n lines */",
        "#\n",
        "/**/",
        "# { ( \" '\n",
        "\n\n",
    ]
)


@st.composite
def commented_texts(draw: Any, texts_of_files: st.SearchStrategy[str]) -> str:
    """A text with comments put between its tokens, wherever one may stand."""
    from aioflow.language.scanner import END, Scanner
    from aioflow.source import Source

    text: str = draw(texts_of_files)
    places = []
    for token in Scanner(Source("x", text)).tokens:
        places.append(token.start)
        if token.type == END:
            break
    chosen = draw(st.lists(st.sampled_from(places), max_size=6))
    for place in sorted(chosen, reverse=True):
        text = f"{text[:place]} {draw(comments)} {text[place:]}"
    return text
