"""How commands speak: for people, for programs, and when they refuse."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console

from tacit.exceptions import BudgetExceeded, LedgerDamaged, LedgerUnavailable

__all__ = [
    "REFUTED",
    "UNSOUND",
    "Rejected",
    "clean",
    "explained",
    "json_option",
    "out",
    "warn_of_budget",
]


class Rejected(click.ClickException):
    """Something the user gave cannot be used; the message says what to do."""

    exit_code = 2  # bad input


UNEXPECTED, BAD_INPUT, OVER_BUDGET, UNSOUND, REFUTED, INTERRUPTED = 1, 2, 3, 4, 5, 130
# The kinds of refusal, most particular first
EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (BudgetExceeded, OVER_BUDGET),
    (LedgerUnavailable, UNSOUND),
    (LedgerDamaged, UNSOUND),
    (ValueError, BAD_INPUT),
    (OSError, BAD_INPUT),
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object, for programs."
)


def out(as_json: bool, data: dict[str, Any], human: Callable[[Console], None]) -> None:
    """Print a result, as JSON or for people."""
    if as_json:
        click.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
        return
    # a pipe has no width of its own, and tables cut to 80 columns lose their cells
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    human(console)


def warn_of_budget(budget: Any, n_rows: int | None = None) -> None:
    """Print in what a guarantee is weak; to be called before anything is charged.

    ``n_rows`` is public or planned. Warnings go to standard error, also with --json.
    """
    from tacit.privacy.weak_budgets import budget_warnings  # noqa: PLC0415

    for warning in budget_warnings(budget, n_rows):
        click.echo(f"tacit: warning: {warning}", err=True)


def clean(text: str) -> str:
    """Return text without characters that would steer the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def explained(group: click.Group, arguments: list[str]) -> int:
    """Run a command and return its exit code, with one sentence for what went wrong."""
    try:
        result = group.main(arguments, prog_name="tacit", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        _say(arguments, "Interrupted. What was charged stays charged.", INTERRUPTED)
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return BAD_INPUT
    except click.ClickException as error:
        usage = getattr(error, "ctx", None)
        hint = f" See '{usage.command_path} --help'." if usage is not None else ""
        _say(arguments, error.format_message() + hint, error.exit_code)
        return error.exit_code
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        return 0
    except Exception as error:
        if os.environ.get("TACIT_DEBUG"):
            raise
        for kind, code in EXIT_CODES:
            if isinstance(error, kind):
                _say(arguments, _sentence(error), code)
                return code
        # the message of an unknown error may quote a row, so it is not shown
        _say(
            arguments,
            f"Unexpected {type(error).__name__}. Set TACIT_DEBUG=1 to see where; the "
            "message may then quote rows.",
            UNEXPECTED,
        )
        return UNEXPECTED
    return result if isinstance(result, int) else 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}."
    return str(error)


def _say(arguments: list[str], message: str, code: int) -> None:
    if "--json" in arguments:
        click.echo(json.dumps({"error": message, "exit_code": code}))
    else:
        click.echo(f"tacit: {message}", err=True)
