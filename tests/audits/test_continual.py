"""Audits of sums of streams: the best linear attack on all outputs together."""

from functools import partial

import numpy as np
import pytest
from tests.audits.verdict import check
from tests.cases import Cases
from tests.stat import P_FAIL

from tacit._random import as_generator
from tacit.audit.bounds import gaussian_bound
from tacit.mechanisms import noise as draws
from tacit.mechanisms.continual import BLTSum, GrowingSum, TreeSum, WindowSum
from tacit.mechanisms.continual._square_root import SquareRootSum
from tacit.mechanisms.continual._trees import HonakerTree
from tacit.privacy import Neighbors

SHARED_CASES = Cases(
    audits="BLTSum GrowingSum HonakerTree SquareRootSum TreeSum WindowSum"
)

DELTA = 1e-5
N_STEPS, N_RUNS, AT_ONCE = 12, 400_000, 50_000

# each from its multiplier and kind of noise; elements move by one
KINDS = {
    "TreeSum": partial(TreeSum, N_STEPS),
    "HonakerTree": partial(HonakerTree, N_STEPS),
    "SquareRootSum": partial(SquareRootSum, N_STEPS),
    "BLTSum": partial(BLTSum, N_STEPS),
    "BLTSum, one buffer": partial(BLTSum, N_STEPS, buffers=1),
    "GrowingSum": partial(GrowingSum, first=2, growth=2),
    "GrowingSum, trees": partial(GrowingSum, first=1, growth=2, kind="tree"),
    "WindowSum": partial(WindowSum, 5),
}


def outputs(mechanism, elements, rng, in_blocks=False):
    state, sums = mechanism.init(elements[0].shape), []
    if in_blocks:
        return mechanism.steps(state, elements, rng)[1]
    for element in elements:
        state, total = mechanism.step(state, element, rng)
        sums.append(total)
    return np.array(sums)


def best_weights(make, position):
    """Weights of the outputs in the likelihood ratio, and the move they find."""
    mechanism, n_draws, used = make(1.0, 1.0, "float"), 4 * N_STEPS, [0]
    rng = as_generator(0)  # never drawn from

    def unit(shape, rng):
        start, used[0] = used[0], used[0] + shape[0]
        return np.eye(n_draws)[start : used[0]].reshape(shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draws, "float_normal", unit)
        mixing = outputs(mechanism, np.zeros((N_STEPS, n_draws)), rng)
        patch.setattr(draws, "float_normal", lambda shape, rng: np.zeros(shape))
        moved = outputs(mechanism, np.eye(N_STEPS)[position][:, None], rng)[:, 0]
    return np.linalg.solve(mixing @ mixing.T, moved), moved


def most_exposed(make):
    """Return the place whose element the outputs tell most of."""
    found = [best_weights(make, position) for position in range(N_STEPS)]
    return int(np.argmax([weights @ moved for weights, moved in found]))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("in_blocks", [False, True], ids=["steps", "blocks"])
@pytest.mark.parametrize("noise", ["grid", "float"])
@pytest.mark.parametrize("name", KINDS)
def test_sums_keep_their_claim_and_half_the_noise_does_not(
    name, noise, in_blocks, seed
):
    make = KINDS[name]
    position = most_exposed(make)
    weights, _ = best_weights(make, position)
    claim = make(1.0, 1.0, noise).curve(Neighbors.REPLACE_ONE).epsilon(DELTA)

    def lower(share):
        rng, mechanism = as_generator(seed), make(share, 1.0, noise)
        scores = np.empty((2, N_RUNS))
        for side in (0, 1):
            for start in range(0, N_RUNS, AT_ONCE):
                elements = np.zeros((N_STEPS, AT_ONCE))
                elements[position] = side
                found = outputs(mechanism, elements, rng, in_blocks)
                scores[side, start : start + AT_ONCE] = weights @ found
        return gaussian_bound(*scores, delta=DELTA, confidence=1 - P_FAIL)

    check(f"{name}, {noise}", claim, lower)
