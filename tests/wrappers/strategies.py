"""Random wrappers as data."""

from typing import Any

from hypothesis import strategies as st

from aioflow.plan import is_name
from aioflow.relation import Type, type_of_value
from aioflow.restart.policies import read_policy
from aioflow.wrappers import Field, Processing, WrapperInput, WrapperText
from aioflow.wrappers.language.wrapper_text import (
    Directive,
    PagingText,
    Part,
    ReaderChoice,
    ReaderOption,
    Removal,
    RequestLine,
)

words = st.text(alphabet="aZ_9-é", max_size=4).map("n".__add__)
plain_names = st.one_of(words, st.sampled_from(["body", "get", "each", "page", "none", "URL", "日本-1"]))
odd_names = st.text(alphabet="ab. ()-'\"#é;:", min_size=1, max_size=6).filter(str.strip)
names = st.one_of(
    plain_names, odd_names, st.sampled_from(["GET", "GTE", "true", "null", "a.b", "}{", "a`b", "x\ny"])
)
input_names = st.one_of(plain_names, odd_names).filter(lambda name: not set(name) & set("{}`\n"))
texts = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="\"'\\\n\t${}#/*`;: aé\u200b\U0001f600", max_size=12),
    st.sampled_from(['"""', "a\nb", "\\", "# no comment", "*/", "}", "secret:X"]),
).filter(lambda text: not any("\ud800" <= each <= "\udfff" for each in text))
selectors = texts.filter(str.strip)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
scalars = st.one_of(texts, numbers, st.booleans(), st.none())
given_scalars = st.one_of(texts, numbers, st.booleans())

# Words that go together with any others around them.
processing = st.lists(
    st.sampled_from(
        [
            Processing("lower"),
            Processing("upper"),
            Processing("strip"),
            Processing("prefix", ("\n",)),
            Processing("suffix", ('"',)),
            Processing("replace", ("a", "b")),
            Processing("match", ("(a)(b)", 2)),
        ]
    ),
    max_size=3,
).map(tuple)


def _input(name: str, kind: Type | None, optional: bool, default: Any) -> WrapperInput:
    fits = default is not None and kind in (None, type_of_value(default))
    return WrapperInput(name, kind, optional or fits, default if fits else None)


inputs = st.lists(
    st.builds(_input, input_names, st.one_of(st.none(), st.sampled_from(Type)), st.booleans(), scalars),
    max_size=3,
    unique_by=lambda given: given.name,
).map(tuple)


# --- fields --------------------------------------------------------------------------------------


def _selected(name: str, selector: str, scope: Any, words: Any, presence: Any) -> Field:
    required, default = presence
    return Field(name, selector, scope, words, required, default)


presences = st.one_of(st.just((False, None)), st.just((True, None)), texts.map(lambda text: (False, text)))
selected = st.builds(
    _selected,
    names,
    st.one_of(st.just(""), selectors),
    st.sampled_from(["item", "page"]),
    processing,
    presences,
)
constants = st.builds(lambda name, value: Field(name, scope="constant", default=value), names, scalars)
responses = st.builds(
    lambda name, part, words: Field(name, part, "response", words),
    names,
    st.sampled_from(["url", "status", "date", "header ETag", "header X Y"]),
    processing,
)
leaves = st.one_of(selected, constants, responses)


def _relations(inner: st.SearchStrategy[Field]) -> st.SearchStrategy[Field]:
    embedded = st.lists(inner, min_size=1, max_size=3, unique_by=lambda field: field.name).map(tuple)
    return st.builds(
        lambda name, selector, scope, required, fields: Field(
            name, selector, scope, required=required, fields=fields
        ),
        names,
        selectors,
        st.sampled_from(["item", "page"]),
        st.booleans(),
        embedded,
    )


fields = st.recursive(leaves, _relations, max_leaves=4)
entries = st.lists(
    st.one_of(fields, st.builds(Removal, names)), max_size=4, unique_by=lambda field: field.name
).map(tuple)


# --- directives ----------------------------------------------------------------------------------

lists = st.lists(scalars, max_size=3).map(tuple)
parts = st.lists(st.builds(Part, names, st.one_of(scalars, lists)), min_size=1, max_size=3).map(tuple)
members = st.lists(
    st.builds(Part, st.sampled_from(["a", "b.c", "b.d", "e-f"]), st.one_of(scalars, lists)),
    min_size=1,
    max_size=3,
    unique_by=lambda part: part.name,
).map(tuple)
headers = st.lists(
    st.builds(
        Part,
        st.sampled_from(["Accept", "X-y", "a.b", "9"]),
        texts.filter(lambda text: not set(text) & set("\r\n\0")),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda part: part.name,
).map(tuple)
found = st.builds(lambda selector, words: Field("PAGING", selector, "page", words), selectors, processing)
numbers_or_none = st.one_of(st.none(), st.integers(min_value=1, max_value=10**9))
paging = st.one_of(
    st.builds(lambda field: PagingText("next", found=field), found),
    st.builds(lambda field, name: PagingText("cursor", name, found=field), found, selectors),
    st.builds(
        lambda name, start, step: PagingText("number", name, start, step),
        selectors,
        numbers_or_none,
        numbers_or_none,
    ),
    st.builds(
        lambda name, start, step: PagingText("offset", name, start, step),
        selectors,
        numbers_or_none,
        st.integers(min_value=1, max_value=100),
    ),
)
option_words = words.map(str.lower).filter(is_name)
readers = st.builds(
    ReaderChoice,
    option_words,
    st.lists(
        st.builds(ReaderOption, option_words, st.lists(given_scalars, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
)
values: dict[str, st.SearchStrategy[Any]] = {
    "REQUEST": st.builds(RequestLine, st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]), texts),
    "FORM": parts,
    "JSON": members,
    "HEADERS": headers,
    "BODY": texts,
    "AUTH": st.sampled_from(
        [("bearer", "secret:T"), ("basic", "me", "secret:P"), ("basic", '"', "secret:a-b")]
    ),
    "SAFE": st.booleans(),
    "OUTER": st.booleans(),
    "READ": readers,
    "EACH": selectors,
    "CHARSET": st.sampled_from(["latin-1", "UTF-8", "cp1252"]),
    "PAGING": paging,
    "MAX_PAGES": st.integers(min_value=1),
    "EMPTY": st.lists(
        st.one_of(st.integers(min_value=100, max_value=599), selectors), min_size=1, max_size=3
    ).map(tuple),
    "ROBOTS": st.booleans(),
    "TIMEOUT": st.one_of(st.integers(1, 86_400), st.floats(0.001, 1000)),
    "RESTART": st.sampled_from(["auto", "off", "2.5", "p99.5", "hedge", "hedge p90"]).map(read_policy),
}


@st.composite
def directives(draw: st.DrawFn) -> tuple[Directive, ...]:
    chosen = draw(st.lists(st.sampled_from(sorted(values)), max_size=5, unique=True))
    return tuple(
        Directive(name, None if name != "REQUEST" and draw(st.integers(0, 9)) == 0 else draw(values[name]))
        for name in chosen
    )


wrappers = st.builds(
    WrapperText,
    words,
    st.one_of(st.none(), inputs),
    st.one_of(st.none(), words),
    directives(),
    entries,
)
