"""Model folders that a person and another version can read, without pickle.

A folder contains ``model.json`` (estimator and parameters), ``weights.npz`` (its
numbers), ``privacy.json`` (the privacy report) and, where there is one, ``schema.json``
(the table it was fitted on). Reading runs no code from the folder. The folder of a
student, an ordinary model of scikit-learn, contains ``student.skops`` and
``student.json`` instead, and that of the item side of a recommender ``side.json`` and
``items.json``.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.persistence._errors import ModelFileError
    from tacit.persistence._files import SavedModel
    from tacit.persistence._folder import digest, load_model, read, save_model, write
    from tacit.persistence._sides import read_side, write_side
    from tacit.persistence._students import read_student, write_student
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ModelFileError",
    "SavedModel",
    "digest",
    "load_model",
    "read",
    "read_side",
    "read_student",
    "save_model",
    "write",
    "write_side",
    "write_student",
]
