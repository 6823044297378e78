"""A process of its own in which apprise sends: `python -m aioflow.messages.chat.apprise_child`.

Services of apprise block on threads that nothing can stop, and take most of a second to load; a process can
be killed. A request is a line of JSON on stdin, the answer one on stdout. Secrets and retries are left to the
parent.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

_KEY_HEADER = "Idempotency-Key"
_REASON_CHARACTERS = 500
_CONFLICT = 409
_LATER = (408, 425, 429)
_UNCERTAIN = (502, 504)


@dataclass
class ChildCall:
    """A message to send. `done` parts of it have been delivered before; `split` lets long texts be split."""

    url: str = field(repr=False)
    body: str
    title: str = ""
    key: str = ""
    seconds: float = 60.0
    done: int = 0
    split: bool = True
    most_parts: int = 10


@dataclass
class ChildAnswer:
    """The outcome. `error` is None if all of it was delivered, and `done` counts delivered parts."""

    said: str = ""
    error: str | None = None
    final: bool = False
    uncertain: bool = False
    retry_after: str | None = None
    done: int = 0
    has_credentials: bool = False
    is_stuck: bool = False  # a thread still waits for the service


@dataclass
class ServiceRequest:
    """One request of a service: its status, or whether it may have arrived without one."""

    status: int | None = None
    retry_after: str | None = None
    may_have_arrived: bool = True
    problem: str = ""


# --- parts of a text ----------------------------------------------------------------------------


def parts_of(text: str, most_characters: int, most_lines: int = 0, most_parts: int = 10) -> list[str]:
    """A text in parts that a service takes, at the ends of lines and words where that is possible.

    What does not fit into so many parts is left out, and the last one says how many lines that are.
    """
    pieces = list(_packed(text, most_characters, most_lines))
    if len(pieces) <= most_parts:
        return pieces
    left = "\n".join(pieces[most_parts:]).count("\n") + 1
    # Room for the line that tells it; the lines that make way for it are counted as well.
    last, room = pieces[most_parts - 1], most_characters - len(_more(left)) - 8
    kept = next(_packed(last, max(room, 1), max(most_lines - 1, 0) if most_lines else 0), "")
    left += last[len(kept) :].strip("\n").count("\n") + (len(kept) < len(last))
    return [*pieces[: most_parts - 1], f"{kept}\n{_more(left)}" if room > 0 else _more(left)]


def _more(lines: int) -> str:
    return f"… {lines} more line{'s' * (lines != 1)}"


def _packed(text: str, most_characters: int, most_lines: int) -> Iterator[str]:
    part: list[str] = []
    size = 0
    for line in text.split("\n"):
        for piece in _pieces(line, most_characters):
            full = size + len(piece) + len(part) > most_characters
            if part and (full or (most_lines and len(part) >= most_lines)):
                yield "\n".join(part)
                part, size = [], 0
            part.append(piece)
            size += len(piece)
    if part:
        yield "\n".join(part)


def _pieces(line: str, most: int) -> Iterator[str]:
    while len(line) > most:
        place = line.rfind(" ", 0, most + 1)
        cut = place if place >= 0 else most
        if cut:
            yield line[:cut]
        line = line[cut:].removeprefix(" ") if place >= 0 else line[cut:]
    yield line


# --- what happened ------------------------------------------------------------------------------


class Witness(logging.Handler):
    """Sees what apprise's services do: their requests and what they log about failures."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.exchanges: list[ServiceRequest] = []
        self.warnings: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.warnings.append(record.getMessage())

    def forget(self) -> None:
        self.exchanges.clear()
        self.warnings.clear()

    def watch(self) -> None:
        """Apprise tells whether it worked and logs the rest; the requests say what a retry could change."""
        import requests

        logger = logging.getLogger("apprise")
        logger.handlers, logger.propagate = [self], False
        send = requests.Session.send

        def witnessed(session: requests.Session, request: Any, **options: Any) -> requests.Response:
            exchange = ServiceRequest()
            self.exchanges.append(exchange)
            try:
                response = send(session, request, **options)
            except requests.RequestException as error:
                exchange.may_have_arrived, exchange.problem = not _never_left(error), _problem(error)
                raise
            exchange.status, exchange.retry_after = response.status_code, response.headers.get("Retry-After")
            return response

        requests.Session.send = witnessed  # type: ignore[method-assign,assignment]

    def reason(self) -> str:
        """Return the log on one line, and the reason of a failed request, which is not logged."""
        text = " ".join("; ".join(dict.fromkeys(self.warnings)).split())[:_REASON_CHARACTERS]
        problem = self.exchanges[-1].problem if self.exchanges else ""
        return f"{text} ({problem})" if text and problem else text or problem

    def judge(self, answer: ChildAnswer, uses_requests: bool, has_key: bool) -> None:
        """Fill in what is known of a part that failed; one that the receiver had already did not."""
        last = self.exchanges[-1] if self.exchanges else None
        if last is None:
            answer.uncertain = not uses_requests
        elif last.status == _CONFLICT and has_key:
            answer.error, answer.said = None, "409: the receiver has had a message with this key before"
            return
        elif last.status is None:
            answer.uncertain = last.may_have_arrived
        else:
            answer.final = 400 <= last.status < 500 and last.status not in _LATER
            answer.uncertain = last.status in _UNCERTAIN
            answer.retry_after = None if answer.final else last.retry_after
        # A service that makes several requests may have told somebody before one of them failed.
        answer.uncertain |= any(each.status and each.status < 300 for each in self.exchanges[:-1])


def _problem(error: Exception) -> str:
    """Return the system's text of an error. The text of the error itself repeats the URL."""
    found: BaseException | None = error
    while found is not None and not (isinstance(found, OSError) and found.strerror):
        found = found.__cause__ or found.__context__
    return str(found.strerror).lower() if isinstance(found, OSError) else type(error).__name__


def _never_left(error: Exception) -> bool:
    """Return whether a request failed before anything of it was sent."""
    import requests
    from urllib3.exceptions import NewConnectionError

    if isinstance(error, requests.ConnectTimeout | requests.exceptions.SSLError | ValueError):
        return True
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    return isinstance(reason, NewConnectionError)


# --- sending ------------------------------------------------------------------------------------


def _plugin(url: str, seconds: float, witness: Witness) -> Any:
    """The service of a URL; an error text when there is none."""
    import apprise

    asset = apprise.AppriseAsset(
        app_id="aioflow",
        app_desc="aioflow",
        app_url="",
        storage_mode="memory",
        service_timeout=seconds,
        pgp_autogen=False,
        pem_autogen=False,
    )
    try:
        found = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=False)
    except Exception as error:  # whatever a service makes of a bad URL
        return f"apprise cannot use its url: {error}"
    if found is None:
        reason = f": {witness.warnings[-1]}" if witness.warnings else ""
        return f"apprise knows no service for its url{reason}"
    # By default it gives up after 4 s, when many a service has taken the message and is about to say so.
    if found.socket_read_timeout == apprise.NotifyBase.socket_read_timeout:
        found.socket_read_timeout = seconds
    return found


async def send(call: ChildCall, witness: Witness) -> ChildAnswer:
    """Send what is not yet delivered of a call, part by part."""
    witness.forget()
    plugin = _plugin(call.url, call.seconds, witness)
    if isinstance(plugin, str):
        return ChildAnswer(error=plugin, final=True, done=call.done)
    answer = ChildAnswer(
        done=call.done, has_credentials=plugin.url(privacy=True) != plugin.url(privacy=False)
    )
    title, parts = _laid_out(call, plugin)
    for number, part in enumerate(parts[call.done :], start=call.done + 1):
        key = call.key if len(parts) == 1 else f"{call.key}-{number}"
        await _send_part(plugin, title, part, key, answer, witness)
        if answer.error is not None:
            return answer
        answer.done = number
    if len(parts) > 1:
        answer.said += f" ({len(parts)} parts)"
    return answer


def _laid_out(call: ChildCall, plugin: Any) -> tuple[str, list[str]]:
    """The title and the parts of the text as the service takes them."""
    title, body = call.title, call.body or call.title
    if not call.split:
        return title, [body]
    from apprise import OverflowMode

    if plugin.overflow_mode == OverflowMode.UPSTREAM:
        # What grows by being escaped is split once more, where the service would cut or refuse it.
        plugin.overflow_mode = OverflowMode.SPLIT
    room = plugin.body_maxlen
    if len(title) > plugin.title_maxlen > 0:
        body = f"{title}\n{body}"
        title = title[: plugin.title_maxlen - 1] + "…"
    if plugin.title_maxlen <= 0 or plugin.overflow_amalgamate_title:
        room = max(room - len(title) - 2, room // 2)
    return title, parts_of(body, room, plugin.body_max_line_count, call.most_parts)


async def _send_part(
    plugin: Any, title: str, body: str, key: str, answer: ChildAnswer, witness: Witness
) -> None:
    import apprise

    witness.forget()
    has_key = "headers" in plugin.template_kwargs and isinstance(getattr(plugin, "headers", None), dict)
    if has_key and key:
        plugin.headers[_KEY_HEADER] = key
    messenger = apprise.Apprise(asset=plugin.asset)
    messenger.add(plugin)
    sent = await messenger.async_notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT)
    if sent:
        statuses = [str(each.status) for each in witness.exchanges[-1:] if each.status]
        answer.said = f"{plugin.service_name}: {statuses[0] if statuses else 'sent'}"
        return
    answer.is_stuck = bool(sent.timeout_count)
    answer.error = witness.reason() or f"{plugin.service_name} did not take it and gave no reason"
    uses_requests = hasattr(sys.modules.get(type(plugin).__module__), "requests")
    witness.judge(answer, uses_requests, has_key and bool(key))


def serve(requests_in: TextIO, answers: TextIO) -> None:
    """Answer requests one after the other, until there are no more."""
    import apprise  # noqa: F401  # whoever waits for the first line need not count the time that it takes

    witness = Witness()
    witness.watch()
    print(json.dumps({"ready": True}), file=answers, flush=True)
    with asyncio.Runner() as runner:
        for line in requests_in:
            fields: Mapping[str, Any] = json.loads(line)
            answer = runner.run(send(ChildCall(**fields), witness))
            print(json.dumps(asdict(answer)), file=answers, flush=True)


def main() -> None:
    # What services print goes nowhere: it is no answer, and may tell secrets.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    serve(os.fdopen(0, encoding="utf-8", closefd=False), answers)
    # Threads of services that took too long are not waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
