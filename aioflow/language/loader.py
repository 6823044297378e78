"""From a file to a Program: follows USE, checks that names are unique, and finds the main plan.

A program that is loaded from a snapshot of its files is the same whatever has become of them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import msgspec

from aioflow.config.configuration import FILE_NAME, read_configuration
from aioflow.config.sections import PLANS
from aioflow.errors import Diagnostic, InputError, PlanError, suggestion
from aioflow.language.kinds import item_kinds
from aioflow.language.parser import read_text
from aioflow.language.scanner import SIZE_AT_MOST
from aioflow.plan import Item, Plan, PlanFile, Program, Use
from aioflow.source import Span


class PlanSnapshot(msgspec.Struct, frozen=True, dict=True):
    """All files of a program, by path, and the file that each USE led to."""

    main: str
    files: Mapping[str, bytes]
    uses: Mapping[str, str] = msgspec.field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """The version of the program: equal texts at equal places have equal digests."""
        found = blake2b(self.main.encode("utf-8", "surrogatepass"), digest_size=8)
        for path in sorted(self.files):
            text = self.files[path]
            found.update(f"\0{path}\0{len(text)}\0".encode("utf-8", "surrogatepass"))
            found.update(text)
        return found.hexdigest()

    @property
    def text(self) -> bytes:
        """The text of the main file."""
        return self.files[self.main]

    def read(self, file: Path) -> bytes:
        return self.files[str(file)]

    def used(self, folder: Path, name: str) -> Path | None:
        """Return the file that `USE "name"` in a file of that folder led to."""
        found = self.uses.get(_use(folder, name))
        return None if found is None else Path(found)


class SnapshotRecorder:
    """Collects the files that a loader reads."""

    def __init__(self, main: Path) -> None:
        self._main = main
        self._files: dict[str, bytes] = {}
        self._uses: dict[str, str] = {}

    def note_file(self, file: Path, text: bytes) -> None:
        self._files[str(file)] = text

    def note_use(self, folder: Path, name: str, file: Path) -> None:
        self._uses[_use(folder, name)] = str(file)

    def snapshot(self) -> PlanSnapshot:
        return PlanSnapshot(str(self._main), self._files, self._uses)


def _use(folder: Path, name: str) -> str:
    return f"{folder}\n{name}"


# The name of the plan of a program that has none; no text can call it.
_NO_PLAN = ""
LIBRARY = Path(__file__).parents[1] / "plans"
SUFFIX = ".plan"
# Looking for a near name means to look at all files of some folders.
_HINTS_AT_MOST = 50


def load(path: str | os.PathLike[str], plan: str | None = None, *, any_plan: bool = False) -> Program:
    """Return the program in a file, with all it uses; a PlanError lists every mistake of all its files.

    The main plan is the one asked for, else the one named like the file, else the only one that no
    other plan of the file calls. With `any_plan` it is the first, if there is no such one; in a file of
    items only, the first plan that it uses, or one that does nothing.
    """
    file = Path(path)
    return _Loader(file.parent).program(read_plan_file(file), str(path), file.stem, plan, any_plan)


def loads(
    text: str | bytes,
    name: str = "<plan>",
    folder: str | os.PathLike[str] | None = None,
    plan: str | None = None,
    *,
    any_plan: bool = False,
) -> Program:
    """Return the program in a text; `folder` is where USE looks before the library.

    The main plan is found as `load` does.
    """
    loader = _Loader(None if folder is None else Path(folder))
    return loader.program(text, name, Path(name).stem, plan, any_plan)


def take_snapshot(path: str | os.PathLike[str], plan: str | None = None) -> tuple[Program, PlanSnapshot]:
    """Return the program in a file, and the texts that it was made of."""
    file = Path(os.path.abspath(path))
    recorder = SnapshotRecorder(file)
    text = read_plan_file(file)
    recorder.note_file(file, text)
    program = _Loader(file.parent, recorder=recorder).program(text, str(file), file.stem, plan)
    return program, recorder.snapshot()


def load_snapshot(snapshot: PlanSnapshot, plan: str | None = None) -> Program:
    """Return the program that a snapshot was taken of; the files themselves are not read."""
    file = Path(snapshot.main)
    return _Loader(file.parent, stored=snapshot).program(snapshot.text, str(file), file.stem, plan)


def read_plan_file(path: str | os.PathLike[str]) -> bytes:
    """Return the contents of a file; an InputError says why it cannot be read."""
    file = Path(path)
    try:
        if file.is_dir():
            raise InputError(f"{file} is a folder, not a plan file{_hint(file)}")
        return _read(file)
    except FileNotFoundError:
        near = _near(file.name, _plan_files(file.parent, _suffix(file.name)))
        raise InputError(f"there is no file {file}{near}") from None
    except PermissionError:
        raise InputError(f"there is no permission to read {file}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot read {str(file)!r}: {reason}") from None


def _hint(folder: Path) -> str:
    inside = _plan_files(folder)
    return f"; in it are {', '.join(inside[:5])}" if inside else ""


def _read(file: Path) -> bytes:
    with file.open("rb") as stream:
        # One byte too many is enough to see that a file is too large.
        return stream.read(SIZE_AT_MOST + 1)


def _suffix(name: str) -> str:
    """Return how the names of files end that may have been meant by a name."""
    return SUFFIX if item_kinds.of_file(name) is None else Path(name).suffix


def _plan_files(folder: Path, suffix: str = SUFFIX) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.suffix == suffix and entry.is_file())
    except OSError:
        return []


def _near(name: str, files: Iterable[str]) -> str:
    """Return a hint at a file with a name like this one; the common suffix does not count."""
    by_stem = {Path(file).stem.lower(): file for file in files}
    near = get_close_matches(name.removesuffix(_suffix(name)).lower(), by_stem, n=1)
    return f"; did you mean {by_stem[near[0]]!r}?" if near else ""


class _Place(msgspec.Struct, frozen=True):
    """A folder in which USE may find files, and the one that they must not leave."""

    folder: Path
    root: Path


class _Loader:
    """Reads a text and everything it uses, each file once."""

    def __init__(
        self,
        folder: Path | None,
        *,
        recorder: SnapshotRecorder | None = None,
        stored: PlanSnapshot | None = None,
    ) -> None:
        self._folder = folder
        self._recorder = recorder
        self._stored = stored
        self._root = None if folder is None else _root(folder)
        self._hints = 0
        self._diagnostics: list[Diagnostic] = []
        self._seen: set[Path] = set()
        self._waiting: deque[tuple[Use, Path, _Place]] = deque()
        self._files: list[PlanFile] = []

    def program(
        self, text: str | bytes, name: str, stem: str, wanted: str | None, any_plan: bool = False
    ) -> Program:
        if self._folder is not None:
            file = self._folder / Path(name).name
            self._seen.add(file.resolve() if self._stored is None else file)
        place = None if self._folder is None or self._root is None else _Place(self._folder, self._root)
        top = self._add(text, name, place)
        while self._waiting:
            self._read_used(*self._waiting.popleft())
        entries = [entry for plan_file in self._files for entry in plan_file.entries]
        plans = [entry for entry in entries if isinstance(entry, Plan)]
        items = [entry for entry in entries if isinstance(entry, Item)]
        self._report_repeated(plans, items)
        self._report_unknown_kinds(items)
        folder = None if self._folder is None else str(self._folder)
        if self._diagnostics:
            main = next(iter(plans), Plan(_NO_PLAN))
            raise PlanError(self._in_order(), Program(main, tuple(plans), tuple(items), folder))
        main = _main_plan(top, plans, name, stem, wanted, any_plan)
        return Program(main, tuple(plans), tuple(items), folder)

    def _add(self, text: str | bytes, name: str, place: _Place | None) -> PlanFile:
        plan_file, diagnostics = read_text(text, name)
        self._diagnostics += diagnostics
        self._files.append(plan_file)
        for entry in plan_file.entries:
            if isinstance(entry, Use):
                self._follow(entry, place)
        return plan_file

    def _read_used(self, use: Use, file: Path, place: _Place) -> None:
        try:
            content = _read(file) if self._stored is None else self._stored.read(file)
        except OSError as error:
            self._report(use, f"cannot read {file}: {error.strerror}")
            return
        if self._recorder is not None:
            self._recorder.note_file(file, content)
        self._add(content, str(file), place)

    def _in_order(self) -> list[Diagnostic]:
        """Return the mistakes file by file, in each in the order of its text."""
        order = {plan_file.source: number for number, plan_file in enumerate(self._files)}
        return sorted(
            self._diagnostics,
            key=lambda found: (order.get(found.span.source, -1), found.span.start) if found.span else (-1, 0),
        )

    # --- USE ------------------------------------------------------------------------------------

    def _follow(self, use: Use, beside: _Place | None) -> None:
        problem = _forbidden(use.path)
        if problem is not None:
            self._report(use, problem)
            return
        if self._stored is not None and beside is not None:
            found = self._stored.used(beside.folder, use.path)
            if found is not None:
                self._wait_for_stored(use, found)
            return
        for place in self._places(beside):
            file = place.folder / use.path
            if not _is_inside(file, place.root):
                if place is beside:
                    self._report(use, self._leads_out(use.path, place.root))
                    return
            elif _is_file(file):
                self._wait_for(use, file, place.root, beside)
                return
        self._report(use, self._not_found(use.path, beside))

    def _places(self, beside: _Place | None) -> Iterator[_Place]:
        """Yield the places of a file to try; the plan path is read only if the file was not found before."""
        if beside is not None:
            yield beside
        if beside is not None and beside.root != LIBRARY:
            yield from (_Place(folder, folder) for folder in self._plan_path)
        yield _Place(LIBRARY, LIBRARY)

    def _wait_for(self, use: Use, file: Path, root: Path, beside: _Place | None) -> None:
        real = file.resolve()
        plain = Path(os.path.normpath(file))
        shown = plain if plain.resolve() == real else file
        if self._recorder is not None and beside is not None:
            self._recorder.note_use(beside.folder, use.path, shown)
        if real not in self._seen:
            self._seen.add(real)
            self._waiting.append((use, shown, _Place(shown.parent, root)))

    def _wait_for_stored(self, use: Use, file: Path) -> None:
        if self._stored is not None and str(file) in self._stored.files and file not in self._seen:
            self._seen.add(file)
            self._waiting.append((use, file, _Place(file.parent, file.parent)))

    @cached_property
    def _plan_path(self) -> tuple[Path, ...]:
        """The folders of `[plans] path`, as the configuration in force for the main file says."""
        if self._root is None:
            return ()
        configuration = read_configuration(self._root)
        base = configuration.folder("plans", "path")
        return tuple(base / Path(each).expanduser() for each in configuration.section(PLANS).path)

    def _leads_out(self, path: str, root: Path) -> str:
        ways = "or list the other folder under [plans] path"
        if (root / FILE_NAME).is_file():
            return (
                f"{path!r} leads out of {root}, the folder of {FILE_NAME}: USE stays inside of it; "
                f"put {FILE_NAME} into a folder that holds both files, {ways}"
            )
        return (
            f"{path!r} leads out of the folder of the plan: USE may go up to the folder of {FILE_NAME}; "
            f"put one into a folder that holds both files, {ways}"
        )

    def _not_found(self, path: str, beside: _Place | None) -> str:
        folder, _, name = path.rpartition("/")
        places = list(self._places(beside))
        missing = next((each.folder for each in places if not each.folder.is_dir()), None)
        if missing is not None:
            return f"there is no file {path!r}, and no folder {missing}, which [plans] path names"
        words = ["beside this file"] if beside is not None else []
        words += ["in the folders of [plans] path"] if len(places) > 2 else []
        where = " or ".join(filter(None, [", ".join(words), "in the library"]))
        known = (file for place in places for file in _plan_files(place.folder / folder, _suffix(name)))
        return f"there is no file {path!r} {where}{self._near(name, known)}"

    def _near(self, name: str, files: Iterable[str]) -> str:
        """Return a hint at a near file, for the first mistakes: each looks at all files."""
        self._hints += 1
        return _near(name, files) if self._hints <= _HINTS_AT_MOST else ""

    def _report(self, use: Use, message: str) -> None:
        self._diagnostics.append(Diagnostic(message, use.span))

    # --- names ----------------------------------------------------------------------------------

    def _report_repeated(self, plans: Iterable[Plan], items: Iterable[Item]) -> None:
        first: dict[tuple[str, str], Plan | Item] = {}
        entries: list[Plan | Item] = [*plans, *items]
        for entry in entries:
            kind = entry.kind if isinstance(entry, Item) else "PLAN"
            known = first.setdefault((kind, entry.name.lower()), entry)
            if known is not entry and entry.name:
                place = known.name_span.place if known.name_span else "elsewhere"
                message = f"{kind} {entry.name!r} stands here and at {place}; a name can be given once"
                self._diagnostics.append(Diagnostic(message, entry.name_span))

    def _report_unknown_kinds(self, items: Iterable[Item]) -> None:
        for item in items:
            if item_kinds.get(item.kind) is None:
                hint = suggestion(item.kind, ("PLAN", *item_kinds.keywords()))
                message = f"unknown item kind {item.kind!r}{hint or '; no installed package provides it'}"
                span = item.span and Span(item.span.source, item.span.start, item.span.start + len(item.kind))
                self._diagnostics.append(Diagnostic(message, span))


def _is_inside(file: Path, root: Path) -> bool:
    try:
        return file.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):  # too long a name, a link to itself, a character such as NUL
        return True


def _root(folder: Path) -> Path:
    """Return the folder that USE must not leave: the nearest with an aioflow.toml, else that of the plan."""
    above = Path(os.path.abspath(folder))
    return next((each for each in (above, *above.parents) if (each / FILE_NAME).is_file()), folder)


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):
        # A name that is too long, for one.
        return False


def _forbidden(path: str) -> str | None:
    """Return the mistake in a path of USE, found before any file is looked at."""
    if not path.strip():
        return "USE needs the name of a file"
    if "\0" in path:
        return "a file name cannot hold the character NUL"
    if "\\" in path:
        return f"{path!r} holds a backslash; folders are parted by '/'"
    if path.startswith(("/", "~")) or path[1:2] == ":":
        return (
            f"USE takes a path that begins at the folder of this file, not {path!r}; "
            "folders elsewhere are listed under [plans] path"
        )
    return None


# --- the main plan ------------------------------------------------------------------------------


def _main_plan(
    top: PlanFile, plans: list[Plan], name: str, stem: str, wanted: str | None, any_plan: bool
) -> Plan:
    if wanted is not None:
        return _wanted_plan(plans, name, wanted)
    own = [entry for entry in top.entries if isinstance(entry, Plan)]
    if not own:
        if any_plan and top.entries:
            return plans[0] if plans else Plan(_NO_PLAN)
        raise InputError(f"{name} has no plan")
    roots = [plan for plan in own if plan.key == stem.lower()] or list(_uncalled(own))
    if len(roots) == 1:
        return roots[0]
    if any_plan:
        return own[0]
    reason = "every plan is called by another" if not roots else "none is called by another"
    names = [plan.name for plan in roots or own]
    raise InputError(f"{name} has no main plan: {reason}; ask for one by name{_list_of(names)}")


def _wanted_plan(plans: list[Plan], name: str, wanted: str) -> Plan:
    for plan in plans:
        if plan.key == wanted.lower():
            return plan
    names = [plan.name for plan in plans]
    raise InputError(f"{name} has no plan {wanted!r}{suggestion(wanted, names)}{_list_of(names)}")


def _uncalled(plans: list[Plan]) -> Iterator[Plan]:
    called = {
        name
        for plan in plans
        for name in {statement.operator.lower() for statement in plan.statements} - {plan.key}
    }
    return (plan for plan in plans if plan.key not in called)


def _list_of(names: list[str]) -> str:
    return f" (there are: {', '.join(names)})" if names else ""
