"""Hidden databases: every tuple behind a search form that shows at most k results, by few queries.

Names are loaded when they are first used. The package needs no engine.
"""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.hidden.attributes import Categorical, Numeric
    from aioflow.hidden.crawling import Crawl, crawl
    from aioflow.hidden.forms.resolution import AskedForm, HiddenName
    from aioflow.hidden.forms.sessions import FormCrawl, StoredAnswers
    from aioflow.hidden.report import CrawlReport, Estimate, SourceChange, Unresolved

__all__ = [
    "AskedForm",
    "Categorical",
    "Crawl",
    "CrawlReport",
    "Estimate",
    "FormCrawl",
    "HiddenName",
    "Numeric",
    "SourceChange",
    "StoredAnswers",
    "Unresolved",
    "crawl",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "attributes": ("Categorical", "Numeric"),
        "crawling": ("Crawl", "crawl"),
        "forms.resolution": ("AskedForm", "HiddenName"),
        "forms.sessions": ("FormCrawl", "StoredAnswers"),
        "report": ("SourceChange", "CrawlReport", "Estimate", "Unresolved"),
    },
)
