"""Queries with answers that SaxonC did not give: ours, by hand from the specification, and those of Zorba."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from aioflow.relation import Type, identity
from aioflow.values.cells import read_value
from aioflow.xml import BadXmlError, typed_value
from aioflow.xml.guard import parse_xml
from aioflow.xquery import QueryError, QueryProcesses, XmlText, XQueryTask

DATA = Path(__file__).parents[1] / "data" / "xquery"
READERS: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "document": XmlText,
}


def cases(name: str) -> list[Any]:
    content = json.loads((DATA / name).read_text())
    documents = content["documents"]
    found = []
    for case in content["cases"]:
        document = case["document"]
        found.append({**case, "document": documents.get(document, document)})
    return found


def parameter(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return READERS[kind](text)
    return value


def tree(text: str) -> Any:
    try:
        return parts(parse_xml(text, keeps_comments=True))
    except BadXmlError:  # a namespace may have a name that only libxml2 refuses
        return text


def parts(element: Any) -> Any:
    """An element as data: prefixes and unused namespaces do not count, all else does."""
    name = element.tag if isinstance(element.tag, str) else element.tag.__name__
    attributes = (
        sorted(element.attrib.items())
        if isinstance(element.tag, str)
        else [element.target]
        if name == "PI"
        else []
    )
    return name, attributes, element.text or "", [(parts(each), each.tail or "") for each in element]


async def outcome(processes: QueryProcesses, case: Any) -> Any:
    """What a query gives, in the form of the case."""
    task = XQueryTask(
        case["query"],
        case["document"] or "<nothing/>",
        tuple((name, parameter(value)) for name, value in case["parameters"].items()),
        is_value="type" in case,
    )
    if case["document"] is None:
        task = task._replace(document=None)
    try:
        answer = await processes.answer(task)
    except QueryError as error:
        return f"error {error}"
    if answer.text is None:
        return None
    if "type" not in case:
        return tree(answer.text)
    value = typed_value(answer.type_name or "", answer.text)
    kind = Type(case["type"])
    return read_value(value, kind) if isinstance(value, str) and kind is not Type.CHAR else value


def expected(case: Any) -> Any:
    if "type" in case:
        return typed(case["result"], Type(case["type"]))
    return None if case["result"] is None else tree(case["result"])


def typed(result: Any, kind: Type) -> Any:
    result = parameter(result)
    return read_value(result, kind) if isinstance(result, str) and kind is not Type.CHAR else result


def agrees(case: Any, found: Any) -> bool:
    if "error" not in case:
        wanted = expected(case)
        return identity((wanted,)) == identity((found,)) if "type" in case else bool(found == wanted)
    is_error = isinstance(found, str) and re.search(rf"\b{case['error']}\)", found) is not None
    return is_error and ("line" not in case or f"line {case['line']}, " in found)


@pytest.mark.parametrize("name", ["cases.json", "conformance.json"])
async def test_every_query_has_its_answer(name: str) -> None:
    processes = QueryProcesses({})
    wrong: list[Any] = []
    unexpectedly_right: list[Any] = []
    try:
        for case in cases(name):
            found = await outcome(processes, case)
            if agrees(case, found) is ("differs" in case):
                (unexpectedly_right if "differs" in case else wrong).append((case["name"], found))
    finally:
        await processes.close()
    assert wrong == []
    assert unexpectedly_right == []


def test_there_are_as_many_cases_as_the_documentation_says() -> None:
    assert len(cases("cases.json")) == 181
    assert len(cases("conformance.json")) == 300
