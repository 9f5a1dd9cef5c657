"""Private recommendation: predicted ratings, each user's row for its owner only."""

from tacit.recommend._model import MatrixCompletion
from tacit.recommend._plan import SOLVERS, CompletionPlan
from tacit.recommend._rows import Rows, Top, UserRow
from tacit.recommend.items.side import ItemSide, UserSide
from tacit.recommend.solvers.als import PrivateALS
from tacit.recommend.solvers.frank_wolfe import FrankWolfeCompletion
from tacit.recommend.solvers.gradient import ProjectedGradientCompletion
from tacit.recommend.solvers.item_means import ItemMeans, ReleasedMeans
from tacit.recommend.solvers.svd import CleansedSVD, SVDCompletion

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
