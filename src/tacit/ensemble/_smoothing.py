"""Default student: noisy votes smoothed over a neighbor graph of public rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors, kneighbors_graph
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from tacit._random import as_generator
from tacit._validate import at_least

__all__ = ["NeighborMap", "SmoothedVotes"]

Array = NDArray[np.float64]

# Rows up to which all eigenvectors are computed
DENSE = 600
# Chebyshev filter of the graph: degree, number of rounds, and the eigenvalue below
# which directions are damped. The first 50 of 100 directions of MNIST are then exact to
# four digits, and the rest is smooth as well
DEGREE, ROUNDS, CUTOFF = 15, 2, 0.6
SPARE = 20
# Grid of the empirical Bayes choice: diffusion times of the random walk, weights of the
# graph in the prior (the rest is linear), and strengths of the ridge. The graph always
# has a weight: with much noise the evidence would often drop it, which made students
# less accurate on synthetic problems
DIFFUSION_TIMES = (1.0, 3.0, 10.0, 30.0, 100.0)
GRAPH_WEIGHTS = (0.5, 0.9, 1.0)
STRENGTHS = np.logspace(-3, 7, 61)


class NeighborMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Laplacian eigenmap of public rows, and its extension to other rows.

    Parameters
    ----------
    n_components
        Maximum number of coordinates.
    n_neighbors
        Number of nearest public rows that a row is connected to.
    n_directions
        Maximum number of principal components in which distances are taken.

    Attributes
    ----------
    components_
        Coordinates of the public rows, the smoothest first.
    rates_
        Their eigenvalues of the random walk, from 1 down.

    Notes
    -----
    **Guarantee.** The map of a row is a function of that row and of the public rows
    that it was fitted on. Private rows can be mapped at no cost, before a private fit,
    as each row is mapped by itself. Fit it on public rows only.

    The coordinates are the first eigenvectors of the random walk on the graph of
    nearest rows (Belkin and Niyogi 2003 [1]_). A new row gets the mean coordinates of
    its nearest public rows. The public rows are part of the map.

    References
    ----------
    .. [1] M. Belkin, P. Niyogi, "Laplacian eigenmaps for dimensionality reduction and
       data representation", Neural Computation 15, 2003.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from tacit.ensemble import NeighborMap
    >>> X_public, _ = make_moons(300, noise=0.05, random_state=0)
    >>> NeighborMap(n_components=5).fit_transform(X_public).shape
    (300, 5)
    """

    def __init__(
        self, n_components: int = 100, n_neighbors: int = 10, n_directions: int = 50
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_directions = n_directions

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map from public rows.

        Parameters
        ----------
        X
            Public rows.
        y
            Ignored.
        """
        at_least(
            1,
            n_components=self.n_components,
            n_neighbors=self.n_neighbors,
            n_directions=self.n_directions,
        )
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        directions = min(self.n_directions, *X.shape)
        with np.errstate(all="ignore"):  # identical rows have no direction
            # a deterministic solver
            self.directions_ = PCA(directions, svd_solver=_solver(X)).fit(X)
        self.rows_ = self.directions_.transform(X)
        graph = kneighbors_graph(self.rows_, min(self.n_neighbors, len(X) - 1))
        graph = graph.maximum(graph.T).tocsr()
        degrees = np.asarray(graph.sum(axis=1)).ravel()
        roots = sparse.diags_array(1 / np.sqrt(degrees))
        self.rates_, vectors = _leading(
            (roots @ graph @ roots).tocsr(), min(self.n_components, len(X))
        )
        # mean square one, with rows weighted by their degree
        self.components_ = vectors * np.sqrt(degrees.sum() / degrees)[:, None]
        self._n_features_out = len(self.rates_)
        return self

    def transform(self, X: Any) -> Array:
        """Return the coordinates of rows, each by itself.

        Parameters
        ----------
        X
            Public or private rows.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._of_directions(self.directions_.transform(X))

    def _of_directions(self, rows: Array) -> Array:
        nearest = NearestNeighbors(n_neighbors=min(self.n_neighbors, len(self.rows_)))
        near = nearest.fit(self.rows_).kneighbors(rows, return_distance=False)
        found = np.zeros((len(rows), self.components_.shape[1]))
        for positions in near.T:  # one neighbor at a time, which takes less memory
            found += self.components_[positions]
        return found / int(near.shape[1])


class SmoothedVotes(RegressorMixin, BaseEstimator):
    """Ridge regression on a `NeighborMap` and on the columns, tuned by its evidence.

    Parameters
    ----------
    n_components, n_neighbors, n_directions
        As for `NeighborMap`.

    Attributes
    ----------
    map_
        The map of the public rows.
    walk_
        Diffusion time of the random walk, chosen by the evidence.
    strength_
        Strength of the ridge, chosen by the evidence.

    Notes
    -----
    **Guarantee.** Post-processing of public rows and released votes, which costs no
    budget, also for the choice of the strength: noise of votes has mean zero and is
    independent from row to row, so that the marginal likelihood of the released votes
    under a Gaussian process (Rasmussen and Williams 2006 [1]_, Section 5.4) separates
    noise from signal without a private row.

    Rows of weight zero shape the map only: public rows without an answer help.

    References
    ----------
    .. [1] C. Rasmussen, C. Williams, "Gaussian processes for machine learning", MIT
       Press, 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from tacit.ensemble import SmoothedVotes
    >>> from tacit.mechanisms import as_generator
    >>> X, y = make_moons(400, noise=0.05, random_state=0)
    >>> noisy = y + as_generator(0).normal(size=400)
    >>> bool(((SmoothedVotes().fit(X, noisy).predict(X) > 0.5) == y).mean() > 0.9)
    True
    """

    def __init__(
        self, n_components: int = 100, n_neighbors: int = 10, n_directions: int = 50
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_directions = n_directions

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to noisy targets of public rows.

        Parameters
        ----------
        X
            Public rows.
        y
            Noisy targets, one or more per row.
        sample_weight
            Weight of each row; rows of weight zero shape the map only.
        """
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=2,
        )
        weights = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        if not weights.any():
            raise ValueError("sample_weight must be positive for at least one row.")
        self._one = np.ndim(y) == 1
        self._solve(self._design(X), np.asarray(y, dtype=np.float64), weights)
        return self

    def _design(self, X: Array) -> Array:
        """Return the design matrix of public rows, after a fit of the map."""
        self.map_ = NeighborMap(
            self.n_components, self.n_neighbors, self.n_directions
        ).fit(X)
        graph, linear = self._blocks(self.map_.rows_)
        # rows of average size have norm one in either block
        sizes = [np.sqrt((block**2).sum(axis=1).mean()) for block in (graph, linear)]
        self._scale = 1 / np.maximum(sizes, np.finfo(float).tiny)
        return np.hstack([graph * self._scale[0], linear * self._scale[1]])

    def _solve(self, Z: Array, y: Array, weights: Array) -> None:
        """Fit the coefficients; rows of weight zero are left out."""
        Y = y.reshape(len(Z), -1)
        known = weights > 0
        mean = np.average(Y, axis=0, weights=weights)
        half = np.sqrt(weights[known])[:, None]
        Z, R = Z[known] * half, (Y[known] - mean) * half
        scores, products = Z.T @ Z, Z.T @ R
        total = (R**2).sum()
        candidates = [
            self._tried(prior, scores, products, total, R.shape)
            for prior in self._priors(Z.shape[1] - len(self.map_.rates_))
        ]
        best = min(candidates, key=lambda found: found[0])
        _, self.strength_, self.walk_, self.coef_ = best
        self.intercept_ = mean

    def predict(self, X: Any) -> Array:
        """Return smooth targets of rows.

        Parameters
        ----------
        X
            Any rows.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        graph, linear = self._blocks(self.map_.directions_.transform(X))
        Z = np.hstack([graph * self._scale[0], linear * self._scale[1]])
        found = Z @ self.coef_ + self.intercept_
        return found[:, 0] if self._one else found

    def _blocks(self, rows: Array) -> tuple[Array, Array]:
        return self.map_._of_directions(rows), rows

    def _priors(self, n_linear: int) -> Iterator[tuple[float, Array]]:
        """Yield prior scales of the weights, each with its diffusion time."""
        rates = np.clip(self.map_.rates_, 0.0, 1.0)
        for time, weight in product(DIFFUSION_TIMES, GRAPH_WEIGHTS):
            heat = np.exp(-time * (1 - rates) / 2)
            heat *= np.sqrt(weight * len(rates) / (heat**2).sum())
            yield time, np.r_[heat, np.full(n_linear, np.sqrt(1 - weight))]

    def _tried(
        self,
        candidate: tuple[float, Array],
        scores: Array,
        products: Array,
        total: float,
        shape: tuple[int, ...],
    ) -> tuple[float, float, float, Array]:
        """Return the evidence against a prior, with the best strength and weights."""
        time, prior = candidate
        values, vectors = np.linalg.eigh(prior[:, None] * scores * prior)
        values = np.maximum(values, 0.0)
        turned = vectors.T @ (prior[:, None] * products)
        power = (turned**2).sum(axis=1)
        n, k = shape
        kept = values[:, None] + STRENGTHS
        rest = np.maximum(total - (power[:, None] / kept).sum(axis=0), 1e-12 * total)
        # minus twice the log of the density, at its best noise
        against = n * k * np.log(np.maximum(rest, np.finfo(float).tiny))
        against += k * np.log1p(values[:, None] / STRENGTHS).sum(axis=0)
        position = int(against.argmin())
        weights = vectors @ (turned / kept[:, position : position + 1])
        return (
            float(against[position]),
            float(STRENGTHS[position]),
            time,
            prior[:, None] * weights,
        )

    def __sklearn_tags__(self) -> Tags:
        """Accept several targets."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _solver(X: Array) -> str:
    """Return the exact solver for principal components that is faster."""
    return "covariance_eigh" if X.shape[0] > X.shape[1] else "full"


def _leading(matrix: Any, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues of the graph, and smooth directions for them."""
    n = matrix.shape[0]
    if n <= max(DENSE, 2 * (count + SPARE)):
        values, vectors = np.linalg.eigh(matrix.toarray())
        return values[::-1][:count], vectors[:, ::-1][:, :count]
    # public rows and a fixed seed: the same map for the same rows
    block = as_generator(0).normal(size=(n, count + SPARE))
    center, radius = (CUTOFF - 1) / 2, (CUTOFF + 1) / 2
    for _ in range(ROUNDS):
        before = np.linalg.qr(block)[0]
        block = (matrix @ before - center * before) / radius
        for _ in range(DEGREE - 1):
            after = 2 * (matrix @ block - center * block) / radius - before
            before, block = block, after
    basis = np.linalg.qr(block)[0]
    values, turn = np.linalg.eigh(basis.T @ (matrix @ basis))
    return values[::-1][:count], (basis @ turn)[:, ::-1][:, :count]
