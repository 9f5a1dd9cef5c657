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
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
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

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",
    "subsection_order": [
        f"../examples/{name}"
        for name in (
            "models",
            "columns",
            "streams",
            "recommend",
            "budgets",
            "commands",
            "research",
        )
    ],
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("tacit",),
    "reference_url": {"tacit": None},
    "backreferences_dir": "gallery/backreferences",
    "download_all_examples": False,
    "show_signature": False,
    "parallel": 2,
}

API = Path(__file__).parent / "api"


# described in the guide to the command line, and not called from Python
COMMAND_LINE = "tacit.cli"
# modules that need an extra, so that their package does not list what is in them
WITH_EXTRAS = ["tacit.streaming.river"]


def public_modules() -> list[str]:
    """Return the modules of the package, and the packages inside these, by name.

    A module inside a package is left out: what is public of it is listed there.
    """

    def inside(path, prefix):
        for info in pkgutil.iter_modules(path, prefix):
            if "._" in info.name or info.name == COMMAND_LINE:
                continue
            if prefix == "tacit." or info.ispkg:
                yield info.name
            if info.ispkg:
                package = importlib.import_module(info.name)
                yield from inside(package.__path__, f"{info.name}.")

    return sorted([*inside(tacit.__path__, "tacit."), *WITH_EXTRAS])


def _home(thing: object) -> str | None:
    """Return the public package that a class, function or value is defined in."""
    where = getattr(thing, "__module__", None)
    if where is None:
        return None
    return next((m for m in _longest_first() if f"{where}.".startswith(f"{m}.")), None)


def _longest_first() -> list[str]:
    return sorted(public_modules(), key=len, reverse=True)


def write_api_pages() -> None:
    """Write one page a public module that has an ``__all__``, and their index."""
    API.mkdir(exist_ok=True)
    for old in API.glob("*.rst"):
        old.unlink()
    pages = []
    for module in public_modules():
        package = importlib.import_module(module)
        # what another package offers as well has its page there
        names = [
            name
            for name in getattr(package, "__all__", [])
            if _home(getattr(package, name)) in (None, module)
        ]
        if not names:
            continue
        lines = [
            module,
            "=" * len(module),
            "",
            f".. automodule:: {module}",
            "   :no-members:",
            "",
            f".. currentmodule:: {module}",
            "",
            ".. autosummary::",
            "   :toctree: generated",
            "   :nosignatures:",
            "",
            *(f"   {name}" for name in sorted(names)),
        ]
        (API / f"{module}.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")
        pages.append(module)
    lines = ["API", "===", "", ".. toctree::", "   :maxdepth: 1", ""]
    lines += [f"   {page}" for page in pages]
    (API / "index.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")


write_api_pages()
