"""Plans, built as data, that the tests of drawing share."""

from aioflow.plan import InputDeclaration, Option, Plan, Program, Setting, Statement, Variable


def variables(*names: str) -> tuple[Variable, ...]:
    return tuple(map(Variable, names))


def statement(operator: str, inputs: str = "", *settings: str, out: str = "", **clauses: object) -> Statement:
    arguments = (*variables(*inputs.split()), *map(Setting, settings))
    return Statement(operator, arguments, variables(*out.split()), **clauses)  # type: ignore[arg-type]


GET_URLS = Plan(
    "get_urls",
    (InputDeclaration("page"),),
    variables("urls"),
    (
        statement("project", "page", "house-url", out="here"),
        statement("distinct", "page", "next-page-link", out="links"),
        statement("wrapper", "links", "result-page", out="next-page"),
        statement("get_urls", "next-page", out="rest"),
        statement("union", "here rest", out="urls"),
    ),
)

WATCH_HOUSES = Plan(
    "watch_houses",
    (InputDeclaration("criteria"),),
    variables("houses"),
    (
        statement("wrapper", "criteria", "search", out="page"),
        statement("get_urls", "page", out="urls"),
        statement(
            "wrapper",
            "urls",
            "detail",
            out="details",
            errors=Variable("failed"),
            options=(Option("workers", (8,)),),
        ),
        statement("select", "details", "beds >= 3 and price < 550000", out="houses"),
        statement("email", "houses", "me@example.org", done=variables("mailed")),
        statement("dbupdate", "", "update runs set last = 1", wait=variables("mailed")),
        statement("log", "failed", "no details"),
    ),
)

PROGRAM = Program(WATCH_HOUSES, (GET_URLS,))
