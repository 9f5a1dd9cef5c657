"""Exact densities of the minimizer of a tilted objective, in one and two dimensions.

The minimizer is ``w`` when the tilt is minus the gradient there. For one weight the
gradient is increasing, so the mass between two weights is that of the tilt between two
gradients, and where a penalty or a set makes the gradient jump there is an atom; for
two the density is the normal one times the determinant.
"""

import itertools

import numpy as np
from scipy import special

from tacit.convex import L1, Box
from tacit.privacy import Neighbors


def excess(p, q, epsilon):
    """Return the mass of ``p`` that ``exp(epsilon)`` times ``q`` does not cover."""
    return float(np.sum(np.maximum(p - np.exp(epsilon) * q, 0.0)))


def lower_tail(law, z):
    """Return the chance that a tilt of unit scale and one coordinate is below z."""
    if law == "gaussian":
        return special.ndtr(z)
    # in one dimension the gamma distribution is Laplace's
    return np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))


def line_masses(plan, X, y, reach, n_cells=2000):
    """Return the mass of one weight in each cell of a grid, exact up to rounding.

    Cells at the ends of a set, and at zero under an L1 penalty, are atoms.
    """
    regularizer = plan.problem.regularizer
    if isinstance(regularizer, Box):
        w = np.linspace(regularizer.low, regularizer.high, n_cells + 1)
    else:
        w = np.linspace(-reach, reach, n_cells + 1)
    jump = np.zeros(len(w))
    if isinstance(regularizer, L1):
        # both ends of the subdifferential at zero
        zero = n_cells // 2
        w = np.insert(w, zero, 0.0)
        jump = regularizer.weight * np.where(np.arange(len(w)) <= zero, -1.0, 1.0)
    gradient = plan.ridge * w + jump
    for x, target in zip(X[:, 0], y, strict=True):
        labels = np.full(len(w), target)
        gradient += x * plan.problem.loss.derivative(labels, (w * x)[:, None])[:, 0]
    z = np.r_[-np.inf, gradient / (plan.multiplier * plan.sensitivity), np.inf]
    # differences of the smaller tail keep their digits
    low, high = np.diff(lower_tail(plan.law, z)), -np.diff(lower_tail(plan.law, -z))
    return np.where(z[1:] <= 0, low, high)


def line_pairs(neighbors, x_norm):
    """Return adversarial pairs of one feature, with nought to five other rows."""
    for others, value in itertools.product((0, 1, 5), (0.0, 1.0, -0.5)):
        X = np.full((others, 1), value * x_norm)
        y = np.where(np.arange(others) % 2 == 0, 1.0, -1.0)
        for x in (1.0, 0.5):
            row = np.array([[x * x_norm]])
            first = np.vstack([row, X]), np.r_[1.0, y]
            if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
                yield first, (X, y)
            else:
                yield first, (first[0], np.r_[-1.0, y])
                yield first, (np.vstack([0 * row, X]), np.r_[-1.0, y])


def worst_line_ratio(plan, claimed, neighbors, epsilons):
    """Return the largest measured delta over the claimed one, over all line pairs."""
    scale = plan.multiplier * plan.sensitivity
    reach = (9 * scale + 6 * plan.problem.lipschitz) / plan.ridge
    ratios = []
    for pair in line_pairs(neighbors, plan.problem.bounds.x_norm):
        sides = [line_masses(plan, *data, reach) for data in pair]
        assert all(abs(side.sum() - 1) < 1e-9 for side in sides)
        ratios += [
            excess(p, q, epsilon) / claimed.delta(epsilon)
            for p, q in itertools.permutations(sides)
            for epsilon in epsilons
        ]
    return max(ratios)


def worst_line_loss(plan, neighbors):
    """Return the largest log-ratio of masses, over all line pairs and cells."""
    scale = plan.multiplier * plan.sensitivity
    reach = (30 * scale + 6 * plan.problem.lipschitz) / plan.ridge
    losses = []
    for pair in line_pairs(neighbors, plan.problem.bounds.x_norm):
        first, second = (line_masses(plan, *data, reach) for data in pair)
        # below this a mass has lost its digits
        seen = (first > 1e-280) & (second > 1e-280)
        losses.append(np.abs(np.log(first[seen] / second[seen])).max())
    return float(max(losses))


def plane_masses(plan, X, y, reach, basis, n_points=240):
    """Return the mass in each cell of a plane of weights, by the midpoint rule.

    ``basis`` maps the plane into the weights: columns orthonormal, all directions
    that rows can move inside their span.
    """
    loss, shape = plan.problem.loss, plan.problem.shape
    axis, step = np.linspace(-reach, reach, n_points, retstep=True)
    u = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    W = (u @ basis.T).reshape(-1, *shape)
    gradient = plan.ridge * u
    hessian = np.tile(plan.ridge * np.eye(2), (len(u), 1, 1))
    for x, target in zip(X, y, strict=True):
        Z = np.einsum("p,npk->nk", x, W)
        labels = np.full(len(u), target)
        rows = np.einsum("p,nk->npk", x, loss.derivative(labels, Z)).reshape(len(u), -1)
        gradient += rows @ basis
        for j in range(2):
            V = np.einsum("p,pk->k", x, basis[:, j].reshape(shape))
            product = loss.curvature_product(labels, Z, np.tile(V, (len(u), 1)))
            column = np.einsum("p,nk->npk", x, product).reshape(len(u), -1)
            hessian[:, :, j] += column @ basis
    scale = plan.multiplier * plan.sensitivity
    density = np.exp(-np.sum((gradient / scale) ** 2, axis=1) / 2)
    return density * np.linalg.det(hessian) * step**2 / (2 * np.pi * scale**2)
