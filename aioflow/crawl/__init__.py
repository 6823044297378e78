"""The parts of a crawler: one form of URLs, rules and traps, claimed keys, sitemaps, near duplicates."""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.crawl.account import CrawlAccount
    from aioflow.crawl.claims import ClaimedKeys, Claims, CrawlClaims
    from aioflow.crawl.fingerprints import MOST_DISTANCE, FingerprintBands, simhash64
    from aioflow.crawl.normal_form import DroppedParameters, UrlNormalizer
    from aioflow.crawl.patterns import DomainList, UrlPatterns
    from aioflow.crawl.rules import UrlRules
    from aioflow.crawl.sitemaps import SitemapEntry, SitemapError, SitemapReader
    from aioflow.crawl.traps import TRAPS, CrawlTraps, TrapNames

__all__ = [
    "MOST_DISTANCE",
    "TRAPS",
    "ClaimedKeys",
    "Claims",
    "CrawlAccount",
    "CrawlClaims",
    "CrawlTraps",
    "DomainList",
    "DroppedParameters",
    "FingerprintBands",
    "SitemapEntry",
    "SitemapError",
    "SitemapReader",
    "TrapNames",
    "UrlNormalizer",
    "UrlPatterns",
    "UrlRules",
    "simhash64",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "account": ("CrawlAccount",),
        "claims": ("ClaimedKeys", "Claims", "CrawlClaims"),
        "fingerprints": ("MOST_DISTANCE", "FingerprintBands", "simhash64"),
        "normal_form": ("DroppedParameters", "UrlNormalizer"),
        "patterns": ("DomainList", "UrlPatterns"),
        "rules": ("UrlRules",),
        "sitemaps": ("SitemapEntry", "SitemapError", "SitemapReader"),
        "traps": ("TRAPS", "CrawlTraps", "TrapNames"),
    },
)
