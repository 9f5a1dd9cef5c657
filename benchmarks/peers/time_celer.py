"""Time epochs of celer's inner solver; run inside its own environment.

Usage: ``time_celer.py data.npz``, where the file holds a problem. Each line of standard
input is a number of epochs, answered by the seconds of processor time that they took.
The compiled solver is called directly, with all features in its one working set and no
duality gaps between epochs, so that an epoch is a pass over all coordinates and nothing
else. The logistic one keeps its step lengths, which leaves one exponential an entry.
"""

import sys
import warnings
from time import process_time

import numpy as np
from celer.lasso_fast import celer
from scipy import sparse

LASSO, LOGREG = 0, 1
NEVER = 10**9

warnings.simplefilter("ignore")  # that so few epochs do not converge is intended


def timed(given, epochs):
    y, alpha = given["y"], float(given["alpha"])
    n, p = given["shape"]
    is_sparse, logistic = bool(given["is_sparse"]), bool(given["logistic"])
    if is_sparse:
        pieces = (given["data"], given["indices"], given["indptr"])
        X = sparse.csc_array(pieces, shape=(n, p))
        norms = np.sqrt(np.asarray(X.power(2).sum(axis=0)).ravel())
        dense = np.empty((1, 1), order="F")
    else:
        dense = np.asfortranarray(given["X"])
        pieces = (np.empty(1), np.empty(1, dtype=np.int32), np.empty(1, dtype=np.int32))
        norms = np.linalg.norm(dense, axis=0)
    w = np.zeros(p)
    Xw = np.zeros(n) if logistic else y.copy()
    start = process_time()
    w = celer(
        is_sparse,
        LOGREG if logistic else LASSO,
        dense,
        *pieces,
        np.zeros(p),
        y,
        alpha,
        1.0,
        w,
        Xw,
        np.zeros(n),
        norms,
        np.ones(p),
        max_iter=1,
        max_epochs=epochs,
        gap_freq=NEVER,
        tol=0.0,
        p0=p,
        use_accel=0,
        better_lc=0,
    )[0]
    seconds = process_time() - start
    # a feature outside the working set would have stayed at zero
    return seconds, np.count_nonzero(w) / max(1, np.count_nonzero(norms))


if __name__ == "__main__":
    problem = dict(np.load(sys.argv[1]))
    timed(problem, 1)
    for line in sys.stdin:
        print(*timed(problem, int(line)), flush=True)
