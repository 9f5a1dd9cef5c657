"""Experiments on how far privacy moves the fairness of a model."""

import os

# before NumPy is loaded: what is compared runs on one thread
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
