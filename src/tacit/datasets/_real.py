"""Loaders of public data sets, scaled by ranges fixed in the code."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import fetch_covtype, fetch_kddcup99, fetch_openml

from tacit.datasets._public import (
    ADULT_CATEGORIES,
    ADULT_RANGES,
    COVERTYPE_RANGES,
    KDDCUP99_CATEGORIES,
    KDDCUP99_RANGES,
    Range,
)

Columns = Mapping[str, NDArray[Any]]

MNIST_PIXELS: Final = 28 * 28
A9A_FEATURES: Final = 123
A9A_QUESTIONS: Final = 14
# the newsgroup with the most posts of the published files, rec.sport.hockey
LARGEST_NEWSGROUP: Final = 10


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set ready for learning, its columns in public ranges.

    Parameters
    ----------
    X
        One row a record, every value in [0, 1] unless asked for otherwise; text is
        sparse, in CSR form.
    y
        Labels: 0 and 1 for two classes, the published codes for more; numbers where
        ``y_range`` is given.
    feature_names
        Names of the columns; an indicator is called ``column=category``.
    name
        Name of the data set.
    x_norm
        Public bound on the Euclidean norm of a row, from the ranges alone.
    feature_bounds
        Lowest and highest value of each column, or None where a loader gives none:
        values are then in [0, 1] unless asked for otherwise.
    y_range
        Range that the targets of a regression are in, or None for classes.
    """

    X: NDArray[np.float64] | sp.csr_array
    y: NDArray[np.int64] | NDArray[np.float64]
    feature_names: tuple[str, ...]
    name: str
    x_norm: float
    feature_bounds: tuple[tuple[float, float], ...] | None = None
    y_range: tuple[float, float] | None = None

    def without(self, column: str) -> tuple["Dataset", NDArray[np.str_]]:
        """Return the set without a column, and what each row has in it.

        Parameters
        ----------
        column
            A column of 0 and 1, or one with categories: all of its indicators go.

        Returns
        -------
        tuple
            The rest, under the same ``x_norm``, and the category of each row: "0" or
            "1" for a plain column, and no text where no indicator is set.
        """
        names = np.array(self.feature_names)
        gone = (names == column) | np.char.startswith(names, f"{column}=")
        if not gone.any():
            raise ValueError(f"column must be a column of {self.name}, got {column!r}.")
        found = np.zeros(len(self.y), dtype=names.dtype)
        for j in np.flatnonzero(gone):
            ones = np.asarray(self.X[:, [j]] @ np.ones(1)) > 0
            if names[j] == column:
                found[:] = np.where(ones, "1", "0")
            else:
                found[ones] = names[j].removeprefix(f"{column}=")
        kept = np.flatnonzero(~gone)
        ranges = self.feature_bounds
        rest = replace(
            self,
            X=self.X[:, kept],
            feature_names=tuple(names[kept].tolist()),
            feature_bounds=None if ranges is None else tuple(ranges[j] for j in kept),
        )
        return rest, found


def load_adult(download: bool = False) -> Dataset:
    """Load Census Income: does a person earn more than 50,000 dollars a year.

    Parameters
    ----------
    download
        Whether to fetch the set from OpenML when it is not in the data folder.

    Returns
    -------
    Dataset
        The 45,222 complete rows, 5 numeric columns and 99 indicators.

    Notes
    -----
    Rows with an unknown answer are left out, and so is the sampling weight. The
    categories are the documented ones [1]_. Numeric ranges are
    those of the extract and of the survey's top codes. The folder named by the
    environment variable ``TACIT_DATA`` is read, else ``shared/data`` beside the
    checkout.

    References
    ----------
    .. [1] B. Becker and R. Kohavi. Adult. UCI Machine Learning Repository, 1996.
    """
    path = _find("adult/adult.parquet", download)
    columns = _read_columns(path) if path else _fetch_adult()
    complete = np.logical_and.reduce([columns[c] != "?" for c in ADULT_CATEGORIES])
    columns = {name: column[complete] for name, column in columns.items()}
    return _encode("adult", columns, ADULT_RANGES, ADULT_CATEGORIES)


def load_a9a() -> Dataset:
    """Load Census Income as 123 indicators, in the form known as a9a.

    Returns
    -------
    Dataset
        48,842 rows of at most 14 ones: each question gives at most one indicator.

    Notes
    -----
    The folder is found as in :func:`load_adult`.
    """
    X = sp.load_npz(_require("a9a/X.npz")).toarray().astype(np.float64)
    labels = _read_columns(_require("a9a/y.parquet"))["target"]
    y = (labels > 0).astype(np.int64)
    names = tuple(f"indicator_{j}" for j in range(1, A9A_FEATURES + 1))
    return Dataset(X, y, names, "a9a", x_norm=float(np.sqrt(A9A_QUESTIONS)))


def load_mnist(n_rows: int = 65_000, download: bool = False) -> Dataset:
    """Load the first rows of the MNIST handwritten digits.

    Parameters
    ----------
    n_rows
        How many of the 70,000 images to keep, in the published order.
    download
        Whether to fetch the set from OpenML when it is not in the data folder.

    Returns
    -------
    Dataset
        One image a row, 784 pixels divided by 255; labels 0 to 9.

    Notes
    -----
    The folder is found as in :func:`load_adult`.
    """
    if not 1 <= n_rows <= 70_000:
        raise ValueError(f"n_rows must be between 1 and 70000, got {n_rows}.")
    path = _find("mnist/mnist.parquet", download)
    if path:
        columns = _read_columns(path)
        pixels = np.stack([columns[f"px{j}"][:n_rows] for j in range(MNIST_PIXELS)]).T
        y = columns["target"][:n_rows]
    else:
        bunch = fetch_openml("mnist_784", version=1, as_frame=False)
        pixels, y = bunch.data[:n_rows], bunch.target[:n_rows]
    # pixels are stored a column at a time; rows are what learning reads
    X = np.ascontiguousarray(pixels) / 255.0
    names = tuple(f"px{j}" for j in range(MNIST_PIXELS))
    return Dataset(X, y.astype(np.int64), names, "mnist", float(np.sqrt(MNIST_PIXELS)))


def load_covertype(binary: bool = False, download: bool = False) -> Dataset:
    """Load Forest Covertype: which trees cover a plot of 30 by 30 meters.

    Parameters
    ----------
    binary
        Whether the labels are 1 for the lodgepole pine (class 2) and 0 for the rest,
        instead of the published classes 1 to 7.
    download
        Whether to fetch the set through scikit-learn when it is not in the data folder.

    Returns
    -------
    Dataset
        581,012 rows, 10 measurements and 44 indicators.

    Notes
    -----
    The folder is found as in :func:`load_adult`. The
    documentation [1]_ gives no ranges: those used are round figures.

    References
    ----------
    .. [1] J. Blackard. Covertype. UCI Machine Learning Repository, 1998.
    """
    path = _find("covertype/covertype.parquet", download)
    if path:
        columns = _read_columns(path)
    else:
        bunch = fetch_covtype()
        columns = dict(zip(COVERTYPE_RANGES, bunch.data.T, strict=True))
        columns["target"] = bunch.target
    if binary:
        columns = {**columns, "target": columns["target"] == 2}
    # of the indicators, one area and one soil are set
    return _encode("covertype", columns, COVERTYPE_RANGES, {}, x_norm=12**0.5)


def load_kddcup99(download: bool = False) -> Dataset:
    """Load the tenth of the KDD Cup 1999 connections: is a connection an attack.

    Parameters
    ----------
    download
        Whether to fetch the set through scikit-learn when it is not in the data folder.

    Returns
    -------
    Dataset
        494,021 rows, 38 numeric columns and 84 indicators; 1 stands for an attack.

    Notes
    -----
    The folder is found as in :func:`load_adult`. The documentation gives no ranges:
    those used are round figures. Byte and event counts are on a logarithmic scale.
    Values outside are clipped, and a category that is not listed sets no indicator.
    """
    path = _find("kddcup99_10pct/kddcup99_10pct.parquet", download)
    columns = _read_columns(path) if path else _fetch_kddcup99()
    columns = {**columns, "target": columns["target"] != "normal"}
    return _encode("kddcup99", columns, KDDCUP99_RANGES, KDDCUP99_CATEGORIES)


def load_newsgroups20(binary: bool = False) -> Dataset:
    """Load 20 Newsgroups: to which group was a post sent.

    Parameters
    ----------
    binary
        Whether the labels are 1 for the largest group, rec.sport.hockey, and 0 for the
        rest, instead of the group's place in alphabetical order, 0 to 19.

    Returns
    -------
    Dataset
        18,846 posts as CSR rows over 21,907 words.

    Notes
    -----
    A row is the word counts of one post over their Euclidean norm, which involves no
    other post. Posts left without a word by the removal of headers, footers and quotes
    are rows of zeros. The vocabulary is public. The folder is found as in
    :func:`load_adult`.
    """
    counts = sp.csr_array(sp.load_npz(_require("newsgroups20/X.npz")))
    y = _read_columns(_require("newsgroups20/y.parquet"))["target"].astype(np.int64)
    if binary:
        y = (y == LARGEST_NEWSGROUP).astype(np.int64)
    words = _read_columns(_require("newsgroups20/vocabulary.parquet"))
    names = tuple(str(word) for word in words["term"])
    return Dataset(_unit_rows(counts), y, names, "newsgroups20", x_norm=1.0)


def load_reuters_moneyfx() -> Dataset:
    """Load Reuters-21578: is a dispatch about foreign exchange.

    Returns
    -------
    Dataset
        11,069 dispatches as CSR rows over 8,315 terms; 1 stands for the topic money-fx.

    Notes
    -----
    Terms are weighted by their rarity in the published collection, so the weights must
    be public; rows are then scaled to norm one, each by itself. Terms are not named in
    the published file. The folder is found as in :func:`load_adult`.
    """
    weights = sp.csr_array(sp.load_npz(_require("reuters_moneyfx/X.npz")))
    labels = _read_columns(_require("reuters_moneyfx/y.parquet"))["target"]
    y = (labels > 0).astype(np.int64)
    names = tuple(f"term_{j}" for j in range(1, weights.shape[1] + 1))
    return Dataset(_unit_rows(weights), y, names, "reuters_moneyfx", x_norm=1.0)


def _unit_rows(X: sp.csr_array) -> sp.csr_array:
    """Return rows over their own norms; rows of zeros stay."""
    scaled = X.astype(np.float64)
    norms = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1))).ravel()
    entries = np.diff(scaled.indptr)
    scaled.data /= np.repeat(np.where(norms > 0, norms, 1.0), entries)
    return scaled


def _data_folder() -> Path:
    """Return the folder of the data sets, which need not exist."""
    chosen = os.environ.get("TACIT_DATA")
    if chosen:
        return Path(chosen)
    checkout = Path(__file__).resolve().parents[3]
    return checkout.parent / "shared" / "data"


def _require(file: str) -> Path:
    """Return the path of a file of the data folder."""
    path = _data_folder() / file
    if not path.is_file():
        raise FileNotFoundError(
            f"The data file {file} was not found: set the environment variable "
            "TACIT_DATA to the folder that holds it, or pass download=True to the "
            "loaders that have it."
        )
    return path


def _find(file: str, download: bool) -> Path | None:
    """Return the path of a file, or None when it is to be fetched instead."""
    if download and not (_data_folder() / file).is_file():
        return None
    return _require(file)


def _read_columns(path: Path) -> Columns:
    """Return the columns of a Parquet file as arrays; strings as objects."""
    from pyarrow import parquet  # noqa: PLC0415 - half a second that few need

    table = parquet.read_table(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def _fetch_adult() -> Columns:
    bunch = fetch_openml("adult", version=2, as_frame=True)
    columns = {}
    for published in bunch.data.columns:
        name = published.replace("-", "_")
        column = bunch.data[published]
        if name in ADULT_CATEGORIES:
            columns[name] = column.astype(object).where(column.notna(), "?").to_numpy()
        else:
            columns[name] = column.to_numpy()
    columns["target"] = (bunch.target == ">50K").to_numpy()
    return columns


def _fetch_kddcup99() -> Columns:
    bunch = fetch_kddcup99(percent10=True)
    columns = {}
    for name, column in zip(bunch.feature_names, bunch.data.T, strict=True):
        text = name in KDDCUP99_CATEGORIES
        # this source keeps text as bytes
        columns[name] = np.array([v.decode() for v in column]) if text else column
    target = [v.decode().removesuffix(".") for v in bunch.target]
    columns["target"] = np.array(target)
    return columns


def _encode(
    name: str,
    columns: Columns,
    ranges: Mapping[str, Range],
    categories: Mapping[str, tuple[str, ...]],
    x_norm: float | None = None,
) -> Dataset:
    """Scale the numeric columns, then append one indicator a category."""
    names = list(ranges)
    for column, labels in categories.items():
        names += [f"{column}={label}" for label in labels]
    X = np.zeros((len(columns["target"]), len(names)))
    for j, column in enumerate(ranges):
        X[:, j] = ranges[column].scale(columns[column])
    first = len(ranges)
    for column, labels in categories.items():
        index = {label: first + j for j, label in enumerate(labels)}
        position = np.array([index.get(value, -1) for value in columns[column]])
        known = np.flatnonzero(position >= 0)
        X[known, position[known]] = 1.0
        first += len(labels)
    if x_norm is None:  # each column at most 1, one indicator a category at most
        x_norm = float(np.sqrt(len(ranges) + len(categories)))
    y = np.asarray(columns["target"]).astype(np.int64)
    return Dataset(X, y, tuple(names), name, x_norm)
