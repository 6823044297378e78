"""The HTTP client: polite, bounded, and guarded against addresses that no page may lead to."""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.web.cache import CacheStatistics
    from aioflow.web.canonical_urls import canonical
    from aioflow.web.client import Client, ClientStatistics
    from aioflow.web.cookies import CookieStore
    from aioflow.web.errors import (
        AddressRefusedError,
        BadResponseError,
        BinaryPageError,
        CircuitOpenError,
        ConnectionFailedError,
        ExtractionError,
        HttpStatusError,
        NotRecordedError,
        RequestRefusedError,
        ResponseTimeoutError,
        ResponseTooLargeError,
        RobotsRefusedError,
        SiteDownError,
        WebError,
    )
    from aioflow.web.http import BodyLimits, BodyStream, Fetcher, Request, Response
    from aioflow.web.settings import HostSettings, HttpSettings, WebSettings, web_settings
    from aioflow.web.statistics import SourceStatistics
    from aioflow.web.traffic import HttpAttempt, RequestEnded, Traffic
    from aioflow.web.urls import Base, has_host, resolve

__all__ = [
    "AddressRefusedError",
    "BadResponseError",
    "Base",
    "BinaryPageError",
    "BodyLimits",
    "BodyStream",
    "CacheStatistics",
    "CircuitOpenError",
    "Client",
    "ClientStatistics",
    "ConnectionFailedError",
    "CookieStore",
    "ExtractionError",
    "Fetcher",
    "HostSettings",
    "HttpAttempt",
    "HttpSettings",
    "HttpStatusError",
    "NotRecordedError",
    "Request",
    "RequestEnded",
    "RequestRefusedError",
    "Response",
    "ResponseTimeoutError",
    "ResponseTooLargeError",
    "RobotsRefusedError",
    "SiteDownError",
    "SourceStatistics",
    "Traffic",
    "WebError",
    "WebSettings",
    "canonical",
    "has_host",
    "resolve",
    "web_settings",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "cache": ("CacheStatistics",),
        "canonical_urls": ("canonical",),
        "client": ("Client", "ClientStatistics"),
        "cookies": ("CookieStore",),
        "errors": (
            "AddressRefusedError",
            "BadResponseError",
            "BinaryPageError",
            "CircuitOpenError",
            "ConnectionFailedError",
            "ExtractionError",
            "HttpStatusError",
            "NotRecordedError",
            "RequestRefusedError",
            "ResponseTimeoutError",
            "ResponseTooLargeError",
            "RobotsRefusedError",
            "SiteDownError",
            "WebError",
        ),
        "http": ("BodyLimits", "BodyStream", "Fetcher", "Request", "Response"),
        "settings": ("HostSettings", "HttpSettings", "WebSettings", "web_settings"),
        "statistics": ("SourceStatistics",),
        "traffic": ("HttpAttempt", "RequestEnded", "Traffic"),
        "urls": ("Base", "has_host", "resolve"),
    },
)
