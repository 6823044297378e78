"""The HTTP client: polite, bounded, guarded against addresses that no page may lead to.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioflow.web.attempts import HttpAttempt
    from aioflow.web.cache import CacheStatistics
    from aioflow.web.client import Client, ClientStatistics
    from aioflow.web.configuration import web_settings
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
    from aioflow.web.messages import BodyStream, Fetcher, Request, Response
    from aioflow.web.settings import HostSettings, HttpSettings, WebSettings
    from aioflow.web.statistics import SourceStatistics
    from aioflow.web.traffic import RequestEnded, Traffic
    from aioflow.web.urls import Base, resolve

__all__ = [
    "AddressRefusedError",
    "BadResponseError",
    "Base",
    "BinaryPageError",
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
    "resolve",
    "web_settings",
]

_HOMES = {
    "attempts": ("HttpAttempt",),
    "cache": ("CacheStatistics",),
    "client": ("Client", "ClientStatistics"),
    "configuration": ("web_settings",),
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
    "messages": ("BodyStream", "Fetcher", "Request", "Response"),
    "settings": ("HostSettings", "HttpSettings", "WebSettings"),
    "statistics": ("SourceStatistics",),
    "traffic": ("RequestEnded", "Traffic"),
    "urls": ("Base", "resolve"),
}
_HOME_OF = {name: f"aioflow.web.{module}" for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'aioflow.web' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
