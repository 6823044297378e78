"""XML pages: XPath, namespaces, items that leave early, flat memory, and everything a page could try."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.relation import Document
from aioflow.web.errors import ExtractionError
from aioflow.wrappers.readers.reader import PageHead
from aioflow.wrappers.readers.xml.path import compile_xpath
from aioflow.wrappers.readers.xml.reader import XmlReader
from tests.wrappers.feeding import FEEDS, URL, Feed, embedded, field, mistake

XML = XmlReader()
AWARDS = (FEEDS / "awards.xml").read_bytes()
ATOM = {"a": "http://www.w3.org/2005/Atom", "nsf": "https://www.nsf.gov/awards"}
RSS = """<?xml version="1.0"?>
<rss><channel><title>News</title>
<item id="1"><title>One</title><link>/1</link><tag>a</tag><tag>b</tag></item>
<item id="2"><title> Two
 words </title><link>/2</link></item>
</channel></rss>"""


def read(page: str, *fields: Any, **how: Any) -> list[Any]:
    return Feed(XML, *fields, **how).read(page)


# --- a feed ---------------------------------------------------------------------------------------


def test_a_feed_gives_its_entries_and_its_next_page() -> None:
    feed = Feed(
        XML,
        field("title", "a:title"),
        field("link", "a:link[@rel='alternate']/@href", "url"),
        field("band", "nsf:award/@band"),
        field("state", ".//nsf:place/@state", "lower"),
        field("people", ".//nsf:person", ("join", " & ")),
        field("feed", "a:title", scope="page"),
        each="//a:entry",
        namespace=ATOM,
        next_page=field("next", "a:link[@rel='next']/@href", "url"),
    )
    rows = feed.read(AWARDS)
    assert len(rows) == 46
    assert rows[0] == (
        "Continuing grant to University of Notre Dame",
        "https://feeds.example/awards/1",
        "<=150K",
        "in",
        "P04123 & M00092",
        "NSF awards numbered in 2017",
    )
    assert feed.next_page == "https://feeds.example/2017?page=2"


def test_names_without_prefix_mean_any_namespace_when_asked_for() -> None:
    fields = ["id", field("state", "award/place/@state"), field("first", "award/person[1]")]
    assert read(AWARDS.decode("latin-1"), *fields, each="/feed/entry") == []
    rows = read(AWARDS.decode("latin-1"), *fields, each="/feed/entry", strip_namespaces=True)
    assert len(rows) == 46
    assert rows[0] == ("urn:award:1", "IN", "P04123")


def test_items_leave_while_the_rest_is_on_its_way() -> None:
    feed = Feed(XML, field("id", "@id"), "title", each="//item")
    assert feed.extractor.is_incremental
    start = " " * 1100  # the charset of a page may be said in its first kilobyte
    pieces = [f"<rss>{start}<item id='1'><title>One</title></item><it", "em id='2'/><item id='3'", "/></rss>"]
    assert feed.arriving(*pieces) == [[("1", "One")], [("2", None)], [("3", None)], []]


@pytest.mark.parametrize(
    ("each", "fields", "is_incremental"),
    [
        ("//item", ["title"], True),
        ("/rss/channel/item", ["@id", ".//b", "a/@href", "count(tag)", "tag[2]"], True),
        ("channel/item", ["."], True),
        ("//item[@id]", ["title"], False),
        ("//item", ["../title"], False),
        ("//item", ["ancestor::rss"], False),
        ("//item", ["tag[. = /rss/x]"], False),
        ("//item", ["preceding-sibling::item"], False),
        ("//channel//item", ["title"], False),
        ("//*", ["title"], False),
        (None, ["title"], False),
    ],
)
def test_pages_are_read_in_pieces_when_no_path_leads_out_of_its_item(
    each: str | None, fields: list[str], is_incremental: bool
) -> None:
    feed = Feed(XML, *(field(f"f{place}", path) for place, path in enumerate(fields)), each=each)
    assert feed.extractor.is_incremental == is_incremental


@pytest.mark.parametrize(
    "each", ["//item", "/rss/channel/item", "channel/item", "//channel/item", "//item[1=1]"]
)
def test_simple_paths_find_the_same_in_pieces_as_others_do_whole(each: str) -> None:
    fields = [field("id", "@id"), "title", field("tags", "tag", "count"), field("link", "", "url")]
    assert read(RSS, *fields, each=each) == [
        ("1", "One", 2, f"{URL[:-5]}/1"),
        ("2", "Two words", 0, f"{URL[:-5]}/2"),
    ]


def test_items_at_other_places_are_no_items() -> None:
    page = "<r><x><item n='no'/></x><item n='yes'/><item n='too'><item n='inner'/></item></r>"
    assert read(page, field("n", "@n"), each="/r/item") == [("yes",), ("too",)]
    assert read(page, field("n", "@n"), each="item") == [("yes",), ("too",)]


def test_items_inside_of_items_come_after_them() -> None:
    page = "<r><i n='1'><t>a</t><i n='2'><t>b</t></i><i n='3'/></i><i n='4'/></r>"
    whole = read(page, field("n", "@n"), "t", each="//i[1=1]")
    assert read(page, field("n", "@n"), "t", each="//i") == whole
    assert whole == [("1", "a"), ("2", "b"), ("3", None), ("4", None)]


# --- values ---------------------------------------------------------------------------------------


def test_text_is_collapsed_unless_it_is_raw() -> None:
    page = "<r><a> x <b>y\n</b> z</a><c/><d><![CDATA[<p> & ]]></d></r>"
    fields = ["a", field("raw", "a", "raw"), "c", "d", field("own", "a/text()"), "missing"]
    assert read(page, *fields) == [("x y z", " x y\n z", None, "<p> &", "x", None)]


def test_elements_are_documents_when_asked_for() -> None:
    assert read("<r><a k='1'>x<b/></a>tail</r>", field("a", "", "document")) == [
        (Document('<a k="1">x<b/></a>', "xml"),)
    ]


def test_values_of_xpath_are_texts_that_words_convert() -> None:
    page = "<r><n>1.234,5</n><n>7</n></r>"
    assert read(
        page,
        field("count", "count(n)"),
        field("number", "count(n)", "number"),
        field("half", "1 div 2"),
        field("nothing", "number(n)"),
        field("has", "boolean(n)"),
        field("german", "n", ("number", "de")),
        field("last", "n", "last"),
        field("joined", "concat(n, '/', n[2])"),
    ) == [("2", 2, "0.5", None, "true", 1234.5, "7", "1.234,5/7")]


def test_relations_are_embedded() -> None:
    tags = field("tags", "tag", fields=[field("text", "."), field("n", "count(preceding-sibling::tag)")])
    rows = read(RSS, tags, each="//item")
    assert embedded(rows[0][0]) == [("a", "0"), ("b", "1")]
    assert embedded(rows[1][0]) == []


def test_links_are_relative_to_what_the_page_says() -> None:
    page = "<r xml:base='https://other.example/x/'><item><l>y</l></item></r>"
    for each in ("item", "item[1]"):
        assert read(page, field("l", "", "url"), each=each) == [("https://other.example/x/y",)]


def test_a_page_without_items_gives_its_own_fields_only_with_outer() -> None:
    fields = ["x", field("title", "channel/title", scope="page")]
    assert read(RSS, *fields, each="//nothing") == []
    assert read(RSS, *fields, each="//nothing", outer=True) == [(None, "News")]


def test_a_field_that_is_required_names_its_item() -> None:
    feed = Feed(XML, field("tag", required=True), each="//item")
    assert feed.refusal(RSS) == "item 2 has no 'tag', which is required"


@pytest.mark.parametrize(
    ("codec", "declared"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("latin-1", "ISO-8859-1"),
        ("utf-16", "UTF-16"),
        ("cp1251", "windows-1251"),
    ],
)
def test_charsets_are_understood(codec: str, declared: str) -> None:
    text = "дом" if codec == "cp1251" else "é"
    declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    body = f"{declaration}<r><a>{text}</a></r>".encode(codec)
    assert Feed(XML, "a").read(body) == [(text,)]
    assert Feed(XML, field("a", "."), each="a").read(body, sizes=[1] * len(body)) == [(text,)]


# --- mistakes in a wrapper ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "offset", "words"),
    [
        (" ", 0, "empty"),
        ("a[", 2, "invalid expression"),
        ("é b", 2, "invalid expression"),
        ("a['x]", 2, "without its end"),
        ("a#", 1, "unexpected '#'"),
        ("x:y", 0, "unknown prefix 'x'"),
        ("b/x:*", 2, 'namespace "x"'),
        ("$v", 0, "no variables"),
        ("cuont(a)", 0, "did you mean 'count'?"),
        ("a[document('/etc/passwd')]", 2, "unknown function document()"),
        ("re:test(., '(a+)+$')", 0, "unknown function re:test()"),
        ("parnt::a", 0, "did you mean 'parent'?"),
        ("count('x')", None, "bad XPath"),
        ("concat('x')", None, "bad XPath"),
    ],
)
def test_a_mistake_in_an_xpath_has_its_place(path: str, offset: int | None, words: str) -> None:
    setting, place, message = mistake(XML, field("x", path))
    assert setting == "x"
    assert offset is None or place == offset
    assert words in message
    assert mistake(XML, "x", each=path)[0] == "EACH"


def test_an_absolute_path_inside_of_an_item_is_a_mistake() -> None:
    assert mistake(XML, field("x", "//title"), each="//item") == (
        "x",
        0,
        "'//title' is looked for in the whole page; write .//title, or say page",
    )
    assert mistake(XML, field("y", "tag", fields=[field("x", "/a")]))[0] == "y.x"
    assert read(RSS, field("x", "//title", scope="page"), each="//item") == [("News",), ("News",)]


def test_items_are_elements() -> None:
    assert mistake(XML, "x", each="count(a)")[2] == "'count(a)' leads to a value and not to elements"
    assert (
        Feed(XML, "x", each="//item/@id").refusal(RSS)
        == "'EACH' leads to attributes or texts and not to elements"
    )


def test_options_are_checked() -> None:
    assert mistake(XML, "a", strip_namespace=True)[2].endswith("did you mean 'strip-namespaces'?")
    assert mistake(XML, "a", namespace={"": "http://x"})[0] == "READ"
    assert mistake(XML, "a", namespace="http://x")[0] == "READ"
    assert mistake(XML, "price info")[0] == "price info"
    assert mistake(XML, "a", charset="nonsense")[0] == "CHARSET"


def test_operators_and_names_are_told_apart_when_namespaces_are_stripped() -> None:
    page = "<r xmlns='u'><div>8</div><mod>3</mod><and k='2'/></r>"
    paths = ["div div mod", "div * and/@k", "*[. = 3]", "div[1] - mod", "and/@k", "mod mod 2"]
    fields = [field(f"f{place}", path) for place, path in enumerate(paths)]
    [row] = read(page, *fields, strip_namespaces=True)
    assert row == (str(8 / 3), "16", "3", "5", "2", "1")


# --- what a page could try ------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "page",
    [
        f'<!DOCTYPE r [<!ENTITY l0 "ha">{LAUGHS}]><r><item>&l9;</item></r>',
        '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r><item>&x;</item></r>',
        '<?xml version="1.0"?><!-- c --><!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd" []><r><item/></r>',
        '<!DOCTYPE r [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]><r><item/></r>',
        '<!DOCTYPE r [<!ATTLIST item a CDATA "x">]><r><item/></r>',
        "\n<!doctype html <r>><html><item/></html>",
    ],
)
@pytest.mark.parametrize("each", ["//item", "//item[1=1]"])
def test_document_types_with_declarations_are_refused(page: str, each: str) -> None:
    feed = Feed(XML, field("x", "."), each=each)
    for sizes in ([], [1] * len(page)):
        assert "it has a DOCTYPE with declarations, which is refused" in feed.refusal(page, sizes=sizes)


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN"\n "http://127.0.0.1:9/x.dtd">',
        "<!DOCTYPE r SYSTEM '[>'>",
        "<!doctype html>",
        "<!-- c -->\n<!DOCTYPE r>\n<!-- <!DOCTYPE x [ -->\n",
    ],
)
@pytest.mark.parametrize("each", ["//item", "//item[1=1]"])
def test_a_document_type_that_declares_nothing_is_passed_over(doctype: str, each: str) -> None:
    page = f'<?xml version="1.0"?>{doctype}<r>\n<item>x</item></r>'
    feed = Feed(XML, field("x", "."), each=each)
    for sizes in ([], [1] * len(page)):
        assert feed.read(page, sizes=sizes) == [("x",)]


@pytest.mark.parametrize("each", ["//item", "//item[1=1]"])
def test_what_a_document_type_refers_to_is_not_loaded(each: str, tmp_path: Path) -> None:
    (tmp_path / "x.dtd").write_text('<!ENTITY e "secret"><!ATTLIST item a CDATA "secret">')
    doctype = f'<!DOCTYPE r SYSTEM "{(tmp_path / "x.dtd").as_uri()}">'
    assert read(f"{doctype}<r><item/></r>", field("x", "@a"), each=each) == [(None,)]
    feed = Feed(XML, field("x", "."), each=each)
    assert "line 2, column 13: entity 'e' not defined" in feed.refusal(f"{doctype}\n<r><item>&e;</item></r>")


def test_there_is_one_document_type_at_most() -> None:
    feed = Feed(XML, field("x", "."), each="//item")
    page = "<!DOCTYPE r>\n<!DOCTYPE r><r><item/></r>"
    for sizes in ([], [1] * len(page)):
        assert "it has two DOCTYPEs" in feed.refusal(page, sizes=sizes)
    assert "the XML cannot be read" in feed.refusal("<r><item/></r><!DOCTYPE r [<!ENTITY e 'x'>]>")


def test_a_document_type_without_an_end_is_no_xml() -> None:
    feed = Feed(XML, field("x", "."), each="//item")
    assert "it has no element" in feed.refusal('<!DOCTYPE r SYSTEM "x><r><item/></r>')
    assert "no element within the first" in feed.refusal('<!DOCTYPE r SYSTEM "' + "x" * (1 << 20))


def test_inclusions_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    page = (
        '<r xmlns:xi="http://www.w3.org/2001/XInclude"><item>'
        f'<xi:include parse="text" href="{(tmp_path / "secret").as_uri()}"/></item></r>'
    )
    for each in ("//item", "//item[1=1]"):
        assert read(page, field("x", "."), each=each) == [(None,)]


@pytest.mark.parametrize("each", ["//item", "//item[1=1]"])
def test_the_depth_is_limited(each: str) -> None:
    feed = Feed(XML, field("x", "."), each=each)
    assert feed.read("<item>" + "<a>" * 255 + "</a>" * 255 + "</item>") == [(None,)]
    assert "nested more than 256 levels deep" in feed.refusal(
        "<item>" + "<a>" * 256 + "</a>" * 256 + "</item>"
    )


def test_a_text_beyond_all_measure_is_refused() -> None:
    feed = Feed(XML, field("x", "."), each="//item")
    assert "10 million characters" in feed.refusal("<r><item>" + "x" * 10_000_001 + "</item></r>")


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("", "it is empty"),
        ("<!-- nothing -->", "it has no element"),
        ("hello", "line 1, column 1: it does not begin with an element"),
        ('{"a": 1}', "it does not begin with an element"),
        ("<r><item>", "cut off"),
        ("<r>\n<item></r>", "line 2, column 11: opening and ending tag mismatch"),
        ("<r><item/>\n&nbsp;</r>", "line 2, column 7: entity 'nbsp' not defined"),
        ("<r>x & y</r>", "an & that is not written &amp;"),
        ("<r/><r/>", "extra content"),
        ("<r>\x01</r>", "line 1, column 4"),
    ],
)
@pytest.mark.parametrize("each", ["//item", "//item[1=1]"])
def test_a_text_that_is_wrong_is_refused_with_the_place(page: str, words: str, each: str) -> None:
    feed = Feed(XML, field("x", "."), each=each)
    for sizes in ([], [1] * len(page)):
        message = feed.refusal(page, sizes=sizes)
        assert message.startswith("the XML cannot be read: ")
        assert words in message


def test_blanks_before_the_declaration_and_odd_versions_do_no_harm() -> None:
    assert read("\n <?xml version='1.1'?><r><a>x</a></r>", "a") == [("x",)]


# --- in pieces as whole ---------------------------------------------------------------------------

TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")
)
ITEMS = st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), max_size=6)


def item_xml(name: str, text: str, is_nested: bool) -> str:
    item = f"<item name={quoteattr(name)}><t>{escape(text)}</t></item>"
    return f"<group><!-- <item> -->{item}</group>" if is_nested else f"{item} "


@settings(max_examples=120, deadline=None)
@given(
    items=ITEMS, sizes=st.lists(st.integers(0, 9), max_size=60), codec=st.sampled_from(["utf-8", "utf-16"])
)
def test_a_page_in_pieces_gives_what_it_gives_whole(
    items: list[tuple[str, str, bool]], sizes: list[int], codec: str
) -> None:
    body = f"<r>{''.join(item_xml(*item) for item in items)}</r>".encode(codec)
    fields = [field("name", "@name"), field("t", "t")]
    rows = Feed(XML, *fields, each="//item").read(body, sizes=sizes)
    assert rows == Feed(XML, *fields, each="//item[1=1]").read(body)
    assert rows == [(" ".join(n.split()) or None, " ".join(t.split()) or None) for n, t, _ in items]


# --- large pages ----------------------------------------------------------------------------------


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def large_feed(megabytes: int) -> Iterator[bytes]:
    entry = "<group><noise>{0}</noise><item id='{0}'><title>T{0}</title><body>" + "lorem ipsum " * 400
    one = (entry + "</body></item></group>\n").replace("{0}", "17").encode()
    piece = one * (65536 // len(one))
    yield b"<r>" + b" " * 1100
    for _ in range(megabytes * 1_000_000 // len(piece)):
        yield piece
    yield b"</r>"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_page() -> None:
    reading = Feed(XML, field("id", "@id"), "title", each="//item").extractor.open(PageHead(URL))
    before = after = 0
    rows = 0
    for number, piece in enumerate(large_feed(50)):
        rows += len(reading.feed(piece))
        if number == 50:
            before = resident_bytes()
        after = max(after, resident_bytes() if number > 50 else 0)
    rows += len(reading.end())
    assert rows > 9_000
    assert after - before < 10_000_000


# --- where values come from -----------------------------------------------------------------------


def test_explain_says_where_each_value_comes_from() -> None:
    feed = Feed(
        XML,
        field("id", "@id"),
        field("tags", "tag", "all"),
        field("n", "count(tag)"),
        field("feed", "//channel/title/text()", scope="page"),
        field("none", "x"),
        each="//item",
    )
    found = feed.explain(RSS)
    assert [(each.row, each.field, each.path, each.excerpt) for each in found[:6]] == [
        (0, "id", "/rss/channel/item[1]/@id", "1"),
        (0, "tags", "/rss/channel/item[1]/tag[1]", "<tag>a</tag>"),
        (0, "tags", "/rss/channel/item[1]/tag[2]", "<tag>b</tag>"),
        (0, "n", "count(tag)", "2"),
        (0, "feed", "/rss/channel/title/text()", "News"),
        (0, "none", "", ""),
    ]
    assert [each.value for each in found if each.field == "id"] == ["1", "2"]


def test_explain_refuses_what_cannot_be_read() -> None:
    with pytest.raises(ExtractionError, match="cut off"):
        Feed(XML, "a").explain("<r>")


def test_an_xpath_is_looked_at_for_what_it_needs() -> None:
    assert compile_xpath("a[b/@c = 'x/..']", {}).is_inner
    assert not compile_xpath("a[lang('en')]", {}).is_inner
    assert not compile_xpath("(/a)[1]", {}).is_inner
    assert compile_xpath("a/b", {}).is_inner
