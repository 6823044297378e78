"""crawl_hidden: every tuple behind a form, the report about it, and crawls that go on and are repeated."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from math import cos, hypot, radians
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from aioflow import Engine, Result, Row, loads
from aioflow.errors import AioflowError
from aioflow.hidden import StoredAnswers
from aioflow.hidden.forms.answer_store import AnswerStore
from aioflow.plan import Program
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import Answer, Script, ScriptedSite, run, run_plan
from aioflow.web import Client
from aioflow.web.http import Request
from tests.cli.program import aioflow, start
from tests.operators.hidden_server import hidden_server

MAKES = ("Audi", "BMW", "Ford", "Kia", "Volvo")
QUIET = {"http": {"retries": 0, "robots": False, "concurrency": 100, "health": False}}
DAY = 86_400.0


def some_cars(number: int = 300, seed: int = 1) -> list[Row]:
    """Cars as (number, make, price, town)."""
    random = Random(seed)
    return [
        (each, random.choice(MAKES), random.randrange(100, 3_000), random.choice(("Bonn", "Rome")))
        for each in range(number)
    ]


class Shop:
    """A source that shows at most `limit` cars a query, and what happens to its queries."""

    def __init__(self, cars: Iterable[Row], limit: int = 10) -> None:
        self.cars = list(cars)
        self.limit = limit
        self.queries: list[str] = []
        self.answers: list[str] = []  # the queries that were answered
        self.before: Callable[[int], None] = lambda number: None  # called with the number of each query
        self.seconds = 0.0

    async def __call__(self, request: Request) -> Answer:
        query = urlsplit(request.url).query
        self.queries.append(query)
        self.before(len(self.queries))
        await asyncio.sleep(self.seconds)
        self.answers.append(query)
        return Answer(self.page(dict(parse_qsl(query))), headers={"Content-Type": "application/json"})

    def page(self, query: dict[str, str]) -> str:
        low, high = float(query.get("low", 0)), float(query.get("high", "inf"))
        found = [
            car
            for car in self.cars
            if car[1] == query.get("make", car[1])
            and (low <= car[2] <= high if car[2] is not None else not {"low", "high"} & set(query))
            and car[3] == query.get("town", car[3])
        ]
        names = ("number", "make", "price")
        shown = [dict(zip(names, car, strict=False)) for car in found[: self.limit]]
        return json.dumps({"total": len(found), "more": len(found) > self.limit or None, "cars": shown})

    def run(self, plan: str, **settings: Any) -> Result:
        """Run a plan whose network is this shop."""
        return run_plan(plan, network=ScriptedSite(self), configuration=QUIET, **settings)


FORM = """
WRAPPER search (make optional, low optional, high optional, town optional)
{
  GET: "http://cars.example/{?make,low,high,town}"
  READ: json
  EACH: "$.cars[*]"
  number: "number" number required
  make: "make"
  price: "price" number
  total: page "$.total" number
  more: page "$.more"
}
HIDDEN cars
{
  QUERY: search
  LIMIT: 10
  TOTAL: total
  price: range low high from 0
  make: menu in "Audi", "BMW", "Ford", "Kia", "Volvo"
  KEY: number
}
"""
ALL = "PLAN p { OUTPUT: found, report BODY { crawl_hidden ('cars' : found, report) } }"
BY_TOWN = """PLAN p { INPUT: towns (town, nick) OUTPUT: found, report, failed
  BODY { crawl_hidden ('cars', towns : found, report) {ERRORS: failed} } }"""


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of stored answers of this test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / ".data"))
    return tmp_path / ".data" / "aioflow" / "hidden.sqlite"


def bag(rows: Iterable[Any]) -> Counter[Row]:
    return Counter(record.row for record in rows)


def shown(cars: Iterable[Row]) -> Counter[Row]:
    """The cars as the shop shows them: without their towns."""
    return Counter(car[:3] for car in cars)


# --- results ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_every_tuple_is_found_once(mode: Mode) -> None:
    shop = Shop(some_cars())
    result = shop.run(FORM + ALL, mode=mode, capacity_rows=2)
    assert bag(result.outputs["found"]) == shown(shop.cars)
    assert result.warnings == ()
    assert result.statistics.marks == {}


@pytest.mark.parametrize("sign", ["TOTAL: total", "MORE: more", "QUOTA: 1000"])
def test_each_sign_that_there_are_more_is_understood(sign: str) -> None:
    shop = Shop(some_cars())
    result = shop.run(FORM.replace("TOTAL: total", sign) + ALL)
    assert bag(result.outputs["found"]) == shown(shop.cars)
    assert result.outputs["report"][0]["complete"] is True


def test_attributes_of_the_page_are_none_of_the_tuples() -> None:
    result = Shop(some_cars(5)).run(FORM + ALL)
    assert list(result.outputs["found"][0]) == ["number", "make", "price"]


def test_a_tuple_restricts_the_crawl_by_inputs_that_no_query_fills() -> None:
    shop = Shop(some_cars())
    towns = [{"town": "Rome", "nick": "eternal"}, {"town": "Bonn", "nick": "federal"}]
    result = shop.run(FORM + BY_TOWN, towns=towns)
    found = Counter(record.row for record in result.outputs["found"])
    nicks = {"Rome": "eternal", "Bonn": "federal"}
    assert found == Counter((car[3], nicks[car[3]], *car[:3]) for car in shop.cars)
    assert all("town=" in query for query in shop.queries)
    reports = {record["town"]: record for record in result.outputs["report"]}
    assert {town: report["tuples"] for town, report in reports.items()} == Counter(
        car[3] for car in shop.cars
    )


BY_REGION = """PLAN p { INPUT: regions (make, low number, high number) OUTPUT: found, report, failed
  BODY { crawl_hidden ('cars', regions : found, report) {ERRORS: failed} } }"""


def test_a_tuple_restricts_the_crawl_to_a_part_of_the_form() -> None:
    shop = Shop(some_cars())
    result = shop.run(FORM + BY_REGION, regions=[{"make": "BMW", "low": 500, "high": 2000}])
    inside = Counter(car[:3] for car in shop.cars if car[1] == "BMW" and 500 <= car[2] <= 2000)
    found = Counter((each["number"], each["make"], each["price"]) for each in result.outputs["found"])
    assert (found, result.outputs["report"][0]["complete"]) == (inside, True)
    asked = [dict(parse_qsl(query)) for query in shop.queries]
    assert all(query["make"] == "BMW" and 500 <= int(query["low"]) <= 2000 for query in asked)


def test_a_part_of_the_form_that_a_tuple_leaves_open_is_crawled_as_a_whole() -> None:
    shop = Shop(some_cars())
    result = shop.run(FORM + BY_REGION, regions=[{"make": None, "low": None, "high": 999}])
    inside = Counter(car[:3] for car in shop.cars if car[2] <= 999)
    found = Counter((each["number"], each["make"], each["price"]) for each in result.outputs["found"])
    assert (found, result.outputs["report"][0]["complete"]) == (inside, True)


def test_a_restriction_to_what_the_form_lacks_fails_its_tuple() -> None:
    shop = Shop(some_cars())
    regions = [{"make": "Fiat", "low": None, "high": None}, {"make": None, "low": 0.5, "high": None}]
    result = shop.run(FORM + BY_REGION, regions=regions)
    assert [len(result.outputs[name]) for name in ("found", "report", "failed")] == [0, 0, 2]
    assert shop.queries == []


def test_dependencies_on_other_values_do_not_disturb_a_restricted_crawl() -> None:
    shop = Shop(some_cars())
    form = FORM.replace("KEY: number", 'EXCLUDES: "make = Kia excludes make = Audi"')
    result = shop.run(form + BY_REGION, regions=[{"make": "BMW", "low": None, "high": None}])
    assert len(result.outputs["found"]) == sum(car[1] == "BMW" for car in shop.cars)


def test_two_crawls_of_one_form_have_their_own_answers() -> None:
    shop = Shop(some_cars())
    shop.run(FORM + BY_TOWN, towns=[{"town": "Rome", "nick": "a"}])
    first = len(shop.queries)
    result = shop.run(FORM + BY_TOWN, towns=[{"town": "Bonn", "nick": "a"}])
    assert len(shop.queries) > first + 10
    assert result.outputs["report"][0]["added"] is None


def test_without_tuples_nothing_is_asked() -> None:
    shop = Shop(some_cars())
    result = shop.run(FORM + BY_TOWN, towns=[])
    assert result.outputs == {"found": [], "report": [], "failed": []}
    assert shop.queries == []


def test_tuples_that_told_no_attributes_have_null_for_the_inputs() -> None:
    shop = Shop(some_cars(30))
    plan = (
        FORM.replace("town optional", "town")
        + """
PLAN p { INPUT: ids, towns OUTPUT: found, report
  BODY {
    join (ids, towns, "left.id = right.id" : rel) {TYPE: left}
    crawl_hidden ('cars', rel : found, report)
  } }"""
    )
    result = shop.run(plan, ids=[{"id": 1}], towns=[])
    assert result.outputs == {"found": [], "report": []}
    assert shop.queries == []


def test_a_form_without_tuples_is_complete() -> None:
    shop = Shop([])
    (report,) = shop.run(FORM + ALL).outputs["report"]
    assert (report["complete"], report["tuples"], report["queries"]) == (True, 0, 1)


STORES = """
WRAPPER near (lat, lon, radius)
{
  GET: "http://stores.example/{?lat,lon,radius}"
  READ: json
  EACH: "$.stores[*]"
  number: "n" number required
  latitude: "lat" number
  longitude: "lon" number
  total: page "$.total" number
  more: page "$.more"
}
HIDDEN stores
{
  QUERY: near; SIGN
  NEAR: lat lon radius UNIT
  latitude: range from 50 to 52 step 0.01
  longitude: range from 6 to 9 step 0.01
}
PLAN p { OUTPUT: found, report BODY { crawl_hidden ('stores' : found, report) } }
"""


@pytest.mark.parametrize("sign", ["LIMIT: 5", "TOTAL: total", "MORE: more"])
@pytest.mark.parametrize(("unit", "kilometres"), [("km", 1.0), ("miles", 1.609344), ("m", 0.001)])
def test_a_store_locator_is_emptied_by_circles(sign: str, unit: str, kilometres: float) -> None:
    random = Random(3)
    places = [(n, random.randrange(5_000, 5_201) / 100, random.randrange(600, 901) / 100) for n in range(80)]

    def near(request: Request) -> Answer:
        given = {name: float(value) for name, value in parse_qsl(urlsplit(request.url).query)}
        # On a plane: shops do not agree on the distance.
        width = 111.2 * cos(radians(given["lat"]))
        far = {
            place: hypot((place[1] - given["lat"]) * 111.2, (place[2] - given["lon"]) * width)
            for place in places
        }
        inside = sorted(
            (each for each in places if far[each] <= given["radius"] * kilometres), key=lambda each: far[each]
        )
        shown = [dict(zip(("n", "lat", "lon"), each, strict=True)) for each in inside[:5]]
        page = {"total": len(inside), "more": len(inside) > 5, "stores": shown}
        return Answer(json.dumps(page), headers={"Content-Type": "application/json"})

    site = ScriptedSite(near)
    plan = STORES.replace("SIGN", sign).replace("UNIT", unit)
    result = run_plan(plan, network=site, configuration=QUIET)
    assert bag(result.outputs["found"]) == Counter(places)
    assert result.outputs["report"][0]["complete"] is True
    assert len(site.requests) < 250


# --- the report ---------------------------------------------------------------------------------


def test_the_report_has_figures_of_the_crawl() -> None:
    shop = Shop(some_cars())
    result = shop.run(FORM + ALL)
    (report,) = result.outputs["report"]
    assert (report["form"], report["complete"], report["tuples"]) == ("cars", True, 300)
    assert len(set(shop.queries)) == report["queries"] <= report["bound"]
    asked = report["queries"]
    assert report["statement"] == (
        f"complete: 300 tuples by {asked} queries; every region of the form was resolved"
    )
    assert [report[name] for name in ("added", "changed", "removed")] == [None, None, None]
    assert (list(report["unresolved"]), list(report["changes"])) == ([], [])
    assert [dict(each) for each in report["covered"]] == [{"query": "everything"}]
    (entry,) = (each for each in result.account.entries if each.name == "hidden")
    assert entry.lines == (f"cars: {report['statement']}",)


def test_a_point_with_too_many_tuples_makes_the_relation_partial() -> None:
    shop = Shop([*some_cars(), *((1_000 + number, "Kia", 77, "Rome") for number in range(13))])
    result = shop.run(FORM + ALL)
    (report,) = result.outputs["report"]
    reason = "13 identical tuples, of which an answer has 10"
    assert [dict(each) for each in report["unresolved"]] == [
        {"query": "price = 77, make = Kia", "kind": "point", "reason": reason, "known": 10}
    ]
    assert (report["complete"], report["tuples"]) == (False, 310)
    assert report["statement"].startswith("incomplete: 310 tuples by ")
    assert result.statistics.marks["found"].partial
    assert len(bag(result.outputs["found"]) - shown(some_cars())) == 10
    assert any(
        "cars is incomplete: price = 77, make = Kia: 13 identical" in warning for warning in result.warnings
    )


def test_tuples_without_a_value_are_passed_on_and_said_to_be_uncertain() -> None:
    shop = Shop([(900, "Kia", None, "Rome"), *some_cars(60)])
    result = shop.run(FORM.replace("price: range low high from 0", "price: range low high") + ALL)
    (report,) = result.outputs["report"]
    (region,) = report["unresolved"]
    assert (region["query"], region["kind"]) == ("everything", "no value")
    assert bag(result.outputs["found"]) == shown(shop.cars)


def test_a_menu_that_lacks_values_makes_the_result_uncertain() -> None:
    # No answer shows the only Volvo.
    shop = Shop([*(car for car in some_cars(100) if car[1] != "Volvo"), (900, "Volvo", 5, "Rome")])
    form = FORM.replace('"Ford", "Kia", "Volvo"', '"Ford"\n  ALGORITHM: hybrid')
    result = shop.run(form.replace("TOTAL: total", "MORE: more") + ALL)
    assert shown(shop.cars) - bag(result.outputs["found"]) == {(900, "Volvo", 5): 1}
    (report,) = result.outputs["report"]
    assert report["complete"] is False
    assert report["statement"].endswith("the domain of make lacks values that answers show: others may exist")
    assert any("make has values that its domain lacks, such as Kia" in each for each in result.warnings)


def test_a_source_that_changes_meanwhile_is_noticed() -> None:
    shop = Shop(some_cars(40))

    def sell(number: int) -> None:
        if number == 2:  # the first answer has shown it
            del shop.cars[0]

    shop.before = sell
    result = shop.run(FORM + ALL)
    (report,) = result.outputs["report"]
    (change,) = report["changes"]
    assert re.fullmatch(r"price = \d+, make = \w+", change["query"])
    assert "was shown, and not found again" in change["reason"]
    assert report["complete"] is False
    assert result.statistics.marks["found"].partial


# --- ends ---------------------------------------------------------------------------------------


def test_the_account_of_a_run_has_an_estimate_and_the_bound_before_the_crawl_ends() -> None:
    shop = Shop(some_cars(2000), limit=40)
    form = FORM.replace("LIMIT: 10\n  TOTAL: total", "LIMIT: 40; MORE: more")

    async def line() -> str:
        site = ScriptedSite(shop)
        async with (
            site.client(QUIET) as client,
            Engine(services={Client: client}, configuration=QUIET) as engine,
            engine.stream(loads(form + ALL), output="found") as rows,
        ):
            seen = 0
            async for _ in rows:
                seen += 1
                if seen == 1000:
                    break
            entry = next(each for each in rows.account().entries if each.name == "hidden")
            return entry.lines[0]

    shown = re.fullmatch(
        r"cars: ([\d,]+) tuples of about ([\d,]+) \(([\d,]+) to ([\d,]+)\), (\d+) % resolved, "
        r"(\d+) queries of about (\d+), at most ([\d,]+) by theorem 1",
        run(line()),
    )
    assert shown
    found, about, low, high, share, queries, expected, bound = (
        int(each.replace(",", "")) for each in shown.groups()
    )
    assert found <= low <= about <= high
    assert (0 < share < 100, queries < expected < bound) == (True, True)
    # 20 n / k for the range, 5 for the menu, and the first query; of the estimated n.
    assert bound == pytest.approx(20 * about / 40 + 6, abs=2)


def test_a_reader_that_leaves_early_stops_the_queries() -> None:
    shop = Shop(some_cars(2_000))
    plan = "PLAN p { OUTPUT: out BODY { crawl_hidden ('cars' : found, _) limit (found, 5 : out) } }"
    assert len(shop.run(FORM + plan, workers=2).outputs["out"]) == 5
    assert len(shop.queries) < 30


def test_a_failure_upstream_ends_the_crawl() -> None:
    shop = Shop(some_cars(2_000))
    shop.seconds = 1.0
    towns = Script({"town": "Rome", "nick": "a"}).wait(3.5).fail(OSError("gone"))
    with pytest.raises(AioflowError, match="gone"):
        shop.run(FORM + BY_TOWN, towns=towns, workers=1)
    assert 0 < len(shop.queries) < 10


def broken(at: int) -> Callable[[int], None]:
    def before(number: int) -> None:
        if number == at:
            raise OSError("the line broke")

    return before


def test_a_failing_query_fails_its_tuple() -> None:
    shop = Shop(some_cars())
    shop.before = broken(at=4)
    towns = [{"town": "Rome", "nick": "a"}, {"town": "Bonn", "nick": "b"}]
    result = shop.run(FORM + BY_TOWN, towns=towns, workers=1)
    (failed,) = result.outputs["failed"]
    assert (failed["town"], failed["nick"]) == ("Rome", "a")
    assert "the line broke" in failed["error"]
    assert [record["town"] for record in result.outputs["report"]] == ["Bonn"]
    assert result.statistics.marks["found"].partial


def test_without_errors_a_failing_query_ends_the_run() -> None:
    shop = Shop(some_cars())
    shop.before = broken(at=4)
    with pytest.raises(AioflowError, match="the line broke"):
        shop.run(FORM + ALL)


# --- crawls that go on --------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 7])
@pytest.mark.parametrize("at", [1, 2, 9, 25])
def test_a_run_that_failed_is_continued_from_stored_answers(workers: int, at: int) -> None:
    shop = Shop(some_cars())
    shop.before = broken(at)
    with pytest.raises(AioflowError, match="the line broke"):
        shop.run(FORM + ALL, workers=workers)
    stored = Counter(shop.answers)
    shop.before = lambda number: None
    result = shop.run(FORM + ALL, workers=workers)
    assert bag(result.outputs["found"]) == shown(shop.cars)
    (report,) = result.outputs["report"]
    assert report["complete"] is True
    # Repeated are at most those that were under way, which were not stored.
    assert (Counter(shop.answers) - Counter(set(shop.answers))).total() < workers
    assert stored.total() >= at - workers
    if stored.total() >= workers:
        assert any("goes on with" in note for note in result.statistics.notes)


def test_a_run_that_was_cancelled_is_continued() -> None:
    shop = Shop(some_cars())
    shop.seconds = 1.0

    enough = asyncio.Event()
    shop.before = lambda number: enough.set() if number == 25 else None

    async def main() -> Result:
        site = ScriptedSite(shop)
        async with (
            site.client(QUIET) as client,
            Engine(services={Client: client}, configuration=QUIET) as engine,
        ):
            task = asyncio.create_task(engine.run(loads(FORM + ALL)))
            await enough.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await engine.run(loads(FORM + ALL))

    result = run(main())
    assert bag(result.outputs["found"]) == shown(shop.cars)
    assert (Counter(shop.queries) - Counter(set(shop.queries))).total() <= 15


def test_a_changed_extraction_does_not_go_on_with_old_answers() -> None:
    shop = Shop(some_cars())
    shop.before = broken(at=10)
    wrong = FORM.replace('make: "make"', 'make: "maker"')
    with pytest.raises(AioflowError, match="the line broke"):
        shop.run(wrong + ALL, workers=1)
    shop.before = lambda number: None
    assert bag(shop.run(FORM + ALL).outputs["found"]) == shown(shop.cars)


def test_a_run_that_is_killed_is_continued_by_the_next(tmp_path: Path) -> None:
    with hidden_server(Shop(some_cars()).page) as server:
        (tmp_path / "cars.plan").write_text(FORM.replace("http://cars.example", server.url) + ALL)
        (tmp_path / "aioflow.toml").write_text(
            f'[http]\nallow = ["{server.host}"]\n[host."{server.host}"]\nrobots = false\nconcurrency = 4\n'
        )
        server.hold_after(12)
        with start("run", "cars.plan", cwd=tmp_path) as process:
            server.wait_until_held()
            process.popen.kill()
            process.end()
        answered = Counter(server.answered)
        server.release()
        done = aioflow("run", "cars.plan", "-O", "all.jsonl", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    found = [row["row"] for row in rows if row["output"] == "found"]
    assert Counter((row["number"], row["make"], row["price"]) for row in found) == shown(some_cars())
    assert "cars goes on with" in done.stderr
    repeated = answered & (Counter(server.answered) - answered)
    assert repeated.total() <= 4  # answers that the killed run had not stored yet


# --- quotas -------------------------------------------------------------------------------------


class Days:
    """Runs of a plan with a clock that the test sets."""

    def __init__(self, shop: Shop, program: Program, path: Path) -> None:
        self.shop, self.program, self.path = shop, program, path
        self.now = 10 * DAY + 3_600.0

    def run(self, workers: int = 15) -> Result:
        async def main() -> Result:
            answers = StoredAnswers(AnswerStore(self.path, clock=lambda: self.now), lambda: self.now)
            async with ScriptedSite(self.shop).client(QUIET) as client:
                services = {Client: client, StoredAnswers: answers}
                try:
                    async with Engine(workers, services=services, configuration=QUIET) as engine:
                        return await engine.run(self.program)
                finally:
                    await answers.close()

        return run(main())


@pytest.mark.parametrize("workers", [1, 15])
def test_a_quota_ends_the_crawl_of_a_day_and_the_next_goes_on(workers: int, tmp_path: Path) -> None:
    shop = Shop(some_cars())
    # Menus first: all workers have something to ask at once.
    form = FORM.replace("KEY: number", "QUOTA: 12; ALGORITHM: hybrid")
    days = Days(shop, loads(form + ALL), tmp_path / "hidden.sqlite")
    result = days.run(workers)
    (report,) = result.outputs["report"]
    assert report["complete"] is False
    assert (
        "the 12 queries of this day are used up; it goes on from 1970-01-12T00:00:00+00:00"
        in (report["statement"])
    )
    assert result.statistics.marks["found"].partial
    assert (len(shop.queries), len(shop.answers)) == (12, 12)
    days.run(workers)  # the same day
    assert len(shop.queries) == 12
    while not report["complete"]:
        days.now += DAY
        before = len(shop.queries)
        result = days.run(workers)
        (report,) = result.outputs["report"]
        assert 0 < len(shop.queries) - before <= 12
    assert len(shop.queries) == len(set(shop.queries))
    assert bag(result.outputs["found"]) == shown(shop.cars)
    assert days.now > 12 * DAY


@pytest.mark.parametrize("workers", [1, 15])
def test_queries_that_the_quota_refused_are_not_reported(workers: int, tmp_path: Path) -> None:
    shop = Shop(some_cars())
    form = FORM.replace("KEY: number", "QUOTA: 20; ALGORITHM: hybrid")
    result = Days(shop, loads(form + ALL), tmp_path / "hidden.sqlite").run(workers)
    (report,) = result.outputs["report"]
    assert (report["queries"], len(shop.queries)) == (20, 20)


def test_a_query_that_failed_counts_for_the_quota(tmp_path: Path) -> None:
    shop = Shop(some_cars())
    shop.before = broken(at=5)
    days = Days(shop, loads(FORM.replace("KEY: number", "QUOTA: 12") + ALL), tmp_path / "hidden.sqlite")
    with pytest.raises(AioflowError, match="the line broke"):
        days.run(workers=1)
    days.run(workers=1)
    assert len(shop.queries) == 12


# --- later crawls -------------------------------------------------------------------------------


def test_a_later_crawl_reports_what_has_changed() -> None:
    shop = Shop(some_cars())
    shop.run(FORM + ALL)
    sold = shop.cars[:5]
    cheaper = [(number, make, price - 50, town) for number, make, price, town in shop.cars[5:8]]
    shop.cars = [*cheaper, *shop.cars[8:], (900, "Kia", 555, "Bonn"), (901, "BMW", 2_999, "Rome")]
    (report,) = shop.run(FORM + ALL).outputs["report"]
    assert (report["added"], report["changed"], report["removed"]) == (2, 3, len(sold))
    (report,) = shop.run(FORM + ALL).outputs["report"]
    assert (report["added"], report["changed"], report["removed"]) == (0, 0, 0)


def test_a_later_crawl_without_key_knows_added_and_removed_tuples_only() -> None:
    shop = Shop(some_cars())
    form = FORM.replace("  KEY: number\n", "")
    shop.run(form + ALL)
    number, make, price, town = shop.cars[0]
    shop.cars[0] = (number, make, price + 1, town)
    (report,) = shop.run(form + ALL).outputs["report"]
    assert (report["added"], report["changed"], report["removed"]) == (1, None, 1)


@pytest.mark.parametrize("sign", ["TOTAL: total", "MORE: more", "QUOTA: 1000"])
def test_a_later_crawl_asks_fewer_queries(sign: str) -> None:
    shop = Shop(some_cars(2_000), limit=50)
    form = FORM.replace("LIMIT: 10", "LIMIT: 50").replace("TOTAL: total", sign)
    shop.run(form + ALL)
    first = len(shop.queries)
    result = shop.run(form + ALL)
    assert len(shop.queries) - first < 0.8 * first
    assert bag(result.outputs["found"]) == shown(shop.cars)


def stored(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as database:
        tables = ("crawl", "answer", "tuple")
        counts = {each: database.execute(f"SELECT count(*) FROM {each}").fetchone()[0] for each in tables}
    database.close()
    return counts


def test_answers_are_forgotten_when_their_crawl_has_ended(own_data: Path) -> None:
    shop = Shop(some_cars())
    shop.before = broken(at=10)
    with pytest.raises(AioflowError):
        shop.run(FORM + ALL, workers=1)
    assert stored(own_data) == {"crawl": 1, "answer": 9, "tuple": 0}
    shop.before = lambda number: None
    for _ in range(3):
        shop.run(FORM + ALL)
        assert stored(own_data) == {"crawl": 1, "answer": 0, "tuple": 300}


def test_a_store_that_cannot_be_used_is_an_error_that_names_it(own_data: Path) -> None:
    own_data.parent.mkdir(parents=True)
    own_data.write_bytes(b"no database at all, " * 100)
    with pytest.raises(AioflowError, match=r"hidden\.sqlite: file is not a database"):
        Shop(some_cars()).run(FORM + ALL)
