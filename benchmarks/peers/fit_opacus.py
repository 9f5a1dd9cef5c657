"""Fit a linear model with Opacus; run inside its own environment.

Usage: ``fit_opacus.py split.npz '{"epsilon": 1, "delta": 1e-9, "seed": 0, ...}'``. The
privacy is for adding or removing a row. Seconds are of the training with the library's
own loader; its search for the noise is timed apart. Prints one JSON list, a result a
learning rate.
"""

import json
import sys
import warnings
from time import process_time

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from torch.utils.data import DataLoader, TensorDataset


def train(split, given, rate, multiplier):
    torch.manual_seed(given["seed"])
    n_classes = int(split["y"].max()) + 1
    X = torch.tensor(split["X"], dtype=torch.float32)
    y = torch.tensor(split["y"], dtype=torch.long)
    model = torch.nn.Linear(X.shape[1], 1 if n_classes == 2 else n_classes)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    loss = (
        torch.nn.CrossEntropyLoss()
        if n_classes > 2
        else lambda z, t: torch.nn.functional.binary_cross_entropy_with_logits(
            z[:, 0], t.float()
        )
    )
    start = process_time()
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate),
        data_loader=DataLoader(TensorDataset(X, y), batch_size=given["batch"]),
        noise_multiplier=multiplier,
        max_grad_norm=1.0,
        poisson_sampling=True,
    )
    for _ in range(given["epochs"]):
        for rows, targets in loader:
            if len(targets) == 0:
                continue
            optimizer.zero_grad()
            loss(model(rows), targets).backward()
            optimizer.step()
    took = process_time() - start
    with torch.no_grad():
        scores = model(torch.tensor(split["X_test"], dtype=torch.float32)).numpy()
    found = scores.argmax(axis=1) if n_classes > 2 else scores[:, 0] > 0
    return float(np.mean(found == split["y_test"])), took


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows = dict(np.load(sys.argv[1]))
    given = json.loads(sys.argv[2])
    began = process_time()
    noise = get_noise_multiplier(
        target_epsilon=given["epsilon"],
        target_delta=given["delta"],
        sample_rate=given["batch"] / len(rows["y"]),
        epochs=given["epochs"],
        accountant="prv",
    )
    searched = process_time() - began
    results = []
    for rate in given["rates"]:
        accuracy, cpu = train(rows, given, rate, noise)
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
