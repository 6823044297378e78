"""`aioflow shell`: try selectors on a page and build a wrapper from those that work, line by line.

What a line means is decided here; the terminal is for `aioflow.cli.commands.shell`.

The lines that a shell is given: typed at a terminal, with history and completion, or piped in.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from aioflow.cli.commands.fetch import shown_url, status_text
from aioflow.cli.config import web_configuration, web_options
from aioflow.cli.exit import FAILED, OK, for_terminal, guarded, print_message, report
from aioflow.cli.options import Cache, Offline, Record, Replay
from aioflow.cli.output.colour import Colour, shortened
from aioflow.cli.output.formats import Columns
from aioflow.cli.pages import Browser, Extracted, FetchedPage, extract, reader_for, saved_page, wrapper_of
from aioflow.config.configuration import Configuration
from aioflow.config.folders import data_folder
from aioflow.errors import AioflowError, InputError, PlanError, suggestion
from aioflow.language import loads
from aioflow.language.literals import write_string
from aioflow.relation import Relation, Schema, Value
from aioflow.values.cells import cell
from aioflow.values.display import visible
from aioflow.values.quantities import count_text
from aioflow.web.http import Request
from aioflow.web.settings import web_settings
from aioflow.wrappers.language import WrapperText, print_wrapper

Command: TypeAlias = Callable[["Shell", str], Iterator[str]]

SHOWN_MATCHES = 20
SHOWN_ITEMS = 5
# `name: "selector" words` or `name:` alone: in CSS and XPath no blank follows a colon, nor does one end them.
_FIELD = re.compile(r"""(?P<name>`[^`]+`|"[^"]+"|[^\W\d][\w-]*)\s*:(\s+(?=["'=A-Za-z])|$)""")
_LINES = re.compile(r"csv\b|\w+ .*\b(lines|paragraphs)\b")
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_NAME_OF_NONE = "page"


@guarded
def shell(
    page: Annotated[
        str, typer.Argument(metavar="URL|FILE", help="A page of the web, or one that was saved.")
    ],
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
) -> None:
    """Try selectors on a page, and build a wrapper from those that work."""
    sys.exit(run_shell(page, web_configuration(web_options(offline, cache, record, replay))))


@dataclass
class WrapperDraft:
    """The wrapper so far: lines of its text. Fields go by their name."""

    reader: str = "html"
    each: str | None = None
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def has_page(self) -> bool:
        """Return whether there is a page around the items: not where the lines of a file are."""
        return not _LINES.match(self.reader)

    def entries(self, page: FetchedPage) -> list[str]:
        """The entries before the fields."""
        url = page.head.url if _ADDRESS.match(page.head.url) else "https://example.org/"
        # Braces in a template are inputs.
        lines = [f"GET: {write_string(url.replace('{', '%7B').replace('}', '%7D'))}"]
        if self.reader != "html":
            lines.append(f"READ: {self.reader}")
        if self.each is not None:
            lines.append(f"EACH: {write_string(self.each)}")
        return lines


class Shell:
    """A page and a draft; `do` carries out a line and gives what is to be shown."""

    def __init__(self, browser: Browser, paint: Colour, width: int | None = None) -> None:
        self.page: FetchedPage | None = None
        self.draft = WrapperDraft()
        self.has_ended = False
        self.name = _NAME_OF_NONE
        self._browser = browser
        self._paint = paint
        self._width = width or shutil.get_terminal_size().columns
        self._links: list[str] = []
        self._reader_was_said = False

    def do(self, line: str) -> Iterator[str]:
        """Carry out a line: a command, a field or a selector."""
        line = line.strip()
        if not line or line.startswith("#"):
            return
        if line.startswith(":"):
            name, _, rest = line[1:].partition(" ")
            command, rest = _command(name), rest.strip()
            if rest and command in _ALONE:
                raise InputError(f":{name.lower()} stands alone, without {rest!r}")
            yield from command(self, rest)
        elif _FIELD.match(line):
            yield from self.try_field(line)
        else:
            yield from self.try_selector(line)

    # --- pages ----------------------------------------------------------------------------------

    def open(self, target: str) -> Iterator[str]:
        """`:open URL|FILE|N`: another page; N is a link that :links numbered."""
        if target.isdecimal():
            if not 0 < int(target) <= len(self._links):
                raise InputError(f"there is no link {target}: :links numbers them")
            target = self._links[int(target) - 1]
        if not target:
            raise InputError(":open needs an address, a file or the number of a link")
        if _ADDRESS.match(target):
            page = self._browser.fetch(Request(target))
        elif Path(target).exists():
            page = saved_page(target)
        else:
            raise InputError(f"{target!r} is neither an http(s) address nor a file")
        self.page = page
        self._links = []
        # A draft with fields is for pages of one kind; without, each page is read as what it is.
        if not self._reader_was_said and not self.draft.fields:
            self._read_as(reader_for(page))
        yield self._summary(page)

    def _read_as(self, reader: str) -> None:
        if reader != self.draft.reader:
            # Its selectors are in another language.
            self.draft.reader, self.draft.each = reader, None

    def _summary(self, page: FetchedPage) -> str:
        status = page.head.status
        name = page.path or shown_url(page.head.url)
        text = f"{name}  {count_text(len(page.body), 'byte')}, read as {self.draft.reader}"
        if page.response is None:
            return text
        return f"{self._paint('bold green' if status < 400 else 'bold red', status_text(status))}  {text}"

    def links(self, wanted: str) -> Iterator[str]:
        """`:links [TEXT]`: the links of the page, numbered for :open; TEXT picks some."""
        # What is relative in a page that was saved leads to other files, if anywhere.
        kind = "" if self._loaded.response is None else "url"
        every_link = f'links: page each "a[href]" {{\nlink: "@href" {kind}\ntext: text\n}}'
        extracted = self._read([every_link], each=None, reader="html")
        relation = extracted.rows[0][0] if extracted.rows else None
        pairs = list(relation.rows) if isinstance(relation, Relation) else []
        labels: dict[str, str] = {}
        for link, text in pairs:
            if link and wanted.lower() in f"{link} {text or ''}".lower():
                labels[str(link)] = labels.get(str(link)) or str(text or "")
        found = list(labels.items())
        self._links = [link for link, _ in found]
        for number, (link, text) in enumerate(found, 1):
            address, label = self._paint("cyan", visible(link)), shortened(visible(text), 40)
            yield f"{self._paint('bold', f'{number:>4}')}  {address}  {label}".rstrip()
        if not found:
            yield "no links"

    def headers(self, rest: str) -> Iterator[str]:
        """`:headers`: the headers of the answer."""
        for name, value in self._loaded.head.headers.items():
            yield f"{self._paint('cyan', visible(name))}: {visible(value)}"

    def view(self, rest: str) -> Iterator[str]:
        """`:view [FILE]`: save the page as it came, and tell where."""
        if rest:
            path = Path(rest)
            path.write_bytes(self._loaded.body)
        else:
            ending = {"html": ".html", "xml": ".xml", "json": ".json", "csv": ".csv"}
            suffix = ending.get(self.draft.reader.split()[0], ".txt")
            with tempfile.NamedTemporaryFile(prefix="aioflow-page-", suffix=suffix, delete=False) as file:
                file.write(self._loaded.body)
            path = Path(file.name)
        yield str(path)

    # --- trying ---------------------------------------------------------------------------------

    def try_selector(self, selector: str) -> Iterator[str]:
        """Yield the matches of a selector: in each item if items are selected, else in the page."""
        in_page = selector.startswith("page ") or self.draft.each is None
        selector = write_string(selector.removeprefix("page ").strip())
        # `all` passes over what is empty; whether a selector is right is seen by what it matches.
        entries = [f"match: {selector} all", f"number: {selector} count"]
        if in_page and self.draft.has_page:
            entries = [entry.replace(": ", ": page ", 1) for entry in entries]
            matched = _matched(self._read(["OUTER", *entries], each=None))
            values, heading = (matched[0].values if matched else []), _matches_text(matched)
            yield self._paint("bold", heading)
            yield from self._numbered(values, SHOWN_MATCHES)
            return
        matched = _matched(self._read(entries, each=self.draft.each))
        items = sum(each.count > 0 for each in matched)
        heading = f"{_matches_text(matched)} in {items} of {count_text(len(matched), 'item')}"
        yield self._paint("bold", heading)
        yield from self._numbered([each.shown for each in matched], SHOWN_MATCHES)

    def try_field(self, line: str) -> Iterator[str]:
        """A field as it would stand in a WRAPPER; kept if it makes sense."""
        extracted, schema = self._read_all([line])
        name = schema.names[0]
        rows = extracted.rows
        nulls = sum(row[0] is None for row in rows)
        unreadable = extracted.unreadable.get(name, 0)
        text = f"{count_text(len(rows), 'row')}, {nulls} null"
        text += f", {unreadable} could not be read" if unreadable else ""
        self.draft.fields[name] = line
        heading = " ".join(
            [self._paint("bold cyan", name), *([str(kind)] if (kind := schema.types[0]) else [])]
        )
        yield f"{heading}  {self._paint('yellow' if nulls else 'dim', text)}"
        yield from self._numbered([row[0] for row in rows], SHOWN_ITEMS)

    def each(self, selector: str) -> Iterator[str]:
        """`:each SELECTOR`: the element that repeats; none without a selector."""
        if not selector:
            self.draft.each = None
            yield "no iterating element"
            return
        count = len(self._read(["place: response url"], each=selector).rows)
        self.draft.each = selector
        yield self._paint("bold" if count else "red", count_text(count, "item"))

    def reader(self, rest: str) -> Iterator[str]:
        """`:reader NAME …`: how the page is read: html, xml, json, csv, text; options as for READ."""
        if rest:
            self._read(["place: response url"], each=None, reader=rest)
            self.draft.reader, self.draft.each = rest, None
            self._reader_was_said = True
        yield self.draft.reader

    # --- the draft ------------------------------------------------------------------------------

    def table(self, rest: str) -> Iterator[str]:
        """`:table [N]`: the rows so far, at most N."""
        if rest and not rest.isdecimal():
            raise InputError(f":table takes a number of rows, not {rest!r}")
        most = int(rest) if rest else SHOWN_MATCHES
        extracted, schema = self._read_all(list(self._some_fields().values()))
        rows = extracted.rows[:most]
        columns = Columns(schema.names, rows, self._width if self._paint.is_on else None)
        yield from columns.header().splitlines()
        yield from (columns.line(row).rstrip("\n") for row in rows)
        yield self._paint("dim", count_text(len(extracted.rows), "row"))

    def wrapper(self, rest: str) -> Iterator[str]:
        """`:wrapper [NAME]`: the WRAPPER so far, to be pasted into a plan."""
        self.name = rest or self.name
        text = self._text(self._some_fields().values(), self.draft.each, self.draft.reader, self.name)
        content = loads(text, "shell").items[0].content
        assert isinstance(content, WrapperText)
        yield print_wrapper(content).rstrip("\n")

    def drop(self, name: str) -> Iterator[str]:
        """`:drop NAME`: leave a field out again."""
        if name not in self.draft.fields:
            raise InputError(f"there is no field {name!r}{suggestion(name, self.draft.fields)}")
        del self.draft.fields[name]
        yield f"fields: {', '.join(self.draft.fields) or 'none'}"

    def _some_fields(self) -> Mapping[str, str]:
        if not self.draft.fields:
            raise InputError('there are no fields yet: try one as title: "h1"')
        return self.draft.fields

    # --- reading --------------------------------------------------------------------------------

    @property
    def _loaded(self) -> FetchedPage:
        if self.page is None:
            raise InputError("there is no page: :open one")
        return self.page

    def _text(self, entries: Iterable[str], each: str | None, reader: str, name: str) -> str:
        draft = WrapperDraft(reader, each)
        body = "\n".join([*draft.entries(self._loaded), *entries])
        return f"WRAPPER {name} ()\n{{\n{body}\n}}\nPLAN of-the-shell {{ BODY {{ }} }}"

    def _read(self, entries: Sequence[str], *, each: str | None, reader: str | None = None) -> Extracted:
        text = self._text(entries, each, reader or self.draft.reader, self.name)
        return extract(wrapper_of(loads(text, "shell"), self.name).extraction, self._loaded)

    def _read_all(self, entries: Sequence[str]) -> tuple[Extracted, Schema]:
        text = self._text(entries, self.draft.each, self.draft.reader, self.name)
        wrapper = wrapper_of(loads(text, "shell"), self.name)
        return extract(wrapper.extraction, self._loaded), wrapper.schema

    def _numbered(self, values: Sequence[Value], most: int) -> Iterator[str]:
        for number, value in enumerate(values[:most], 1):
            text = "null" if value is None else shortened(visible(cell(value)), self._width - 8)
            style = "red" if value is None else "green"
            yield f"{self._paint('dim', f'{number:>4}')}  {self._paint(style, text)}"
        if len(values) > most:
            yield self._paint("dim", f"      … and {len(values) - most:,} more")

    # --- the rest -------------------------------------------------------------------------------

    def help(self, rest: str) -> Iterator[str]:
        """`:help`: what can be typed here."""
        yield "SELECTOR               what it matches, in each item or in the page; page SELECTOR in the page"
        yield 'name: "SELECTOR" word  a field as in a WRAPPER: price: ".price" number'
        for command in COMMANDS.values():
            usage, _, meaning = (command.__doc__ or "").partition("`: ")
            yield f"{usage.strip('`'):<22} {meaning.rstrip('.')}"

    def quit(self, rest: str) -> Iterator[str]:
        """`:quit`: leave, as at the end of the input."""
        self.has_ended = True
        return iter(())


@dataclass(frozen=True)
class Matched:
    """The matches of a selector in one place: the values, and their number with the empty ones."""

    values: Sequence[Value]
    count: int

    @property
    def shown(self) -> Value:
        """One value for all of them; None where there is none."""
        if len(self.values) > 1:
            return " | ".join(map(cell, self.values))
        return self.values[0] if self.values else None


def _matched(extracted: Extracted) -> list[Matched]:
    """Of fields that take and count all matches."""
    found = []
    for taken, counted in extracted.rows:
        values = [row[0] for row in taken.rows] if isinstance(taken, Relation) else []
        found.append(Matched(values, max(len(values), counted if isinstance(counted, int) else 0)))
    return found


def _matches_text(matched: Sequence[Matched]) -> str:
    count = sum(each.count for each in matched)
    empty = count - sum(len(each.values) for each in matched)
    text = count_text(count, "match", "matches")
    return f"{text} ({empty:,} empty)" if empty else text


COMMANDS: Mapping[str, Command] = {
    "each": Shell.each,
    "reader": Shell.reader,
    "table": Shell.table,
    "wrapper": Shell.wrapper,
    "drop": Shell.drop,
    "links": Shell.links,
    "open": Shell.open,
    "view": Shell.view,
    "headers": Shell.headers,
    "help": Shell.help,
    "quit": Shell.quit,
}
_ALONE: Sequence[Command] = (Shell.headers, Shell.help, Shell.quit)


def _command(name: str) -> Command:
    found = COMMANDS.get(name.lower())
    if found is None:
        near = suggestion(f":{name}", [f":{known}" for known in COMMANDS])
        raise InputError(f"unknown command :{name}{near or '; :help lists them'}")
    return found


PROMPT = "aioflow> "
HISTORY_LINES = 1000
_MOST_NAMES = 5000
_NAMES = (
    re.compile(rb"<([A-Za-z][\w-]*)"),
    re.compile(rb"\s([a-z][\w-]*)\s*="),
    re.compile(rb'"([A-Za-z_][\w-]*)"\s*:'),
)
_CLASSES = re.compile(rb"""\sclass\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>=`]+))""", re.IGNORECASE)
_IDENTITIES = re.compile(rb"""\sid\s*=\s*["']?([^\s"'<>=`]+)""", re.IGNORECASE)


def run_shell(target: str, configuration: Configuration) -> int:
    """Open a page and carry out lines until they end; returns the exit code."""
    browser = Browser(web_settings(configuration))
    shell = Shell(browser, Colour())
    try:
        if not _carried_out(shell, f":open {target}"):
            return FAILED
        if sys.stdin.isatty():
            _converse(shell)
            return OK
        # Nobody is there to try again: what went wrong shows in the exit code.
        well = [_carried_out(shell, line) for line in _lines(shell)]
        return OK if all(well) else FAILED
    finally:
        browser.close()


def _lines(shell: Shell) -> Iterator[str]:
    for line in sys.stdin:
        if shell.has_ended:
            return
        yield line


def _converse(shell: Shell) -> None:
    with _line_editing(shell):
        print("Type a selector, a field or :help.")
        while not shell.has_ended:
            try:
                line = input(PROMPT)
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                print()
                continue
            _carried_out(shell, line)


def _carried_out(shell: Shell, line: str) -> bool:
    """Carry out a line and show what it gives; False if it went wrong, which is told."""
    try:
        for text in shell.do(line):
            print(text)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return False
    except PlanError as error:
        for diagnostic in error.diagnostics:
            print_message("error", diagnostic.message)
            if diagnostic.span is not None:
                print(for_terminal(diagnostic.span.excerpt, sys.stderr), file=sys.stderr)
        return False
    except (AioflowError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        report(error)
        return False
    return True


# --- readline -----------------------------------------------------------------------------------


@contextmanager
def _line_editing(shell: Shell) -> Iterator[None]:
    """History and completion, where the interpreter has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    history = data_folder() / "shell_history"
    with suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(HISTORY_LINES)
    readline.set_completer_delims(" \t\n>+~,\"'()[]/|")
    readline.set_completer(completer(shell))
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)


def completer(shell: Shell) -> Callable[[str, int], str | None]:
    """Completes commands, and names of the page: elements, attributes, .classes, #identities, keys."""
    names: dict[str, Any] = {"page": None, "words": []}

    def complete(text: str, state: int) -> str | None:
        if names["page"] is not shell.page:
            names["page"], names["words"] = shell.page, names_in(shell.page)
        found = list(completions(text, names["words"], in_brackets=_follows_bracket()))
        return found[state] if state < len(found) else None

    return complete


def _follows_bracket() -> bool:
    """Return whether the word that is to be completed is the name of an attribute: `li[da`."""
    import readline

    return readline.get_line_buffer()[: readline.get_begidx()].endswith("[")


def completions(text: str, words: list[str], *, in_brackets: bool = False) -> Iterator[str]:
    """Return the completions of a word. `in_brackets` of CSS it is an attribute."""
    if in_brackets:
        yield from (word[1:] for word in words if word.startswith(f"@{text}") and word != f"@{text}")
        return
    if text.startswith(":"):
        yield from (f":{name} " for name in COMMANDS if name.startswith(text[1:]))
        return
    # Of li.house only the last part is completed.
    start = max(text.rfind("."), text.rfind("#"), text.rfind("@"), 0)
    before, begun = text[:start], text[start:]
    yield from (before + word for word in words if word.startswith(begun) and word != begun)


def names_in(page: FetchedPage | None) -> list[str]:
    """The names that a selector for this page may be made of."""
    if page is None:
        return []
    found: dict[bytes, None] = {}
    elements, attributes, keys = (dict.fromkeys(pattern.findall(page.body)) for pattern in _NAMES)
    found |= dict.fromkeys(name.lower() for name in elements) | keys
    found |= dict.fromkeys(b"@" + name for name in attributes)
    for quoted_ways in _CLASSES.findall(page.body):
        found |= dict.fromkeys(b"." + name for name in b"".join(quoted_ways).split())
    found |= dict.fromkeys(b"#" + name for name in _IDENTITIES.findall(page.body))
    return sorted(name.decode("utf-8", "replace") for name in list(found)[:_MOST_NAMES])
