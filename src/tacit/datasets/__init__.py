"""Data to try the library on: a synthetic census, synthetic ratings and public sets.

Every column is scaled by a range written in the code, so that other rows would not
change it.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.datasets._census import make_census, make_census_table
    from tacit.datasets._load import load
    from tacit.datasets._ratings import make_rank_one_ratings
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["load", "make_census", "make_census_table", "make_rank_one_ratings"]
