"""Model folders that a person and another version can read, without pickle.

A folder holds ``model.json`` (what the model is), ``weights.npz`` (its numbers),
``privacy.json`` (what was promised) and, where there is one, ``schema.json`` (the table
it was fitted on). Reading runs no code from the folder.
"""

from tacit.saved._errors import ModelFileError
from tacit.saved._folder import (
    SavedModel,
    digest,
    is_model,
    load_model,
    read,
    save_model,
    write,
)
from tacit.saved._values import restored_parameter

__all__ = [
    "ModelFileError",
    "SavedModel",
    "digest",
    "is_model",
    "load_model",
    "read",
    "restored_parameter",
    "save_model",
    "write",
]
