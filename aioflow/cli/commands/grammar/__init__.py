"""`aioflow grammar`: its commands, one file each."""

from __future__ import annotations

import typer

from aioflow.cli.commands.grammar.debug import grammar_debug
from aioflow.cli.commands.grammar.explain import grammar_explain
from aioflow.cli.commands.grammar.learn import grammar_learn
from aioflow.cli.commands.grammar.test import grammar_test

grammar = typer.Typer(
    help="Try a grammar on sources, see what it matches and why, and learn one from examples.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
grammar.command("test")(grammar_test)
grammar.command("debug")(grammar_debug)
grammar.command("explain")(grammar_explain)
grammar.command("learn")(grammar_learn)
