"""XML documents queried and transformed: xquery, xslt."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import cast

from aioflow import (
    Context,
    Document,
    InputError,
    Relation,
    Row,
    Schema,
    SettingError,
    Stream,
    map_concurrently,
    operator,
)
from aioflow.authoring.operator import Settings
from aioflow.operators.function_calls import DependentJoin
from aioflow.operators.settings import DeclaredSchema, Positive
from aioflow.relation import Batch, Type, Value, type_of_value
from aioflow.values.cells import read_value
from aioflow.xml import is_element_name, relation_text, typed_value
from aioflow.xquery import QueryProcesses, QueryText, StylesheetText, XmlText, XQueryAnswer, XQueryTask


class ResultName:
    """A setting that names the result, perhaps with its type: `"answer"`, `"total number"`."""

    kind_name = "a name, perhaps with a type"

    @classmethod
    def bind(cls, value: object, inputs: Sequence[Schema | None]) -> Schema:
        schema = DeclaredSchema.bind(value, inputs)
        if len(schema) != 1:
            raise SettingError("expected one name: a query has one result")
        if schema.types == (Type.RELATION,):
            raise SettingError("a result is no relation: read the document with xml2rel")
        return Schema(schema.names, (schema.types[0] or Type.DOCUMENT,))


_RESULT = Schema(("result",), (Type.DOCUMENT,))


def _xquery_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    result: Schema = settings["as"] or _RESULT
    root = settings["root"]
    if root is not None and not is_element_name(root):
        raise SettingError(f"{root!r} is no name of an XML element", setting="root")
    if root is not None and result.types != (Type.DOCUMENT,):
        raise SettingError("only a document has a root element, and AS gives another type", setting="root")
    return _joined_schema(inputs[0], settings["attribute"], result)


def _joined_schema(schema: Schema | None, attribute: str, result: Schema) -> Schema | None:
    if schema is None:
        return None
    kind = schema.type_of(attribute)
    if kind not in (None, Type.CHAR, Type.DOCUMENT, Type.RELATION):
        raise SettingError(f"{attribute!r} is a {kind}, not a document", setting="attribute")
    return schema.add(result)


@operator(schema=_xquery_schema, firing="tuple")
async def xquery(
    rel: Stream,
    *,
    attribute: str,
    query: QueryText,
    as_: ResultName | None = None,
    root: str | None = None,
    outer: bool = False,
    seconds: Positive | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Query the document of each tuple with XQuery 3.1, and join the result to the tuple.

    The document is the context of the query. The query declares other attributes of the tuple as external
    variables: `declare variable $zip external;`. The result is a document. Unless it is one element, its
    items are put into an element `result`. A query without result drops the tuple. All values in a document
    are texts to XQuery, whatever `xsi:type` says: compare and sort by `number(…)` or `xs:date(…)`.

    Arguments:
        rel: the tuples.
        attribute: the attribute with the document, or with an embedded relation.
        query: the query.
        as: the name of the result, by default `result`. With a type, such as `total number`, the result is
            one value instead of a document.
        root: the name of an element to put around the result, whatever that is.
        outer: keep tuples without result, with null.
        seconds: the time that the query may take for a tuple.

    Examples:
        xquery (pages, "xml", "for $h in //house order by number($h/price) return $h" : sorted)
        xquery (shops, "xml", "declare variable $zip external; sum(//x[@zip = $zip])" : sums) {AS: "n number"}
    """
    result = _RESULT if as_ is None else cast(Schema, as_)
    kind = cast(Type, result.types[0])

    def value(answer: XQueryAnswer) -> Value:
        if kind is Type.DOCUMENT:
            return Document(cast(str, answer.text), "xml")
        return _as_kind(typed_value(answer.type_name or "", cast(str, answer.text)), kind)

    task = XQueryTask(query.text, root=root, is_value=kind is not Type.DOCUMENT)
    asking = _Asking(rel, attribute, query, task, seconds, context)
    async for joined in asking.joined(result, value, outer):
        yield joined


def _xslt_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    stylesheet: StylesheetText = settings["stylesheet"]
    kind = Type.CHAR if stylesheet.writes_text else Type.DOCUMENT
    return _joined_schema(inputs[0], settings["attribute"], Schema((settings["as"],), (kind,)))


@operator(schema=_xslt_schema, firing="tuple")
async def xslt(
    rel: Stream,
    *,
    attribute: str,
    stylesheet: StylesheetText,
    as_: str = "result",
    outer: bool = False,
    seconds: Positive | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Transform the document of each tuple with an XSLT 3.0 stylesheet, and join the result to the tuple.

    Parameters of the stylesheet get the values of the attributes with their names. The result is an XML or
    HTML document or a text, as `xsl:output` says. A stylesheet that writes nothing drops the tuple.

    Arguments:
        rel: the tuples.
        attribute: the attribute with the document, or with an embedded relation.
        stylesheet: the stylesheet.
        as: the name of the result.
        outer: keep tuples without result, with null.
        seconds: the time that the stylesheet may take for a tuple.

    Examples:
        xslt (feeds, "xml", '<p xsl:version="3.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"/>' : pages)
    """
    is_text = stylesheet.writes_text

    def value(answer: XQueryAnswer) -> Value:
        text = cast(str, answer.text)
        if is_text:
            return text
        is_html = stylesheet.method == "html" or text[:14].lower() == "<!doctype html"
        return Document(text, "html" if is_html else "xml")

    result = Schema((as_,), (Type.CHAR if is_text else Type.DOCUMENT,))
    asking = _Asking(
        rel,
        attribute,
        stylesheet,
        XQueryTask(stylesheet.text, is_stylesheet=True, is_value=is_text),
        seconds,
        context,
    )
    async for joined in asking.joined(result, value, outer):
        yield joined


class _Asking:
    """One statement's questions to the processes."""

    def __init__(
        self,
        rel: Stream,
        attribute: str,
        program: QueryText | StylesheetText,
        task: XQueryTask,
        seconds: float | None,
        context: Context,
    ) -> None:
        assert rel.schema is not None
        self._rel = rel
        self._schema = rel.schema
        self._position = rel.schema.position(attribute)
        self._variables = [(each.name, rel.schema.position(each.attribute)) for each in program.variables]
        self._seconds = seconds
        self._context = context
        self._processes = context.service(QueryProcesses)
        self._task = task._replace(most_bytes=self._processes.settings.result_bytes)

    async def joined(
        self, result: Schema, value: Callable[[XQueryAnswer], Value], outer: bool
    ) -> AsyncGenerator[Batch, None]:
        """Yield the tuples joined to their results."""

        async def ask(row: Row) -> Batch:
            answer = await self._answer(row)
            return [] if answer is None or answer.text is None else [(value(answer),)]

        with DependentJoin(self._schema, result, outer, self._context.memory) as joining:
            calls = map_concurrently(ask, self._rel, self._context, permit=False)
            async with aclosing(calls.batches()) as answered:
                async for found in answered:
                    yield [joined for row, results in found for joined in joining.rows(row, results)]

    async def _answer(self, row: Row) -> XQueryAnswer | None:
        document = row[self._position]
        if document is None:
            self._context.count("null documents")
            return None
        variables = tuple([(name, _as_variable(row[position])) for name, position in self._variables])
        task = self._task._replace(document=_xml_text(document), variables=variables)
        async with self._context.permit():
            return await self._processes.answer(task, self._seconds)


def _xml_text(value: Value) -> str:
    if isinstance(value, Relation):
        return relation_text(value)
    if isinstance(value, str):
        return value
    if not isinstance(value, Document):
        raise SettingError(f"an XML document is queried, not {value!r:.60}")
    if value.kind == "json":
        raise SettingError("this document is JSON, not XML: declare it as a variable, and use parse-json")
    return value.text


def _as_variable(value: Value) -> Value | XmlText:
    """Return a value as a query gets it: documents and relations are documents, JSON is text."""
    if isinstance(value, Relation):
        return XmlText(relation_text(value))
    if isinstance(value, Document):
        return value.text if value.kind == "json" else XmlText(value.text)
    return value


def _as_kind(value: Value, kind: Type) -> Value:
    try:
        return value if type_of_value(value) is kind else read_value(value, kind)
    except SettingError as error:
        raise InputError(f"the result {error.message}") from None
