"""How fast relations become XML documents and back, and documents are queried; how long the loop waits."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import aioflow
from aioflow import Document, Engine, Relation, Row, Schema
from aioflow.benchmarks.contenders import expect_same
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.xml.guard import etree

MILLISECONDS = 1000
_BEAT_SECONDS = 0.002
_NAMES = ("id", "name", "price", "note")
QUERY = """<cheap>{for $row in //row
where xs:decimal($row/price) < 20000 order by xs:integer($row/id) descending
return <good id="{$row/id}">{string($row/name)}</good>}</cheap>"""
_PLANS = {
    "rel2xml": "INPUT: rel OUTPUT: out BODY { rel2xml (rel : out) }",
    "xml2rel": """INPUT: rel OUTPUT: out BODY {
        xml2rel (rel, "xml", "row", "id number, name, price number, note" : found)
        project (found, "id, name, price, note" : out) }""",
    "xquery": f"""INPUT: rel OUTPUT: out BODY {{ xquery (rel, "xml", '''{QUERY}''' : found)
        project (found, "result" : out) }}""".replace("'''", '"' * 3),
}
_PROGRAMS = {name: f"PLAN measured {{ {body} }}" for name, body in _PLANS.items()}


def rows(count: int) -> list[Row]:
    return [(number, f"name of {number}", number * 0.5, "some & text") for number in range(count)]


# --- by hand ------------------------------------------------------------------------------------


def written_by_hand(relation: Sequence[Row]) -> str:
    """Return the document that lxml writes, without any marks."""
    root = etree.Element("relation")
    for row in relation:
        element = etree.SubElement(root, "row")
        for name, value in zip(_NAMES, row, strict=True):
            etree.SubElement(element, name).text = str(value)
    text: str = etree.tostring(root, encoding="unicode")
    return text


def read_by_hand(text: str) -> list[Row]:
    return [
        (int(row.findtext("id")), row.findtext("name"), float(row.findtext("price")), row.findtext("note"))
        for row in etree.fromstring(text.encode()).iterchildren("row")
    ]


class SaxonByHand:
    """SaxonC in this process, which stalls everything else."""

    def __init__(self) -> None:
        import saxonche

        processor = saxonche.PySaxonProcessor(license=False)
        self._builder = processor.new_document_builder()
        self._query = processor.new_xquery_processor()
        self._query.set_query_content(QUERY)
        for name, value in (("omit-xml-declaration", "yes"), ("indent", "no")):
            self._query.set_property(f"!{name}", value)

    def result(self, text: str) -> str:
        self._query.set_context(xdm_item=self._builder.parse_xml(xml_text=text))
        found: str = self._query.run_query_to_string()
        return found


# --- by plans -----------------------------------------------------------------------------------


class Plans:
    """The plans on one engine, whose processes are started."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._plans = {name: aioflow.loads(text) for name, text in _PROGRAMS.items()}
        self.longest_wait = 0.0

    async def run(self, name: str, given: Any) -> list[Row]:
        waits = [0.0]
        beating = asyncio.ensure_future(_beat(waits))
        await asyncio.sleep(0)
        try:
            result = await self._engine.run(self._plans[name], rel=given)
        finally:
            beating.cancel()
        self.longest_wait = max(waits)
        return [record.row for record in result.outputs["out"]]


async def _beat(waits: list[float]) -> None:
    while True:
        before = perf_counter()
        await asyncio.sleep(_BEAT_SECONDS)
        waits.append(perf_counter() - before - _BEAT_SECONDS)


def _document(text: str) -> Relation:
    return Relation(Schema(("xml",)), [(Document(text, "xml"),)])


def _read_again(text: str) -> tuple[tuple[object, ...], ...]:
    """Return the texts of all elements: equal for documents with and without marks."""
    root = etree.fromstring(text.encode())
    return tuple(
        tuple(float(cell.text) if cell.tag in ("id", "price") else cell.text for cell in row) for row in root
    )


@experiment(
    "How much do XML documents cost in plans, compared with lxml and SaxonC alone?",
    work="a relation of 100,000 tuples written as a document; a document of 5 MB read as a relation, with "
    "two numbers a tuple; the same queried and sorted; each beside plain lxml or saxonche in the same "
    "round; a task that wants to run every 2 ms tells how long it waited",
    limit="the plain library, which keeps everything else waiting",
)
def xml_documents(bench: Bench) -> None:
    asyncio.run(_measured(bench))
    for name in _PLANS:
        bench.claim_ratio(f"{name} beside the library alone", name, f"{name} by hand", at_most(1.3))
        bench.claim_median(f"longest wait: {name}", f"{name}: longest wait", at_most(250))


async def _measured(bench: Bench) -> None:
    relation = rows(bench.size(100_000, 5_000))
    written = written_by_hand(rows(bench.size(55_000, 3_000)))
    saxon = SaxonByHand()
    async with Engine() as engine:
        plans = Plans(engine)
        await plans.run("xquery", _document("<relation/>"))
        for number, each in enumerate(bench.rounds(7)):
            # Another one each time: a process remembers the last documents.
            text = f"{written}<!-- {number} -->"
            for name in each.shuffled(list(_PLANS)):
                given = Relation(Schema(_NAMES), relation) if name == "rel2xml" else _document(text)
                await _compare(bench, plans, name, given, _by_hand(name, relation, text, saxon))


def _by_hand(name: str, relation: Sequence[Row], text: str, saxon: SaxonByHand) -> Callable[[], object]:
    if name == "rel2xml":
        return partial(written_by_hand, relation)
    return partial(read_by_hand if name == "xml2rel" else saxon.result, text)


async def _compare(
    bench: Bench, plans: Plans, name: str, given: Relation, by_hand: Callable[[], object]
) -> None:
    gc.collect()
    started = perf_counter()
    expected = by_hand()
    between = perf_counter()
    gc.collect()
    begun = perf_counter()
    found = await plans.run(name, given)
    ended = perf_counter()
    bench.moved(len(given.rows))
    expect_same({"by hand": _comparable(name, expected), "plan": _comparable(name, found)})
    bench.sample(f"{name} by hand", "ms", (between - started) * MILLISECONDS, figure="elapsed")
    bench.sample(name, "ms", (ended - begun) * MILLISECONDS, figure="elapsed")
    bench.sample(f"{name}: longest wait", "ms", plans.longest_wait * MILLISECONDS, figure="longest wait")


def _comparable(name: str, found: Any) -> object:
    if name == "xml2rel":
        return hash(tuple(map(tuple, found)))
    text = found if isinstance(found, str) else found[0][0].text
    return hash(_read_again(text)) if name == "rel2xml" else hash(text)
