"""Fit a linear model with jax_privacy; run inside its own environment.

Usage as for ``fit_opacus.py``. The step is compiled before the clock starts, and the
library's own Poisson sampling is inside it.
"""

import json
import sys
from time import process_time

import dp_accounting
import jax
import jax.numpy as jnp
import numpy as np
import optax
from dp_accounting.rdp import RdpAccountant
from jax_privacy import batch_selection, clipped_grad, noise_addition

# batches are padded to a multiple of this, so that few shapes are compiled
PADDING = 128


def calibrated(given, rate, n_steps):
    """Return the noise multiplier of Poisson-sampled Gaussians."""

    def event(noise):
        return dp_accounting.SelfComposedDpEvent(
            dp_accounting.PoissonSampledDpEvent(
                rate, dp_accounting.GaussianDpEvent(noise)
            ),
            n_steps,
        )

    return dp_accounting.calibrate_dp_mechanism(
        RdpAccountant,
        event,
        given["epsilon"],
        given["delta"],
        bracket_interval=dp_accounting.LowerEndpointAndGuess(0.1, 10.0),
    )


def train(split, given, rate, multiplier, n_steps):
    n_rows = len(split["y"])
    n_classes = int(split["y"].max()) + 1
    outputs = 1 if n_classes == 2 else n_classes
    X = split["X"].astype(np.float32)
    y = split["y"].astype(np.int32)

    def loss(params, rows, targets):
        z = rows @ params["w"] + params["b"]
        if n_classes == 2:
            return optax.sigmoid_binary_cross_entropy(z[:, 0], targets).mean()
        return optax.softmax_cross_entropy_with_integer_labels(z, targets).mean()

    gradient = clipped_grad(
        loss, l2_clip_norm=1.0, batch_argnums=(1, 2), normalize_by=given["batch"]
    )
    std = multiplier * gradient.sensitivity()
    privatizer = noise_addition.gaussian_privatizer(
        stddev=std, prng_key=jax.random.key(given["seed"])
    )
    optimizer = optax.sgd(rate)

    @jax.jit
    def step(params, noise_state, state, rows, targets, padding):
        total = gradient(params, rows, targets, is_padding_example=padding)
        noisy, noise_state = privatizer.update(total, noise_state)
        moves, state = optimizer.update(noisy, state)
        return optax.apply_updates(params, moves), noise_state, state

    def start():
        params = {
            "w": jnp.zeros((X.shape[1], outputs)),
            "b": jnp.zeros(outputs),
        }
        return params, privatizer.init(params), optimizer.init(params)

    def batches():
        sampling = batch_selection.CyclicPoissonSampling(
            sampling_prob=given["batch"] / n_rows,
            iterations=n_steps,
            partition_type=batch_selection.PartitionType.INDEPENDENT,
        )
        for indices in sampling.batch_iterator(n_rows, rng=given["seed"]):
            padded = batch_selection.pad_to_multiple_of(indices, PADDING)
            yield X[padded], y[padded], padded < 0

    shapes = set()
    for rows, targets, padding in batches():  # compile for every shape there will be
        if rows.shape[0] not in shapes:
            shapes.add(rows.shape[0])
            jax.block_until_ready(step(*start(), rows, targets, padding))
    began = process_time()
    carried = start()
    for rows, targets, padding in batches():
        carried = step(*carried, rows, targets, padding)
    params = jax.block_until_ready(carried[0])
    took = process_time() - began
    scores = split["X_test"] @ np.asarray(params["w"]) + np.asarray(params["b"])
    found = scores.argmax(axis=1) if n_classes > 2 else scores[:, 0] > 0
    return float(np.mean(found == split["y_test"])), took


if __name__ == "__main__":
    rows = dict(np.load(sys.argv[1]))
    given = json.loads(sys.argv[2])
    steps = round(given["epochs"] * len(rows["y"]) / given["batch"])
    began = process_time()
    noise = calibrated(given, given["batch"] / len(rows["y"]), steps)
    searched = process_time() - began
    results = []
    for rate in given["rates"]:
        accuracy, cpu = train(rows, given, rate, noise, steps)
        results.append(
            {
                "rate": rate,
                "accuracy": accuracy,
                "cpu_s": cpu,
                "calibration_cpu_s": searched,
                "noise_multiplier": noise,
            }
        )
    print(json.dumps(results))
