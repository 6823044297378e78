"""The REST interface of a service, its OpenAPI description, and its client.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.service.rest.app import create_app
    from aioflow.service.rest.client import RemoteActions
    from aioflow.service.rest.server import RestServer

__all__ = ["RemoteActions", "RestServer", "create_app"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {"app": ("create_app",), "client": ("RemoteActions",), "server": ("RestServer",)},
)
