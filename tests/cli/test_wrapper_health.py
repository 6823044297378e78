"""What `aioflow run` makes of wrappers that find nothing, or less than they did, and what it keeps."""

import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Ended
from tests.cli.program import aioflow
from tests.cli.site import Site, served

PLAN = """\
WRAPPER houses (page)
{{
  GET: "{url}{{?page}}"
  EACH: "{each}"
  {more}
  address: "a.title"
}}

PLAN watch
{{
  INPUT: pages
  OUTPUT: found
  BODY
  {{
    wrapper ("houses", pages : found)
  }}
}}
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with served() as served_site:
        yield served_site


@pytest.fixture
def run(
    folder: Path, command: Callable[..., Ended], site: Site, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Run the plan with this EACH."""
    monkeypatch.setenv("AIOFLOW_HTTP_ALLOW", site.host)
    monkeypatch.setenv("AIOFLOW_HTTP_RATE", "0")

    def run(each: str, *options: str, more: str = "") -> Ended:
        text = PLAN.format(url=site.url("/houses"), each=each, more=more)
        (folder / "watch.plan").write_text(text)
        return command("run", "watch.plan", "-i", '{"page": 1}', *options)

    return run


def figures(folder: Path) -> list[tuple[str, int, int]]:
    with closing(sqlite3.connect(folder / "aioflow.db")) as connection:
        query = "select baseline, row_count, is_good from aioflow_health order by ended"
        return connection.execute(query).fetchall()


def test_a_first_run_that_finds_nothing_ends_with_3_and_says_what_to_try(
    run: Callable[..., Ended], site: Site
) -> None:
    ended = run("li.home")
    assert ended.code == 3
    assert ended.output == ""
    url = site.url("/houses?page=1")
    assert (
        f"warning: watch.plan:15:5: wrapper: houses found no item on its only page, {url}; " in ended.messages
    )
    assert f"try `aioflow wrapper test watch.plan houses --url '{url}'`" in ended.messages
    assert "note: nothing was found where something should be; --allow-empty" in ended.messages


def test_it_may_be_allowed(run: Callable[..., Ended]) -> None:
    ended = run("li.home", "--allow-empty")
    assert ended.code == 0
    assert "houses found no item" in ended.messages


def test_what_the_page_proves_to_be_empty_is_a_success(run: Callable[..., Ended]) -> None:
    ended = run("li.home", more='EMPTY: "#top"')
    assert (ended.code, ended.messages) == (0, "")


def test_figures_stand_beside_the_plan_and_later_runs_are_compared(
    run: Callable[..., Ended], folder: Path
) -> None:
    assert run("li.home").code == 3
    assert run("li.house").code == 0
    ended = run("li.home")
    assert ended.code == 0
    assert "houses gave no rows on 1 page, where its last run had about 3 a page" in ended.messages
    assert "output found may lack rows" in ended.messages
    ((first, *_), *_) = found = figures(folder)
    assert first.startswith("watch/houses/1 ")
    assert [rest for _, *rest in found] == [[0, 0], [3, 1], [0, 0]]


def test_wrapper_test_shows_what_empty_finds(
    folder: Path, run: Callable[..., Ended], command: Callable[..., Ended]
) -> None:
    run("li.home", more='EMPTY: ".none", "#top"')
    ended = command("wrapper", "test", "watch.plan", "houses", "-i", "page=1")
    assert ended.code == 0
    assert "no items: EMPTY '.none' or '#top' is in the page, so that there are none" in ended.output
    run("li.home", "--allow-empty", more='EMPTY: ".none"')
    ended = command("wrapper", "test", "watch.plan", "houses", "-i", "page=1")
    assert "no rows: nothing in the page matches EACH 'li.home', nor EMPTY '.none'" in ended.output


WRITING = PLAN.replace("pages : found)", 'pages : seen)\n    dbappend (seen, "houses" : found)')


@pytest.mark.parametrize(("moment", "kept"), [("writes applied", 1), ("transaction committed", 2)])
def test_a_run_that_is_killed_leaves_figures_only_with_all_that_it_wrote(
    folder: Path, site: Site, moment: str, kept: int
) -> None:
    (folder / "watch.plan").write_text(WRITING.format(url=site.url("/houses"), each="li.house", more=""))
    arguments = ("run", "watch.plan", "-i", '{"page": 1}')
    allowed = {"AIOFLOW_HTTP_ALLOW": site.host, "AIOFLOW_HTTP_RATE": "0"}
    assert aioflow(*arguments, cwd=folder, **allowed).returncode == 0
    killed = aioflow(*arguments, cwd=folder, **allowed, AIOFLOW_KILL_AT=moment)
    assert killed.returncode == -signal.SIGKILL
    assert len(figures(folder)) == kept
    with closing(sqlite3.connect(folder / "aioflow.db")) as connection:
        assert connection.execute("select count(*) from houses").fetchone() == (3 * kept,)
