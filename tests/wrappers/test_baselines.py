"""What is usual for a wrapper, by plan, statement and task; runs are judged as their relations end."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, Result, RunError, load, loads
from aioflow.config.configuration import read_configuration
from aioflow.state.databases import Databases
from aioflow.state.health import KEPT_RUNS, accept_baseline
from aioflow.testing import ScriptedSite
from aioflow.web import Client, Request
from aioflow.wrappers import Web, wrapper

SITE = "http://homes.example"
LIST = """
WRAPPER list (city)
{
  GET: "http://homes.example/{city}"
  EACH: "li"
  title: "b"
  price: "i" number
}
"""
PLAN = f'{LIST} PLAN watch {{ INPUT: x OUTPUT: out BODY {{ wrapper ("list", x : out) }} }}'
WRITING = f"""{LIST}
PLAN watch
{{
  INPUT: x
  OUTPUT: out
  BODY {{ wrapper ("list", x : found) dbappend (found, "houses" : out) }}
}}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of this test's own, who has no settings and no history, in an empty folder."""
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    for variable in [name for name in os.environ if name.startswith("AIOFLOW_")]:
        monkeypatch.delenv(variable)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def page(rows: int, item: str = "<li><b>One</b><i>5</i></li>") -> str:
    return f"<ul>{item * rows}</ul>"


def tables(tmp_path: Path, **http: Any) -> dict[str, Any]:
    """A configuration with a database of its own, which asks for health."""
    url = f"sqlite:{tmp_path / 'own.db'}"
    return {"database": {"default": {"url": url}}, "http": {"health": True, **http}}


async def gather(
    configuration: Mapping[str, Any] | None,
    answers: Mapping[str, Any] | Callable[[Request], Any] | str,
    plan: str | Any = PLAN,
    x: Any = ({"city": "a"},),
    **keywords: Any,
) -> Result:
    """Run a plan against a site whose pages are these, or all this one."""
    site = ScriptedSite((lambda _: answers) if isinstance(answers, str) else answers)
    client = site.client({"http": {"retries": 0}})
    async with client, Engine(services={Client: client}, configuration=configuration) as engine:
        return await engine.run(loads(plan) if isinstance(plan, str) else plan, x=x, **keywords)


def runs(path: Path) -> list[tuple[str, int, int, bool]]:
    """Baseline, rows, pages and goodness of the runs in a database, the first one first."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        query = "select baseline, row_count, page_count, is_good from aioflow_health order by ended"
        return [(key, rows, pages, bool(good)) for key, rows, pages, good in connection.execute(query)]


def figures(tmp_path: Path) -> list[tuple[int, int, bool]]:
    """The same of a test's own database, without baselines."""
    return [(rows, pages, good) for _, rows, pages, good in runs(tmp_path / "own.db")]


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()] if folder.exists() else []


def marks(result: Result, output: str = "out") -> str:
    """Return `partial`, `doubtful`, both or `whole`."""
    found = result.statistics.marks.get(output)
    return "whole" if found is None else " ".join(n for n in ("partial", "doubtful") if getattr(found, n))


# --- where figures are kept -----------------------------------------------------------------------


async def test_an_engine_without_configuration_keeps_nothing(home: Path, tmp_path: Path) -> None:
    for configuration in (None, {}, {"http": {"retries": 0}}):
        await gather(configuration, page(6))
    assert (names(home), names(tmp_path / "work")) == ([], [])


async def test_what_was_read_as_configuration_keeps_figures_in_the_default_database(tmp_path: Path) -> None:
    await gather(read_configuration(), page(6))
    ((key, *rest),) = runs(tmp_path / "work" / "aioflow.db")
    assert key.startswith("watch/list/1 ")
    assert rest == [6, 1, True]


async def test_a_run_that_writes_keeps_its_figures_where_it_writes(tmp_path: Path) -> None:
    configuration = tables(tmp_path)
    configuration["database"]["other"] = {"url": f"sqlite:{tmp_path / 'other.db'}"}
    del configuration["http"]
    plan = WRITING.replace('"houses" : out)', '"houses" : out) {DB: other}')
    await gather(configuration, page(6), plan)
    assert [rest for _, *rest in runs(tmp_path / "other.db")] == [[6, 1, True]]
    assert "own.db" not in names(tmp_path)


async def test_figures_are_kept_in_postgresql(postgres_url: str) -> None:
    configuration = {"database": {"default": {"url": postgres_url}}}
    for _ in range(2):
        await gather(configuration, page(6), WRITING)
    result = await gather(configuration, page(0), WRITING)
    assert marks(result) == "partial"
    from tests.servers.postgres import query

    sql = "select row_count, page_count, is_good from aioflow_health order by ended"
    assert await query(postgres_url, sql) == [(6, 1, 1), (6, 1, 1), (0, 1, 0)]


async def test_health_that_is_switched_off_is_not_kept(home: Path, tmp_path: Path) -> None:
    await gather(read_configuration(overrides={"http": {"health": False}}), page(6))
    assert (names(home), names(tmp_path / "work")) == ([], [])


async def test_a_path_for_health_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"http\.health must be true or false \(.*database\)"):
        await gather({"http": {"health": "health.sqlite"}}, page(6))


async def test_offline_runs_are_neither_kept_nor_compared(tmp_path: Path) -> None:
    await gather(tables(tmp_path), page(6))
    result = await gather(tables(tmp_path, offline=True), page(0))
    assert "where its last" not in " ".join(result.warnings)
    assert len(figures(tmp_path)) == 1


async def test_replayed_runs_are_neither_kept_nor_compared(tmp_path: Path) -> None:
    await gather(tables(tmp_path), page(6))
    recording = str(tmp_path / "one.recording")
    client = ScriptedSite(lambda _: page(0)).client({"http": {"record": recording}})
    async with client, Engine(services={Client: client}) as engine:
        await engine.run(loads(PLAN), x=[{"city": "a"}])
    async with Engine(configuration=tables(tmp_path, replay=recording)) as engine:
        result = await engine.run(loads(PLAN), x=[{"city": "a"}])
    assert len(result) == 0
    assert "where its last" not in " ".join(result.warnings)
    assert len(figures(tmp_path)) == 1


@pytest.mark.parametrize("plan", [PLAN, WRITING])
async def test_a_run_that_fails_leaves_no_figures(tmp_path: Path, plan: str) -> None:
    def answers(request: Request) -> Any:
        return page(6) if request.url.endswith("/a") else 500

    with pytest.raises(RunError):
        await gather(tables(tmp_path), answers, plan, [{"city": "a"}, {"city": "b"}])
    assert names(tmp_path / "work") == []
    assert figures(tmp_path) == []


async def test_a_run_that_is_left_early_leaves_no_figures(tmp_path: Path) -> None:
    client = ScriptedSite(lambda _: page(6)).client()
    async with (
        client,
        Engine(services={Client: client}, configuration=tables(tmp_path)) as engine,
        engine.stream(loads(PLAN), x=[{"city": "a"}]) as stream,
    ):
        async for _ in stream:
            break
    assert figures(tmp_path) == []


async def test_only_the_last_runs_are_kept(tmp_path: Path) -> None:
    await gather(tables(tmp_path), page(6))
    with closing(sqlite3.connect(tmp_path / "own.db")) as connection, connection:
        ((key,),) = connection.execute("select baseline from aioflow_health")
        for number in range(KEPT_RUNS + 5):
            values = (key, f"r{number}", f"2001-01-01T00:00:00.{number:06}Z")
            connection.execute("insert into aioflow_health values (?, ?, ?, 6, 1, '{}', 1)", values)
        connection.execute("insert into aioflow_health values ('other', 'r', '1999', 6, 1, '{}', 1)")
    await gather(tables(tmp_path), page(6))
    with closing(sqlite3.connect(tmp_path / "own.db")) as connection:
        counted = connection.execute("select baseline, count(*) from aioflow_health group by 1")
        assert dict(counted.fetchall()) == {key: KEPT_RUNS, "other": 1}
        oldest = connection.execute("select ended from aioflow_health where baseline = ? order by 1", (key,))
        assert oldest.fetchone() == ("2001-01-01T00:00:00.000007Z",)


# --- a database that cannot be used ---------------------------------------------------------------


async def test_a_database_that_cannot_be_used_for_health_is_told_once_and_fails_no_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.db").write_bytes(b"these are not the bytes of a database" * 100)
    two = PLAN.replace("OUTPUT: out", "OUTPUT: out, more").replace(
        ": out) }", ': out) wrapper ("list", x : more) }'
    )
    result = await gather(tables(tmp_path), page(6), two)
    (warning,) = result.warnings
    assert "not compared with earlier runs" in warning
    assert len(result.outputs["out"]) == 6


async def test_several_databases_without_a_default_are_no_failure(tmp_path: Path) -> None:
    configuration = {
        "database": {name: {"url": f"sqlite:{tmp_path / name}.db"} for name in ("one", "two")},
        "http": {"health": True},
    }
    (warning,) = (await gather(configuration, page(6))).warnings
    assert "none is called default" in warning


async def test_a_run_that_needs_the_database_fails_with_it(tmp_path: Path) -> None:
    (tmp_path / "own.db").write_bytes(b"these are not the bytes of a database" * 100)
    with pytest.raises(RunError):
        await gather(tables(tmp_path), page(6), WRITING)


async def test_figures_that_nobody_wrote_are_told(tmp_path: Path) -> None:
    await gather(tables(tmp_path), page(6))
    with closing(sqlite3.connect(tmp_path / "own.db")) as connection, connection:
        connection.execute("update aioflow_health set nulls = 'x'")
    (warning,) = (await gather(tables(tmp_path), page(6))).warnings
    assert "figures that aioflow did not write" in warning


# --- whose figures they are -----------------------------------------------------------------------


async def test_two_cities_have_histories_of_their_own(tmp_path: Path) -> None:
    large, small = {"city": "large"}, {"city": "small"}
    answers = {f"{SITE}/large": page(60), f"{SITE}/small": page(3)}
    for _ in range(4):
        for city in (large, small):
            result = await gather(tables(tmp_path), answers, x=[city])
            assert (result.warnings, marks(result)) == ((), "whole")
    assert len({key for key, *_ in runs(tmp_path / "own.db")}) == 2
    cut = {**answers, f"{SITE}/large": page(3)}
    assert marks(await gather(tables(tmp_path), cut, x=[large])) == "partial"
    assert marks(await gather(tables(tmp_path), cut, x=[small])) == "whole"


async def test_parameters_tell_tasks_apart_and_defaults_are_parameters(tmp_path: Path) -> None:
    plan = PLAN.replace("OUTPUT: out", 'OUTPUT: out PARAM: kind = "flat"').replace(
        'wrapper ("list", x : out)',
        """project (x, "city, '${kind}' as kind" : y) wrapper ("list", y : out)""",
    )
    for parameters in ({}, {"kind": "flat"}, {"KIND": "flat"}, {"kind": "house"}):
        await gather(tables(tmp_path), page(6), plan, parameters=parameters)
    first, second, third, fourth = (key for key, *_ in runs(tmp_path / "own.db"))
    assert first == second == third != fourth


async def test_the_order_of_rows_and_attributes_makes_no_other_task(tmp_path: Path) -> None:
    rows = [{"city": "a", "n": 1}, {"city": "b", "n": 2}]
    other = [{"n": 2, "city": "b"}, {"n": 1, "city": "a"}]
    for x in (rows, tuple(other)):
        await gather(tables(tmp_path), page(6), x=x)
    assert len({key for key, *_ in runs(tmp_path / "own.db")}) == 1


async def test_an_input_that_streams_counts_by_its_name(tmp_path: Path) -> None:
    async def arriving(city: str) -> AsyncIterator[dict[str, str]]:
        yield {"city": city}

    for x in (arriving("a"), iter([{"city": "b"}]), ({"city": city} for city in "cd")):
        await gather(tables(tmp_path), page(6), x=x)
    assert len({key for key, *_ in runs(tmp_path / "own.db")}) == 1


async def test_statements_that_use_one_wrapper_are_told_apart_by_their_number(tmp_path: Path) -> None:
    plan = f"""{LIST}
    PLAN watch
    {{
      INPUT: x OUTPUT: a, b, c PARAM: third = "LIST"
      BODY
      {{
        wrapper ("list", x : a)
        project (x, "city as city" : y)
        wrapper ("List", y : b) {{OUTER}}
        wrapper ($third, y : c)
      }}
    }}"""
    await gather(tables(tmp_path), page(6), plan)
    edited = plan.replace(
        'wrapper ("list", x : a)', '# more\n\nselect (x, "1 = 1" : z) wrapper ("list", z : a)'
    )
    await gather(tables(tmp_path), page(6), edited)
    keys = [key.partition(" ")[0] for key, *_ in runs(tmp_path / "own.db")]
    assert sorted(keys) == sorted(["watch/list/1", "watch/list/2", "watch/list/3"] * 2)
    assert len({key for key, *_ in runs(tmp_path / "own.db")}) == 3


async def test_a_statement_of_a_called_plan_is_known_by_both_plans(tmp_path: Path) -> None:
    plan = f"""{LIST}
    PLAN inner {{ INPUT: y OUTPUT: found BODY {{ wrapper ("list", y : found) }} }}
    PLAN watch {{ INPUT: x OUTPUT: out BODY {{ inner (x : out) }} }}"""
    await gather(tables(tmp_path), page(6), loads(plan, plan="watch"))
    ((key, *_),) = runs(tmp_path / "own.db")
    assert key.startswith("watch/inner/list/1 ")


async def test_a_plan_without_inputs_and_parameters_has_no_fingerprint(tmp_path: Path) -> None:
    plan = """
    WRAPPER front { GET: "http://homes.example/"; EACH: "li"; title: "b" }
    PLAN watch { OUTPUT: out BODY { wrapper ("front" : out) } }"""
    site = ScriptedSite(lambda _: page(6)).client()
    async with site, Engine(services={Client: site}, configuration=tables(tmp_path)) as engine:
        await engine.run(loads(plan))
    assert [key for key, *_ in runs(tmp_path / "own.db")] == ["watch/front/1"]


@wrapper(inputs="city char", returns="size number", name="baseline_sizes")
async def sizes(web: Web, city: str) -> Mapping[str, Any] | None:
    size = len(await (await web.get(f"{SITE}/{city}")).read())
    return {"size": size} if size > 20 else None


async def test_wrappers_in_python_have_baselines_and_count_the_pages_they_fetch(tmp_path: Path) -> None:
    plan = PLAN.replace('"list"', '"baseline_sizes"')
    cities = [{"city": name} for name in "abcdef"]
    await gather(tables(tmp_path), page(6), plan, cities)
    result = await gather(tables(tmp_path), "", plan, cities)
    assert figures(tmp_path) == [(6, 6, True), (0, 6, False)]
    assert marks(result) == "partial"


# --- what is judged, and when ---------------------------------------------------------------------


async def test_no_item_where_there_were_some_is_partial_from_the_second_run_on(tmp_path: Path) -> None:
    assert marks(await gather(tables(tmp_path), page(6))) == "whole"
    result = await gather(tables(tmp_path), page(0))
    found = result.statistics.marks["out"]
    ((reason),) = found.partial
    ((key, *_), *_) = runs(tmp_path / "own.db")
    assert reason.baseline == key
    assert "list gave no rows on 1 page, where its last run had about 6 a page" in reason.text
    assert [warning for warning in result.warnings if warning == reason.text] == [reason.text]
    assert result.statistics.nothing_found == ()
    assert figures(tmp_path) == [(6, 1, True), (0, 1, False)]


async def test_the_only_row_that_is_gone_lacks(tmp_path: Path) -> None:
    await gather(tables(tmp_path), page(1))
    assert marks(await gather(tables(tmp_path), page(0))) == "partial"
    assert figures(tmp_path) == [(1, 1, True), (0, 1, False)]


async def test_fewer_rows_than_usual_are_partial_after_three_runs(tmp_path: Path) -> None:
    for rows in (72, 70):
        await gather(tables(tmp_path), page(rows))
    assert marks(await gather(tables(tmp_path), page(71))) == "whole"
    result = await gather(tables(tmp_path), page(3))
    assert marks(result) == "partial"
    assert any(
        "gave 3 rows on 1 page, where its last 3 runs had about 71" in each for each in result.warnings
    )


async def test_nothing_but_a_person_accepts_a_new_usual(tmp_path: Path) -> None:
    for _ in range(3):
        await gather(tables(tmp_path), page(72))
    for _ in range(15):
        assert marks(await gather(tables(tmp_path), page(3))) == "partial"
    ((key, *_), *_) = runs(tmp_path / "own.db")
    databases = Databases(tables(tmp_path))
    connection = await databases.connect(databases.address(None, tmp_path))
    try:
        assert not await accept_baseline(connection, "no such baseline")
        assert await accept_baseline(connection, key)
    finally:
        await connection.close()
    assert figures(tmp_path) == [(3, 1, True)]
    assert marks(await gather(tables(tmp_path), page(3))) == "whole"


async def test_a_person_can_accept_that_there_is_nothing(tmp_path: Path) -> None:
    await gather(tables(tmp_path), page(6))
    await gather(tables(tmp_path), page(0))
    ((key, *_), *_) = runs(tmp_path / "own.db")
    databases = Databases(tables(tmp_path))
    connection = await databases.connect(databases.address(None, tmp_path))
    try:
        assert await accept_baseline(connection, key)
    finally:
        await connection.close()
    result = await gather(tables(tmp_path), page(0))
    assert (marks(result), result.statistics.nothing_found, result.warnings) == ("whole", (), ())


async def test_diff_learns_of_it_before_its_input_ends(tmp_path: Path) -> None:
    plan = f"""{LIST}
    PLAN watch
    {{
      INPUT: x OUTPUT: out
      BODY {{ wrapper ("list", x : found) aggregate (found, "count() as n" : out) }}
    }}"""
    await gather(tables(tmp_path), page(6), plan)
    assert marks(await gather(tables(tmp_path), page(0), plan)) == "doubtful"


async def test_outer_makes_rows_that_may_be_wrong(tmp_path: Path) -> None:
    statement = PLAN.replace(": out) }", ": out) {OUTER} }")
    inside = PLAN.replace("EACH:", 'OUTER; count: page "h1"; EACH:')
    for plan in (statement, inside):
        folder = tmp_path / plan[-20:].strip("{} )")
        folder.mkdir()
        await gather(tables(folder), page(6), plan)
        result = await gather(tables(folder), "<h1>0</h1>", plan)
        assert len(result) == 1
        assert marks(result) == "doubtful"
        assert figures(folder) == [(6, 1, True), (0, 1, False)]


async def test_a_column_that_goes_null_is_a_warning_and_no_mark(tmp_path: Path) -> None:
    for _ in range(3):
        assert (await gather(tables(tmp_path), page(20))).warnings == ()
    result = await gather(tables(tmp_path), page(20, "<li><b>One</b><u>5</u></li>"))
    (warning,) = result.warnings
    assert "list: price is always null, and never was in the last 3 runs" in warning
    assert marks(result) == "whole"
    assert figures(tmp_path)[-1] == (20, 1, False)


async def test_a_rising_share_of_nulls_is_a_warning_only(tmp_path: Path) -> None:
    full, bare = "<li><b>One</b><i>5</i></li>", "<li><b>One</b></li>"
    for _ in range(4):
        await gather(tables(tmp_path), page(1, full * 19 + bare))
    result = await gather(tables(tmp_path), page(1, full * 4 + bare * 16))
    (warning,) = result.warnings
    assert "list: price is null in 80% of 20 rows, where 5% is usual" in warning
    assert marks(result) == "whole"
    assert figures(tmp_path)[-1] == (20, 1, True)


async def test_a_run_that_reads_no_page_leaves_no_figures(tmp_path: Path) -> None:
    result = await gather(tables(tmp_path), page(6), x=[])
    assert (result.warnings, figures(tmp_path)) == ((), [])


# --- recursion ------------------------------------------------------------------------------------

RESULTS = """
WRAPPER search (city)
{
  GET: "http://homes.example/{city}/1"
  EACH: "li"
  title: "b"
  next: page "a @href" url
}

WRAPPER more (next) LIKE search { GET: "{+next}" }

PLAN pages
{
  INPUT: page
  OUTPUT: all
  BODY
  {
    project (page, "title" : here)
    distinct (page, "next" : links)
    wrapper ("more", links : following)
    pages (following : rest)
    union (here, rest : all) {ALL}
  }
}

PLAN watch
{
  INPUT: x
  OUTPUT: out
  BODY
  {
    wrapper ("search", x : first)
    pages (first : out)
  }
}
"""


def result_pages(count: int, rows: Callable[[int], int]) -> Callable[[Request], str]:
    def answers(request: Request) -> str:
        number = int(request.url.rpartition("/")[2])
        following = f"<a href=/a/{number + 1}>" if number < count else ""
        return page(rows(number), "<li><b>One</b></li>") + following

    return answers


async def paged(tmp_path: Path, count: int, rows: Callable[[int], int]) -> Result:
    return await gather(tables(tmp_path), result_pages(count, rows), loads(RESULTS, plan="watch"))


async def test_a_recursion_over_result_pages_is_one_statement_over_all_levels(tmp_path: Path) -> None:
    result = await paged(tmp_path, 9, lambda number: 20 if number < 9 else 3)
    assert len(result) == 163
    keys = {key.partition(" ")[0]: (rows, count) for key, rows, count, _ in runs(tmp_path / "own.db")}
    assert keys == {"watch/search/1": (20, 1), "watch/pages/more/1": (143, 8)}


def _ending_with(last: int, count: int, number: int) -> int:
    return last if number == count else 20


async def test_a_short_last_page_and_fewer_pages_are_as_good_as_before(tmp_path: Path) -> None:
    for last in (3, 20, 7):
        result = await paged(tmp_path, 9, partial(_ending_with, last, 9))
        assert (marks(result), result.warnings) == ("whole", ())
    for count in (2, 12):
        result = await paged(tmp_path, count, partial(_ending_with, 1, count))
        assert (marks(result), result.warnings) == ("whole", ())


async def test_a_second_page_without_items_marks_the_whole_recursion(tmp_path: Path) -> None:
    await paged(tmp_path, 9, lambda number: 20)
    result = await paged(tmp_path, 9, lambda number: 20 if number == 1 else 0)
    assert marks(result) == "partial"
    assert figures(tmp_path)[-2:] in ([(20, 1, True), (0, 1, False)], [(0, 1, False), (20, 1, True)])


async def test_pages_that_hold_fewer_rows_mark_the_recursion_once(tmp_path: Path) -> None:
    for _ in range(3):
        await paged(tmp_path, 9, lambda number: 20)
    result = await paged(tmp_path, 9, lambda number: 20 if number == 1 else 2)
    assert marks(result) == "partial"
    assert (
        sum("more gave" in warning and "has the page changed" in warning for warning in result.warnings) <= 2
    )
    assert len(result.statistics.marks["out"].partial) == 1


CRAWL = """
WRAPPER links (url) { GET: "{+url}"; EACH: "a"; link: "@href" url }
WRAPPER items (url) { GET: "{+url}"; EACH: "li"; title: "b" }

PLAN crawl
{
  INPUT: rel
  OUTPUT: all
  ONCE: "url"
  BODY
  {
    wrapper ("items", rel : here)
    wrapper ("links", rel : found)
    project (found, "link as url" : next)
    crawl (next : rest)
    union (here, rest : all) {ALL}
  }
}
"""


def tree(items: int) -> Callable[[Request], str]:
    """A front page, ten categories without items, and ten pages of items in each."""

    def answers(request: Request) -> str:
        path = request.url.removeprefix(f"{SITE}/")
        if len(path) == 2:
            return page(items, "<li><b>One</b></li>")
        return "".join(f"<a href=/{path}{digit}></a>" for digit in "0123456789")

    return answers


async def test_a_crawl_whose_first_levels_have_no_items_is_no_alarm(tmp_path: Path) -> None:
    start = [{"url": f"{SITE}/"}]
    for _ in range(4):
        result = await run_crawl(tmp_path, tree(4), start)
        assert (len(result), marks(result, "all"), result.warnings) == (400, "whole", ())
    result = await run_crawl(tmp_path, tree(0), start)
    assert marks(result, "all") == "partial"


async def run_crawl(tmp_path: Path, answers: Any, start: Sequence[Mapping[str, Any]]) -> Result:
    client = ScriptedSite(answers).client()
    async with client, Engine(services={Client: client}, configuration=tables(tmp_path)) as engine:
        return await engine.run(loads(CRAWL), rel=start)


def test_a_deep_recursion_is_judged_at_little_cost(tmp_path: Path) -> None:
    """A recursion of 3,000 levels, each of which is judged against a history."""

    async def both() -> None:
        for _ in range(2):
            result = await paged(tmp_path, 3000, lambda number: 1)
            assert len(result) == 3000

    asyncio.run(both())
    assert [count for _, count, _ in sorted(figures(tmp_path))] == [1, 1, 2999, 2999]


# --- silence --------------------------------------------------------------------------------------


async def nothing_found(configuration: Mapping[str, Any] | None, *arguments: Any, **keywords: Any) -> str:
    result = await gather(configuration, *arguments, **keywords)
    return "\n".join(result.statistics.nothing_found)


async def test_a_first_run_without_any_item_has_found_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        message = await nothing_found(tables(tmp_path), page(0), x=[{"city": "a"}, {"city": "b"}])
        assert (
            "list found no item on any of its 2 pages, of which the first is http://homes.example/" in message
        )
        assert "aioflow wrapper test" in message
        assert "--url http://homes.example/" in message
    assert figures(tmp_path) == [(0, 2, False)] * 2
    assert await nothing_found(tables(tmp_path), page(6)) == ""


async def test_without_a_history_every_run_without_items_has_found_nothing() -> None:
    for _ in range(2):
        assert "list found no item on its only page" in await nothing_found(None, page(0))
    assert await nothing_found(None, page(1)) == ""
    assert await nothing_found(None, page(0), x=[]) == ""


async def test_rows_with_nothing_in_them_are_nothing(tmp_path: Path) -> None:
    bare = page(6, "<li></li>")
    more = PLAN.replace("title:", 'status: response status; source: = "homes"; title:')
    assert "all fields of its 6 rows on its only page" in await nothing_found(tables(tmp_path), bare, more)
    assert figures(tmp_path) == [(6, 1, False)]
    assert await nothing_found(tables(tmp_path), page(1, "<li></li><li><i>5</i></li>"), more) == ""
    only = LIST.replace('title: "b"', "status: response status").replace('price: "i" number', "")
    plan = PLAN.replace(LIST, only)
    assert await nothing_found(None, bare, plan) == ""


async def test_a_level_without_items_is_no_silence(tmp_path: Path) -> None:
    result = await paged(tmp_path, 3, lambda number: 0 if number == 3 else 5)
    assert result.statistics.nothing_found == ()


async def test_a_run_with_a_history_of_rows_is_not_silent_but_partial(tmp_path: Path) -> None:
    await gather(tables(tmp_path), page(6))
    assert await nothing_found(tables(tmp_path), page(0)) == ""


async def test_rows_that_outer_makes_are_no_items(tmp_path: Path) -> None:
    inside = PLAN.replace("EACH:", 'OUTER; count: page "h1"; EACH:')
    assert "no item on its only page" in await nothing_found(tables(tmp_path), "<h1>0</h1>", inside)


def test_a_wrapper_of_a_file_is_named_with_it() -> None:
    Path("watch.plan").write_text(PLAN)
    message = asyncio.run(nothing_found(None, page(0), load("watch.plan")))
    assert "`aioflow wrapper test watch.plan list --url http://homes.example/a`" in message


# --- a page without items among others ----------------------------------------------------------


async def test_a_page_without_items_where_every_page_had_some_lacks_rows(tmp_path: Path) -> None:
    async def look(*rows: int) -> Result:
        answers = {f"http://homes.example/{number}": page(count) for number, count in enumerate(rows)}
        client = ScriptedSite(answers).client({"http": {"retries": 0}})
        text = """WRAPPER w (n) { GET: "http://homes.example/{n}"; EACH: "li"; title: "b" }
            PLAN p { INPUT: x OUTPUT: out BODY { wrapper ("w", x : out) } }"""
        async with client, Engine(configuration=tables(tmp_path), services={Client: client}) as engine:
            return await engine.run(loads(text), x=[{"n": number} for number in range(len(rows))])

    assert marks(await look(4, 4, 4, 4)) == "whole"
    result = await look(4, 4, 0, 4)
    assert marks(result) == "partial"
    warning = next(each for each in result.warnings if "no item on 1 of its 4 pages" in each)
    assert "where every page of its last run had some (the first: http://homes.example/2)" in warning
    assert marks(await look(4, 4, 4, 4)) == "whole"
