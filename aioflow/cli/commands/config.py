"""`aioflow config`: the settings in force, and the origin of each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from aioflow.cli.config import effective_settings, engine_defaults
from aioflow.cli.exit import guarded, has_colours
from aioflow.cli.output.colour import print_json
from aioflow.config.configuration import DEFAULT, Configuration
from aioflow.config.sections import ENGINE_ARGUMENTS, SettingValue
from aioflow.errors import InputError


@guarded
def config(
    plan_path: Annotated[
        str | None,
        typer.Argument(metavar="PLAN", help="A plan file, for the settings that a run of it would have."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each setting.")] = False,
) -> None:
    """Show the settings in force and where each came from."""
    if plan_path is not None and not os.path.exists(plan_path):
        raise InputError(f"there is no file {plan_path}")
    show_settings(effective_settings({}, plan_path), as_json=json)


def show_settings(configuration: Configuration, *, as_json: bool) -> None:
    """Print every setting in force with its origin; secrets are masked."""
    defaults = engine_defaults()
    settings = [_with_default(setting, defaults) for setting in configuration.settings()]
    if as_json:
        for setting in settings:
            entry = {"setting": setting.name, "value": setting.public_value, "from": setting.where}
            print_json(entry)
        return
    width = max(len(setting.name) for setting in settings)
    # One long value does not push the origins of all others off the screen.
    room = min(max(len(str(setting)) for setting in settings), 30)
    dim, plain = ("\x1b[2m", "\x1b[0m") if has_colours(sys.stdout) else ("", "")
    for setting in settings:
        where = f"{dim}{setting.where}{plain}" if setting.where == DEFAULT else setting.where
        print(f"{setting.name:<{width}}  {setting!s:<{room}}  {where}")


def _with_default(setting: SettingValue, defaults: Mapping[str, Any]) -> SettingValue:
    """Return a setting that is not set with the default of the engine as its value."""
    argument = ENGINE_ARGUMENTS.get(setting.name)
    return (
        setting
        if argument is None or setting.value is not None
        else replace(setting, value=defaults[argument])
    )
