"""Time passes of alternating least squares of implicit; run inside its environment.

Usage: ``time_implicit.py ratings.npz '{"factors": 8, "passes": 3, "threads": 1}'``. The
file holds a matrix of users and items in rows. A pass solves for all users and for all
items, by three steps of conjugate gradients as that library does, and exactly. Prints
one JSON object: the processor seconds of each pass but the first, by way.
"""

import json
import sys
from time import process_time

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from scipy import sparse


def seconds(rows, given, use_cg):
    ends = [process_time()]
    model = AlternatingLeastSquares(
        factors=given["factors"],
        iterations=1 + given["passes"],
        num_threads=given["threads"],
        use_cg=use_cg,
        random_state=0,
    )
    model.fit(
        rows,
        show_progress=False,
        callback=lambda *told: ends.append(process_time()),
    )
    # the first pass also has the set-up of the fit
    return np.diff(ends)[1:].tolist()


if __name__ == "__main__":
    found = np.load(sys.argv[1])
    matrix = sparse.csr_matrix(
        (found["data"], found["indices"], found["indptr"]), shape=tuple(found["shape"])
    )
    asked = json.loads(sys.argv[2])
    ways = {"conjugate gradients": True, "exact": False}
    print(json.dumps({way: seconds(matrix, asked, cg) for way, cg in ways.items()}))
