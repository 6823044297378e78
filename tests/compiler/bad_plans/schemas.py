"""Attributes, expressions and values that do not fit where they stand."""

from tests.compiler.bad_plans.table import BadPlan, plan

SCHEMAS = [
    BadPlan(
        "a condition on an attribute that does not exist",
        plan('select (houses, "beds > 2 and prise < 500000" : out)'),
        ["5:35: unknown attribute 'prise'; did you mean 'price'? (there are: city, price, beds)"],
    ),
    BadPlan(
        "a projection of an attribute that does not exist",
        plan('project (houses, "city, bed" : out)'),
        ["5:29: unknown attribute 'bed'; did you mean 'beds'? (there are: city, price, beds)"],
    ),
    BadPlan(
        "an attribute that an earlier projection dropped",
        plan('project (houses, "city, price" : brief)', 'select (brief, "beds > 2" : out)'),
        ["6:21: unknown attribute 'beds'; a text stands in quotes: 'beds' (there are: city, price)"],
    ),
    BadPlan(
        "an attribute that was renamed",
        plan('project (houses, "price as cost" : costs)', 'sort (costs, "price" : out)'),
        ["6:19: unknown attribute 'price'; a text stands in quotes: 'price' (there are: cost)"],
    ),
    BadPlan(
        "a join on an attribute of the wrong side",
        plan(
            'join (houses, agents, "left.city = right.price" : out)',
            inputs="houses (city char, price number), agents (city char, agent char)",
        ),
        ["5:40: unknown attribute 'price' (there are: city, agent)"],
    ),
    BadPlan(
        "an attribute to compare that does not exist",
        plan('distinct (houses, "town" : out)'),
        ["5:24: unknown attribute 'town'; a text stands in quotes: 'town' (there are: city, price, beds)"],
    ),
    BadPlan(
        "a union of different attributes",
        plan('project (houses, "city" : cities)', "union (houses, cities : out)"),
        ["6:5: the inputs differ in their attributes: another has no 'price', 'beds'"],
    ),
    BadPlan(
        "an option that names an unknown attribute",
        plan('minus (houses, houses : out) {ON: "url"}'),
        ["5:40: unknown attribute 'url'; a text stands in quotes: 'url' (there are: city, price, beds)"],
    ),
    BadPlan(
        "a condition that cannot be read",
        plan('select (houses, "beds >" : out)'),
        ["5:28: expected a value after '>', found the end"],
    ),
    BadPlan(
        "a condition over several lines",
        plan('select (houses, """beds > 2\n  and price < 5\n  and town = 1""" : out)'),
        ["7:7: unknown attribute 'town'; a text stands in quotes: 'town' (there are: city, price, beds)"],
    ),
    BadPlan(
        "a subtraction without spaces",
        plan('project (houses, "price-1 as less" : out)'),
        [
            "5:23: unknown attribute 'price-1': 'price-1' is one name; for subtraction write 'price - "
            "1' (there are: city, price, beds)"
        ],
    ),
    BadPlan(
        "a number compared with a truth value",
        plan('select (houses, "beds = true" : out)'),
        ["5:27: beds (number) cannot be compared with true"],
    ),
    BadPlan(
        "a count that is no number",
        plan('limit (houses, "2" : out)'),
        ["5:20: limit: 'count' must be a whole number, 0 or more, not '2'"],
    ),
    BadPlan(
        "a count below nothing",
        plan("limit (houses, -1 : out)"),
        ["5:20: limit: 'count' must be a whole number, 0 or more, not -1"],
    ),
    BadPlan(
        "a word that is no choice",
        plan('join (houses, houses, "left.city = right.city" : out) {TYPE: inne}'),
        [
            "5:66: join: 'type' must be one of inner, left, right, full, semi, anti, not 'inne'; did "
            "you mean 'inner'?"
        ],
    ),
    BadPlan(
        "a flag that is neither true nor false",
        plan("union (houses, houses : out) {ALL: 7}"),
        ["5:40: union: 'all' must be true or false, not 7"],
    ),
    BadPlan(
        "a call without a declared attribute",
        plan("fetch_all (houses : out)")
        + plan("limit (urls, 2 : out)", inputs="urls (url char)", name="fetch_all"),
        [
            "5:16: 'houses' has no attribute 'url', which input 'urls' of fetch_all declares (it has: "
            "city, price, beds)"
        ],
    ),
    BadPlan(
        "a call with a declared attribute of another type",
        plan('project (houses, "price as url" : urls)', "fetch_all (urls : out)")
        + plan("limit (urls, 2 : out)", inputs="urls (url char)", name="fetch_all"),
        ["6:16: 'url' of 'urls' is number, but input 'urls' of fetch_all declares it char"],
    ),
    BadPlan(
        "a subplan that fails for the attributes of one call",
        plan('project (houses, "city" : cities)', "ranked (cities : out)")
        + plan('sort (rows, "price" : out)', inputs="rows", name="ranked"),
        [
            "13:18: unknown attribute 'price'; a text stands in quotes: 'price' (there are: city) "
            "(when called on line 6 of p)"
        ],
    ),
    BadPlan(
        "a recursion that fails at its second level",
        plan("down (urls : out)", inputs="urls (url char)")
        + plan(
            'project (rows, "url as link" : links)',
            "down (links : rest)",
            "union (links, rest : out)",
            inputs="rows",
            name="down",
        ),
        [
            "12:21: unknown attribute 'url'; a text stands in quotes: 'url' (there are: link) (when "
            "called on line 13 of down)"
        ],
    ),
    BadPlan(
        "an attribute that errors do not have",
        plan(
            "limit (houses, 2 : out) {ERRORS: failed}", "select (failed, \"reason = 'x'\" : why)", "log (why)"
        ),
        [
            "6:22: unknown attribute 'reason'; did you mean 'relation'? (there are: relation, error, "
            "error-kind, attempts)"
        ],
    ),
    BadPlan(
        "ONCE with an attribute that no input has",
        plan(
            'distinct (page, "next" : links)',
            "walk (links : rest)",
            "union (page, rest : out)",
            inputs="page (url char, next char)",
            header='ONCE: "ulr"',
            name="walk",
        ),
        ["4:9: ONCE: unknown attribute 'ulr'; did you mean 'url'? (the inputs have: url, next)"],
    ),
    BadPlan(
        "ONCE in a plan without inputs",
        plan("walk ( : out)", inputs="", header='ONCE: "url"', name="walk"),
        [
            "4:9: ONCE needs an input: its attributes are looked for there",
            "6:5: warning: this recursive call of walk has no inputs: nothing ends the recursion",
        ],
    ),
    BadPlan(
        "ONCE with two attributes of which no input has both",
        plan(
            'project (a, "url" : next)',
            'project (b, "city" : more)',
            "walk (next, more : rest)",
            "union (a, rest : out)",
            inputs="a (url char), b (city char)",
            header='ONCE: "url, city"',
            name="walk",
        ),
        ["4:9: ONCE: no input has all of url, city"],
    ),
    BadPlan(
        "ONCE with an expression that cannot be",
        plan(
            'project (a, "url" : next)',
            "walk (next : rest)",
            "union (next, rest : out)",
            inputs="a (url char)",
            header='ONCE: "url, lowr(url)"',
            name="walk",
        ),
        ["4:15: ONCE: unknown function 'lowr'; did you mean 'lower'?"],
    ),
    BadPlan(
        "ONCE without attributes",
        plan("walk (a : out)", inputs="a", header='ONCE: " "', name="walk"),
        ["4:9: ONCE names no attribute"],
    ),
    BadPlan(
        "an aggregate function that does not exist",
        plan('aggregate (houses, "summ(price) as total" : out)'),
        ["5:25: unknown aggregate function 'summ'; did you mean 'sum'?"],
    ),
    BadPlan(
        "an aggregate of an attribute that does not exist",
        plan('aggregate (houses, "sum(prize) as total" : out)'),
        ["5:29: unknown attribute 'prize'; did you mean 'price'? (there are: city, price, beds)"],
    ),
    BadPlan(
        "a group by an attribute that does not exist",
        plan('pack (houses, "all" : out) {BY: "town"}'),
        ["5:38: unknown attribute 'town'; a text stands in quotes: 'town' (there are: city, price, beds)"],
    ),
    BadPlan(
        "a template with an unknown attribute",
        plan('format (houses, "{town}: {price}" : out)'),
        ["5:23: unknown attribute 'town'; a text stands in quotes: 'town' (there are: city, price, beds)"],
    ),
    BadPlan(
        "a function that is not registered",
        plan('apply (houses, "no_such_function" : out)'),
        ["5:20: unknown function 'no_such_function'"],
    ),
]
