"""The runs of the benchmark of PRIME: which models are compared, how they are scored, and their file of results."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
from typing import Any

import numpy as np
import torch

from benchmarks.harness.program import Facts, command, read_results
from benchmarks.harness.scores import KS, precisions
from benchmarks.harness.terminal import show_table
from benchmarks.prime.carried_data import Texts
from longtail.data import TopK
from longtail.metrics import propensities, psp_at_k, recall_at_k

EPOCHS = {"yso-titles": 6, "eurlex57k": 12}
BATCH = {"yso-titles": 1600, "eurlex57k": 512}
TIMES_BATCH = {"PRIME": 2}  # the others have 1
LR = 5e-4  # better than 2e-4 for PRIME-lite and for the NGAME-like model, on held-out training rows
LITE = {"preset": "prime-lite"}
MAIN: dict[str, Facts] = {
    "frozen encoder": {"preset": "ngame", "lr": 1e-12, "epochs": 1},
    # rare labels are shown more often to all alike: on held-out rows the NGAME-like model is better for it
    "NGAME-like": {"preset": "ngame", "sampling": "propensity"},
    "DEXA-like": {"preset": "dexa", "sampling": "propensity"},
    "PRIME-lite": LITE,
    "PRIME": {"preset": "prime"},
}
ABLATION: dict[str, Facts] = {
    "PRIME-lite": LITE,
    "query to prototype only, fixed margin": {**LITE, "loss_weights": (0, 0, 0), "margin": 0.3},
    "+ query to label": {**LITE, "loss_weights": (1, 0, 0), "margin": 0.3},
    "+ dynamic margin": {**LITE, "loss_weights": (1, 0, 0)},
    "+ label to query": {**LITE, "loss_weights": (1, 1, 0)},
    "without centroids": {**LITE, "centroids": False},
    "without free vectors": {**LITE, "n_free": 0},
    "without warm start": {**LITE, "warm_start": False},
}
FREE = {f"{n} free vectors": {**LITE, "n_free": n, "n_private": 0} for n in (256, 2048, 16_384)}


def ranked(top: TopK, texts: Texts) -> Facts:
    """Return P@k, PSP@k and R@100 in percent."""
    counts = np.zeros(texts.Y_test.shape[1], dtype=np.int64)
    counts[: texts.Y.shape[1]] = np.bincount(texts.Y.indices, minlength=texts.Y.shape[1])
    weights = propensities(counts, texts.Y.shape[0])
    scores = precisions(texts.Y_test, top)
    scores |= {f"psp@{k}": 100 * float(psp_at_k(texts.Y_test, top, weights, k)) for k in KS}
    return scores | {"r@100": 100 * float(recall_at_k(texts.Y_test, top, 100))}


def open_results(args: argparse.Namespace) -> Facts:
    """Return the facts so far: those of the file, with --resume or in a stage that adds to it."""
    facts: Facts = {"command": [], "machine": "", "runs": []}
    if args.output.exists() and (args.resume or args.stage != "train"):
        facts = read_results(args.output)
    facts["command"].append(command())
    if torch.cuda.is_available():
        versions = f"torch {torch.__version__}, Python {platform.python_version()}"
        facts["machine"] = f"{torch.cuda.get_device_name()}, {versions}"
    return facts


def key(run: Facts) -> tuple[Any, ...]:
    """Return what tells a run from all others."""
    return tuple(run[name] for name in ("part", "data", "seed", "model"))


def line(run: Facts) -> str:
    """Return one run in one line."""
    numbers = {n: round(v, 2) for n, v in run.items() if isinstance(v, float)}
    return f"{run['data']}, seed {run['seed']}, {run['model']}: {json.dumps(numbers)}"


def show(facts: Facts) -> None:
    """Print a table per data set and part: means over seeds."""
    columns = [f"p@{k}" for k in KS] + [f"psp@{k}" for k in KS] + ["r@100"]
    tables: dict[tuple[str, str], dict[str, list[Facts]]] = {}
    for run in facts["runs"]:
        if "p@1" in run:
            tables.setdefault((run["data"], run["part"]), {}).setdefault(run["model"], []).append(run)
    for (data, part), models in sorted(tables.items()):
        rows = [
            [model, *(f"{statistics.mean(run[name] for run in runs):.2f}" for name in columns), len(runs)]
            for model, runs in models.items()
        ]
        show_table(f"{data}, {part}", ["", *columns, "seeds"], rows)
