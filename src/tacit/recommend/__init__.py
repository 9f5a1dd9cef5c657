"""Private recommendation: predicted ratings, each user's row for its owner only."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.recommend._model import MatrixCompletion
    from tacit.recommend.solvers.als import PrivateALS
    from tacit.recommend.solvers.frank_wolfe import FrankWolfeCompletion
    from tacit.recommend.solvers.gradient import ProjectedGradientCompletion
    from tacit.recommend.solvers.svd import CleansedSVD, SVDCompletion
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CleansedSVD",
    "FrankWolfeCompletion",
    "MatrixCompletion",
    "PrivateALS",
    "ProjectedGradientCompletion",
    "SVDCompletion",
]
