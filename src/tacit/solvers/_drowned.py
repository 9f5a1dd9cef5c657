"""Plans whose noise exceeds any signal that the rows can have, by public facts."""

from __future__ import annotations

from tacit._release import noise_note
from tacit.convex import L1Ball, Simplex
from tacit.privacy import Budget
from tacit.solvers._auto import clear_choices
from tacit.solvers._base import Problem
from tacit.solvers._gradients.descent import noise_level

__all__ = ["noise_notes", "relative_noise"]

# Above this norm of the noise of one release, in units of the gradient that all rows
# have together where they agree, 2 of 140 fits on dense synthetic tables learned
# anything; sparse rows share more words than dense ones share directions, and learned
# up to the second. Fitted by benchmarks/erm/fit_noise_warning.py, as is the next one
MOST_NOISE, MOST_NOISE_SPARSE = 1.0, 4.0
# A column that all rows agree on must exceed the noise of a choice by this factor
LEAST_CLEAR = 10.0


def noise_notes(
    problem: Problem,
    budget: Budget,
    *,
    is_sparse: bool = False,
    n_columns: int | None = None,
) -> tuple[str, ...]:
    """Return a note if the noise of a plan exceeds any signal, and nothing otherwise.

    Linear models in rows bounded in L2 norm, and choices of columns in a ball, have a
    measured limit; nothing is said of others. ``n_columns`` is the number of columns
    of the table, where features are made of them.
    """
    if problem.bounds.norm == "l2":
        noise = relative_noise(problem, budget)
        drowned = noise > (MOST_NOISE_SPARSE if is_sparse else MOST_NOISE)
    else:
        clear = clear_choices(problem.n_rows, problem.size, budget)
        chooses = isinstance(problem.regularizer, L1Ball | Simplex)
        drowned = chooses and clear < LEAST_CLEAR
    if not drowned:
        return ()
    count = problem.n_columns if n_columns is None else n_columns
    columns = "1 column is" if count == 1 else f"{count} columns are"
    note = noise_note(
        f"{columns} too many for {problem.n_rows} rows at epsilon {budget.epsilon:g}"
    )
    return (note,)


def relative_noise(problem: Problem, budget: Budget) -> float:
    """Return the norm of the noise in units of the gradient of rows that agree."""
    if budget.delta > 0:
        level = noise_level(problem, budget, derivative=1.0) / problem.bounds.x_norm
    else:  # the norm of noise that hides a vector without a delta
        level = budget.neighbors.rows_changed * problem.size / budget.epsilon
    return level / problem.n_rows
