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

from tacit.datasets._ranges import (
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
        One row a record, every value in [0, 1] unless loaded with ``scaled=False``;
        text is sparse, in CSR form.
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
        values are then in [0, 1].
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
            "1" for a plain column, an empty string where no indicator is set.
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
    """Census Income: does a person earn more than 50,000 dollars a year."""
    path = _find("adult/adult.parquet", download)
    columns = _read_columns(path) if path else _fetch_adult()
    complete = np.logical_and.reduce([columns[c] != "?" for c in ADULT_CATEGORIES])
    columns = {name: column[complete] for name, column in columns.items()}
    return _encode("adult", columns, ADULT_RANGES, ADULT_CATEGORIES)


def load_a9a() -> Dataset:
    """Census Income as indicators: at most one a question."""
    X = sp.load_npz(_require("a9a/X.npz")).toarray().astype(np.float64)
    labels = _read_columns(_require("a9a/y.parquet"))["target"]
    y = (labels > 0).astype(np.int64)
    names = tuple(f"indicator_{j}" for j in range(1, A9A_FEATURES + 1))
    return Dataset(X, y, names, "a9a", x_norm=float(np.sqrt(A9A_QUESTIONS)))


def load_mnist(n_rows: int = 65_000, download: bool = False) -> Dataset:
    """First handwritten digits of MNIST, pixels divided by 255."""
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
    """Forest Covertype: which trees cover a plot of 30 by 30 meters."""
    path = _find("covertype/covertype.parquet", download)
    if path:
        columns = _read_columns(path)
    else:
        bunch = fetch_covtype()
        columns = dict(zip(COVERTYPE_RANGES, bunch.data.T, strict=True))
        columns["target"] = bunch.target
    if binary:
        # the lodgepole pine
        columns = {**columns, "target": columns["target"] == 2}
    # of the indicators, one area and one soil are set
    return _encode("covertype", columns, COVERTYPE_RANGES, {}, x_norm=12**0.5)


def load_kddcup99(download: bool = False) -> Dataset:
    """Tenth of the KDD Cup 1999 connections: is one an attack."""
    path = _find("kddcup99_10pct/kddcup99_10pct.parquet", download)
    columns = _read_columns(path) if path else _fetch_kddcup99()
    columns = {**columns, "target": columns["target"] != "normal"}
    return _encode("kddcup99", columns, KDDCUP99_RANGES, KDDCUP99_CATEGORIES)


def load_newsgroups20(binary: bool = False) -> Dataset:
    """20 Newsgroups: to which group was a post sent."""
    # posts left without a word by the removal of headers and quotes are rows of zeros
    counts = sp.csr_array(sp.load_npz(_require("newsgroups20/X.npz")))
    y = _read_columns(_require("newsgroups20/y.parquet"))["target"].astype(np.int64)
    if binary:
        y = (y == LARGEST_NEWSGROUP).astype(np.int64)
    words = _read_columns(_require("newsgroups20/vocabulary.parquet"))
    names = tuple(str(word) for word in words["term"])
    return Dataset(_unit_rows(counts), y, names, "newsgroups20", x_norm=1.0)


def load_reuters_moneyfx() -> Dataset:
    """Reuters-21578: is a dispatch about foreign exchange."""
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
            "TACIT_DATA to the folder that holds it, or pass download=True for a set "
            "that has this option."
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
        is_bytes = name in KDDCUP99_CATEGORIES
        columns[name] = np.array([v.decode() for v in column]) if is_bytes else column
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
