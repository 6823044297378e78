"""How `aioflow run` concludes, whatever ends the run: the account on stderr, and the file of `--report`."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aioflow.account import RunAccount, error_as_json
from aioflow.cli.destination import check_replaceable, replace_file
from aioflow.cli.ending import FAILED, OK, exit_code, for_terminal, os_error_text, tell
from aioflow.cli.inputs import input_sources, read_parameters
from aioflow.cli.logs import COMMAND
from aioflow.cli.loop import last_words, signals_received
from aioflow.errors import InputError
from aioflow.plan import Program
from aioflow.secrets import MASK, masked
from aioflow.section import is_sensitive

if TYPE_CHECKING:
    from aioflow.cli.run import RunOptions
    from aioflow.results import RunStream

_LOG = logging.getLogger(COMMAND)
_REPORT = "the report"


class Conclusion:
    """Knows of a run what there is to tell of it when it ends."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._started = datetime.now(UTC)
        self._is_told = False
        self.shows_account = not options.quiet
        self.program: Program | None = None
        self.stream: RunStream | None = None
        self.reader_left = False

    def check(self) -> None:
        """Find out before the run whether there is a place for the report."""
        path = self._options.report
        folder = os.path.dirname(path or "") or "."
        if path is not None and not os.path.isdir(folder):
            raise InputError(f"cannot write {_REPORT}: there is no folder {folder!r}")
        if path is not None:
            check_replaceable(path, _REPORT)

    def tell(self, code: int, error: BaseException | None) -> bool:
        """Tell it once; whether the report, if there is to be one, could be written."""
        if self._is_told:
            return True
        self._is_told = True
        account = self._account(error)
        lines = () if account is None else account.lines()
        for line in lines:
            _LOG.info("%s", line)
        if error is not None and not isinstance(error, SystemExit):
            _LOG.error("%s", error)
        if self.shows_account and not self.reader_left:
            text = for_terminal("\n  ".join(lines), sys.stderr)
            print(text, end="\n" if lines else "", file=sys.stderr, flush=True)
        return self._options.report is None or self._write(self._options.report, code, account, error)

    def interrupted(self) -> None:
        """Tell it before a signal ends the process."""
        self.tell(128 + signals_received[0], None)

    def _account(self, error: BaseException | None) -> RunAccount | None:
        if self.stream is None:
            return None
        account = self.stream.account()
        if account.outcome == "not started":
            return None
        if error is not None and not isinstance(error, SystemExit):
            return account if account.failure is error else account.failed_with(error)
        if signals_received and account.outcome != "failed" and not self.stream.is_complete:
            return replace(account, outcome="interrupted")
        # To the engine, a task that waits for rows in vain is cancelled, whatever the reason.
        has_left = self.reader_left and account.outcome == "interrupted"
        return replace(account, outcome="stopped") if has_left else account

    # --- the report -----------------------------------------------------------------------------

    def _write(self, path: str, code: int, account: RunAccount | None, error: BaseException | None) -> bool:
        told = self._refused(error) if account is None else account.as_json()
        first = {name: told[name] for name in ("version", "aioflow", "plan")}
        first |= {"file": self._options.plan_path, "outcome": told["outcome"], "exit-code": code}
        told = first | told | self._given(told["inputs"])
        text = json.dumps(masked(told), ensure_ascii=False, indent=2, default=str)
        try:
            replace_file(path, text + "\n", _REPORT)
        except OSError as failure:
            tell("error", f"cannot write {_REPORT}: {os_error_text(failure)}")
            return False
        except InputError as failure:
            tell("error", str(failure))
            return False
        return True

    def _refused(self, error: BaseException | None) -> dict[str, Any]:
        """The report of a run that never began."""
        plan = "" if self.program is None else self.program.name
        nothing = RunAccount("", plan, "refused", self._started, 0.0, {}, {}, {}, {}, (), (), (), None, ())
        return nothing.as_json() | {"error": None if error is None else error_as_json(error)}

    def _given(self, taken: dict[str, Any]) -> dict[str, Any]:
        """Where inputs came from, and what parameters were set to."""
        if self.program is None:
            return {"parameters": {}}
        plan, options = self.program.main, self._options
        try:
            sources = input_sources(options.inputs, plan)
            parameters = read_parameters(options.parameters, plan, all_needed=False)
        except InputError:  # which is what the report is about
            return {"parameters": {}}
        inputs = {name: {**taken.get(name, {"rows": 0}), "from": source} for name, source in sources.items()}
        shown = {name: MASK if is_sensitive((name,)) else value for name, value in parameters.items()}
        return {"inputs": inputs, "parameters": shown}


@contextmanager
def concluded(options: RunOptions) -> Iterator[Conclusion]:
    """Have a run tell how it went, also where an error or a signal ends it."""
    conclusion = Conclusion(options)
    conclusion.check()
    last_words.append(conclusion.interrupted)
    try:
        yield conclusion
    except BaseException as error:
        conclusion.tell(exit_code(error), error)
        raise
    else:
        if not conclusion.tell(OK, None):
            sys.exit(FAILED)
    finally:
        last_words.remove(conclusion.interrupted)
