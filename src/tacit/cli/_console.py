"""Output of commands: results, warnings, errors and the state of a ledger."""

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
    "account_facts",
    "clean",
    "cost_facts",
    "explained",
    "json_option",
    "out",
    "show_account",
    "spent_up",
    "warn_of_budget",
    "warn_of_noise",
]


class Rejected(click.ClickException):
    """Invalid input; the message says what to do."""

    exit_code = 2  # bad input


UNEXPECTED, BAD_INPUT, OVER_BUDGET, UNSOUND, REFUTED, INTERRUPTED = 1, 2, 3, 4, 5, 130
# Exit codes by kind of error, most specific first
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
    # a pipe has no width, and tables truncated to 80 columns lose their cells
    human(Console(highlight=False, markup=False, soft_wrap=not sys.stdout.isatty()))


def warn_of_budget(budget: Any, n_rows: int | None = None) -> None:
    """Print a warning about a weak guarantee; to be called before any charge.

    ``n_rows`` is public or planned. Warnings go to standard error, also with --json.
    """
    from tacit.privacy.budget import budget_warnings  # noqa: PLC0415

    for warning in budget_warnings(budget, n_rows):
        click.echo(f"tacit: warning: {warning}", err=True)


def warn_of_noise(planned: Any) -> None:
    """Print a warning where the noise of a plan exceeds any signal; before a charge."""
    from tacit._release import noise_warning  # noqa: PLC0415

    note = noise_warning(planned.assumptions)
    if note is not None:
        click.echo(f"tacit: warning: {note}.", err=True)


def spent_up(epsilon: float) -> str:
    """Return what is spent with four digits, rounded up."""
    from tacit.privacy import budget  # noqa: PLC0415

    return budget.spent_up(epsilon)


def clean(text: str) -> str:
    """Return a string without control characters of the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def explained(group: click.Group, arguments: list[str]) -> int:
    """Run a command and return its exit code; print one sentence for an error."""
    # long: one branch for each way in which a command ends
    opened: list[Any] = []  # ledgers, added by `tacit.cli._options.Account`
    try:
        result = group.main(
            arguments, prog_name="tacit", standalone_mode=False, obj=opened
        )
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        message = (
            "Interrupted. Charges made before the interrupt still count; 'tacit ledger "
            "show' prints what is spent."
            if opened
            else "Interrupted before any charge."
        )
        _print_error(arguments, message, INTERRUPTED)
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return BAD_INPUT
    except click.ClickException as error:
        usage = getattr(error, "ctx", None)
        hint = f" See '{usage.command_path} --help'." if usage is not None else ""
        _print_error(arguments, error.format_message() + hint, error.exit_code)
        return error.exit_code
    except BrokenPipeError:  # the reader of the pipe closed it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        return 0
    except Exception as error:
        if os.environ.get("TACIT_DEBUG"):
            raise
        for kind, code in EXIT_CODES:
            if isinstance(error, kind):
                _print_error(arguments, _sentence(error), code)
                return code
        # the message of an unknown error may quote a row, so it is not shown
        _print_error(
            arguments,
            f"Unexpected {type(error).__name__}. Set TACIT_DEBUG=1 to see the "
            "traceback; it may quote rows.",
            UNEXPECTED,
        )
        return UNEXPECTED
    return result if isinstance(result, int) else 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}."
    return str(error)


def _print_error(arguments: list[str], message: str, code: int) -> None:
    if "--json" in arguments:
        click.echo(json.dumps({"error": message, "exit_code": code}))
    else:
        click.echo(f"tacit: {message}", err=True)


def account_facts(ledger: Any) -> dict[str, Any] | None:
    """Return budget and spend of a ledger; None without a ledger."""
    if ledger is None:
        return None
    return {
        "dataset": ledger.dataset,
        "budget": ledger.budget.to_dict(),
        "spent": ledger.spent(),
    }


def cost_facts(ledger: Any, event: Any, budget: Any) -> dict[str, Any] | None:
    """Return budget and spend, and whether one more charge fits."""
    account = account_facts(ledger)
    if account is None:
        return None
    return {**account, "fits": ledger.admits(event, budget)}


def show_account(console: Console, account: dict[str, Any] | None) -> None:
    """Print budget and spend, and whether a charge fits if that was computed."""
    if account is None:
        return
    room = ""
    if "fits" in account:
        room = f"; the charge {'fits' if account['fits'] else 'DOES NOT FIT'}"
    console.print(
        f"ledger       {account['dataset']}: epsilon {spent_up(account['spent'])} of "
        f"{account['budget']['epsilon']:g} is spent{room}"
    )
