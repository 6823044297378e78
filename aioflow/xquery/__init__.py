"""XQuery 3.1 and XSLT 3.0 by SaxonC, in processes that reach neither files nor the network.

Needs the extra `xquery`. Documents and values go to a process and results come back as texts: SaxonC works
while the event loop goes on.
"""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.xquery.errors import QueryError
    from aioflow.xquery.processes import QueryProcesses
    from aioflow.xquery.program import QueryText, StylesheetText
    from aioflow.xquery.settings import XQUERY, QuerySettings
    from aioflow.xquery.worker import XmlText, XQueryAnswer, XQueryTask

__all__ = [
    "XQUERY",
    "QueryError",
    "QueryProcesses",
    "QuerySettings",
    "QueryText",
    "StylesheetText",
    "XQueryAnswer",
    "XQueryTask",
    "XmlText",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "errors": ("QueryError",),
        "processes": ("QueryProcesses",),
        "program": ("QueryText", "StylesheetText"),
        "settings": ("XQUERY", "QuerySettings"),
        "worker": ("XQueryAnswer", "XQueryTask", "XmlText"),
    },
)
