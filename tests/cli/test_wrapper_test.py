"""`aioflow wrapper test` and `aioflow wrapper list`."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aioflow.cli.commands.wrapper.test import highlighted
from aioflow.cli.output.colour import Colour
from aioflow.wrappers.readers.reader import Found
from tests.cli.conftest import Ended
from tests.cli.program import aioflow
from tests.cli.site import Site, houses_page, served

Command = Callable[..., Ended]

WRAPPERS = """\
WRAPPER houses (page number optional, kind optional)
{
  GET: "http://SITE/houses{?page}"
  EACH: "li.house"
  PAGING: next "a.next @href"
  house-url: "a.title @href" url
  address: "a.title" required
  price: ".price" number
  beds: ".beds" number
  title: page "title"
}

WRAPPER house (house-url)
{
  GET: "{+house-url}"
  address: "h1" required
}

WRAPPER search (city)
{
  POST: "http://SITE/echo"
  JSON: city, a.b = 50
  SAFE
  READ: json
  answer: "$.body"
}
"""
PLAN = """\
USE "wrappers.plan"

PLAN all_houses
{
  OUTPUT: found
  BODY
  {
    wrapper ("houses" : found)
  }
}
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with served() as running:
        yield running


@pytest.fixture
def test(command: Command, site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`aioflow wrapper test` in a folder with wrappers and a plan that uses them."""
    (folder / "wrappers.plan").write_text(WRAPPERS.replace("SITE", site.host))
    (folder / "all_houses.plan").write_text(PLAN)
    (folder / "page.html").write_text(houses_page(1))
    monkeypatch.setenv("AIOFLOW_HTTP_ALLOW", site.host)
    site.requests.clear()
    return lambda *arguments: command("wrapper", "test", *arguments)


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


# --- what is shown ------------------------------------------------------------------------------


def test_tuples_and_their_origin_are_shown(test: Command, site: Site) -> None:
    ended = test("wrappers.plan", "houses")
    assert (ended.code, ended.messages) == (0, "")
    shown = lines(ended.output)
    assert shown[0] == f"GET {site.url('/houses')}"
    assert shown[1].startswith("200 OK ")
    assert "house-url address price beds title" in shown
    assert f"{site.url('/house/1')} 1 Oak Street 350000 Houses 1" in shown
    assert "3 rows" in shown
    place = shown.index("address = 1 Oak Street")
    assert "li" in shown[place + 1]
    assert "1 Oak Street" in shown[place + 2]
    assert f"next page: {site.url('/houses?page=2')}" in shown


def test_nulls_and_values_that_could_not_be_read_are_counted(test: Command) -> None:
    shown = lines(test("wrappers.plan", "houses").output)
    assert "address char 0 of 3 null" in shown
    assert "price number 1 of 3 null, 1 could not be read" in shown
    assert "beds number 3 of 3 null" in shown


def test_origins_are_shown_for_as_many_rows_as_asked_for(test: Command) -> None:
    shown = lines(test("wrappers.plan", "houses", "--rows", "1").output)
    assert "row 1" in shown
    assert "row 2" not in shown
    assert "… and 2 more rows: --rows 3 shows all" in shown
    assert "3 rows" in shown


def test_of_many_rows_the_first_are_shown_unless_more_are_asked_for(test: Command, folder: Path) -> None:
    (folder / "long.html").write_text('<li class="house"><a class="title">x</a></li>' * 40)
    arguments = ("houses", "--file", "long.html")
    shown = lines(test(*arguments).output)
    assert (shown.count("x"), "40 rows, the first 10 shown" in shown) == (10, True)
    assert [line for line in shown if line.startswith("row ")] == ["row 1", "row 2", "row 3"]
    assert "… and 37 more rows: --rows 40 shows all" in shown
    everything = lines(test(*arguments, "--rows", "40").output)
    assert (everything.count("x"), "40 rows" in everything, "row 40" in everything) == (40, True, True)
    assert not any("shows all" in line for line in everything)
    short = lines(test(*arguments, "--rows", "0").output)
    assert short.count("x") == 10
    place = short.index("40 rows, the first 10 shown")
    assert short[place + 1 : place + 3] == ["", "house-url char 40 of 40 null"]
    assert len(json.loads(test(*arguments, "--json").output)["rows"]) == 40


def test_places_of_a_field_with_many_values_are_shown_together(test: Command, folder: Path) -> None:
    (folder / "many.plan").write_text(
        'WRAPPER many ()\n{\n  GET: "http://x/"\n  addresses: "a.title" all\n'
        '  houses: each "li.house" {\n    price: ".price" number\n  }\n}\n'
    )
    (folder / "long.html").write_text('<a class="title">x</a>' * 5 + houses_page(1))
    shown = lines(test("many.plan", "many", "--file", "long.html").output)
    assert len([line for line in shown if line.startswith("addresses = ")]) == 1
    assert "… 8 in all" in shown
    assert "addresses relation 0 of 1 empty" in shown
    assert "houses.price 1 of 3 null, 1 could not be read" in shown


def test_all_gives_a_list_that_is_empty_where_count_is_nothing(test: Command, folder: Path) -> None:
    (folder / "many.plan").write_text(
        'WRAPPER many ()\n{\n  GET: "http://x/"\n  tags: "li" all\n'
        '  sizes: "li" all number\n  n: "li" count\n}\n'
    )
    (folder / "some.html").write_text("<li>One<li>2")
    (folder / "none.html").write_text("<p>nothing")
    found = json.loads(test("many.plan", "many", "--file", "some.html", "--json").output)
    assert found["rows"] == [{"tags": ["One", "2"], "sizes": [2], "n": 2}]
    assert [(each["nulls"], each["unreadable"]) for each in found["fields"]] == [(0, 0), (0, 1), (0, 0)]
    assert '["One", "2"]  [2]    2' in test("many.plan", "many", "--file", "some.html").output
    found = json.loads(test("many.plan", "many", "--file", "none.html", "--json").output)
    assert found["rows"] == [{"tags": [], "sizes": [], "n": 0}]
    assert [each["nulls"] for each in found["fields"]] == [1, 1, 1]
    assert "n number 1 of 1 empty" in lines(test("many.plan", "many", "--file", "none.html").output)


def test_values_are_marked_in_the_page_however_they_are_written() -> None:
    paint = Colour()
    paint.is_on = True
    for value, excerpt, marked in (
        ("1 Oak", "<b>1 Oak</b>", "1 Oak"),
        (350000, "<b>$350,000.00</b>", "350,000"),
        (2.5, "<b>2,5 km</b>", "2,5"),
        ("http://x/a/b?c=1&d=2", '<a href="/a/b?c=1&amp;d=2">', "/a/b?c=1&amp;d=2"),
        ("http://x/a/b", '<a href="b">', "b"),
    ):
        shown = highlighted(Found(0, "field", "path", excerpt, value), paint, 100)
        assert f"\x1b[1;32m{marked}\x1b[0m" in shown
    for other in (None, True, "elsewhere"):
        assert highlighted(Found(0, "field", "path", "<b>x</b>", other), paint, 100) == "<b>x</b>"


def test_the_report_as_json(test: Command, site: Site) -> None:
    told = json.loads(test("wrappers.plan", "houses", "--json").output)
    assert (told["method"], told["url"], told["status"]) == ("GET", site.url("/houses"), 200)
    assert told["rows"][0]["price"] == 350000
    assert told["next-page"] == site.url("/houses?page=2")
    assert {"field": "price", "type": "number", "values": 3, "nulls": 1, "unreadable": 1} in told["fields"]
    found = [each for each in told["found"] if each["row"] == 0 and each["field"] == "address"]
    assert (found[0]["value"], "1 Oak Street" in found[0]["excerpt"]) == ("1 Oak Street", True)


def test_a_page_without_items_says_so(test: Command, folder: Path) -> None:
    (folder / "empty.html").write_text("<p>nothing</p>")
    ended = test("houses", "--file", "empty.html")
    assert ended.code == 0
    assert "no rows: nothing in the page matches EACH 'li.house'" in ended.output


def test_a_required_field_that_is_missing_is_told(test: Command, folder: Path) -> None:
    (folder / "bad.html").write_text('<li class="house"><b>1</b></li>')
    ended = test("houses", "--file", "bad.html")
    assert ended.code == 1
    assert "has no 'address' (a.title), which is required" in ended.messages


# --- which page ---------------------------------------------------------------------------------


def test_inputs_make_the_request(test: Command, site: Site) -> None:
    assert lines(test("houses", "--input", "page=2").output)[0] == f"GET {site.url('/houses?page=2')}"
    shown = lines(test("houses", "-i", '[{"page": 1}, {"page": 3}]').output)
    assert [line for line in shown if line.startswith("GET")] == [
        f"GET {site.url('/houses?page=1')}",
        f"GET {site.url('/houses?page=3')}",
    ]


def test_other_methods_are_sent_as_the_wrapper_says(test: Command, site: Site) -> None:
    shown = lines(test("search", "-i", "city=Irvine").output)
    assert shown[0] == f"POST {site.url('/echo')}"
    assert any('"city"' in line and "Irvine" in line for line in shown)


def test_a_page_can_be_given_in_place_of_inputs(test: Command, site: Site) -> None:
    shown = lines(test("house", "--url", site.url("/houses")).output)
    assert shown[0] == f"GET {site.url('/houses')}"
    assert "address = Houses" in shown


def test_a_page_that_was_saved_needs_no_network(test: Command, site: Site) -> None:
    shown = lines(test("houses", "--file", "page.html", "--url", "http://homes.example/list").output)
    assert "http://homes.example/house/1 1 Oak Street 350000 Houses 1" in shown
    assert site.requests == []


def test_links_of_a_saved_page_are_relative_to_where_the_wrapper_would_find_it(
    test: Command, folder: Path, site: Site
) -> None:
    def links(name: str, *arguments: str) -> list[str | None]:
        ended = test(name, "--file", "page.html", *arguments, "--json")
        return [row["house-url"] for row in json.loads(ended.output)["rows"]]

    # It has no input that is needed.
    assert links("houses")[0] == site.url("/house/1")
    (folder / "more.plan").write_text(
        'WRAPPER places (city, kind)\n{\n  GET: "https://homes.example/{city}/list"\n  EACH: "li.house"\n'
        '  HEADERS: X-Key = "secret:NONE"\n  house-url: "a.title @href" replace "^/" "" url\n}\n'
        'WRAPPER anywhere (url)\nLIKE places\n{\n  GET: "{+url}"\n  HEADERS: X-Key = "none"\n}\n'
    )
    given = ("-i", "city=Irvine", "-i", "kind=x")
    assert links("places", *given)[0] == "https://homes.example/Irvine/house/1"
    # What is known without its inputs.
    assert links("places")[0] == "https://homes.example/house/1"
    assert links("anywhere", "-i", "url=http://a.example/b/c")[0] == "http://a.example/b/house/1"
    # Nothing is invented.
    assert links("anywhere") == [None, None, None]


@pytest.mark.parametrize(
    ("paging", "page", "arguments", "following"),
    [
        ('number "page"', "page.html", (), "http://SITE/houses?page=2"),
        ('number "page"', None, ("--url", "http://SITE/houses?page=2"), "http://SITE/houses?page=3"),
        ('offset "start" by 20', None, (), "http://SITE/houses?start=20"),
        ('cursor "h1" as "after"', None, (), "http://SITE/houses?after=Houses"),
        ('next "a.next @href"', "page.html", (), "http://SITE/houses?page=2"),
        ('number "page"', "empty.html", (), None),
        ('cursor "h1" as "after"', "empty.html", (), None),
    ],
)
def test_the_request_for_the_next_page_is_shown(
    test: Command,
    folder: Path,
    site: Site,
    paging: str,
    page: str | None,
    arguments: tuple[str, ...],
    following: str | None,
) -> None:
    (folder / "empty.html").write_text("<p>nothing</p>")
    (folder / "paged.plan").write_text(
        f'WRAPPER paged ()\n{{\n  GET: "{site.url("/houses")}"\n  EACH: "li.house"\n  PAGING: {paging}\n'
        '  address: "a.title"\n}\n'
    )
    saved = () if page is None else ("--file", page)
    ended = test("paged", *saved, *(each.replace("SITE", site.host) for each in arguments))
    shown = [line for line in lines(ended.output) if line.startswith("next page")]
    assert shown == ([f"next page: {following.replace('SITE', site.host)}"] if following else [])


def test_as_much_of_the_next_request_is_shown_as_is_known(test: Command, folder: Path) -> None:
    (folder / "paged.plan").write_text(
        'WRAPPER paged (url)\n{\n  GET: "{+url}"\n  EACH: "li.house"\n  PAGING: offset "start" by 20\n'
        '  address: "a.title"\n}\n'
    )
    assert "next page: ?start=20\n" in test("paged", "--file", "page.html").output


def test_a_status_that_means_no_result_is_no_error(test: Command, folder: Path, site: Site) -> None:
    (folder / "gone.plan").write_text(
        f'WRAPPER gone ()\n{{\n  GET: "{site.url("/none")}"\n  EMPTY: 404\n  title: "h1" required\n}}\n'
    )
    ended = test("gone.plan", "gone")
    assert (ended.code, ended.messages) == (0, "")
    assert "no rows: EMPTY says that 404 means no result" in ended.output


def test_an_error_status_and_a_refusal_end_with_1(
    test: Command, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = test("house", "-i", f"house-url={site.url('/none')}")
    assert (failed.code, failed.messages) == (1, f"error: {site.url('/none')}: 404 Not Found\n")
    monkeypatch.delenv("AIOFLOW_HTTP_ALLOW")
    ended = test("houses")
    assert ended.code == 1
    assert "allow" in ended.messages


# --- which wrapper ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [("houses",), ("HOUSES",), ("all_houses.plan", "houses"), ("houses", "--plan-file", "all_houses.plan")],
)
def test_a_wrapper_is_found_by_name_or_by_file(test: Command, target: tuple[str, ...]) -> None:
    assert test(*target, "--file", "page.html").code == 0


def test_a_name_in_two_files_is_ambiguous(test: Command, folder: Path) -> None:
    (folder / "copy.plan").write_text(WRAPPERS)
    ended = test("houses", "--file", "page.html")
    assert ended.code == 2
    assert ended.messages == (
        "error: wrapper 'houses' stands in copy.plan and in wrappers.plan: say which, as PLAN NAME\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hoses",), "no plan file of this folder defines a wrapper 'hoses'; did you mean 'houses'?"),
        (
            ("nothing-like-it",),
            "no plan file of this folder defines a wrapper 'nothing-like-it'; name the file",
        ),
        (("wrappers.plan", "hoses"), "unknown wrapper 'hoses'; did you mean 'houses'?"),
        (("wrapper.plan", "houses"), "there is no file wrapper.plan; did you mean 'wrappers.plan'?"),
        (("a", "b", "c"), "expected NAME or PLAN NAME"),
        (("house",), "wrapper house needs --input house-url=VALUE (or --url, or --file)"),
        (("houses", "-i", "pgae=1"), "--input: wrapper houses has no input 'pgae'; did you mean 'page'?"),
        (("houses", "-i", "x"), "--input x: expected JSON or NAME=VALUE"),
        (("houses", "-i", "{"), "--input {: not JSON"),
        (("houses", "-i", "[1]"), "--input, row 1: expected an object, found a number"),
        (("houses", "--file", "none.html"), "cannot read page: no such file or directory: 'none.html'"),
    ],
)
def test_bad_input_is_told(test: Command, arguments: tuple[str, ...], message: str) -> None:
    ended = test(*arguments)
    assert (ended.code, ended.output) == (2, "")
    assert ended.messages.startswith(f"error: {message}")


def test_mistakes_in_the_wrapper_are_told_with_their_place(test: Command, folder: Path) -> None:
    (folder / "bad.plan").write_text('WRAPPER bad ()\n{\n  GET: "http://x/"\n  price: ".price[" number\n}\n')
    ended = test("bad.plan", "bad", "--file", "page.html")
    assert (ended.code, ended.output) == (2, "")
    assert ended.messages.startswith("bad.plan:4:")


# --- wrapper list -------------------------------------------------------------------------------


def test_wrappers_of_a_file_are_listed(
    test: Command, command: Command, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Those that other tests register in Python would be listed as well.
    monkeypatch.setattr("aioflow.wrappers.python._wrappers", {})
    ended = command("wrapper", "list", "all_houses.plan")
    assert ended.code == 0
    assert ended.output.splitlines()[:3] == [
        "houses (page number optional, kind optional)",
        f"  GET http://{site.host}/houses{{?page}}",
        "  (house-url char, address char, price number, beds number, title char)",
    ]
    entries: list[dict[str, Any]] = [
        json.loads(line) for line in command("wrapper", "list", "wrappers.plan", "--json").output.splitlines()
    ]
    assert [entry["wrapper"] for entry in entries] == ["houses", "house", "search"]
    assert entries[1]["inputs"] == ["house-url"]


def test_without_a_plan_the_wrappers_of_the_folder_are_listed(
    test: Command, command: Command, folder: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.wrappers.python._wrappers", {})
    (folder / "like.plan").write_text('USE "wrappers.plan"\nWRAPPER other LIKE houses\n{\n  beds: none\n}\n')
    ended = command("wrapper", "list")
    assert (ended.code, ended.messages) == (0, "")
    names = [line for line in lines(ended.output) if line.endswith(".plan")]
    assert names == [
        "other (page number optional, kind optional) like.plan",
        "houses (page number optional, kind optional) wrappers.plan",
        "house (house-url) wrappers.plan",
        "search (city) wrappers.plan",
    ]
    (folder / "like.plan").write_text("WRAPPER other (")
    ended = command("wrapper", "list", "--json")
    files = [json.loads(line)["file"] for line in ended.output.splitlines()]
    assert (ended.code, files) == (2, ["wrappers.plan"] * 3)
    assert ended.messages.startswith("like.plan:1:")


def test_a_folder_without_wrappers_is_told(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioflow.wrappers.python._wrappers", {})
    message = "error: no plan file of this folder defines a wrapper; name a file, as PLAN\n"
    assert command("wrapper", "list") == Ended(2, "", message)


PYTHON = """\
from aioflow.wrappers import wrapper


@wrapper(inputs="city char", returns="price number")
async def prices(web, city):
    return {"price": 1}
"""


@pytest.mark.parametrize("target", [("prices",), ("wrappers.plan", "prices")])
def test_a_wrapper_in_python_is_told_as_that(test: Command, folder: Path, target: tuple[str, ...]) -> None:
    (folder / "in_python.py").write_text(PYTHON)
    ended = aioflow("wrapper", "test", *target, "--ops", "in_python", cwd=folder)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "error: wrapper 'prices' is written in Python (in_python.prices) and fetches its pages itself: "
        "run a plan that uses it instead\n"
    )


def test_it_runs_as_a_process_of_its_own(test: Command, folder: Path) -> None:
    ended = aioflow("wrapper", "test", "houses", "--file", "page.html", cwd=folder)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "3 rows" in ended.stdout
