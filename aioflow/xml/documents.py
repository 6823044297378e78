"""XML documents inside of other XML: their root elements as markup, and back."""

from __future__ import annotations

from typing import Any

from aioflow.xml.guard import alone, etree, parse_xml


def nested_markup(text: str) -> str:
    """Return the root element of a document as markup; raise a BadXmlError for a text that is no XML."""
    markup: str = etree.tostring(parse_xml(text, keeps_comments=True), encoding="unicode", with_tail=False)
    return markup


def element_text(element: Any) -> str:
    """Return an element as a document of its own, without the namespaces that only others around it need."""
    if element.getparent() is not None:
        element = alone(element)
        etree.cleanup_namespaces(element, keep_ns_prefixes=_prefixes_in_values(element))
    markup: str = etree.tostring(element, encoding="unicode", with_tail=False)
    return markup


def _prefixes_in_values(root: Any) -> list[str]:
    """Return the prefixes that values of attributes use, such as that of `xsi:type="xs:date"`."""
    values = {value.partition(":")[0] for each in root.iter("*") for value in each.attrib.values()}
    return sorted(values & {prefix for prefix in root.nsmap if prefix})
