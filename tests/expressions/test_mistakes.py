"""Bad conditions, each with its exact message and the offset at which the caret stands."""

import pytest

from aioflow.relation import Schema
from tests.expressions.tools import mistake

SCHEMA = Schema.of(
    "any",
    price="number",
    city="char",
    sold="date",
    open="boolean",
    houses="relation",
    page="document",
    n="number",
)
THERE_ARE = " (there are: any, price, city, sold, open, houses, page, n)"

MISTAKES = [
    ("", "the expression is empty", 0),
    ("   ", "the expression is empty", 0),
    ("price <", "expected a value after '<', found the end", 7),
    ("price < 3 4", "expected an operator or the end, found '4'", 10),
    ("(price < 3", "expected an operator or the ')' that closes '(', found the end", 10),
    ("price < 3)", "this ')' has no '('", 9),
    ("price < < 3", "expected a value after '<', found '<'", 8),
    ("and price", "expected a value, found 'and', a keyword; as a name write `and`", 0),
    ("price and", "expected a value after 'and', found the end", 9),
    ("price = 1 and", "expected a value after 'and', found the end", 13),
    ("price = 1 or or", "expected a value after 'or', found 'or', a keyword; as a name write `or`", 13),
    ("price in", "expected '(' after 'in', found the end", 8),
    ("price in ()", "expected a value after '(', found ')'", 10),
    ("price in 3", "expected '(' after 'in', found '3'", 9),
    ("price in (1, 2", "expected an operator or the ')' that closes '(', found the end", 14),
    ("price between 1", "expected 'and' between the two limits of 'between', found the end", 15),
    ("price between 1 or 2", "expected 'and' between the two limits of 'between', found 'or'", 16),
    ("city like", "expected a value after 'like', found the end", 9),
    ("price is", "expected null, true or false after 'is', found the end", 8),
    ("price is 3", "expected null, true or false after 'is', found '3'", 9),
    ("price is not 3", "expected null, true or false after 'is not', found '3'", 13),
    ("price not 3", "expected 'in', 'between', 'like', 'ilike' or 'matches' after 'not', found '3'", 10),
    ("not", "expected a value after 'not', found the end", 3),
    ("case end", "expected a value after 'case', found 'end', a keyword; as a name write `end`", 5),
    ("case when price > 1 then 2", "expected 'end' to close 'case', found the end", 26),
    ("case when price > 1 2 end", "expected 'then' after the condition of 'when', found '2'", 20),
    ("case price else 3 end", "expected 'when' in 'case', found 'else'", 11),
    ("'abc", "the text that begins here has no end", 0),
    ('"abc', "the text that begins here has no end", 0),
    ("`abc", "the name that begins here has no end", 0),
    ("``", "a name in backticks is empty", 0),
    ("price & 1", "unexpected character '&'; for both conditions write 'and'", 6),
    ("price && city", "unexpected character '&'; for both conditions write 'and'", 6),
    ("!open", "unexpected character '!'; write 'not' or '!='", 0),
    ("price ^ 2 = 1", "unexpected character '^'; write power(a, b)", 6),
    ("city = “x”", "unexpected character '“'; strings stand in straight quotes", 7),
    ("price; 1", "unexpected character ';'; an expression is not a statement", 5),
    ("3abc = 1", "'3abc' is not a number; a name that begins with a digit stands in backticks: `3abc`", 0),
    ("1.2.3 = 1", "'1.2.3' is not a number", 0),
    ("price => 3", "expected a value after '=', found '>'; write '>='", 7),
    ("price =< 3", "expected a value after '=', found '<'; write '<='", 7),
    (
        "1 < price < 3",
        "'<' cannot follow another comparison; write 'a < b and b < c', or put one in parentheses",
        10,
    ),
    ("a-b = 1", "unknown attribute 'a-b'; a text stands in quotes: 'a-b'" + THERE_ARE, 0),
    ("n-1 > 0", "unknown attribute 'n-1': 'n-1' is one name; for subtraction write 'n - 1'" + THERE_ARE, 0),
    (
        "n- 1 > 0",
        "expected an operator or the end, found '1'; 'n-' is one name; for subtraction write 'n - 1'",
        3,
    ),
    ("price betwen 1 and 2", "expected an operator or the end, found 'betwen'; did you mean 'between'?", 6),
    ("citty = 'x'", "unknown attribute 'citty'; did you mean 'city'?" + THERE_ARE, 0),
    ("city = Irvine", "unknown attribute 'Irvine'; a text stands in quotes: 'Irvine'" + THERE_ARE, 7),
    ("end = 1", "expected a value, found 'end', a keyword; as a name write `end`", 0),
    ("price = end", "expected a value after '=', found 'end', a keyword; as a name write `end`", 8),
    ("left.zip = 1", "unknown attribute 'left.zip'" + THERE_ARE, 0),
    ("price = 'cheap'", "'cheap' is not a number", 8),
    ("sold > 'yesterday'", "'yesterday' is not a date, as in '2026-01-31'", 7),
    ("price = open", "price (number) cannot be compared with open (boolean)", 6),
    ("open = 'true'", "open (boolean) cannot be compared with 'true'", 5),
    (
        "city + 1 > 2 and city + 'x' > 1",
        "'+' takes numbers, and 'x' is not a number; to join texts write '||'",
        22,
    ),
    ("open + 1 = 2", "'+' takes numbers, not open (boolean)", 5),
    ("price like '1%'", "'like' tests texts, not price (number); char(…) makes a text of it", 6),
    ("city like 5", "'like' tests texts, not 5; char(…) makes a text of it", 5),
    ("city matches '('", "bad pattern '(': missing ): (", 13),
    ("city matches '(?=x)'", "bad pattern '(?=x)': invalid perl operator: (?=", 13),
    (
        "city like 'a!' escape '!'",
        "bad like pattern 'a!': the escape character '!' stands before '%', '_' or itself",
        10,
    ),
    ("city like 'a' escape 'ab'", "'escape' takes one character in quotes", 21),
    ("houses = 1", "houses (relation) cannot be compared with 1", 7),
    ("houses < houses", "a relation has no order: '<' cannot compare it", 7),
    ("page > page", "a document has no order: '>' cannot compare it", 5),
    ("price", "expected a condition, which is true or false, not price (number)", 0),
    ("city", "expected a condition, which is true or false, not city (char)", 0),
    ("'yes'", "expected a condition, which is true or false, not 'yes'", 0),
    ("not price = 1 and not city", "expected a condition, which is true or false, not city (char)", 22),
    ("lowr(city) = 'x'", "unknown function 'lowr'; did you mean 'lower'?", 0),
    ("len(city) = 3", "unknown function 'len'; did you mean 'length'?", 0),
    ("now() > sold", "unknown function 'now'; the time at which the run began is timestamp '${started}'", 0),
    ("sum(price) > 3", "'sum' is an aggregate function, which only the operator aggregate can call", 0),
    ("count(*) > 1", "'count' is an aggregate function, which only the operator aggregate can call", 0),
    ("lower() = 'x'", "lower takes 1 argument, not 0: lower(text char) char", 0),
    ("lower(city, 1) = 'x'", "lower takes 1 argument, not 2: lower(text char) char", 0),
    (
        "substr(city) = 'x'",
        "substr takes 2 to 3 arguments, not 1: substr(text char, start whole, [length whole]) char",
        0,
    ),
    ("coalesce() = 1", "coalesce takes one or more arguments, not 0: coalesce(value any …) same", 0),
    ("lower(price) = 'x'", "lower: text is a char, not price (number); char(…) makes a text of it", 6),
    ("round('abc') = 1", "round: 'abc' is not a number", 6),
    ("substr(city, 1.5) = 'x'", "substr: 1.5 is not a whole number", 13),
    ("year('soon') = 1", "year: 'soon' is not a date", 5),
    (
        "date_add(sold, 1, 'fortnight') > sold",
        "date_add: unknown unit of time 'fortnight' "
        "(there are: years, months, weeks, days, hours, minutes, seconds)",
        18,
    ),
    (
        "format_date(sold, '%Q') = 'x'",
        "format_date: unknown directive '%Q' in '%Q' "
        "(there are: %Y %y %m %d %H %I %M %S %f %p %j %B %b %A %a %z %%)",
        18,
    ),
    ("parse_date(city, '%Y %Y') > sold", "parse_date: '%Y' appears twice in '%Y %Y'", 17),
    ("regexp_extract(city, '[') = 'x'", "regexp_extract: bad pattern '[': missing ]: [", 21),
    ("date '2026-02-30' = sold", "'2026-02-30' is not a date; write date '2026-01-31'", 5),
    ("timestamp 'x' = sold", "'x' is not a timestamp; write timestamp '2026-01-31T08:30:00'", 10),
    ("number 'x' = 1", "'x' is not a number; write number '12.50'", 7),
    (
        "time '10:00' = sold",
        "expected an operator or the end, found '10:00'; literals with a kind are date, timestamp, number",
        5,
    ),
    (
        "case when open then 1 else 'x' end = 1",
        "the results of 'case' have different types: number and char",
        27,
    ),
    ("coalesce(price, city) = 1", "the arguments of coalesce have different types: number and char", 16),
    ("if(price, 1, 2) = 1", "expected a condition, which is true or false, not price (number)", 3),
    ("sold + sold > sold", "two dates cannot be added; a date takes a number of days", 5),
    ("1 - sold = 2", "a date cannot be taken from a number", 2),
    ("sold + open > sold", "'+' takes a date and a number of days, not open (boolean)", 5),
    ("houses || 'x' = 'y'", "'||' joins texts, not houses (relation)", 7),
    ("lower(distinct city) = 'x'", "'lower' takes no 'distinct'", 0),
    ("price in (1, 'x')", "'x' is not a number", 13),
    ("city = 'a' 'b'", "expected an operator or the end, found 'b'", 11),
    (
        "cast(price as char) = 'x'",
        "expected an operator or the ')' that closes '(' of cast, found 'as'; "
        "a value is converted by char(x), number(x), date(x) or boolean(x)",
        11,
    ),
    ("price = 1,", "expected an operator or the end, found ','", 9),
    ("price . 5 = 1", "expected a name, found '5'", 8),
    ("greatest(price, open) = 1", "price (number) cannot be compared with open (boolean)", 16),
    ("-open = 1", "'-' takes numbers, not open (boolean)", 0),
    ("city * 'x' = 1", "'*' takes numbers, and 'x' is not a number", 5),
    ("open and 5", "expected a condition, which is true or false, not 5", 9),
]


@pytest.mark.parametrize(("text", "message", "offset"), MISTAKES, ids=[text for text, _, _ in MISTAKES])
def test_a_mistake_has_its_message_and_place(text: str, message: str, offset: int) -> None:
    assert mistake(text, SCHEMA) == (message, offset)


SYNTAX_ONLY = [
    ("price <", "expected a value after '<', found the end", 7),
    ("lowr(city) = 'x'", "unknown function 'lowr'; did you mean 'lower'?", 0),
    ("open + true = 1", "'+' takes numbers, not true", 5),
    ("1 = true", "1 cannot be compared with true", 2),
    ("city matches '['", "bad pattern '[': missing ]: [", 13),
    ("length(5) = 1", "length: text is a char, not 5; char(…) makes a text of it", 7),
]


@pytest.mark.parametrize(("text", "message", "offset"), SYNTAX_ONLY)
def test_what_needs_no_schema_is_found_without_one(text: str, message: str, offset: int) -> None:
    assert mistake(text, None) == (message, offset)
