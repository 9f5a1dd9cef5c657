"""Sphinx configuration; the API pages are written from each package's __all__."""

import importlib
import pkgutil
from importlib.metadata import version as installed_version
from pathlib import Path

import tacit

project = "tacit"
author = "The tacit developers"
copyright = "the tacit developers"
release = version = installed_version("tacit")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
templates_path = ["_templates"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "tacit"

autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "signature"
autodoc_default_options = {
    # scikit-learn writes these methods, and links to its own guide from them
    "exclude-members": ", ".join(
        f"set_{method}_request"
        for method in ("fit", "partial_fit", "predict", "score", "transform")
    ),
}

API = Path(__file__).parent / "api"


def write_api_pages() -> None:
    """Write one page a public module that has an ``__all__``, and their index."""
    API.mkdir(exist_ok=True)
    for old in API.glob("*.rst"):
        old.unlink()
    pages = []
    for info in pkgutil.iter_modules(tacit.__path__, prefix="tacit."):
        if "._" in info.name:
            continue
        names = getattr(importlib.import_module(info.name), "__all__", [])
        if not names:
            continue
        lines = [
            info.name,
            "=" * len(info.name),
            "",
            f".. automodule:: {info.name}",
            "   :no-members:",
            "",
            f".. currentmodule:: {info.name}",
            "",
            ".. autosummary::",
            "   :toctree: generated",
            "   :nosignatures:",
            "",
            *(f"   {name}" for name in sorted(names)),
        ]
        (API / f"{info.name}.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")
        pages.append(info.name)
    lines = ["API", "===", "", ".. toctree::", "   :maxdepth: 1", ""]
    lines += [f"   {page}" for page in pages]
    (API / "index.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")


write_api_pages()
