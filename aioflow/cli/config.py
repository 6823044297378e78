"""The settings that a command works with: its options, then all that `aioflow.configuration` reads.

`aioflow config` shows them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aioflow.cli.ending import colours
from aioflow.configuration import DEFAULT, Configuration, read_configuration
from aioflow.section import ENGINE_ARGUMENTS, Place, Setting


def engine_defaults() -> dict[str, Any]:
    """What the engine does when nothing is set, by argument."""
    from inspect import signature

    from aioflow.engine import Engine

    parameters = signature(Engine).parameters
    return {argument: parameters[argument].default for argument in ENGINE_ARGUMENTS.values()}


def effective_settings(options: Mapping[str, Any], plan_path: str | None = None) -> Configuration:
    """The settings in force for a command; options that were not given are None or empty."""

    def label(place: Place) -> str:
        is_off = place == ("http", "cache") and options["http"]["cache"] is False
        return f"--{'no-' if is_off else ''}{place[-1]}"

    return read_configuration(None if plan_path is None else Path(plan_path).parent, options, label=label)


def web_options(
    offline: bool, cache: bool | None, record: str | None, replay: str | None
) -> dict[str, dict[str, Any]]:
    """The options about answers that are kept, as the table that they stand for."""
    return {"http": {"offline": offline or None, "cache": cache, "record": record, "replay": replay}}


def show_settings(configuration: Configuration, *, as_json: bool) -> None:
    """Every setting in force and where it came from; what must be secret is masked."""
    defaults = engine_defaults()
    settings = [_with_default(setting, defaults) for setting in configuration.settings()]
    if as_json:
        for setting in settings:
            entry = {"setting": setting.name, "value": setting.public_value, "from": setting.where}
            print(json.dumps(entry, ensure_ascii=False, default=str))
        return
    width = max(len(setting.name) for setting in settings)
    # One long value does not push the origins of all others off the screen.
    room = min(max(len(str(setting)) for setting in settings), 30)
    dim, plain = ("\x1b[2m", "\x1b[0m") if colours(sys.stdout) else ("", "")
    for setting in settings:
        where = f"{dim}{setting.where}{plain}" if setting.where == DEFAULT else setting.where
        print(f"{setting.name:<{width}}  {setting!s:<{room}}  {where}")


def _with_default(setting: Setting, defaults: Mapping[str, Any]) -> Setting:
    """What the engine itself decides shown as if it had been set."""
    argument = ENGINE_ARGUMENTS.get(setting.name)
    return (
        setting
        if argument is None or setting.value is not None
        else replace(setting, value=defaults[argument])
    )
