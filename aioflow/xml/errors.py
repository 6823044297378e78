"""The error of texts that are no XML."""

from aioflow.errors import InputError


class BadXmlError(InputError):
    """A text is no XML that is read here; the message says why."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        place = "" if not line else f"line {line}, column {column}: "
        super().__init__(f"the XML cannot be read: {place}{reason}")
