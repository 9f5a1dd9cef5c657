"""Data to try the library on: a synthetic census, and loaders of public sets.

Every column is scaled by a range written in the code, so that loading other rows would
not change it.
"""

from tacit.datasets._acs import load_acs_income
from tacit.datasets._census import Census, make_census, make_census_table
from tacit.datasets._people import load_celeba_attributes, load_compas
from tacit.datasets._ratings import (
    RatingData,
    load_jester_ratings,
    load_movielens_1m,
    load_movielens_100k,
    load_netflix_sample,
    make_rank_one_ratings,
)
from tacit.datasets._real import (
    Dataset,
    load_a9a,
    load_adult,
    load_covertype,
    load_kddcup99,
    load_mnist,
    load_newsgroups20,
    load_reuters_moneyfx,
)
from tacit.datasets._synthetic_rows import imagined_rows
from tacit.datasets._tables import (
    load_abalone,
    load_diabetes,
    load_jester,
    load_wine_quality,
)
from tacit.datasets._wide import (
    load_california_housing,
    load_dorothea,
    load_electricity,
    load_madelon,
    load_melting_point,
)

__all__ = [
    "Census",
    "Dataset",
    "RatingData",
    "imagined_rows",
    "load_a9a",
    "load_abalone",
    "load_acs_income",
    "load_adult",
    "load_california_housing",
    "load_celeba_attributes",
    "load_compas",
    "load_covertype",
    "load_diabetes",
    "load_dorothea",
    "load_electricity",
    "load_jester",
    "load_jester_ratings",
    "load_kddcup99",
    "load_madelon",
    "load_melting_point",
    "load_mnist",
    "load_movielens_1m",
    "load_movielens_100k",
    "load_netflix_sample",
    "load_newsgroups20",
    "load_reuters_moneyfx",
    "load_wine_quality",
    "make_census",
    "make_census_table",
    "make_rank_one_ratings",
]
