"""What audits have in common: a bound from counts, and what two bounds must show."""

import logging
from math import log

from tests.stat import P_FAIL

from tacit.audit import clopper_pearson_lower, clopper_pearson_upper

LOG = logging.getLogger(__name__)  # `make audits` prints it


def event_bound(first, second, n_runs, delta=0.0):
    """Return the bound on epsilon from how often an event, fixed beforehand, was seen.

    It is too high with probability at most ``P_FAIL``.
    """
    p = clopper_pearson_lower(first, n_runs, P_FAIL / 2) - delta
    q = clopper_pearson_upper(second, n_runs, P_FAIL / 2)
    return log(max(p, q) / q)


def assert_refutes_the_control(name, claim, planned, control, broken="half the noise"):
    """The claim survives the attack, and what breaks it is caught."""
    LOG.info(
        "%s: claim %g, lower bound %.3f, %s %.3f", name, claim, planned, broken, control
    )
    assert planned <= claim
    assert control > claim


def check(name, claim, epsilon_of, broken=0.5):
    """The planned noise survives, and a part of it does not."""
    less = f"{broken:g} of the noise"
    assert_refutes_the_control(name, claim, epsilon_of(1.0), epsilon_of(broken), less)
