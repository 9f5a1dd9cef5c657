"""``tacit audit``: exit code 5 for a refuted promise, and no other claim."""

import pytest

OURS = "tacit.linear_model:SimplexRegressor"
HERE = "tests.audit.test_estimators"
FAST = ("--rows", 4, "--jobs", 1, "--quiet", "--seed", 0)


def test_an_honest_estimator_is_not_refuted(run):
    answer = run("audit", OURS, "--epsilon", 2, "--runs", 80, *FAST)
    assert answer.code == 0, answer.err
    assert "guarantee    epsilon 2, delta 0.0625" in answer.out
    assert "Not refuted: SimplexRegressor" in answer.out
    assert "proves nothing" in answer.out
    assert "can show at most" in answer.out


def test_too_few_runs_to_refute_anything_are_refused(run):
    answer = run("audit", OURS, "--epsilon", 2, "--runs", 20, *FAST)
    assert answer.code == 2
    assert "runs must be more" in answer.err


def test_json_has_the_bound_and_the_promise(run):
    answer = run("audit", OURS, "--runs", 60, "--json", *FAST)
    assert answer.code == 0
    assert answer.data["refuted"] is False
    assert answer.data["promise"]["epsilon"] == 1.0
    assert answer.data["epsilon_lower"] <= 1.0
    assert answer.data["most_shown"] > 1.0
    assert answer.data["leaks"] == []
    assert answer.data["runs"] == 60
    assert answer.err == ""


def test_half_the_noise_is_refuted_with_a_code_of_its_own(run):
    # noise for an epsilon of 4 where 2 is promised
    answer = run(
        "audit", f"{HERE}:HalfNoise", "--epsilon", 2, "--runs", 400, "--json", *FAST
    )
    assert answer.code == 5
    assert answer.data["refuted"] is True
    assert answer.data["promise"]["delta"] == 0.0


def test_settings_reach_the_estimator(run):
    answer = run(
        "audit", f"{HERE}:HalfNoise", "--set", "share=1.0", "--runs", 60, *FAST
    )
    assert answer.code == 0
    ridge = ("--set", "y_range=[0, 9]", "--set", "solver=output_perturbation")
    penalty = ("--set", 'penalty={"type": "L2Ball", "radius": 3.0}')
    answer = run(
        "audit", "tacit.linear_model:Ridge", *ridge, *penalty, "--runs", 60, *FAST
    )
    assert answer.code == 0, answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tacit.linear_model",), "MODULE:CLASS"),
        (("no.such.module:Thing",), "cannot be imported"),
        (("tacit.linear_model:Lars",), "no class 'Lars'"),
        (("tacit.linear_model:__doc__",), "not a class"),
        (("tacit.convex:L1",), "cannot be created"),
        ((OURS, "--set", "bogus=1"), "bogus"),
        ((OURS, "--set", "epsilon=1"), "--epsilon"),
        ((OURS, "--set", "radius"), "NAME=VALUE"),
        ((OURS, "--epsilon", "-1"), "epsilon"),
        ((OURS, "--runs", "3"), "runs"),
        ((f"{HERE}:Quiet",), "cannot be created"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_a_sentence(arguments, words, run):
    answer = run("audit", *arguments, "--quiet")
    assert answer.code == 2
    assert words in answer.err
    assert "Traceback" not in answer.err


BROKEN = "tests.audit.test_canaries"
ONCE = ("--one-run", "--seed", 0)


def test_one_run_prints_how_many_coins_were_guessed(run):
    ours = "tacit.linear_model:LinearSVC"
    answer = run("audit", ours, "--epsilon", 2, "--canaries", 200, *ONCE)
    assert answer.code == 0, answer.err
    assert "guarantee    epsilon 2, delta" in answer.out
    assert "this number of canaries can show" in answer.out
    assert "right, from" in answer.out
    assert "Not refuted: LinearSVC" in answer.out


def test_one_run_refutes_half_the_noise_with_the_same_code(run):
    answer = run("audit", f"{BROKEN}:HalfNoise", "--json", *ONCE)
    assert answer.code == 5
    assert answer.data["refuted"] is True
    assert answer.data["runs"] == 1
    assert answer.data["canaries"] == 1000
    assert answer.data["correct"] <= answer.data["guesses"]
    honest = run("audit", f"{BROKEN}:Sums", "--json", *ONCE)
    assert honest.code == 0
    assert honest.data["refuted"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--one-run", "--runs", 50), "--runs is for an audit without --one-run"),
        (("--one-run", "--jobs", 2), "--jobs is for an audit without --one-run"),
        (("--canaries", 50), "--canaries is for an audit with --one-run"),
        (("--one-run", "--method", "clopper-pearson"), "method must be one of"),
        (("--method", "any"), "method must be one of"),
        (("--one-run", "--canaries", 40, "--epsilon", 9), "n_canaries must be more"),
    ],
)
def test_an_option_of_the_other_kind_is_refused(arguments, words, run):
    answer = run("audit", f"{BROKEN}:Sums", *arguments)
    assert answer.code == 2
    assert words in answer.err
