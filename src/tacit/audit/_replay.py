"""Record a run, replay it on a neighbor, and report what else differs."""

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit._release import Diverged, Draw, ReleaseLog, recording, replaying
from tacit.audit._state import leaves

__all__ = ["ReplayEntry", "ReplayReport", "assert_replays", "replay"]

SLACK = 1e-9  # relative room for rounding in the sums that enter a mechanism


@dataclass(frozen=True)
class ReplayEntry:
    """One release made by both runs, and how far its input moved.

    Parameters
    ----------
    label, shape, norm, sensitivity
        As declared by the mechanism in the first run.
    moved
        Distance between the two inputs in ``norm``.
    """

    label: str
    shape: tuple[int, ...]
    norm: str
    sensitivity: float
    moved: float


@dataclass(frozen=True)
class ReplayReport:
    """Differences between a run and its replay on neighboring data.

    Parameters
    ----------
    violations
        One plain sentence for each leak found.
    entries
        The releases that both runs made.
    raised
        The exception that ended the first run; empty when it finished.
    """

    violations: tuple[str, ...]
    entries: tuple[ReplayEntry, ...]
    raised: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing differed beyond the declared sensitivities."""
        return not self.violations

    def __str__(self) -> str:
        verdict = "ok" if self.ok else f"{len(self.violations)} violation(s)"
        lines = [f"Replay: {verdict}, {len(self.entries)} release(s) compared."]
        if self.raised:
            lines.append(f"  The first run raised {self.raised}")
        lines += [f"  - {sentence}" for sentence in self.violations]
        lines += [
            f"  {i}. {e.label} {e.shape}: moved {e.moved:.6g} of {e.sensitivity:.6g}"
            f" in {e.norm}"
            for i, e in enumerate(self.entries, start=1)
        ]
        return "\n".join(lines)


def replay(
    train: Callable[..., Any],
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    redraw: bool = False,
) -> ReplayReport:
    """Run ``train`` on two neighbors with the same mechanism outputs and compare.

    Parameters
    ----------
    train
        Called as ``train(*first)``, then as ``train(*second)``. It must take its
        public randomness (which rows are sampled, which coordinates are visited)
        from a fixed seed and return what it publishes: a fitted estimator, an array,
        or any nest of containers and dataclasses.
    first, second
        The arguments for the two neighboring data sets, as ``(X, y)``.
    redraw
        Also make the draws that are replaced. For trainers whose public randomness
        comes from the generator that the noise comes from.

    Notes
    -----
    **Guarantee.** None against what is not in the log; what is reported is real.
    With every mechanism output fixed, a run that is private by composition
    depends on the data only through mechanism inputs that move by at most their
    declared sensitivity. So each of these is a leak: another sequence of releases,
    shapes or sensitivities; another exception, warning, log line or output;
    another bit in the result; an input that moves too far. Running time is not
    compared, nor what numba logs as it compiles, nor what is printed below Python.
    """
    with recording() as log:
        before = _observe(train, first)
    with replaying(log, redraw=redraw) as again:
        after = _observe(train, second)
    entries, violations = _compare_logs(log, again)
    violations += _compare_views(before, after, diverged=again.diverged)
    return ReplayReport(tuple(violations), tuple(entries), before.raised)


def assert_replays(
    train: Callable[..., Any],
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    redraw: bool = False,
    min_releases: int = 1,
) -> ReplayReport:
    """Raise AssertionError, with the sentences, unless `replay` finds nothing.

    A first run that raises or that makes fewer than ``min_releases`` releases fails
    as well, since there is nothing to compare.
    """
    report = replay(train, first, second, redraw=redraw)
    problems = list(report.violations)
    if report.ok and report.raised:
        problems.append(f"The first run did not finish: it raised {report.raised}")
    if report.ok and len(report.entries) < min_releases:
        problems.append(
            f"The first run made {len(report.entries)} release(s) through the log, "
            f"fewer than the {min_releases} expected."
        )
    if problems:
        raise AssertionError("\n".join(problems))
    return report


@dataclass
class _Observed:
    """Everything an observer sees of a run, beside its releases."""

    result: dict[str, Any] = field(default_factory=dict)
    raised: str = ""
    diverged: bool = False
    stdout: str = ""
    stderr: str = ""
    warned: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(level=logging.NOTSET)
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        # a kernel is compiled in the first run or not at all, whatever the rows are
        if record.name.partition(".")[0] == "numba":
            return
        self.lines.append(f"{record.name}: {record.levelname}: {record.getMessage()}")


@contextlib.contextmanager
def _logs(lines: list[str]) -> Iterator[None]:
    # at every level: a line that is hidden by default is one setting from being read
    root = logging.getLogger()
    handlers, level, disabled = root.handlers, root.level, logging.root.manager.disable
    root.handlers = [_Lines(lines)]
    root.setLevel(1)
    logging.disable(logging.NOTSET)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
        logging.disable(disabled)


def _observe(train: Callable[..., Any], arguments: Sequence[Any]) -> _Observed:
    view = _Observed()
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        warnings.catch_warnings(record=True) as warned,
        _logs(view.logged),
    ):
        warnings.simplefilter("always")
        try:
            # read at once: a trainer may return the same object both times
            view.result = leaves(train(*arguments))
        except Diverged:
            view.diverged = True
        except Exception as error:
            view.raised = f"{type(error).__name__}: {error}"
    view.stdout, view.stderr = stdout.getvalue(), stderr.getvalue()
    view.warned = [f"{w.category.__name__}: {w.message}" for w in warned]
    return view


def _compare_logs(
    log: ReleaseLog, again: ReleaseLog
) -> tuple[list[ReplayEntry], list[str]]:
    entries: list[ReplayEntry] = []
    violations: list[str] = []
    for i, (a, b) in enumerate(zip(log.releases, again.releases, strict=False), 1):
        if a.label != b.label:
            violations.append(
                f"Release {i} is {a.label!r} in the first run and {b.label!r} in the "
                "second."
            )
            break
        if a.shape != b.shape:
            violations.append(
                f"Release {i} ({a.label!r}) has shape {a.shape} in the first run and "
                f"{b.shape} in the second."
            )
            break
        entry = ReplayEntry(a.label, a.shape, a.norm, a.sensitivity, _moved(a, b))
        entries.append(entry)
        violations += _compare_release(f"Release {i} ({a.label!r})", a, b, entry.moved)
    if not violations or not again.diverged:
        n_first, n_second = len(log.releases), len(again.releases)
        if n_first != n_second or again.diverged:
            count = f"at least {n_second}" if again.diverged else f"{n_second}"
            violations.append(
                f"The first run made {n_first} release(s) and the second {count}."
            )
    return entries, violations


def _compare_release(name: str, a: Draw, b: Draw, moved: float) -> list[str]:
    violations = []
    if (a.sensitivity, a.norm) != (b.sensitivity, b.norm):
        violations.append(
            f"{name} declares sensitivity {a.sensitivity:.6g} in {a.norm} in the first "
            f"run and {b.sensitivity:.6g} in {b.norm} in the second."
        )
    if not (np.isfinite(a.sensitivity) and a.sensitivity >= 0):
        violations.append(f"{name} declares sensitivity {a.sensitivity:.6g}.")
    # written so that NaN fails
    elif not moved <= a.sensitivity * (1 + SLACK):
        violations.append(
            f"{name} has an input that moved by {moved:.6g} in {a.norm}, over the "
            f"declared sensitivity {a.sensitivity:.6g}."
        )
    return violations


def _moved(a: Draw, b: Draw) -> float:
    # extended precision holds 64-bit integers exactly where the platform has it
    x, y = a.value.astype(np.longdouble), b.value.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        gap = np.where(x == y, 0, np.abs(x - y))
    if a.norm == "l1":
        return float(np.sum(gap))
    if a.norm == "l2":
        return float(np.sqrt(np.sum(gap * gap)))
    return float(np.max(gap, initial=0))


def _compare_views(before: _Observed, after: _Observed, *, diverged: bool) -> list[str]:
    violations = []
    if before.raised != after.raised and not after.diverged:
        violations.append(
            f"The first run {_outcome(before)} and the second {_outcome(after)}."
        )
    # a run that was interrupted has no result and only part of its output
    elif not (before.raised or diverged):
        paths = sorted(before.result.keys() | after.result.keys())
        violations += [
            f"{path} differs although every mechanism output was the same."
            for path in paths
            if before.result.get(path) != after.result.get(path)
        ]
    if not diverged:
        for what, seen, seen_again in (
            ("standard output", before.stdout, after.stdout),
            ("standard error", before.stderr, after.stderr),
            ("warnings", before.warned, after.warned),
            ("log lines", before.logged, after.logged),
        ):
            if seen != seen_again:
                violations.append(f"The two runs differ in their {what}.")
    return violations


def _outcome(view: _Observed) -> str:
    return f"raised {view.raised!r}" if view.raised else "finished"
