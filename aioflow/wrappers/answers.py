"""Which answers are pages to read, and which are errors."""

from __future__ import annotations

from aioflow.web.errors import HttpStatusError, status_text
from aioflow.web.messages import Response

_PAGES_BELOW = 300  # redirects were followed; what else says 3xx brings no page
_PART_OF_A_PAGE = 206  # which nobody asked for


def accepted(response: Response) -> Response:
    """The answer, if its status says that there is a page."""
    if response.status < _PAGES_BELOW and response.status != _PART_OF_A_PAGE:
        return response
    raise status_error(response)


def status_error(response: Response) -> HttpStatusError:
    from aioflow.web.urls import without_userinfo

    message = f"{without_userinfo(response.url)}: {status_text(response.status)}"
    error = HttpStatusError(message, response.status)
    error.attempts = response.attempts
    return error
