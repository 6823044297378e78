"""`aioflow task`: its commands, by subject."""

from __future__ import annotations

import typer

from aioflow.cli.commands.task.change import task_add, task_edit
from aioflow.cli.commands.task.look import task_history, task_list, task_logs, task_show
from aioflow.cli.commands.task.next import task_next
from aioflow.cli.commands.task.state import task_cancel, task_pause, task_remove, task_resume, task_run
from aioflow.cli.commands.task.transfer import task_export, task_import

task = typer.Typer(
    help="Add, change, run and look at tasks: plans that run on a schedule. A service (`aioflow serve`) runs "
    "them; it notices changes within a second.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
task.command("add")(task_add)
task.command("list")(task_list)
task.command("show")(task_show)
task.command("edit")(task_edit)
task.command("pause")(task_pause)
task.command("resume")(task_resume)
task.command("run")(task_run)
task.command("cancel")(task_cancel)
task.command("remove")(task_remove)
task.command("next")(task_next)
task.command("history")(task_history)
task.command("logs")(task_logs)
task.command("export")(task_export)
task.command("import")(task_import)
