"""Which answers are pages to read, and which are errors."""

from __future__ import annotations

from http import HTTPStatus

from aioflow.web.errors import HttpStatusError
from aioflow.web.messages import Response

_ERRORS_FROM = 400


def accepted(response: Response) -> Response:
    """The answer, if its status is no error."""
    if response.status < _ERRORS_FROM:
        return response
    raise status_error(response)


def status_error(response: Response) -> HttpStatusError:
    from aioflow.web.urls import without_userinfo

    try:
        phrase = f" {HTTPStatus(response.status).phrase}"
    except ValueError:
        phrase = ""
    error = HttpStatusError(f"{without_userinfo(response.url)}: {response.status}{phrase}", response.status)
    error.attempts = response.attempts
    return error
