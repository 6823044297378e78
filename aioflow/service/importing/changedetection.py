"""Watches of changedetection.io, from its backups: with `watch.json` files, or all in `url-watches.json`.

The modules beside this one have the parts: files, settings, times, requests, filters, rules, accounts and the
text of a plan. Nothing of a backup is executed or written to disk.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from aioflow.errors import AioflowError, InputError
from aioflow.service.importing.backup_files import BackupContent, JsonObject, read_content
from aioflow.service.importing.check_times import CheckTimes, check_times, interval_seconds
from aioflow.service.importing.imported import ImportedWatch
from aioflow.service.importing.line_rules import LineRules, containing, extraction, matching_lines
from aioflow.service.importing.message_accounts import AccountBook, MessageAccount
from aioflow.service.importing.page_filters import (
    FilterNotes,
    PageFields,
    page_fields,
    product_offer,
    source_lines,
)
from aioflow.service.importing.plan_writer import LineSteps, PlanParts, WatchMessage, plain, write_plan
from aioflow.service.importing.watch_requests import RequestWriter, WatchRequest
from aioflow.service.importing.watch_settings import SettingsReader, tag_titles

# Names of operators in the plans: a plan of that name would call itself.
_OPERATORS = frozenset(
    ("wrapper", "unpack", "project", "select", "minus", "union", "diff", "join", "email", "notify")
)
_LONGEST_NAME = 48
_PLAIN_FETCHERS = ("", "system", "html_requests")
_DEFAULT_TITLE = "ChangeDetection.io Notification - {{watch_url}}"
_DEFAULT_BODY = "{{watch_url}} had a change.\n---\n{{diff}}\n---"
_TOKEN = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_OLD_TOKEN = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
_DIFFERENCES = re.compile(
    r"(?:raw_)?diff(?:_full|_added|_removed|_clean|_added_clean|_removed_clean|_full_clean)?"
)

# Settings that have no counterpart, with the sentence about each.
_WITHOUT_COUNTERPART = {
    "browser_steps": "Its browser steps cannot be taken over: plans have no browser.",
    "webdriver_js_execute_code": "Its JavaScript cannot be taken over: plans have no browser.",
    "conditions": "Its conditions were left out: write them as `select` in the plan.",
    "check_unique_lines": "A line that goes away and comes back is told again.",
    "ignore_status_codes": "A page with an error status ends the run: ignore_status_codes was left out.",
    "notification_screenshot": "Messages have no screenshot: plans have no browser.",
    "llm_intent": "Its rule for a language model was left out.",
    "proxy": 'Its proxy was left out: set `proxy` under `[host."…"]` in aioflow.toml.',
}


def read_backup(path: Path) -> list[ImportedWatch]:
    """Return the watches of a backup, a ZIP archive or an unpacked folder, in the order of their names.

    A watch that cannot be taken over as a whole says so in its notes. An InputError says why a whole backup
    cannot be read.
    """
    content = read_content(path)
    reading = _BackupReading(content)
    found = [reading.watch(uuid, watch) for uuid, watch in content.watches.items()]
    found += [reading.broken(uuid, reason) for uuid, reason in content.broken.items()]
    if not found:
        raise InputError(f"{path} has no watches")
    return sorted(found, key=lambda each: each.name)


class _BackupReading:
    def __init__(self, content: BackupContent) -> None:
        self._content = content
        self._book = AccountBook()
        self._names: set[str] = set()

    def broken(self, uuid: str, reason: str) -> ImportedWatch:
        return ImportedWatch(uuid, self._unique("watch"), "", "every 3h", paused=True, notes=(f"{reason}.",))

    def watch(self, uuid: str, watch: JsonObject) -> ImportedWatch:
        settings = SettingsReader(watch, self._content)
        url = settings.text("url")
        title = settings.text("title") or settings.text("page_title")
        name = self._unique(_slug(title) or _slug(_of_address(url)) or "watch")
        work = _WatchWork(name, title, settings, self._book, tag_titles(watch, settings.tags))
        return work.imported(uuid, url)

    def _unique(self, base: str) -> str:
        base = f"watch-{base}" if base in _OPERATORS or not base[0].isalpha() else base
        name, number = base, 2
        while name in self._names:
            name, number = f"{base}-{number}", number + 1
        self._names.add(name)
        return name


def _slug(text: str) -> str:
    plain_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain_text).strip("-")[:_LONGEST_NAME].strip("-")


def _of_address(url: str) -> str:
    try:
        parts = urlsplit(url.removeprefix("source:"))
    except ValueError:
        return ""
    return f"{parts.netloc.rpartition('@')[2].removeprefix('www.')} {parts.path}"


class _WatchWork:
    """Turns one watch into a task."""

    def __init__(
        self, name: str, title: str, settings: SettingsReader, book: AccountBook, tags: tuple[str, ...]
    ) -> None:
        self._name, self._title, self._settings, self._book, self._tags = name, title, settings, book, tags
        self._notes: list[str] = []
        self._needs_attention = False

    def imported(self, uuid: str, url: str) -> ImportedWatch:
        settings = self._settings
        times = self._times()
        request = RequestWriter(self._name).write(
            url.removeprefix("source:"), settings.text("method"), settings.headers(), settings.text("body")
        )
        # The address of the request has no credentials in it, unlike that of the watch.
        self._title = self._title or request.url
        accounts = self._accounts()
        plan = self._plan(url, request, accounts) if request.lines else ""
        plan = self._checked(plan)
        self._note_the_rest()
        self._needs_attention |= not request.is_complete or not plan
        is_paused = settings.flag("paused") or settings.whole_installation("all_paused") is True
        if self._needs_attention and not is_paused:
            self._notes.append("It is paused until you have looked at it.")
        used = accounts if plan else []
        secrets = (
            *(request.secrets if plan else ()),
            *(each for account in used for each in account.secrets),
        )
        notes = dict.fromkeys([*request.notes, *self._notes, *times.notes, *settings.notes])
        return ImportedWatch(
            uuid=uuid,
            name=self._name,
            plan_text=plan,
            schedule=times.schedule,
            paused=is_paused or self._needs_attention,
            settings="\n".join(account.settings for account in used),
            secrets=secrets,
            notes=tuple(notes),
            tags=self._tags,
            zone=times.zone,
        )

    def _times(self) -> CheckTimes:
        zone = self._settings.whole_installation("scheduler_timezone_default")
        seconds = interval_seconds(*self._settings.intervals())
        return check_times(seconds, self._settings.hours_of_week(), zone if isinstance(zone, str) else None)

    def _accounts(self) -> list[MessageAccount]:
        settings = self._settings
        if settings.flag("notification_muted") or settings.whole_installation("all_muted") is True:
            self._notes.append("Its notifications are muted: the plan returns the changes and sends nothing.")
            return []
        urls = settings.cascading_texts("notification_urls")
        if not urls:
            self._notes.append("It has no notification URL: the plan returns the changes and sends nothing.")
        return self._book.accounts(urls, self._notes)

    def _plan(self, url: str, request: WatchRequest, accounts: list[MessageAccount]) -> str:
        steps = self._steps()
        pages = self._pages(url, steps)
        if pages is None:
            return ""
        is_offer = self._settings.text("processor") == "restock_diff"
        if any(page.is_value for page in pages) and steps != LineSteps() and not is_offer:
            self._notes.append("Its rules for texts were left out: the plan compares single values.")
        comment = f"Watches {request.url}, as the watch {plain(self._title)!r} of changedetection.io did."
        parts = PlanParts(
            self._name,
            (comment,),
            request.lines,
            tuple(pages),
            steps,
            self._message(request.url),
            tuple(accounts),
        )
        return write_plan(parts)

    def _pages(self, url: str, steps: LineSteps) -> list[PageFields] | None:
        settings = self._settings
        processor = settings.text("processor") or "text_json_diff"
        content_type = settings.text("content-type").lower()
        if processor == "image_ssim_diff" or "pdf" in content_type:
            kind = "screenshots" if processor == "image_ssim_diff" else "PDF documents"
            self._notes.append(f"No plan can be written: aioflow does not compare {kind}.")
            return None
        if processor == "restock_diff":
            self._notes.append(
                "The plan reads price and availability from the data for machines (JSON-LD) in the page; "
                "limits of prices, and stock that only the text tells, were left out."
            )
            return [product_offer()]
        if processor != "text_json_diff":
            self._notes.append(
                f"The processor {processor!r} is unknown; the plan compares the text of the page."
            )
        if url.startswith("source:"):
            return [source_lines()]
        notes = FilterNotes()
        pages = page_fields(
            settings.texts("include_filters"),
            settings.texts("subtractive_selectors", with_global=True),
            content_type,
            notes,
            as_lines=steps != LineSteps(),
        )
        self._notes += notes.notes
        self._needs_attention |= notes.lost_all
        return pages

    def _steps(self) -> LineSteps:
        settings = self._settings

        def rules(setting: str, *, with_global: bool = False) -> str:
            return self._noted(matching_lines(settings.texts(setting, with_global=with_global), setting))

        return LineSteps(
            ignored=rules("ignore_text", with_global=True),
            kept=containing(settings.texts("extract_lines_containing")),
            extracted=self._noted(extraction(settings.texts("extract_text"))),
            trigger=rules("trigger_text"),
            forbidden=rules("text_should_not_be_present"),
        )

    def _noted(self, rules: LineRules) -> str:
        self._notes += rules.notes
        return rules.expression

    def _message(self, url: str) -> WatchMessage:
        settings = self._settings
        known = {
            "watch_url": url,
            "watch_title": self._title,
            "watch_tag": ", ".join(self._tags),
            "watch_open_url": url,
        }
        title, body = settings.cascading("notification_title"), settings.cascading("notification_body")
        subject = _filled(title, {name: plain(value) for name, value in known.items()}, _DEFAULT_TITLE)
        text = _filled(body, known, _DEFAULT_BODY, table="{{ table }}")
        for part, found in (("title", subject), ("text", text)):
            if found is None:
                self._notes.append(f"The template for the {part} of its notifications was left out.")
        added, removed = settings.flag("filter_text_added", True), settings.flag("filter_text_removed", True)
        if not settings.flag("filter_text_replaced", True):
            self._notes.append("A line that was replaced is told as one that is gone and one that is new.")
        name = plain(self._title)
        return WatchMessage(
            subject or f"{{{{ count|plural('change', 'changes') }}}}: {name}",
            subject or f"{{count}} changes: {name}",
            text or "",
            tells_new=added or not removed,
            tells_gone=removed or not added,
        )

    def _note_the_rest(self) -> None:
        settings = self._settings
        fetcher = settings.text("fetch_backend") or "system"
        if fetcher == "system":
            default = settings.whole_installation("fetch_backend")
            fetcher = default if isinstance(default, str) else "system"
        if fetcher not in _PLAIN_FETCHERS:
            self._notes.append(
                "It was fetched by a browser, which plans do not have: text that scripts make is missing."
            )
            self._needs_attention = True
        for key, sentence in _WITHOUT_COUNTERPART.items():
            if settings.is_set(key):
                self._notes.append(sentence)
                self._needs_attention |= key in ("browser_steps", "webdriver_js_execute_code")

    def _checked(self, plan: str) -> str:
        """Return a plan that passes the check; otherwise none, and a note with the first mistake."""
        mistakes = _mistakes(plan) if plan else []
        if not mistakes:
            return plan
        self._notes.append(f"No plan can be written: {mistakes[0]}.")
        return ""


def _filled(
    template: object, known: Mapping[str, str], default: str, *, table: str | None = None
) -> str | None:
    """Return a template with its names filled in: empty for the default, None if it has names of others."""
    if (
        not isinstance(template, str)
        or not template.strip()
        or template.strip() in (default, "System default")
    ):
        return ""
    unknown = []

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if table is not None and _DIFFERENCES.fullmatch(name):
            return "\0"
        if name not in known:
            unknown.append(name)
        return re.sub("[{}]", "", known.get(name, ""))

    text = _OLD_TOKEN.sub(value, _TOKEN.sub(value, template.strip()))
    if unknown or "{{" in text or "{%" in text or "{#" in text:
        return None
    if table is None:
        return plain(text)
    return text.replace("\0", table)


def _mistakes(plan: str) -> list[str]:
    from aioflow.engine import Engine
    from aioflow.language.loader import loads

    try:
        found = Engine().check(loads(plan))
    except AioflowError as error:
        return [str(error).splitlines()[0]]
    return [each.shown_message for each in found if each.severity == "error"]
