"""A public name is one that a guide, an example or the README shows."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import tacit

ROOT = Path(__file__).resolve().parents[1]
SHOWN = (
    ROOT / "README.md",
    *(ROOT / "docs").glob("*/*.md"),
    *(ROOT / "examples").rglob("*.py"),
)
# what describes private algorithms and what is made anew by a command shows nothing
NOT_GUIDES = ("guarantees", "figures", "self_audit.md")
MOST_NAMES = 240


def packages():
    """Names of the public packages."""
    found = pkgutil.walk_packages(tacit.__path__, "tacit.", onerror=lambda _: None)
    return ["tacit", *(i.name for i in found if i.ispkg and "._" not in i.name)]


def public_names():
    return [
        (package, name)
        for package in packages()
        for name in getattr(importlib.import_module(package), "__all__", ())
    ]


def shown_words():
    """Words of examples, and of the code in guides and the README."""
    shown = [p for p in SHOWN if not any(part in NOT_GUIDES for part in p.parts)]
    texts = (in_code(p.read_text("utf-8"), guide=p.suffix == ".md") for p in shown)
    return {word for text in texts for word in re.findall(r"\w+", text)}


def in_code(text, *, guide=True):
    """What a page has in blocks of code and between backticks."""
    blocks = re.compile(r"^```.*?^```", re.M | re.S)
    if not guide:
        return text
    spans = re.findall(r"`[^`\n]+`", blocks.sub("", text))
    return "\n".join([*blocks.findall(text), *spans])


@pytest.mark.parametrize("package", packages())
def test_public_names_are_shown_in_a_guide_or_an_example(package):
    names = set(getattr(importlib.import_module(package), "__all__", ()))
    assert names - shown_words() == set()


def test_a_name_that_nothing_shows_would_be_found():
    assert {"LogisticRegression"} <= shown_words()
    assert "a_name_that_nothing_shows" not in shown_words()
    assert in_code("Column by `Schema`\n```python\ndraft\n```") == (
        "```python\ndraft\n```\n`Schema`"
    )


def test_the_surface_stays_small():
    assert len(public_names()) <= MOST_NAMES
