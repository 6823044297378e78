"""The setting kinds that are lists of attributes or conditions, bound to known and unknown schemas."""

from typing import Any

import pytest

from aioflow.authoring.setting import SettingPort
from aioflow.errors import SettingError
from aioflow.expressions import (
    Attributes,
    Condition,
    JoinCondition,
    Projection,
    RepeatableAttributes,
    SortKeys,
    Template,
)
from aioflow.relation import Document, Schema, Type

SCHEMA = Schema.of("any", price="number", city="char", sold="date", open="boolean", houses="relation")
ROW = (1, 500, "Irvine", None, True, None)


def mistake(kind: Any, text: Any, *inputs: Schema | None) -> tuple[str, int | None]:
    with pytest.raises(SettingError) as caught:
        kind.bind(text, inputs)
    return caught.value.message, caught.value.offset


# --- all of them --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Condition, Projection, Attributes, SortKeys, JoinCondition, Template])
def test_a_setting_must_be_text(kind: Any) -> None:
    assert mistake(kind, 5, SCHEMA) == (f"must be {kind.kind_name} in quotes, not 5", None)
    assert mistake(kind, None, SCHEMA)[0].endswith("not null")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Condition, "city = 'x' and nonsense > 3"),
        (Projection, "city, nonsense + 1 as n, * except whatever"),
        (Attributes, "city, nonsense"),
        (SortKeys, "city desc, nonsense"),
        (JoinCondition, "left.nonsense = right.other"),
    ],
)
def test_without_a_schema_it_is_checked_but_not_bound(kind: Any, text: str) -> None:
    for inputs in ([None, None], []):
        assert kind.bind(text, inputs).positions is None


def test_what_is_not_bound_cannot_be_called() -> None:
    with pytest.raises(TypeError, match="bound without a schema"):
        Condition.bind("a = 1", [None])((1,))
    with pytest.raises(TypeError, match="bound without a schema"):
        Projection.bind("a", [None]).rows([(1,)])
    with pytest.raises(TypeError, match="bound without a schema"):
        Attributes.bind("a", [None]).row((1,))
    with pytest.raises(TypeError, match="bound without a schema"):
        SortKeys.bind("a", [None]).key((1,))


def test_a_setting_port_names_the_setting_in_the_error() -> None:
    with pytest.raises(SettingError) as caught:
        SettingPort("where", Condition).bind("citty = 'x'", [SCHEMA])
    assert (caught.value.setting, caught.value.offset) == ("where", 0)
    assert SettingPort("where", Condition | None).type_name == "a condition"


# --- conditions ---------------------------------------------------------------------------------


def test_a_condition_knows_what_it_reads() -> None:
    condition = Condition.bind("price > 3 and city = 'x' or price < 1", [SCHEMA])
    assert condition.names == ("price", "city")
    assert condition.positions == (1, 2)
    assert condition.text == "price > 3 and city = 'x' or price < 1"


def test_a_condition_filters_batches_without_changing_them() -> None:
    batch = [(1, price, "x", None, None, None) for price in (1, None, 5, "7", "much")]
    copy = list(batch)
    condition = Condition.bind("price > 3", [SCHEMA])
    assert condition.filter(batch) == [batch[2], batch[3]]
    assert batch == copy
    assert condition.counters == {"not a number": 1}
    assert condition.counters.take() == {"not a number": 1}
    assert condition.counters == {}
    assert condition.filter([]) == []


def test_conditions_bound_apart_count_apart() -> None:
    first, second = (Condition.bind("price / 0 > 1", [SCHEMA]) for _ in range(2))
    first(ROW)
    assert (first.counters, second.counters) == ({"division by zero": 1}, {})


# --- joins --------------------------------------------------------------------------------------

LEFT = Schema.of("id", zip="char", price="number")
RIGHT = Schema.of("key", zip="char", limit="number")


def join(text: str) -> JoinCondition:
    return JoinCondition.bind(text, [LEFT, RIGHT])


def test_equated_attributes_become_keys() -> None:
    condition = join("left.zip = right.zip and right.key = left.id")
    assert (condition.left_key, condition.right_key) == ((1, 0), (1, 0))
    assert condition.equated == (("zip", "zip"), ("id", "key"))
    assert condition.rest is None


def test_the_rest_of_a_join_is_a_filter() -> None:
    condition = join("left.zip = right.zip and price < limit and (left.id = 1 or right.key = 2)")
    assert condition.left_key == (1,)
    assert condition.rest is not None
    assert condition.rest((1, "z", 5), (7, "z", 9))
    assert not condition.rest((1, "z", 5), (7, "z", 5))
    assert not condition.rest((2, "z", 5), (7, "z", 9))
    assert not condition.rest((1, "z", None), (7, "z", 9))


@pytest.mark.parametrize(
    "text", ["left.price < right.limit", "lower(left.zip) = right.zip", "left.id = left.zip"]
)
def test_a_join_without_equality_of_columns_has_no_key(text: str) -> None:
    condition = join(text)
    assert condition.left_key == condition.right_key == ()
    assert condition.rest is not None


def test_true_joins_everything() -> None:
    assert join("true").rest is None
    assert mistake(JoinCondition, "1", LEFT, RIGHT)[0] == (
        "expected a condition, which is true or false, not 1"
    )


def test_an_equality_is_taken_once() -> None:
    assert join("left.zip = right.zip and right.zip = left.zip").left_key == (1,)


def test_the_sides_are_case_insensitive_and_reach_dotted_names() -> None:
    dotted = Schema(("left.a", "b"))
    condition = JoinCondition.bind("LEFT.left.a = Right.b and left.`left.a` > 1", [dotted, dotted])
    assert (condition.left_key, condition.right_key) == ((0,), (1,))


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("zip = 'x'", "both inputs have 'zip'; write left.zip or right.zip", 0),
        ("left.zipp = 1", "unknown attribute 'zipp'; did you mean 'zip'? (there are: id, zip, price)", 0),
        ("left.zip = right.id", "unknown attribute 'id' (there are: key, zip, limit)", 11),
        (
            "left.zip = right.limit",
            "left.zip (char) never equals right.limit (number) in a join; "
            "convert one of them first, in a project before it",
            9,
        ),
        ("prize < limit", "unknown attribute 'prize'; did you mean 'price'? "
         "(there are: id, zip, price, key, limit)", 0),
    ],
)  # fmt: skip
def test_mistakes_in_a_join_condition(text: str, message: str, offset: int) -> None:
    assert mistake(JoinCondition, text, LEFT, RIGHT) == (message, offset)


# --- projections --------------------------------------------------------------------------------


def test_a_projection_renames_and_computes() -> None:
    projection = Projection.bind("city, price as cost, price - 1 as less, 'x' as `the x`", [SCHEMA])
    assert projection.schema == Schema(
        ("city", "cost", "less", "the x"), (Type.CHAR, Type.NUMBER, Type.NUMBER, Type.CHAR)
    )
    assert projection.row(ROW) == ("Irvine", 500, 499, "x")
    assert projection.rows([ROW, ROW]) == [("Irvine", 500, 499, "x")] * 2
    assert projection.rows([]) == []
    assert projection.columns is None


def test_without_a_star_the_result_is_known_before_the_input_is() -> None:
    assert Projection.bind("a, 1 + 1 as b", [None]).schema == Schema(("a", "b"), (None, Type.NUMBER))
    assert Projection.bind("*, 1 as b", [None]).schema is None


def test_a_projection_of_columns_takes_them() -> None:
    projection = Projection.bind("city, any", [SCHEMA])
    assert projection.columns == (2, 0)
    assert projection.row(ROW) == ("Irvine", 1)
    single = Projection.bind("city", [SCHEMA])
    assert (single.row(ROW), single.rows([ROW])) == (("Irvine",), [("Irvine",)])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("*", ("any", "price", "city", "sold", "open", "houses")),
        ("* except any, houses", ("price", "city", "sold", "open")),
        ("* except (any, houses)", ("price", "city", "sold", "open")),
        ("* except price, price - 1 as price", ("any", "city", "sold", "open", "houses", "price")),
        ("* except price, city, price as city", ("any", "sold", "open", "houses", "city")),
        ("1 as n, * except any, price, city, sold, open", ("n", "houses")),
    ],
)
def test_star_stands_for_all_attributes_but_those_excepted(text: str, names: tuple[str, ...]) -> None:
    projection = Projection.bind(text, [SCHEMA])
    assert projection.schema is not None
    assert projection.schema.names == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("price * 2", Type.NUMBER),
        ("price > 2", Type.BOOLEAN),
        ("city || price", Type.CHAR),
        ("any", None),
        ("any + 1", None),
        ("any * 2", Type.NUMBER),
        ("sold + 1", Type.DATE),
        ("sold - sold", Type.NUMBER),
        ("year(sold)", Type.NUMBER),
        ("coalesce(city, 'x')", Type.CHAR),
        ("case when open then price end", Type.NUMBER),
        ("case when open then any else 1 end", None),
        ("null", None),
        ("houses", Type.RELATION),
    ],
)
def test_the_type_of_a_result_is_inferred(text: str, expected: Type | None) -> None:
    projection = Projection.bind(f"{text} as result", [SCHEMA])
    assert projection.schema is not None
    assert projection.schema.types == (expected,)


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "the projection is empty", 0),
        ("city,", "expected a value after ',', found the end", 5),
        ("city, city", "attribute 'city' appears twice", 6),
        ("*, city", "attribute 'city' appears twice", 3),
        ("city as a, price as a", "attribute 'a' appears twice", 11),
        ("price - 1", "a computed attribute needs a name: write 'price - 1 as …'", 0),
        ("price - 1, city", "a computed attribute needs a name: write 'price - 1 as …'", 0),
        ("city as", "expected a name, found the end", 7),
        ("city as end", "expected a name, found 'end', a keyword; as a name write `end`", 8),
        ("city cost", "expected an operator, 'as', ',' or the end, found 'cost'", 5),
        ("price + 1 cost", "expected an operator, 'as', ',' or the end, found 'cost'", 10),
        ("* except prize", "unknown attribute 'prize'; did you mean 'price'? "
         "(there are: any, price, city, sold, open, houses)", 9),
        ("* except", "expected a name, found the end", 8),
    ],
)  # fmt: skip
def test_mistakes_in_a_projection(text: str, message: str, offset: int) -> None:
    assert mistake(Projection, text, SCHEMA) == (message, offset)


# --- attributes ---------------------------------------------------------------------------------


def test_attributes_have_names_and_positions() -> None:
    attributes = Attributes.bind("city, `any`", [SCHEMA])
    assert (attributes.names, attributes.positions) == (("city", "any"), (2, 0))
    assert attributes.row(ROW) == ("Irvine", 1)
    assert Attributes.bind(("city", "any"), [SCHEMA]) == attributes


def test_attributes_of_a_format_may_repeat() -> None:
    assert RepeatableAttributes.bind("city, city", [SCHEMA]).positions == (2, 2)


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "the list of attributes is empty", 0),
        ("city city", "expected ',' or the end, found 'city'", 5),
        ("city, city", "attribute 'city' appears twice", 6),
        ("city + 1", "expected ',' or the end, found '+'", 5),
        ("'city'", "expected a name, found 'city'", 0),
        ("end", "expected a name, found 'end', a keyword; as a name write `end`", 0),
        ("cty", "unknown attribute 'cty'; did you mean 'city'? "
         "(there are: any, price, city, sold, open, houses)", 0),
    ],
)  # fmt: skip
def test_mistakes_in_a_list_of_attributes(text: str, message: str, offset: int) -> None:
    assert mistake(Attributes, text, SCHEMA) == (message, offset)


# --- sort keys ----------------------------------------------------------------------------------


def test_sort_keys_have_directions() -> None:
    keys = SortKeys.bind("price desc, city asc nulls first, lower(city)", [SCHEMA])
    assert [(key.position, key.descending, key.nulls_first) for key in keys.keys] == [
        (1, True, False),
        (2, False, True),
        (None, False, False),
    ]
    assert keys.names == ("price", "city")


def ordered(text: str, *values: object) -> list[object]:
    key = SortKeys.bind(text, [Schema(("x",))]).key
    return [row[0] for row in sorted(((value,) for value in values), key=key)]


def test_nulls_come_last_unless_asked_otherwise() -> None:
    assert ordered("x", 2, None, 1) == [1, 2, None]
    assert ordered("x desc", 2, None, 1) == [2, 1, None]
    assert ordered("x desc nulls first", 2, None, 1) == [None, 2, 1]


def test_kinds_that_mix_have_an_order() -> None:
    nan = float("nan")
    mixed = ["b", "a", 2, 1.5, nan, True, False, Document("d"), None]
    assert ordered("x", *mixed) == [False, True, 1.5, 2, nan, "a", "b", Document("d"), None]
    assert ordered("x desc", *mixed) == [Document("d"), "b", "a", nan, 2, 1.5, True, False, None]


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "the list of sort keys is empty", 0),
        ("price down", "expected an operator, 'asc', 'desc', 'nulls', ',' or the end, found 'down'", 6),
        ("price nulls", "expected 'first' or 'last' after 'nulls', found the end", 11),
        ("houses", "houses (relation) has no order to sort by", 0),
    ],
)
def test_mistakes_in_sort_keys(text: str, message: str, offset: int) -> None:
    assert mistake(SortKeys, text, SCHEMA) == (message, offset)
