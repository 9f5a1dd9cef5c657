"""What audits have in common: a bound from counts, and what two bounds must show.

Every verdict names what is audited first, one public name or "one with another", and
what of it after a comma. With a file named in ``TACIT_AUDIT_LOG`` each is written there
as a line of JSON, from which `make audit` makes its page: what judges is what reports.
"""

import json
import os
from math import log
from pathlib import Path

from scipy.special import ndtri
from tests.cases import audited
from tests.stat import P_FAIL

from tacit.audit import audit
from tacit.audit.bounds import (
    EpsilonBound,
    clopper_pearson_lower,
    clopper_pearson_upper,
    gaussian_epsilon,
)

LOG_FILE = "TACIT_AUDIT_LOG"


def bound_of_runs(release, sides, n_runs, delta, seed, method="gaussian", **settings):
    """Return the bound on epsilon from runs on two sides.

    It is too high with probability at most ``P_FAIL``.
    """
    return audit(
        release,
        sides,
        n_runs=n_runs,
        delta=delta,
        method=method,
        confidence=1 - P_FAIL,
        random_state=seed,
        **settings,
    )


def event_bound(first, second, n_runs, delta=0.0):
    """Return the bound on epsilon from how often an event, fixed beforehand, was seen.

    It is too high with probability at most ``P_FAIL``.
    """
    p = clopper_pearson_lower(first, n_runs, P_FAIL / 2) - delta
    q = clopper_pearson_upper(second, n_runs, P_FAIL / 2)
    return _of_an_event("event", log(max(p, q) / q), first, second, n_runs, delta)


def gaussian_event_bound(first, second, n_runs, delta):
    """Return the same for a mechanism whose trade-off is Gaussian, which shows more."""
    fnr = clopper_pearson_upper(n_runs - first, n_runs, P_FAIL / 2)
    fpr = clopper_pearson_upper(second, n_runs, P_FAIL / 2)
    mu = max(-ndtri(fpr) - ndtri(fnr), 0.0)
    epsilon = float(gaussian_epsilon(delta, mu))
    return _of_an_event("gaussian event", epsilon, first, second, n_runs, delta)


def _of_an_event(method, epsilon, first, second, n_runs, delta):
    return EpsilonBound(
        epsilon_lower=epsilon,
        delta=delta,
        confidence=1 - P_FAIL,
        method=method,
        threshold=1.0,
        above=True,
        favors_first=True,
        hits=(int(first), int(second)),
        trials=(n_runs, n_runs),
    )


def assert_refutes_the_control(
    name, claim, planned, control, broken=0.5, least=0.0, subjects=None
):
    """The claim survives the attack, and what breaks it is caught.

    ``planned`` and ``control`` are what `tacit.audit.audit` or a function of bounds
    returns. ``broken`` is the part of the noise that the control has, or what else is
    wrong with it, in words. ``least`` is the part of the claim that the attack must
    show. ``subjects`` are those of the name, or none where what is attacked is only a
    part of something public.
    """
    if subjects is None:
        subjects = name.split(",")[0].split(" with ")
    verdict = {
        "subjects": list(subjects),
        "name": name,
        "claim": float(claim),
        "delta": planned.delta,
        "bound": planned.epsilon_lower,
        "broken": broken if isinstance(broken, str) else less_noise(broken),
        "control": control.epsilon_lower,
        "runs": planned.trials[0],
        "control_runs": control.trials[0],
        "method": planned.method,
    }
    _note(verdict)
    lower, shown = planned.epsilon_lower, control.epsilon_lower
    assert lower <= claim, f"{name}: {lower:.4f} refutes the claim {claim:.4f}"
    assert lower >= least * claim, f"{name}: only {lower:.4f} of {claim:.4f} was shown"
    assert shown > claim, f"{name}: {shown:.4f} is within the claim {claim:.4f}"


def less_noise(part):
    """Return how the page calls a part of the noise."""
    return "half the noise" if part == 0.5 else f"{part:.2g} of the noise"


def check(name, claim, epsilon_of, broken=0.5, least=0.0, subjects=None):
    """The planned noise survives, and a part of it does not."""
    planned, control = epsilon_of(1.0), epsilon_of(broken)
    assert_refutes_the_control(name, claim, planned, control, broken, least, subjects)


def _note(verdict):
    """Write the verdict to the log; its module must declare that it attacks these."""
    test = os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0]
    module = test.split("::")[0].removesuffix(".py").replace("/", ".")
    for subject in verdict["subjects"]:
        declared = module in audited().get(subject, ())
        assert declared, f"{module} declares no audits={subject!r} in its SHARED_CASES"
    if path := os.environ.get(LOG_FILE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**verdict, "test": test}) + "\n")
