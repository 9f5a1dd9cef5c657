"""The tables of mutations fit the source and the tests; they run in tools/mutate.py."""

import ast
from functools import cache

import pytest
from tools.mutate import (
    PACKAGE,
    ROOT,
    Mutation,
    judged,
    main,
    read_tables,
    try_mutation,
)

MUTATIONS = read_tables()


@cache
def fast_tests(path):
    """Names of the test functions of a file that are not marked slow."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and not any("mark.slow" in ast.unparse(d) for d in node.decorator_list)
    }


def test_names_are_unique():
    names = [m.name for m in MUTATIONS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_a_mutation_applies_and_names_fast_tests(mutation):
    source = (PACKAGE / mutation.file).read_text(encoding="utf-8")
    mutant = ast.parse(mutation.applied(source))
    assert ast.dump(mutant) != ast.dump(ast.parse(source))
    assert mutation.why.endswith(".")
    assert mutation.tests or mutation.equivalent
    for test in mutation.tests:
        path, _, name = test.partition("::")
        assert name.partition("[")[0] in fast_tests(path), test


def mutation(before, near=""):
    return Mutation("x", "x", "x.py", before, "z", (), "Why.", near=near)


def test_a_mutation_must_have_one_place():
    assert mutation("b").applied("abc") == "azc"
    with pytest.raises(ValueError, match="occurs 0 times"):
        mutation("d").applied("abc")
    with pytest.raises(ValueError, match="occurs 2 times"):
        mutation("b").applied("abcb")
    assert mutation("b", near="c").applied("abcb") == "abcz"
    with pytest.raises(ValueError, match="after 'near'"):
        mutation("a", near="b").applied("ab")


def test_a_mutation_may_be_chosen_as_it_is_listed(capsys):
    main(["--list"])
    listed = capsys.readouterr().out.splitlines()[0].partition(":")[0]
    for name in (listed, listed.partition("/")[2]):
        assert main(["--list", "--only", name]) == 0
        assert capsys.readouterr().out.startswith(f"{listed}: ")
    with pytest.raises(SystemExit, match="No such mutation or area: elsewhere/"):
        main(["--list", "--only", "elsewhere/" + listed.partition("/")[2]])


def test_a_mutation_of_a_file_that_is_not_there_is_stale(tmp_path):
    (tmp_path / "tacit").mkdir()
    result = try_mutation(tmp_path, mutation("b"), 1.0)
    assert result.outcome == "stale"
    assert result.detail == "no such file below src/tacit: x.py"


@pytest.mark.parametrize(
    ("status", "output", "outcome"),
    [
        (0, "1 passed", "SURVIVED"),
        (1, "FAILED tests/x.py::test_y - assert 1", "killed"),
        (None, "", "killed"),
        (4, "ERROR: not found: tests/x.py::test_z", "invalid"),
        (5, "no tests ran", "invalid"),
        (70, "tacit is imported from elsewhere", "invalid"),
    ],
)
def test_the_outcome_follows_the_exit_status(status, output, outcome):
    assert judged(status, output)[0] == outcome
