"""Problems of the minimizer, and their gradients in extended precision."""

import numpy as np
from scipy import sparse

from tacit.convex import (
    L1,
    Box,
    ElasticNet,
    GroupL1,
    Huber,
    L1Ball,
    L2Ball,
    Logistic,
    Simplex,
    Softmax,
    Squared,
)
from tacit.convex.proximal import InBall

__all__ = ["FACTS", "REGULARIZERS", "exact_gradient", "labels", "norm", "unit_rows"]

# of rows of norm one
FACTS = {"x_norm": 1.0, "y_range": (-1.0, 1.0)}
# each kind twice: where it binds hardly and where it binds hard
REGULARIZERS = [
    L1(0.5),
    L1(20.0),
    ElasticNet(0.0, 2.0),
    ElasticNet(10.0, 5.0),
    GroupL1(0.5),
    GroupL1(25.0),
    L2Ball(0.3),
    L2Ball(100.0),
    L1Ball(0.5),
    L1Ball(200.0),
    Box(-0.1, 0.3),
    Box(0.2, 0.4),
    Simplex(),
    InBall(L1(0.5), 0.3),
]


def unit_rows(n, p, rng):
    X = rng.standard_normal((n, p))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * (1 - 1e-14)


def labels(X, rng, k=1):
    Z = 5 * X @ rng.standard_normal((X.shape[1], k)) + rng.gumbel(size=(X.shape[0], k))
    return np.where(Z[:, 0] > 0, 1.0, -1.0) if k == 1 else Z.argmax(axis=1)


def exact_gradient(objective, X, y, W):
    """Gradient in extended precision, with its own formulas for the derivatives."""
    X = X.toarray() if sparse.issparse(X) else X
    X, W = X.astype(np.longdouble), W.astype(np.longdouble)
    Z, loss = X @ W, objective.loss
    if isinstance(loss, Softmax):
        S = np.exp(Z - Z.max(axis=1, keepdims=True))
        S /= S.sum(axis=1, keepdims=True)
        S[np.arange(len(y)), y] -= 1
    else:
        z, y = Z[:, 0], y.astype(np.longdouble)
        if isinstance(loss, Logistic):
            s = -y / (1 + np.exp(np.minimum(y * z, 1e4)))
        elif isinstance(loss, Squared):
            s = z - y
        elif isinstance(loss, Huber):
            s = np.clip(z - y, -loss.threshold, loss.threshold)
        else:
            s = -y * np.clip((1 - y * z + loss.h) / (2 * loss.h), 0, 1)
        S = s[:, None]
    G = X.T @ S + np.longdouble(objective.ridge) * W
    return G if objective.tilt is None else G + objective.tilt


def norm(A):
    return np.sqrt((A * A).sum())
