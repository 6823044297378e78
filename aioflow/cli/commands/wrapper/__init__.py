"""`aioflow wrapper`: its commands, one file each."""

from __future__ import annotations

import typer

from aioflow.cli.commands.wrapper.list import wrapper_list
from aioflow.cli.commands.wrapper.test import wrapper_test

wrapper = typer.Typer(
    help="List wrappers, and try one on a page.", no_args_is_help=True, rich_markup_mode=None
)
wrapper.command("test")(wrapper_test)
wrapper.command("list")(wrapper_list)
