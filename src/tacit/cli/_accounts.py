"""What commands say of the ledger that pays: as plain data, and in one line."""

from __future__ import annotations

from typing import Any

from rich.console import Console

__all__ = ["account_facts", "cost_facts", "show_account"]


def account_facts(ledger: Any) -> dict[str, Any] | None:
    """Return what is spent of a ledger, None where there is none."""
    if ledger is None:
        return None
    return {
        "dataset": ledger.dataset,
        "budget": ledger.budget.to_dict(),
        "spent": ledger.spent(),
    }


def cost_facts(ledger: Any, event: Any, budget: Any) -> dict[str, Any] | None:
    """Return what is spent, and whether there is room for one charge more."""
    account = account_facts(ledger)
    if account is None:
        return None
    return {**account, "fits": ledger.admits(event, budget)}


def show_account(console: Console, account: dict[str, Any] | None) -> None:
    """Print what is spent, and whether there is room where that was asked."""
    if account is None:
        return
    room = ""
    if "fits" in account:
        room = f", and there is {'' if account['fits'] else 'NO '}room for it"
    console.print(
        f"ledger       {account['dataset']}: epsilon {account['spent']:.4g} of "
        f"{account['budget']['epsilon']:g} is spent{room}",
        markup=False,
    )
