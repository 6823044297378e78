"""`aioflow shell`: selectors tried on a page, and the wrapper that comes of it; typed or piped in."""

import io
import os
import pty
import select
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aioflow import loads
from aioflow.cli.commands.shell import Shell, completions, names_in
from aioflow.cli.output.colour import Colour
from aioflow.cli.pages import Browser, FetchedPage, reader_for, saved_page
from aioflow.errors import InputError
from aioflow.web.settings import HttpSettings, WebSettings
from aioflow.wrappers.readers.reader import PageHead
from tests.cli.conftest import Ended
from tests.cli.program import AIOFLOW, aioflow, environment, own_folders
from tests.cli.site import HOUSES, Site, houses_page, served
from tests.clocks import PATIENCE_SECONDS

Do = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with served() as running:
        yield running


@pytest.fixture
def shell(site: Site) -> Iterator[Shell]:
    browser = Browser(WebSettings(HttpSettings(allow=(site.host,))))
    yield Shell(browser, Colour(), width=100)
    browser.close()


@pytest.fixture
def do(shell: Shell, site: Site) -> Do:
    """Carries out a line on the first page of houses."""
    list(shell.do(f":open {site.url('/houses')}"))
    return lambda line: list(shell.do(line))


# --- selectors ----------------------------------------------------------------------------------


def test_a_selector_shows_how_many_and_what_it_matches(do: Do) -> None:
    assert do("li.house a.title") == [
        "3 matches",
        "   1  1 Oak Street",
        "   2  2 Elm Street",
        "   3  3 Ash Avenue",
    ]
    assert do("h1") == ["1 match", "   1  Houses"]
    assert do("table") == ["0 matches"]


def test_attributes_can_be_selected(do: Do, site: Site) -> None:
    assert do("a.title @href")[:2] == ["3 matches", "   1  /house/1"]


def test_many_matches_are_not_all_shown(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "long.html").write_text("<p>x</p>" * 50)
    list(shell.do(f":open {tmp_path / 'long.html'}"))
    shown = list(shell.do("p"))
    assert (shown[0], len(shown), shown[-1].strip()) == ("50 matches", 22, "… and 30 more")


def test_elements_without_text_are_matches_too(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "stars.html").write_text("<li><i></i><i></i></li><li><i>half</i></li><li></li>")
    list(shell.do(f":open {tmp_path / 'stars.html'}"))
    assert list(shell.do("i")) == ["3 matches (2 empty)", "   1  half"]
    list(shell.do(":each li"))
    assert next(shell.do("i")) == "3 matches (2 empty) in 2 of 3 items"


def test_with_an_iterating_element_a_selector_is_tried_in_each_item(do: Do) -> None:
    assert do(":each li.house") == ["3 items"]
    assert do("span.price")[0] == "3 matches in 3 of 3 items"
    assert do("a, span")[:2] == ["6 matches in 3 of 3 items", "   1  1 Oak Street | $350,000"]
    assert do("a.next") == ["0 matches in 0 of 3 items", "   1  null", "   2  null", "   3  null"]
    assert do("page a.next") == ["1 match", "   1  Next"]
    assert do(":each") == ["no iterating element"]
    assert do("a.next") == ["1 match", "   1  Next"]


def test_other_pages_are_read_by_their_own_readers(shell: Shell, site: Site) -> None:
    (opened,) = shell.do(f":open {site.url('/data.json')}")
    assert opened.endswith("read as json")
    assert next(shell.do("$.houses[*].address")) == "3 matches"
    assert list(shell.do(":reader text")) == ["text"]
    assert list(shell.do(r"\d Oak")) == ["1 match", "   1  1 Oak"]


def test_each_page_is_read_as_what_it_is_until_there_are_fields(do: Do, site: Site) -> None:
    do(":each li.house")
    (opened,) = do(f":open {site.url('/data.json')}")
    assert opened.endswith("read as json")
    assert do("$.houses[*].address")[0] == "3 matches"
    do('first: "$.houses[0].address"')
    (opened,) = do(f":open {site.url('/houses')}")
    assert opened.endswith("read as json")


@pytest.mark.parametrize(
    ("name", "text", "reader"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": 2}\n', "json lines"),
        ("a.ndjson", '{"a": 1}\n{"a": 2}\n', "json lines"),
        ("a.tsv", "a\tb,c\n1\t5\n2\t6\n", 'csv delimiter "\\t"'),
    ],
)
def test_files_of_lines_are_read_by_the_line(
    shell: Shell, tmp_path: Path, name: str, text: str, reader: str
) -> None:
    (tmp_path / name).write_text(text)
    (opened,) = shell.do(f":open {tmp_path / name}")
    assert opened.endswith(f"read as {reader}")
    assert list(shell.do("a")) == ["2 matches in 2 of 2 items", "   1  1", "   2  2"]
    list(shell.do("a: number"))
    assert f"READ: {reader}" in "".join(shell.do(":wrapper"))


def test_the_type_of_an_answer_tells_json_by_the_line() -> None:
    page = FetchedPage(
        PageHead("https://a.example/", headers={"Content-Type": "application/x-ndjson; charset=utf-8"}), b""
    )
    assert reader_for(page) == "json lines"


def test_a_reader_that_was_said_holds_for_the_pages_that_follow(do: Do, site: Site) -> None:
    do(":reader text")
    (opened,) = do(f":open {site.url('/data.json')}")
    assert opened.endswith("read as text")


# --- fields and the wrapper ---------------------------------------------------------------------


def test_a_name_and_a_colon_are_a_field_of_that_name(do: Do, site: Site) -> None:
    do(f":open {site.url('/data.json')}")
    do(":each $.houses[*]")
    assert do("address:")[:2] == ["address  3 rows, 0 null", "   1  1 Oak Street"]


def test_a_field_is_tried_as_in_a_wrapper(do: Do) -> None:
    do(":each li.house")
    assert do('price: ".price" number') == [
        "price number  3 rows, 1 null, 1 could not be read",
        "   1  350000",
        "   2  410000",
        "   3  null",
    ]


def test_fields_make_a_table_and_a_wrapper_that_can_be_pasted(do: Do, site: Site) -> None:
    do(":each li.house")
    do('house-url: "a.title @href" url')
    do('address: "a.title" required')
    do('price: ".price"')
    do('price: ".price" number')
    do('nonsense: ".x"')
    assert do(":drop nonsense") == ["fields: house-url, address, price"]
    table = do(":table 2")
    assert table[0].split() == ["house-url", "address", "price"]
    assert table[2].split() == [site.url("/house/1"), "1", "Oak", "Street", "350000"]
    assert (len(table), table[-1]) == (5, "3 rows")
    text = "\n".join(do(":wrapper houses"))
    assert text == (
        "WRAPPER houses ()\n{\n"
        f'  GET: "{site.url("/houses")}"\n'
        '  EACH: "li.house"\n'
        '  house-url: "a.title @href" url\n'
        '  address: "a.title" required\n'
        '  price: ".price" number\n}'
    )
    loads(f'{text}\nPLAN p {{ OUTPUT: out BODY {{ wrapper ("houses" : out) }} }}')


def test_a_field_with_a_mistake_is_not_kept(do: Do, shell: Shell) -> None:
    with pytest.raises(Exception, match="numbr"):
        do('price: ".price" numbr')
    with pytest.raises(Exception, match="no fields yet"):
        do(":table")
    assert shell.draft.fields == {}


# --- pages --------------------------------------------------------------------------------------


def test_links_are_numbered_and_followed(do: Do, shell: Shell, site: Site) -> None:
    assert do(":links next") == [f"   1  {site.url('/houses?page=2')}  Next"]
    (opened,) = do(":open 1")
    assert opened.startswith(f"200 OK  {site.url('/houses?page=2')}")
    assert do("title") == ["1 match", "   1  Houses 2"]
    assert len(do(":links")) == 4


def test_the_page_can_be_saved(do: Do, tmp_path: Path) -> None:
    (path,) = do(f":view {tmp_path / 'page.html'}")
    assert Path(path).read_text() == houses_page(1)
    (path,) = do(":view")
    assert Path(path).read_text() == houses_page(1)
    Path(path).unlink()


def test_the_headers_of_the_answer_are_shown(do: Do) -> None:
    assert "X-Test: one" in do(":headers")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (":table x", ":table takes a number of rows, not 'x'"),
        (":table -1", ":table takes a number of rows, not '-1'"),
        (":headers all", ":headers stands alone, without 'all'"),
        (":quit now", ":quit stands alone, without 'now'"),
        (":eech li", "unknown command :eech; did you mean ':each'?"),
        (":xyzzy", "unknown command :xyzzy; :help lists them"),
    ],
)
def test_a_command_that_makes_no_sense_is_told(do: Do, shell: Shell, line: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        do(line)
    assert str(caught.value) == message
    assert not shell.has_ended


def test_help_names_every_command(do: Do) -> None:
    text = "\n".join(do(":help"))
    for command in ("each", "reader", "table", "wrapper", "drop", "links", "open", "view", "headers", "quit"):
        assert f"\n:{command}" in text


# --- lines --------------------------------------------------------------------------------------


def test_lines_can_be_piped_in(site: Site, folder: Path) -> None:
    lines = 'h1\n# a comment\n\n:each li.house\nprice: ".price" number\n:quit\nh1\n'
    ended = aioflow(
        "shell", site.url("/houses"), cwd=folder, input=lines, **{"AIOFLOW_HTTP_ALLOW": site.host}
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[1:4] == ["1 match", "   1  Houses", "3 items"]
    assert ended.stdout.count("1 match") == 1


@pytest.fixture
def piped(command: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Ended]:
    """The command on a page, with lines for its standard input."""

    def run(page: str, lines: str) -> Ended:
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        return command("shell", page)

    return run


def test_a_mistake_is_told_with_its_place_and_the_rest_goes_on(
    folder: Path, piped: Callable[[str, str], Ended]
) -> None:
    (folder / "page.html").write_text(houses_page(1))
    ended = piped("page.html", 'title: "h1[" number\n:tabel\nh1\n')
    assert ended.code == 1
    assert "1 match" in ended.output
    messages = ended.messages.splitlines()
    assert messages[0].startswith("error: ")
    assert messages[1].strip() == 'title: "h1[" number'
    assert messages[2].strip() == "^"
    assert messages[3] == "error: unknown command :tabel; did you mean ':table'?"


def test_a_page_that_is_not_there_ends_the_command(site: Site, piped: Callable[[str, str], Ended]) -> None:
    ended = piped("none.html", "h1\n")
    assert (ended.code, ended.output) == (1, "")
    assert ended.messages == "error: 'none.html' is neither an http(s) address nor a file\n"
    refused = piped(site.url("/houses"), "h1\n")
    assert (refused.code, refused.output) == (1, "")
    assert "allow" in refused.messages


def test_at_a_terminal_there_are_colours_history_and_completion(folder: Path) -> None:
    (folder / "page.html").write_text(houses_page(1))
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*AIOFLOW, "shell", "page.html"],
        cwd=folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment(TERM="xterm-256color", **own_folders(folder)),
    )
    os.close(terminal)
    try:
        _until(controller, b"aioflow> ")
        os.write(controller, b"li.hou\t a.title\n")
        shown = _until(controller, b"3 Ash Avenue")
        assert b"\x1b[1m3 matches\x1b[0m" in shown
        os.write(controller, b":quit\n")
        assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(controller)
    assert "li.house a.title\n" in (folder / ".data" / "aioflow" / "shell_history").read_text()


def _until(descriptor: int, wanted: bytes) -> bytes:
    """What a terminal shows up to some text."""
    shown = b""
    while wanted not in shown:
        ready, _, _ = select.select([descriptor], [], [], PATIENCE_SECONDS)
        assert ready, shown
        shown += os.read(descriptor, 4096)
    return shown


def test_names_of_the_page_are_completed(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(houses_page(1))
    names = names_in(saved_page(str(tmp_path / "page.html")))
    assert list(completions("li.h", names)) == ["li.house"]
    assert list(completions("#", names)) == ["#top"]
    assert list(completions("@h", names)) == ["@href"]
    assert list(completions("spa", names)) == ["span"]
    assert list(completions(":wr", names)) == [":wrapper "]
    assert len(HOUSES) == 3


def test_names_without_quotes_are_completed_too(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<ul class=schools ID = top data-city='x'><li CLASS='a schism'></ul>")
    names = names_in(saved_page(str(tmp_path / "page.html")))
    assert list(completions("ul.sch", names)) == ["ul.schism", "ul.schools"]
    assert list(completions("#", names)) == ["#top"]
    assert list(completions("da", names, in_brackets=True)) == ["data-city"]
    assert list(completions("da", names)) == []
