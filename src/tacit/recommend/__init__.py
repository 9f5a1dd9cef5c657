"""Private recommendation: what users would rate, each row for its owner alone."""

from tacit.recommend._model import MatrixCompletion
from tacit.recommend._plan import CompletionPlan
from tacit.recommend._rows import Rows, Top, UserRow
from tacit.recommend._sides.base import ItemSide, UserSide
from tacit.recommend._solvers import SOLVERS
from tacit.recommend._sums.means import ItemMeans, ReleasedMeans
from tacit.recommend.als import PrivateALS
from tacit.recommend.cleansed import CleansedSVD
from tacit.recommend.frank_wolfe import FrankWolfeCompletion
from tacit.recommend.gradient import ProjectedGradientCompletion
from tacit.recommend.svd import SVDCompletion

__all__ = [
    "SOLVERS",
    "CleansedSVD",
    "CompletionPlan",
    "FrankWolfeCompletion",
    "ItemMeans",
    "ItemSide",
    "MatrixCompletion",
    "PrivateALS",
    "ProjectedGradientCompletion",
    "ReleasedMeans",
    "Rows",
    "SVDCompletion",
    "Top",
    "UserRow",
    "UserSide",
]
