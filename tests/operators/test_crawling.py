"""The building blocks of crawlers: seed, normalize_url, allowed, seen, near_duplicates."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aioflow import AioflowError, Engine, Result, Row, function, loads
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import Script, ScriptedSite, run_plan
from tests.operators import database_plans
from tests.operators.running import NO_MEMORY, bag, out, plan, run

SITE = "http://a.example"
LINKS: list[dict[str, Any]] = [
    {"url": url, "depth": depth}
    for depth, url in enumerate(
        ["HTTP://A.example", "http://a.example/#x", "ftp://a.example/", "http://b.example/?utm_x=1&q=2"]
    )
]
STATEMENTS = {
    "normalize_url": "normalize_url (rel : out)",
    "normalize_url as a step": "normalize_url (rel : out) {WORKERS: 2}",
    "allowed": 'allowed (rel : out, bad) {SKIP: "*x"} log (bad)',
    "seen": "seen (rel : out)",
    "near_duplicates": 'near_duplicates (rel : out) {TEXT: "url"}',
}
ALL = pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS.keys())


def mistakes(statement: str, header: str = "rel (url char, depth number)", outputs: str = "out") -> list[str]:
    text = plan(statement, [header] if header else [], outputs)
    return [str(each).splitlines()[0] for each in Engine().check(loads(text, "p.plan"))]


# --- what all have in common --------------------------------------------------------------------


@ALL
@pytest.mark.parametrize("mode", MODES)
def test_an_empty_input_gives_nothing(statement: str, mode: Mode) -> None:
    assert out(statement, rel=[], mode=mode) == []


@ALL
def test_a_dead_input_gives_nothing(statement: str) -> None:
    assert out(f"null (source, source, source : rel, live) {statement}", source=LINKS) == []


@ALL
def test_a_failing_input_fails_the_run(statement: str) -> None:
    with pytest.raises(AioflowError, match="gone"):
        out(statement, rel=Script(*LINKS).fail(OSError("gone")))


@ALL
def test_a_reader_that_has_enough_stops_the_source(statement: str) -> None:
    rows = [{"url": f"{SITE}/{number}", "depth": 0} for number in range(500)]
    source = Script(*rows)
    found = out(f"{statement.replace(': out', ': found')} limit (found, 3 : out)", rel=source)
    assert len(found) == 3
    assert source.closed


@ALL
def test_all_modes_give_the_same(statement: str) -> None:
    results = [bag(out(statement, rel=LINKS, mode=mode)) for mode in MODES]
    assert results[0] == results[1] == results[2]
    assert results[0]


@ALL
def test_without_memory_the_results_are_the_same(statement: str) -> None:
    rows = [{"url": f"{SITE}/page-{number % 150}", "depth": number} for number in range(400)]
    assert bag(out(statement, rel=rows, memory_bytes=NO_MEMORY)) == bag(out(statement, rel=rows))


@ALL
def test_a_missing_attribute_is_a_mistake(statement: str) -> None:
    (found, *_) = mistakes(statement, "rel (link char)")
    assert "'url'" in found


# --- normalize_url ------------------------------------------------------------------------------


def test_urls_get_their_form_and_others_are_dropped_and_counted() -> None:
    result = run("normalize_url (rel : out)", rel=LINKS)
    assert [row.row for row in result.outputs["out"]] == [
        ("http://a.example/", 0),
        ("http://a.example/", 1),
        ("http://b.example/?q=2", 3),
    ]
    assert result.account is not None
    assert result.account.counters["not a URL"] == 1


def test_options_of_the_form_and_another_attribute() -> None:
    rows: list[dict[str, Any]] = [
        {"n": 1, "link": "http://a.example/x/?b=1&a=2&ref=3&utm_x=4"},
        {"n": 2, "link": None},
    ]
    statement = 'normalize_url (rel : out) {URL: "link"; DROP: "ref"; SORT; SLASH: drop}'
    assert out(statement, rel=rows) == [(1, "http://a.example/x?a=2&b=1&utm_x=4")]
    kept = 'normalize_url (rel : out) {URL: "link"; DROP: none}'
    assert out(kept, rel=rows[:1]) == [(1, rows[0]["link"])]


def test_bad_options_of_the_form_are_mistakes() -> None:
    assert "every parameter" in mistakes('normalize_url (rel : out) {DROP: "*"}')[0]
    assert "is a number, not a text" in mistakes('normalize_url (rel : out) {URL: "depth"}')[0]
    assert "must be one of keep, drop" in mistakes("normalize_url (rel : out) {SLASH: no}")[0]


# --- allowed ------------------------------------------------------------------------------------


def test_what_is_refused_leaves_with_its_reason_and_is_counted() -> None:
    statement = """
    allowed (rel : out, bad) {DOMAINS: "a.example"; DEPTH: 3; SKIP: "*.pdf"; FOLLOW: "/x*, /y/"; LENGTH: 40}
    """
    urls = [
        *(
            f"{SITE}/x",
            "http://b.example/x",
            "mailto:a@a.example",
            f"{SITE}/x.pdf",
            f"{SITE}/z",
            f"{SITE}/z/y",
        ),
        *(f"{SITE}/x/a/a/a", f"{SITE}/x{'x' * 40}", None),
    ]
    rows = [{"url": url, "depth": 1} for url in urls] + [{"url": f"{SITE}/x", "depth": 4}]
    result = run(statement, outputs="out, bad", rel=rows)
    assert [row["url"] for row in result.outputs["out"]] == [f"{SITE}/x", f"{SITE}/z/y"]
    reasons = ["domain", "scheme", "skip", "follow", "path-loops", "length", "no URL", "depth"]
    assert [row["reason"] for row in result.outputs["bad"]] == reasons
    assert result.account is not None
    assert result.account.counters == {f"refused: {reason}": 1 for reason in reasons}
    (entry,) = result.account.entries
    assert entry.name == "crawl"
    assert entry.figures == {"left-out": dict.fromkeys(reasons, 1)}
    assert entry.lines[0].startswith("left out 8 links: ")


def test_the_second_output_may_be_left_out() -> None:
    assert out('allowed (rel : out) {DOMAINS: "b.example"}', rel=LINKS) == [LINKS_ROWS[3]]


LINKS_ROWS = [(row["url"], row["depth"]) for row in LINKS]


def test_a_reason_that_is_there_already_is_replaced() -> None:
    rows = [{"reason": "old", "url": "ftp://x/"}]
    statement = "allowed (rel : kept, out)"
    result = run(statement, outputs="out, kept", rel=rows)
    assert [dict(row) for row in result.outputs["out"]] == [{"reason": "scheme", "url": "ftp://x/"}]


def test_traps_can_be_switched_off() -> None:
    rows = [{"url": f"{SITE}/a/a/a"}, {"url": f"{SITE}/calendar/2099/01/"}]
    assert out("allowed (rel : out)", rel=rows) == []
    assert out("allowed (rel : out) {TRAPS: none}", rel=rows) == [(row["url"],) for row in rows]
    assert out('allowed (rel : out) {TRAPS: "calendar"}', rel=rows) == [(f"{SITE}/a/a/a",)]


CRAWL = """
PLAN main {{ INPUT: rel OUTPUT: out BODY {{ walk (rel : out) }} }}
PLAN walk
{{
  INPUT: rel  OUTPUT: out  MAX_DEPTH: 100 stop
  BODY
  {{
    {statement}
    apply (kept, "next_links" : found)  project (found, "n + 1 as n, link as url" : next)
    walk (next : rest)
    union (kept, rest : out) {{ALL}}
  }}
}}
"""


@function(returns="link char", pure=True)
def next_links(row: Mapping[str, Any]) -> Iterator[str]:
    """A page of a calendar leads to the next month, one of the circle to two others."""
    kind, _, rest = row["url"].removeprefix(f"{SITE}/").partition("/")
    if kind == "calendar":
        year, month = map(int, rest.split("/")[:2])
        yield f"{SITE}/calendar/{year + month // 12}/{month % 12 + 1:02}/"
    else:
        yield from (f"{SITE}/circle/{(int(rest) + step) % 5}" for step in (1, 2))


def crawl(statement: str, rows: list[dict[str, Any]], mode: Mode = "D+S+", **settings: Any) -> Result:
    return run_plan(CRAWL.format(statement=statement), rel=rows, mode=mode, **settings)


def test_the_memory_of_traps_is_that_of_the_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level of the recursion has calls of its own; the bound of a calendar holds for all of them."""
    monkeypatch.setattr("aioflow.crawl.traps.MOST_DATES", 10)
    rows = [{"n": 1, "url": f"{SITE}/calendar/2026/01/"}]
    result = crawl("allowed (rel : kept)", rows)
    assert len(result.outputs["out"]) == 10
    assert result.account is not None
    assert result.account.counters == {"refused: calendar": 1}


def test_calls_with_other_parameters_have_other_rules() -> None:
    text = """
    PLAN main
    {
      INPUT: rel  OUTPUT: a, b
      BODY { on (rel : a) {HOST: "a.example"} on (rel : b) {HOST: "b.example"} }
    }
    PLAN on { INPUT: rel OUTPUT: out PARAM: host BODY { allowed (rel : out) {DOMAINS: $host} } }
    """
    rows = [{"url": "http://a.example/"}, {"url": "http://b.example/"}]
    result = run_plan(text, rel=rows)
    assert [row["url"] for row in result.outputs["a"]] == ["http://a.example/"]
    assert [row["url"] for row in result.outputs["b"]] == ["http://b.example/"]


@pytest.mark.parametrize("mode", MODES)
def test_seen_holds_in_all_levels_of_a_recursion(mode: Mode) -> None:
    rows = [{"n": 1, "url": f"{SITE}/circle/0"}, {"n": 2, "url": f"{SITE}/circle/3"}]
    result = crawl("seen (rel : kept)", rows, mode)
    assert sorted(row["url"] for row in result.outputs["out"]) == [f"{SITE}/circle/{n}" for n in range(5)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("TRAPS: calender", "did you mean 'calendar'"),
        ('DOMAINS: "https://a.example/"', "without https:// and path"),
        ('FOLLOW: "/(/"', "bad pattern"),
        ("DEPTH: -1", "a whole number, 0 or more"),
        ("LENGTH: 0", "a whole number, 1 or more"),
    ],
)
def test_bad_rules_are_mistakes(options: str, message: str) -> None:
    (found,) = mistakes(f"allowed (rel : out) {{{options}}}")
    assert message in found


def test_a_depth_needs_its_attribute() -> None:
    (found,) = mistakes("allowed (rel : out) {DEPTH: 2}", "rel (url char)")
    assert "'depth'" in found


# --- seen ---------------------------------------------------------------------------------------


def test_each_url_passes_once_in_all_statements() -> None:
    rows = [{"url": "a", "n": 1}, {"url": "b", "n": 2}, {"url": "a", "n": 3}]
    assert out("seen (rel : out)", rel=rows) == [("a", 1), ("b", 2)]
    shared = "seen (rel : first) seen (first : out)"
    assert out(shared, rel=rows) == []
    apart = 'seen (rel : first) seen (first : out) {SET: "second"}'
    assert out(apart, rel=rows) == [("a", 1), ("b", 2)]


def test_other_keys_than_the_url() -> None:
    rows = [{"a": 1, "b": "x"}, {"a": 1.0, "b": "y"}, {"a": 1, "b": "x"}, {"a": None, "b": None}]
    assert out('seen (rel : out) {KEY: "a"}', rel=rows) == [(1, "x"), (None, None)]
    assert out('seen (rel : out) {KEY: "a, b"}', rel=rows) == [(1, "x"), (1, "y"), (None, None)]


def test_seen_on_disk_is_still_once() -> None:
    rows = [{"url": f"{SITE}/{number % 3000}"} for number in range(9000)]
    result = run("seen (rel : out)", rel=rows, memory_bytes=20_000, capacity_rows=256)
    assert len(result.outputs["out"]) == 3000


def test_options_of_seen_that_do_not_fit() -> None:
    assert "name one with REMEMBER" in mistakes("seen (rel : out) {FOR: 30d}")[0]
    assert "leave out SET" in mistakes('seen (rel : out) {SET: "x"; REMEMBER: "t"}')[0]


def remembering(url: str, *urls: str, options: str = "", **settings: Any) -> list[Row]:
    rows = [{"url": each} for each in urls]
    statement = f'seen (rel : out) {{REMEMBER: "visited"; {options}}}'
    return database_plans.out(url, statement, rel=rows, **settings)


def test_a_table_remembers_from_run_to_run(database_url: str) -> None:
    assert remembering(database_url, "a", "b", "a") == [("a",), ("b",)]
    assert remembering(database_url, "b", "c") == [("c",)]
    assert remembering(database_url, "a", "b", "c") == []
    assert [row[0] for row in database_plans.table(database_url, "visited")] == ["a", "b", "c"]


def test_a_run_that_fails_remembers_nothing(database_url: str) -> None:
    broken = Script({"url": "a"}).fail(OSError("gone"))
    with pytest.raises(AioflowError, match="gone"):
        database_plans.out(database_url, 'seen (rel : out) {REMEMBER: "visited"}', rel=broken)
    assert remembering(database_url, "a") == [("a",)]


def test_a_table_forgets_after_a_time(database_url: str) -> None:
    first = datetime(2026, 1, 1, tzinfo=UTC)

    def on_day(day: int, *urls: str) -> list[Row]:
        def clock() -> datetime:
            return first + timedelta(days=day)

        return remembering(database_url, *urls, options="FOR: 30d", clock=clock)

    assert on_day(0, "a") == [("a",)]
    assert on_day(20, "a", "b") == [("b",)]
    assert on_day(31, "a", "b") == [("a",)]
    assert on_day(60, "a", "b") == [("b",)]


def test_a_remembering_crawl_can_commit_as_it_streams(database_url: str) -> None:
    assert remembering(database_url, *"abcabc", head="COMMIT: batch") == [("a",), ("b",), ("c",)]
    assert remembering(database_url, *"abcd", head="COMMIT: batch") == [("d",)]


def test_keys_of_several_attributes_are_remembered(database_url: str) -> None:
    rel = [{"a": 1, "b": None}, {"a": 1, "b": "x"}]
    statement = 'seen (rel : out) {KEY: "a, b"; REMEMBER: "visited"}'
    assert database_plans.out(database_url, statement, rel=rel) == [(1, None), (1, "x")]
    assert database_plans.out(database_url, statement, rel=rel) == []


def test_two_statements_share_a_table(database_url: str) -> None:
    statements = """
    seen (rel : first) {REMEMBER: "visited"} seen (other : second) {REMEMBER: "visited"}
    union (first, second : out) {ALL}
    """
    rel, other = [{"url": "a"}, {"url": "b"}], [{"url": "b"}, {"url": "c"}]
    found = database_plans.out(database_url, statements, rel=rel, other=other)
    assert sorted(found) == [("a",), ("b",), ("c",)]
    assert database_plans.out(database_url, statements, rel=rel, other=other) == []


def test_a_table_with_something_else_is_an_error(database_url: str) -> None:
    database_plans.run(database_url, 'dbappend (rel, "visited")', rel=[{"url": "a"}])
    with pytest.raises(AioflowError, match="remembers no keys: it has url"):
        remembering(database_url, "a")


# --- seed ---------------------------------------------------------------------------------------


def seeded(
    statement: str, site: dict[str, Any] | Callable[..., Any] | None = None, **settings: Any
) -> list[Row]:
    settings["configuration"] = {"http": {"retries": 0, "robots": False}}
    result = run_plan(plan(statement, []), network=ScriptedSite(site or {}), **settings)
    return [record.row for record in result.outputs["out"]]


@pytest.mark.parametrize("mode", MODES)
def test_constants_are_seeds(mode: Mode) -> None:
    found = out('seed ("https://a.example/", "http://b.example" : out)', mode=mode)
    assert found == [("https://a.example/", 0), ("http://b.example", 0)]
    assert out('seed ("https://a.example/" : out)') == [("https://a.example/", 0)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("seed ( : out)", "seed needs a URL"),
        ('seed ("a.example" : out)', "did you mean 'https://a.example'?"),
        ('seed ("ftp://a.example/", "http://b.example/" : out)', "'ftp://a.example/' is no http(s) URL"),
        ("seed (7 : out)", "7 is no http(s) URL"),
        ('seed ("http://a.example/" : out) {DETAILS}', "only the entries of a SITEMAP"),
    ],
)
def test_bad_seeds_are_mistakes(statement: str, message: str) -> None:
    (found, *_) = mistakes(statement, "")
    assert message in found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_have_seeds(folder: Path) -> None:
    (folder / "u.txt").write_text("\ufeffhttp://a.example/\n\n# comment\r\n  http://b.example/ \n", "utf-8")
    (folder / "u.csv").write_text("n,url\n1,http://c.example/\n2,\n")
    (folder / "u.jsonl").write_text('{"link": "http://d.example/"}\n{"link": null}\n')
    assert out('seed (FILE="u.txt" : out)') == [("http://a.example/", 0), ("http://b.example/", 0)]
    result = run('seed (FILE="u.csv" : out)')
    assert [row.row for row in result.outputs["out"]] == [("http://c.example/", 0)]
    assert "no texts" in str(result.account)
    assert out('seed (FILE="u.jsonl" : out) {URL: "link"}') == [("http://d.example/", 0)]
    both = 'seed ("http://x.example/" : out) {FILE: "u.txt"}'
    assert len(out(both)) == 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.txt", None, "cannot read 'none.txt': No such file"),
        ("../u.txt", None, "leads out of the folder"),
        ("u.csv", b"a,b\n1,2\n", "has no attribute 'url', but a, b; name one with URL"),
        ("u.txt", b"http://a.example/\n\xff\xfe\n", "u.txt, line 2: no UTF-8 text"),
        ("u.doc", b"", "no format is known"),
    ],
)
def test_bad_files_are_errors(folder: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(AioflowError, match=message.replace("(", r"\(")):
        out(f'seed (FILE="{name}" : out)')


def test_a_table_has_seeds(database_url: str) -> None:
    database_plans.run(database_url, 'dbappend (rel, "t")', rel=[{"n": 1, "url": "http://a.example/"}])
    assert database_plans.out(database_url, 'seed (TABLE="t" : out)') == [("http://a.example/", 0)]
    with pytest.raises(AioflowError, match="the table 't' has no attribute 'link'"):
        database_plans.out(database_url, 'seed (TABLE="t" : out) {URL: "link"}')


def urlset(*pages: str) -> str:
    entries = "".join(f"<url><loc>{SITE}/{page}</loc></url>" for page in pages)
    return (
        f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    )


def index(*names: str) -> str:
    entries = "".join(f"<sitemap><loc>{SITE}/{name}</loc></sitemap>" for name in names)
    return f"<sitemapindex>{entries}</sitemapindex>"


def test_sitemaps_of_every_kind() -> None:
    site = {
        f"{SITE}/robots.txt": "User-agent: *\nSitemap: /index.xml\nsitemap:http://a.example/more.txt # x\n",
        f"{SITE}/index.xml": index("one.xml", "two.xml.gz", "one.xml", "index.xml"),
        f"{SITE}/one.xml": urlset("1", "2"),
        f"{SITE}/two.xml.gz": gzip.compress(urlset("3").encode()),
        f"{SITE}/more.txt": f"{SITE}/4\r\n{SITE}/5",
    }
    found = seeded(f'seed (SITEMAP="{SITE}/robots.txt" : out)', site)
    assert found == [(f"{SITE}/{number}", 0) for number in range(1, 6)]


def test_details_of_a_sitemap() -> None:
    text = f"""<urlset><url><loc>{SITE}/1</loc><lastmod>2026-01-02</lastmod><changefreq>Daily</changefreq>
    <priority>0.5</priority></url><url><loc>{SITE}/2</loc><lastmod>soon</lastmod><priority>7</priority></url>
    </urlset>"""
    found = seeded(f'seed (SITEMAP="{SITE}/s.xml" : out) {{DETAILS}}', {f"{SITE}/s.xml": text})
    assert found == [
        (f"{SITE}/1", 0, date(2026, 1, 2), "daily", 0.5),
        (f"{SITE}/2", 0, None, None, None),
    ]


def test_a_large_sitemap_is_read_as_it_arrives() -> None:
    text = urlset(*map(str, range(20_000)))
    found = seeded(f'seed (SITEMAP="{SITE}/s.xml" : all) limit (all, 5 : out)', {f"{SITE}/s.xml": text})
    assert len(found) == 5
    assert len(seeded(f'seed (SITEMAP="{SITE}/s.xml" : out)', {f"{SITE}/s.xml": text})) == 20_000


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({}, "s.xml: status 404"),
        ({"s.xml": "<html><body/></html>"}, "<html> is neither <urlset> nor <sitemapindex>"),
        ({"s.xml": urlset("1")[:-5]}, "it is cut off"),
        ({"s.xml": "<urlset><url/></urlset>"}, "without <loc>"),
        ({"s.xml": gzip.compress(urlset("1").encode())[:-4]}, "the gzip file is cut off"),
        ({"s.xml": index("t.xml"), "t.xml": "nothing"}, "t.xml cannot be read: line 1 is no URL"),
        (
            {
                "s.xml": index("a.xml"),
                "a.xml": index("b.xml"),
                "b.xml": index("c.xml"),
                "c.xml": index("d.xml"),
            },
            "c.xml stands 3 indexes deep",
        ),
    ],
)
def test_a_broken_sitemap_is_an_error_that_says_where(answers: dict[str, Any], message: str) -> None:
    site = {f"{SITE}/{name}": text for name, text in answers.items()}
    with pytest.raises(AioflowError, match=message):
        seeded(f'seed (SITEMAP="{SITE}/s.xml" : out)', site)


# --- near_duplicates ----------------------------------------------------------------------------

_WORDS = [f"word{number}" for number in range(3000)]


def text_of(seed: int, changes: int = 0) -> str:
    generator = random.Random(seed)
    words = generator.choices(_WORDS, k=400)
    for _ in range(changes):
        words[generator.randrange(len(words))] = "changed"
    return " ".join(words)


@pytest.mark.parametrize("memory", [NO_MEMORY, 1 << 20])
def test_nearly_equal_pages_are_marked(memory: int) -> None:
    texts = [text_of(1), text_of(2), text_of(1), text_of(1) + " end", "", None, "", text_of(2, 1)]
    rows = [{"url": f"u{number}", "body": text} for number, text in enumerate(texts)]
    found = out('near_duplicates (rel : out) {TEXT: "body"}', rel=rows, memory_bytes=memory)
    assert [row[2] for row in found] == [None, None, "u0", "u0", None, None, None, "u1"]
    assert [row[3] for row in found][:3] == [None, None, 0]
    assert all(0 <= row[3] <= 3 for row in found if row[2])


def test_the_distance_decides() -> None:
    rows = [{"url": f"u{number}", "text": text_of(1, changes)} for number, changes in enumerate((0, 12))]
    near = out("near_duplicates (rel : out) {DISTANCE: 7}", rel=rows)[1]
    assert near[2] == "u0"
    assert out(f"near_duplicates (rel : out) {{DISTANCE: {near[3] - 1}}}", rel=rows)[1][2] is None
    assert "from 0 to 7" in mistakes("near_duplicates (rel : out) {DISTANCE: 8}", "rel (url, text)")[0]
