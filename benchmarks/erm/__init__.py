"""Benchmark of private empirical risk minimization, after Iyengar et al. (2019)."""

import os

# before NumPy is loaded: workers share the cores, so each computes on one, and times
# compared are of one thread
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
