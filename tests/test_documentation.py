"""The documentation: every example runs as written, references are complete, links lead somewhere."""

import dataclasses
import pkgutil
import re
import subprocess
import sys
from contextlib import redirect_stdout
from inspect import signature
from io import StringIO
from pathlib import Path
from typing import Any, get_overloads

import pytest
from msgspec.structs import fields

import aioflow
import aioflow.testing
from aioflow import Record, function
from aioflow.authoring.operator import load_operators, registry
from aioflow.cli.app import app
from aioflow.cli.commands.ops import by_family
from aioflow.compiler.resolution import UNIVERSAL_OPTIONS
from aioflow.runtime.statistics import ChannelStatistics, RunStatistics, StepStatistics
from aioflow.service.settings import ServiceSettings
from aioflow.service.task import TaskDefinition
from aioflow.testing import run_plan
from aioflow.wrappers import Web, wrapper
from tests.clocks import PATIENCE_SECONDS
from tests.documentation import ROOT, Page, blocks_of, mistakes_in
from tests.test_imports import AUTHORS_MODULES

# One after the other: pages start the demonstration's site, which has a port of its own.
pytestmark = pytest.mark.xdist_group("documentation")

DOCS = ROOT / "docs"
# Made from the operators, and written with the expressions: their examples are fragments of plans.
FRAGMENTS = (DOCS / "operators.md", DOCS / "expressions.md")
MARKDOWN = sorted(
    [
        *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")),
        *DOCS.rglob("*.md"),
        *(ROOT / "plans").rglob("*.md"),
    ]
)
PAGES = [page for page in MARKDOWN if page not in FRAGMENTS and blocks_of(page.read_text(encoding="utf-8"))]
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- examples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_blocks_of_a_page_do_what_the_page_says(path: Path, tmp_path: Path) -> None:
    differences = list(Page(path, tmp_path).differences())
    assert not differences, "\n\n".join(
        f"{name_of(path)}:{difference.block.line}: {difference.message}" for difference in differences
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_example_prints_what_its_docstring_says(path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_SECONDS
    )
    promised = re.search(r'Prints:\n(.*?)"""', path.read_text(encoding="utf-8"), re.DOTALL)
    assert promised is not None
    assert ended.stdout.split("\n") == [line.strip() for line in promised[1].split("\n")], ended.stderr


async def _nothing(web: Web) -> None:
    """A wrapper that finds nothing."""


# A form and a grammar that examples name.
ITEMS = """
WRAPPER find-houses (city optional, min-price optional, max-price optional)
{
  GET: "https://homes.example/{?city,min-price,max-price}"
  price: ".price" number
}
HIDDEN houses { QUERY: find-houses; price: range }
GRAMMAR dates
{
  rule date : record is month=[0-9]+ '/' day=[0-9]+ end
  rule all is (.+ | list += date())+ end
}
"""


def test_examples_of_operators_have_no_mistakes() -> None:
    known = ("geocode", "links")
    for name in known:
        function(name=name)(dict)
    for name in ("search", "detail"):
        wrapper(name=name, returns="title char")(_nothing)
    wrong = {
        f"{operator.name}: {example}": mistakes_in(example, ITEMS)
        for operator in library()
        for example in operator.examples
    }
    assert {example: found for example, found in wrong.items() if found} == {}


# --- plans that come with the package -----------------------------------------------------------


@function(returns="title char, next char", pure=True)
async def documented_page(row: Record) -> list[dict[str, Any]]:
    """Three pages with one title each, which link to each other in a circle."""
    number = int(row["url"])
    return [{"title": f"title {number}", "next": str((number + 1) % 3)}]


HOUSES = [
    {"address": "a", "city": "x", "price": 600_000, "beds": 3},
    {"address": "b", "city": "x", "price": 400_000, "beds": 3},
    {"address": "c", "city": "y", "price": 300_000, "beds": 2},
    {"address": "d", "city": "y", "price": 200_000, "beds": 1},
]
FOUND = [{"url": "/1", "title": "one"}, {"url": "/2", "title": "two"}, {"url": "/2", "title": "again"}]
# For each plan its parameters, its inputs, and what comes out in which attribute.
RUNS: dict[str, list[tuple[dict[str, Any], dict[str, Any], dict[str, list[Any]]]]] = {
    "examples/affordable.plan": [({"most": 2}, {"houses": HOUSES}, {"ranked.address": ["c", "b"]})],
    "examples/follow_next.plan": [
        (
            {"fetch": "documented_page"},
            {"pages": [{"url": "0"}]},
            {"found.title": ["title 0", "title 1", "title 2"]},
        )
    ],
    "examples/news.plan": [
        (
            {},
            {"found": FOUND, "seen": [{"url": "/1"}]},
            {"fresh.title": ["two"], "summary.text": ["1 new pages"]},
        ),
        (
            {},
            {"found": FOUND, "seen": [{"url": "/1"}, {"url": "/2"}]},
            {"fresh.title": [], "summary.text": []},
        ),
    ],
}


# Plans that are run by a test with another name.
RUN_BY_OTHERS = {
    "examples/continuous_query.plan": "test_paper_xml.py",
    "examples/cwc.plan": "test_cwc.py",
    "examples/stock_quotes.plan": "test_paper_tasks.py",
    "examples/xml_join.plan": "test_paper_xml.py",
    "examples/xml_nesting.plan": "test_paper_xml.py",
    "september/september.plan": "test_paper_tasks.py",
    "september/september_cleaner.plan": "test_paper_tasks.py",
}


def test_every_plan_of_the_library_is_run() -> None:
    library = ROOT / "plans"
    found = {str(path.relative_to(library)) for path in library.rglob("*.plan")}
    for name, test in RUN_BY_OTHERS.items():
        assert Path(name).stem in (ROOT / "tests" / "plans" / test).read_text(encoding="utf-8")
    tested = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / "plans").glob("test_*.py")}
    elsewhere = {name for name in found if Path(name).parts[0].removesuffix(".plan") in tested}
    assert found - elsewhere == RUNS.keys() | RUN_BY_OTHERS.keys()


@pytest.mark.parametrize("name", RUNS)
def test_a_plan_of_the_library_gives_what_it_says(name: str) -> None:
    program = aioflow.load(ROOT / "plans" / name)
    for parameters, inputs, expected in RUNS[name]:
        result = run_plan(program, parameters=parameters, **inputs)
        found = {}
        for place in expected:
            output, _, attribute = place.partition(".")
            found[place] = [row[attribute] for row in result.outputs[output]]
        assert found == expected


# --- references ---------------------------------------------------------------------------------


def library() -> list[Any]:
    """The operators that come with aioflow; other tests may have registered theirs."""
    load_operators()
    return [each for each in registry if each.function.__module__.startswith("aioflow.operators.")]


def test_operator_reference_is_up_to_date() -> None:
    written = subprocess.run(
        [sys.executable, "-m", "aioflow", "ops", "--markdown"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_SECONDS,
    )
    assert (DOCS / "operators.md").read_text(encoding="utf-8") == written.stdout, "run `make docs`"


@pytest.mark.parametrize(
    ("name", "heading"), [("operators.md", "# Operators"), ("language.md", "## Clauses")]
)
def test_page_names_every_clause_that_all_statements_take(name: str, heading: str) -> None:
    section = (DOCS / name).read_text(encoding="utf-8").split(f"{heading}\n")[1].split("\n## ")[0]
    named = re.findall(r"^\| `([A-Z]+)\b", section, re.MULTILINE)
    assert set(named) == {option.upper() for option in UNIVERSAL_OPTIONS}


def test_readme_lists_the_operators_by_family() -> None:
    names = {operator.name for operator in library()}
    families = {
        family: [operator.name for operator in members if operator.name in names]
        for family, members in by_family().items()
    }
    expected = [f"| {family} | {', '.join(members)} |" for family, members in families.items() if members]
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Operators\n")[1].split("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("| ")][1:] == expected


def test_every_public_name_is_documented() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    documented = re.findall(r"^### `([\w.]+)`$", page, re.MULTILINE)
    public = [*aioflow.__all__, *(f"testing.{name}" for name in aioflow.testing.__all__)]
    assert sorted(documented) == sorted(public)


@pytest.mark.parametrize(
    ("name", "described"),
    [
        ("Engine", aioflow.Engine),
        ("operator", get_overloads(aioflow.operator)[1]),
        ("function", get_overloads(aioflow.function)[1]),
        ("aggregate_function", get_overloads(aioflow.aggregate_function)[1]),
    ],
)
def test_every_argument_is_documented(name: str, described: Any) -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    table = page.split(f"\n### `{name}`\n")[1].split("|---|---|---|\n")[1].split("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == sorted(signature(described).parameters)


def test_everything_that_an_operator_may_ask_of_its_context_is_documented() -> None:
    section = _section_of_python_page("### `Context`")
    public = [name for name in vars(aioflow.Context) if not name.startswith("_")]
    assert sorted(set(re.findall(r"`[^`]*\bcontext\.(\w+)", section))) == sorted(public)


@pytest.mark.parametrize("kind", [RunStatistics, StepStatistics, ChannelStatistics])
def test_every_field_of_the_statistics_is_documented(kind: type[Any]) -> None:
    section = _section_of_python_page("## Statistics and events")
    listed = re.search(rf"^- `{kind.__name__}`[^:]*:(.*?)(?=^- |\n\n)", section, re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == [field.name for field in fields(kind)]


def _section_of_python_page(heading: str) -> str:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    return re.split(r"^##", page.split(f"{heading}\n")[1], flags=re.MULTILINE)[0]


def test_every_setting_of_a_task_is_documented() -> None:
    page = (DOCS / "service.md").read_text(encoding="utf-8")
    table = page.split("\n## The settings of a task\n")[1].split("|---|---|---|\n")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [each.name for each in fields(TaskDefinition)]


def test_every_setting_of_the_service_is_documented() -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    table = page.split("\n## service\n")[1].split("|---|---|---|\n")[1].split("\n\n")[0]
    keys = [each.name for each in dataclasses.fields(ServiceSettings)]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == keys


def test_every_command_and_option_is_documented() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    missing = []
    for command, options in commands().items():
        section = re.search(rf"^## {command}$(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
        if section is None:
            missing.append(command)
            continue
        shown = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", section[1]))
        missing += [f"{command} {option}" for option in options if option not in shown]
    assert missing == []


def commands() -> dict[str, set[str]]:
    """The commands with their options, as the command line itself shows them."""
    found = {}
    for name in _commands_in(_help()):
        shown = _help(name)
        # The options of a command's own commands stand in its section as well.
        pages = [shown, *(_help(name, inner) for inner in _commands_in(shown))]
        options = {option for page in pages for option in re.findall(r"(?<=[ ,])--?[A-Za-z][\w-]*", page)}
        found[name] = options - {"-h", "--help"}
    return found


def _commands_in(page: str) -> list[str]:
    _, _, listed = page.partition("Commands:")
    return re.findall(r"^  (\w+)  ", listed, re.MULTILINE)


def _help(*command: str) -> str:
    with redirect_stdout(StringIO()) as page, pytest.raises(SystemExit):
        app([*command, "--help"], prog_name="aioflow")
    # Only the first column: what stands behind it may mention options of other commands.
    return re.sub(r"^( {2}\S.*?) {2,}\S.*$", r"\1  ", page.getvalue(), flags=re.MULTILINE)


def test_architecture_page_names_every_module_of_the_top_and_every_package() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## How a plan becomes a run")[0]
    tree = page.split("\n## The tree\n")[1]
    listed = [
        name
        for line in tree.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([\w/]+)`", line.split("|")[1])
    ]
    package = ROOT / "aioflow"
    modules = {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
    inside = {path.parent.relative_to(package) for path in package.rglob("*/__init__.py")}
    packages = {name for name in inside if not (package / name.parts[0]).is_symlink()}
    # Folders further down may be listed too.
    needed = modules | {f"{name}/" for name in packages if len(name.parts) <= 2}
    assert needed - set(listed) == set()
    assert set(listed) - modules - {f"{name}/" for name in packages} == set()


def test_modules_that_the_architecture_page_names_are_there() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", page))
    missing = {path for path in named if not ((ROOT / "aioflow" / path).exists() or (ROOT / path).exists())}
    assert missing == set()


def test_contributing_page_names_the_modules_that_operators_may_import() -> None:
    section = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Adding an operator family\n")[1]
    )
    listed = re.search(r"modules for authors\s+\((.*?)\)", section, re.DOTALL)
    assert listed is not None
    assert tuple(re.findall(r"`([\w.]+)`", listed[1])) == AUTHORS_MODULES


DOTTED_NAME = re.compile(r"(?<![\w./-])aioflow(?:\.\w+)+(?![\w/])")
# Names that are no Python: files, groups of entry points, loggers, and attributes of spans.
FILES = {"aioflow.db", "aioflow.toml"}
ENTRY_POINT_GROUPS = {
    f"aioflow.{name}" for name in ("channels", "databases", "formats", "items", "readers", "settings")
}
LOGGERS = {"aioflow.log", "aioflow.web.requests"}
SPAN_ATTRIBUTES = {
    f"aioflow.{name}" for name in ("operator", "calls", "rows_in", "rows_out", "run.id", "plan")
}
NO_PYTHON = FILES | ENTRY_POINT_GROUPS | LOGGERS | SPAN_ATTRIBUTES


@pytest.mark.parametrize("page", [page for page in MARKDOWN if page.stem != "CHANGELOG"], ids=name_of)
def test_python_names_of_a_page_can_be_imported(page: Path) -> None:
    named = set(DOTTED_NAME.findall(page.read_text(encoding="utf-8")))
    wrong = []
    for name in sorted(named - NO_PYTHON):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            wrong.append(name)
    assert wrong == []


# --- links --------------------------------------------------------------------------------------


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []
