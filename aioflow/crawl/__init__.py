"""The parts of crawlers: URLs, rules and traps, claimed keys, downloads, documents, links and sitemaps."""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.crawl.account import CrawlAccount
    from aioflow.crawl.claims import ClaimedKeys, Claims, CrawlClaims
    from aioflow.crawl.documents import PageText, is_heavy, page_text, page_title
    from aioflow.crawl.downloads import DOWNLOADED, DownloadLimits, Downloads
    from aioflow.crawl.fingerprints import MOST_DISTANCE, FingerprintBands, simhash64
    from aioflow.crawl.links import (
        ADDRESSES,
        LINKS,
        PAGE_TAGS,
        LinkReading,
        PageLinks,
        links_aside,
        links_of,
        unpacked,
    )
    from aioflow.crawl.media_types import MARKUP_TYPES, MediaTypes, media_type
    from aioflow.crawl.normal_form import DroppedParameters, UrlNormalizer
    from aioflow.crawl.page_files import PageFiles
    from aioflow.crawl.patterns import DomainList, UrlPatterns
    from aioflow.crawl.rules import UrlRules
    from aioflow.crawl.sitemaps import SitemapEntry, SitemapError, SitemapReader
    from aioflow.crawl.soft_404 import SOFT_404, MissingPages
    from aioflow.crawl.traps import TRAPS, CrawlTraps, TrapNames

__all__ = [
    "ADDRESSES",
    "DOWNLOADED",
    "LINKS",
    "MARKUP_TYPES",
    "MOST_DISTANCE",
    "PAGE_TAGS",
    "SOFT_404",
    "TRAPS",
    "ClaimedKeys",
    "Claims",
    "CrawlAccount",
    "CrawlClaims",
    "CrawlTraps",
    "DomainList",
    "DownloadLimits",
    "Downloads",
    "DroppedParameters",
    "FingerprintBands",
    "LinkReading",
    "MediaTypes",
    "MissingPages",
    "PageFiles",
    "PageLinks",
    "PageText",
    "SitemapEntry",
    "SitemapError",
    "SitemapReader",
    "TrapNames",
    "UrlNormalizer",
    "UrlPatterns",
    "UrlRules",
    "is_heavy",
    "links_aside",
    "links_of",
    "media_type",
    "page_text",
    "page_title",
    "simhash64",
    "unpacked",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "account": ("CrawlAccount",),
        "claims": ("ClaimedKeys", "Claims", "CrawlClaims"),
        "documents": ("PageText", "is_heavy", "page_text", "page_title"),
        "downloads": ("DOWNLOADED", "DownloadLimits", "Downloads"),
        "fingerprints": ("MOST_DISTANCE", "FingerprintBands", "simhash64"),
        "links": (
            "ADDRESSES",
            "LINKS",
            "PAGE_TAGS",
            "LinkReading",
            "PageLinks",
            "links_aside",
            "links_of",
            "unpacked",
        ),
        "media_types": ("MARKUP_TYPES", "MediaTypes", "media_type"),
        "normal_form": ("DroppedParameters", "UrlNormalizer"),
        "page_files": ("PageFiles",),
        "patterns": ("DomainList", "UrlPatterns"),
        "rules": ("UrlRules",),
        "sitemaps": ("SitemapEntry", "SitemapError", "SitemapReader"),
        "soft_404": ("SOFT_404", "MissingPages"),
        "traps": ("TRAPS", "CrawlTraps", "TrapNames"),
    },
)
