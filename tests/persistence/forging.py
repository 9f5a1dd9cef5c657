"""Folders that are forged so that all their digests fit, and how they are refused."""

import io
import json
import zipfile
from hashlib import sha256

import numpy as np
import pytest

from tacit.persistence import ModelFileError, _json, read

__all__ = [
    "forge",
    "npz",
    "put",
    "refused_in_place_of",
    "refused_when_edited",
    "refused_with_less_spent",
    "rejected",
]

# One of them is in every folder
HEADERS = ("model.json", "student.json", "side.json")


def rejected(folder, words):
    with pytest.raises(ModelFileError, match=words) as found:
        read(folder)
    assert "\n" not in str(found.value)
    assert str(found.value).endswith(".")


def forge(folder, change=lambda data: None, **files):
    """Change the header and other files, with all digests made to fit."""
    path = next(folder / name for name in HEADERS if (folder / name).exists())
    data = json.loads(path.read_bytes())
    for name, content in files.items():
        file = name.replace("_", ".")
        (folder / file).write_bytes(content)
        data["files"][file] = {
            "bytes": len(content),
            "sha256": sha256(content).hexdigest(),
        }
    change(data)
    data["sha256"] = _json.checksum(data)
    path.write_text(json.dumps(data), "utf-8")


def npz(compression=zipfile.ZIP_STORED, **members):
    """Return an archive of arrays, compressed as it should not be or plain."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, array in members.items():
            inner = io.BytesIO()
            np.save(inner, array, allow_pickle=True)
            archive.writestr(f"{name}.npy", inner.getvalue())
    return buffer.getvalue()


def put(*keys, value):
    """Return a change that sets one place of a header."""

    def change(data):
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return change


def refused_in_place_of(folder, name):
    """Put other contents, none and no plain file in place of one that was written."""
    path = folder / name
    good = path.read_bytes()
    for content in (b"", good[:-1], good + b" ", good[:-1] + bytes([good[-1] ^ 1])):
        path.write_bytes(content)
        rejected(folder, name)
    path.unlink()
    rejected(folder, name)
    path.symlink_to("/dev/zero")
    rejected(folder, name)
    path.unlink()
    path.mkdir()
    rejected(folder, name)


def refused_with_less_spent(folder):
    """Halve the epsilon of a report, which its charges do not bear out."""
    data = json.loads((folder / "privacy.json").read_bytes())
    data["spent"]["epsilon"] /= 2
    forge(folder, privacy_json=json.dumps(data).encode())
    rejected(folder, r"privacy\.json")


def refused_when_edited(folder, name):
    """Change a fact in a header as an editor would, which leaves its digest."""
    path = folder / name
    path.write_bytes(path.read_bytes().replace(b'"b"', b'"c"'))
    rejected(folder, "changed after")
