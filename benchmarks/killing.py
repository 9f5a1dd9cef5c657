"""Commands in processes of their own, which can be killed for good."""

from __future__ import annotations

import os
import signal
import sys
import time

from tacit.cli import main as tacit

__all__ = ["CODE", "ended", "forked", "started"]

# What a new interpreter runs
CODE = "from tacit.cli import main; main()"


def forked(given: list[str]) -> int:
    """Run a command in a fork of this process, and return which it is."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        tacit(given)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


def started(given: list[str]) -> int:
    """Run a command in a new interpreter, and return which process it is."""
    quiet = [
        (os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)
    ]
    words = [sys.executable, "-c", CODE, *given]
    return os.posix_spawn(sys.executable, words, os.environ, file_actions=quiet)


def ended(child: int, seconds: float = 0.0) -> int:
    """Kill a process unless it ends within so many seconds; return its exit code."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
