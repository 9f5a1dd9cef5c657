"""Private matrix completion: the item side is published, users complete their rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import ExplicitSeed, all_or_nothing, exclusive_step
from tacit._execution import progress
from tacit._random import is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit._validate import at_least
from tacit.privacy import Ledger, Neighbors
from tacit.recommend._plan import (
    CompletionPlan,
    check_parameters,
    chosen_solver,
    planned_completion,
)
from tacit.recommend._rows import (
    Top,
    UserRow,
    UserRows,
    own_ratings,
    paired,
    rated_pairs,
)
from tacit.recommend.items.side import ItemSide
from tacit.recommend.ratings.columns import Catalogue, given_numbers
from tacit.recommend.ratings.reading import read_ratings
from tacit.recommend.ratings.table import RatingTable, checked_range
from tacit.recommend.solvers.base import CompletionSolver

__all__ = ["MatrixCompletion"]


Array = NDArray[np.float64]


class MatrixCompletion(ExplicitSeed, BaseEstimator):
    """Differentially private matrix completion.

    It predicts the ratings that users have not given, each user's from the published
    item side and their own ratings.

    Parameters
    ----------
    solver
        ``"als"``, ``"frank_wolfe"``, ``"svd"``, ``"gradient"``, ``"cleansed_svd"``, or
        a solver of `tacit.recommend` with parameters of its own, such as
        ``PrivateALS(rank=3, n_iter=2)``.
    epsilon
        Privacy budget of the item side.
    delta
        The delta of the (epsilon, delta) guarantee. None is one over the squared number
        of users, which is public when neighbors replace a user.
    items
        Public catalogue: the number of items, which are then 0, 1 and so on, or a list
        of their labels. Ratings of others are dropped. None takes the columns of a
        sparse matrix.
    rating_range
        Lowest and highest rating, set without the data. Others are clipped.
    max_ratings
        Maximum number of ratings of a user that are used for what is published. Their
        own row uses all of them, except with ``"gradient"``, whose rows use the same
        ones. None is what the solver is best with: all for ``"als"``, 80 for the
        others.
    neighbors
        ``"replace_one"``, where the number of users is public and one user's ratings
        are others, or ``"add_or_remove_one"``.
    expected_users
        Public guess of the number of users to plan for; None for the number itself
        where it is public, and else for the number that delta suggests.
    scratch
        Folder for files that hold ratings during the fit, rather than memory.
    noise
        ``"grid"`` or ``"float"``, for solvers given by name.
    random_state
        A `tacit.Seed` fixes the noise, for tests only. Otherwise noise comes from the
        operating system.
    verbose
        Whether to show bars of public counts.

    Attributes
    ----------
    factors_
        The item side, which is all that is published: an `ItemSide`.
    items_
        Labels of the items.
    n_items_
        Number of items.
    privacy_
        The `PrivacyReport`: guarantee, charge, assumptions, and what was released.
    released_
        What was released about items, as one sentence: offsets, vectors, both, or
        nothing beyond the noise.
    rows_
        Rows of the users, `UserRows`: ``rows_[user]`` is for that user only. Copies,
        pickles and saved models do not have them.

    Notes
    -----
    **Guarantee.** The item side is (epsilon, delta)-private for all ratings of a user
    together, and the completed rows of all others are jointly private for them, also if
    they are put together (Kearns, Pai, Roth and Ullman 2014 [1]_): a row is computed
    from the item side and its user's own ratings (Jain, Thakkar and Thakurta 2018
    [2]_). What several users' rows have in common, or the rows of all users in one
    table, is not covered: hand each row to its owner. See the page on joint privacy of
    the guarantees.

    References
    ----------
    .. [1] M. Kearns, M. Pai, A. Roth, J. Ullman, "Mechanism design in large games:
       incentives and privacy", ITCS 2014.
    .. [2] P. Jain, O. Thakkar, A. Thakurta, "Differentially private matrix completion
       revisited", ICML 2018.

    Examples
    --------
    >>> from tacit import Seed
    >>> from tacit.recommend import MatrixCompletion
    >>> likes = [(i, j, 5 if (i + j) % 2 else 1) for i in range(3000) for j in range(7)]
    >>> model = MatrixCompletion(
    ...     "svd", epsilon=2.0, items=8, rating_range=(1, 5), random_state=Seed(0)
    ... ).fit(likes)
    >>> row = model.complete_row({0: 5, 1: 1})  # of somebody new, at home
    >>> row.shape, bool(row[2] > row[3])
    ((8,), True)
    """

    def __init__(
        self,
        solver: str | CompletionSolver = "als",
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        items: Any = None,
        rating_range: tuple[float, float] | None = None,
        max_ratings: int | None = None,
        neighbors: str | Neighbors = "replace_one",
        expected_users: int | None = None,
        scratch: str | os.PathLike[str] | None = None,
        noise: str = "grid",
        random_state: Any = None,
        verbose: bool | int = 0,
    ) -> None:
        self.solver = solver
        self.epsilon = epsilon
        self.delta = delta
        self.items = items
        self.rating_range = rating_range
        self.max_ratings = max_ratings
        self.neighbors = neighbors
        self.expected_users = expected_users
        self.scratch = scratch
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    def plan(self, n_users: int) -> CompletionPlan:
        """Return what `fit` will release and charge; reads no rating.

        Parameters
        ----------
        n_users
            Number of users, which is public or a guess. With ``"add_or_remove_one"``, a
            fit does not know it: give `expected_users` for the fit to follow the plan.
        """
        at_least(1, n_users=n_users)
        check_parameters(self)
        catalogue = Catalogue.of(self.items)
        return planned_completion(self, catalogue, int(n_users), guessed=True)

    def fit(
        self,
        ratings: Any,
        y: None = None,
        *,
        columns: Sequence[str] = ("user", "item", "rating"),
        ledger: Ledger | None = None,
    ) -> Self:
        """Charge, and publish the item side.

        Parameters
        ----------
        ratings
            A sparse matrix of users by items, whose stored entries are ratings; a list
            or an array of rows of user, item and rating; a data frame with columns of
            these names; or a path of a CSV or Parquet file, or of a folder of Parquet
            files.
        y
            None, as a pipeline gives it: ratings are part of the table.
        columns
            Names of the columns of user, item and rating, in a frame or a file.
        ledger
            Ledger to charge; None creates one for this fit.
        """
        # long: check and run, before and after the charge, share what was found
        with exclusive_step(self), all_or_nothing(self):
            if y is not None:
                raise ValueError(
                    "y must be None: give users, items and ratings together, as three "
                    "columns of one table or as a sparse matrix."
                )
            check_parameters(self)
            rng = noise_generator(self.random_state)
            catalogue = self._catalogue(ratings)
            table = self._table(ratings, catalogue, columns)
            planned = planned_completion(self, catalogue, self._counted(table.n_users))
            release = Release(
                planned.event,
                planned.budget,
                type(self).__name__,
                planned.assumptions,
                seeded=is_seeded(self.random_state),
                unit="users",
            )

            side, report = charged_run(
                release,
                ledger,
                lambda table: self._solved(planned, table, rng),
                check=lambda: table,
            )
            self.privacy_ = replace(report, released=side.released)
            self.factors_ = side
            self.items_ = np.asarray(catalogue.labels)
            self.n_items_ = len(catalogue)
            self._items = catalogue
            self._private_rows = UserRows(side, table)
        return self

    @property
    def released_(self) -> str:
        """What was released about items, as one sentence that the item side implies."""
        check_is_fitted(self, "factors_")
        side: ItemSide = self.factors_
        return side.released

    @property
    def rows_(self) -> UserRows:
        """Rows of the users, each for its owner only."""
        check_is_fitted(self, "factors_")
        rows: UserRows | None = vars(self).get("_private_rows")
        if rows is None:
            raise ValueError(
                "This copy of a MatrixCompletion holds the item side and no ratings; "
                "give a user's ratings to complete_row."
            )
        return rows

    def predict(self, pairs: Any) -> Array:
        """Return predicted ratings, each of which is for its user only.

        A user who was not in the fit is treated as one who has rated nothing, here and
        in `recommend` and ``rows_``, and gets a prediction from the item side only. An
        item that is not in the catalogue is an error.

        Parameters
        ----------
        pairs
            Rows of a user's and an item's label, or a data frame with the columns
            ``user`` and ``item``.
        """
        rows = self.rows_
        users, positions = paired(pairs, self._items)
        return rows.at(users, positions)

    def score(self, pairs: Any, ratings: Any = None) -> float:
        """Return the negative root mean squared error, which is not private.

        Parameters
        ----------
        pairs
            As for `predict`; or with ratings, as for `fit`: rows of user, item and
            rating, or a data frame with these columns.
        ratings
            The rating of each, unless they are part of the pairs.
        """
        if ratings is None:
            pairs, ratings = rated_pairs(pairs)
        truth = given_numbers(ratings)
        predicted = self.predict(pairs)
        if truth is None or truth.shape != predicted.shape:
            raise ValueError("ratings must be numbers, one for each of the pairs.")
        return -float(np.sqrt(np.mean((predicted - truth) ** 2)))

    def recommend(self, user: Any, k: int = 10) -> Top:
        """Return the best items that a user has not rated, for them only.

        Items with equal predictions are in a fixed arbitrary order. These are all items
        where nothing about items was released, which ``released_`` reports.

        Parameters
        ----------
        user
            Their label. A user who was not in the fit is treated as one who has rated
            nothing.
        k
            Number of items.
        """
        return self.rows_[user].top(k)

    def complete_row(self, ratings: Any) -> Array:
        """Return a predicted rating for each item, from one user's ratings.

        They may be anyone: this is what a user's own device computes, and it also
        serves users who come after the fit. It costs no budget.

        Parameters
        ----------
        ratings
            Mapping or pandas Series from items to ratings, where NaN in a Series is no
            rating; a list of pairs of an item and a rating; a data frame with columns
            ``item`` and ``rating``; a tuple of items and ratings; or a whole row, with
            NaN for what was not rated. Ratings of items that are not in the catalogue
            are left out.
        """
        check_is_fitted(self, "factors_")
        own = own_ratings(ratings, self._items, self.factors_)
        return UserRow(self.factors_, self._items, own).complete()

    def _catalogue(self, ratings: Any) -> Catalogue:
        """Return the public items, which may be the columns of a matrix."""
        if self.items is None and sparse.issparse(ratings):
            return Catalogue.of(ratings.shape[-1])
        return Catalogue.of(self.items)

    def _table(
        self, ratings: Any, catalogue: Catalogue, columns: Sequence[str]
    ) -> RatingTable:
        return read_ratings(
            ratings,
            items=catalogue,
            rating_range=checked_range(self.rating_range),
            columns=columns,
            scratch=self.scratch,
        )

    def _solved(
        self, planned: CompletionPlan, table: RatingTable, rng: Generator
    ) -> ItemSide:
        # [recommend:side] all that the solver returns is published
        with progress(bool(self.verbose)), np.errstate(all="ignore"):
            return chosen_solver(self).run(planned.plan, table, rng)

    def _counted(self, n_users: int) -> int:
        """Return the number of users where it is public, and otherwise any number."""
        if Neighbors.of(self.neighbors) is not Neighbors.REPLACE_ONE:
            return 1
        if n_users == 0:
            raise ValueError("ratings is empty: at least one user is needed.")
        return n_users

    def __getstate__(self) -> dict[str, Any]:
        """Leave the users' ratings out of copies and pickles."""
        # [recommend:copies]
        state = super().__getstate__()
        return {key: part for key, part in state.items() if key != "_private_rows"}
