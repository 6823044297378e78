"""XML as data: documents made of relations and read as relations, and a parser that no document can abuse."""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.xml.errors import BadXmlError
    from aioflow.xml.guard import plain_xml
    from aioflow.xml.marks import typed_value
    from aioflow.xml.names import is_element_name
    from aioflow.xml.paths import AttributePaths, ItemPath
    from aioflow.xml.reading import DocumentReader
    from aioflow.xml.writing import RelationWriter, relation_text

__all__ = [
    "AttributePaths",
    "BadXmlError",
    "DocumentReader",
    "ItemPath",
    "RelationWriter",
    "is_element_name",
    "plain_xml",
    "relation_text",
    "typed_value",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "errors": ("BadXmlError",),
        "guard": ("plain_xml",),
        "marks": ("typed_value",),
        "names": ("is_element_name",),
        "paths": ("AttributePaths", "ItemPath"),
        "reading": ("DocumentReader",),
        "writing": ("RelationWriter", "relation_text"),
    },
)
