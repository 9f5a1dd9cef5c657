"""The command line.

A command is one file in `tacit.cli.commands` with a click command, or a group of them,
named ``command``. The name of the file is the name of the command; nothing else
registers it. Commands import heavy packages when they run, so that help stays fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import click

from tacit import __version__
from tacit.cli import commands
from tacit.cli._console import explained

__all__ = ["main", "tacit"]


class _OneFileEach(click.Group):
    """A group whose commands are the modules of `tacit.cli.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        # checked first, so that an import error in a command is not taken for a typo
        if name not in self.list_commands(ctx):
            return None
        found: click.Command = import_module(f"{commands.__name__}.{name}").command
        return found


SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=_OneFileEach, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="tacit")
def tacit() -> None:
    """Differentially private learning: plan, fit, and keep account of the budget.

    Exit codes: 0 done; 1 unexpected error; 2 bad input; 3 over budget; 4 ledger
    unavailable or damaged; 5 an audit refutes a guarantee; 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(explained(tacit, given))
