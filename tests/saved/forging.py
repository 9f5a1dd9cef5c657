"""Folders that are forged so that all their digests fit, and how they are refused."""

import json
from hashlib import sha256

import pytest

from tacit.saved import ModelFileError, _json, read

__all__ = ["forge", "put", "refused"]


def refused(folder, words):
    with pytest.raises(ModelFileError, match=words) as found:
        read(folder)
    assert "\n" not in str(found.value)
    assert str(found.value).endswith(".")


def forge(folder, change=lambda data: None, **files):
    """Change the header and other files, with all digests made to fit."""
    student = folder / "student.json"
    path = student if student.exists() else folder / "model.json"
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


def put(*keys, value):
    """Return a change that sets one place of a header."""

    def change(data):
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return change
