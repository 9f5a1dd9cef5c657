"""Processes that end at any call, as if killed there, and forks that are refused."""

import os
from contextlib import contextmanager

from tacit.privacy import Ledger

__all__ = ["ended_at", "refused_in_a_fork"]


@contextmanager
def ended_at(monkeypatch, call, after, *, end=SystemExit, names=("fsync", "replace")):
    """End the process at a call of the system or of the ledger, before it or after.

    Calls are counted of these names of the system and of charges together; the names
    of those that were made are given.
    """
    made = []

    def ending(function):
        def called(*arguments, **options):
            made.append(function.__name__)
            if len(made) == call and not after:
                raise end
            result = function(*arguments, **options)
            if len(made) == call and after:
                if function.__name__ == "open":  # as the system does it
                    os.close(result)
                raise end
            return result

        return called

    with monkeypatch.context() as patch:
        for owner, name in (*((os, name) for name in names), (Ledger, "charge")):
            patch.setattr(owner, name, ending(getattr(owner, name)))
        yield made


def refused_in_a_fork(call):
    """Return whether a fork that makes the call is told whose it is."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            call()
        except ValueError as error:
            code = 0 if "belongs to the process" in str(error) else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
