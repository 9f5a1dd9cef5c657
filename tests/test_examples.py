"""The gallery and the code on pages: complete, readable and running."""

import ast
import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import pytest
import sklearn
from tests.public import public

import tacit.ensemble
import tacit.linear_model
import tacit.preprocessing
import tacit.recommend
import tacit.streaming

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "examples"
EXAMPLES = sorted(GALLERY.glob("*/plot_*.py"))
SECTIONS = sorted(path for path in GALLERY.iterdir() if path.is_dir())
# whole files of the recipes are carried out by tests/test_one_file.py
PYTHON = re.compile(r"^```python\n(?!# (?:src|tests)/)(.*?)^```$", re.S | re.M)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "_build" not in page.parts and PYTHON.search(page.read_text("utf-8"))
]
MOST_SECONDS = 30


def named(path):
    return path.relative_to(GALLERY).as_posix()


def commands():
    """Return the names of the commands, found as the command line finds them."""
    if find_spec("tacit.cli") is None:
        return []
    found = find_spec("tacit.cli.commands")
    return sorted(
        module.name for module in iter_modules(found.submodule_search_locations)
    )


def names_used(source):
    """Return the names that a script imports from tacit."""
    return {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tacit")
        for alias in node.names
    }


def commands_run(source):
    """Return the first words, where they are written out, of calls of ``tacit``."""
    lines = [
        node.args[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "tacit"
        and node.args
    ]
    starts = [x.values[0] if isinstance(x, ast.JoinedStr) else x for x in lines]
    return {str(x.value).split()[0] for x in starts if isinstance(x, ast.Constant)}


@pytest.mark.parametrize(
    "name",
    sorted(
        public(tacit.linear_model, "fit")
        | public(tacit.preprocessing, "fit")
        | public(tacit.streaming, "partial_fit")
        | public(tacit.streaming, "partial_fit")
        | public(tacit.ensemble, "fit")
        | public(tacit.recommend, "fit")
        | {"DurableStream"}
    ),
)
def test_every_estimator_is_used_in_the_gallery(name):
    assert any(name in names_used(path.read_text("utf-8")) for path in EXAMPLES)


@pytest.mark.parametrize("name", commands())
def test_every_command_is_run_in_the_gallery(name):
    paths = (GALLERY / "commands").glob("plot_*.py")
    assert any(name in commands_run(path.read_text("utf-8")) for path in paths)


def test_what_a_script_uses_is_read_off_its_code():
    assert names_used("from tacit.privacy import Budget\nfrom os import path") == {
        "Budget"
    }
    assert names_used("# Ridge\n'from tacit import Ridge'") == set()
    assert commands_run("tacit('plan --rows 3')\ntacit(x)\nother('fit')") == {"plan"}
    assert commands_run("tacit(f'plan {x}')\ntacit(f'{x} fit')") == {"plan"}


def test_commands_in_the_gallery_do_not_name_who_built_it():
    path = GALLERY / "commands" / "_shell.py"
    unnamed = runpy.run_path(str(path))["unnamed"]
    said = "owner eve.k\nann@pc  0  eve.k@box-1  eve.k   eve.k@box-12\n"
    shown = "owner me   \nann@pc  0  me@here      me      eve.k@box-12\n"
    assert unnamed(said, "eve.k", "box-1") == shown


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_example_compiles_and_says_what_it_asks(path):
    source = path.read_text("utf-8")
    told = ast.get_docstring(compile(source, path, "exec", ast.PyCF_ONLY_AST))
    title, line, *text = told.splitlines()
    assert line == "=" * len(title)
    assert any("?" in sentence for sentence in [title, *text]), "no question is asked"
    assert len(source.splitlines()) <= 350
    if "random_state=" in source or "as_generator(0)" in source:
        assert re.search(r"[Ss]eeds? (are|is)\s+fixed", told), "seeds are not explained"


@pytest.mark.parametrize("path", SECTIONS, ids=lambda path: path.name)
def test_section_of_the_gallery_has_a_header_and_an_example(path):
    assert (path / "GALLERY_HEADER.rst").is_file()
    assert list(path.glob("plot_*.py"))


def test_sections_are_those_that_the_documentation_orders():
    configuration = (ROOT / "docs" / "conf.py").read_text("utf-8")
    for section in SECTIONS:
        assert f'"{section.name}"' in configuration


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_code_on_a_page_runs(path, tmp_path, monkeypatch):
    # what another library would run is in blocks of another kind
    monkeypatch.chdir(tmp_path)
    code = "\n".join(PYTHON.findall(path.read_text("utf-8")))
    with sklearn.config_context():
        exec(compile(code, path, "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_example_runs_in_time(path, tmp_path):
    before = seconds_of_children()
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", path],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=10 * MOST_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    # of the processor, as other work on the machine is not the example's fault
    assert seconds_of_children() - before < MOST_SECONDS


def seconds_of_children():
    times = os.times()
    return times.children_user + times.children_system


def test_the_report_on_the_start_page_is_what_is_printed():
    page = (ROOT / "docs/use/get_started.md").read_text("utf-8")
    code, quoted = (
        re.search(rf"^```{kind}\n({start}.*?)^```$", page, re.S | re.M)[1]
        for kind, start in (("python", "from sklearn.datasets"), ("text", "guarantee"))
    )
    names = {}
    exec(code.replace("print(model", "(model"), names)
    lines = str(names["model"].privacy_).splitlines()
    for line, wanted in zip(lines, quoted.splitlines(), strict=True):
        pattern = r".*".join(map(re.escape, wanted.split("...")))
        assert re.fullmatch(pattern, line)
