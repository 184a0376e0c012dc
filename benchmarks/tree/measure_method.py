"""Train, save, load and predict with one method on one data set, in processes of their own, and judge the result."""

from __future__ import annotations

import datetime
import json
import os
import resource
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.prepared_data import read_prepared
from benchmarks.harness.program import ROOT
from benchmarks.harness.scores import KS, precisions, rounded
from benchmarks.tree.compared_methods import Method
from longtail.data import TopK
from longtail.metrics import ndcg_at_k, propensities, psp_at_k

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class CellError(Exception):
    """A measurement that ended without numbers; `status` says how."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


def measure(
    method: Method, python: Path, data: Path, folder: Path, seed: int, threads: int, timeout: float
) -> dict[str, Any]:
    """Return the facts of one cell: times, memory, size and accuracy."""
    at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    end = time.monotonic() + timeout
    spec_file = _spec(method, data, folder, seed, threads)
    others = Others()
    try:
        trained = _work("train", spec_file, python, threads, timeout, end)
        predicted = _work("predict", spec_file, python, threads, timeout, end)
        busy = others.cores()
        with np.load(folder / "top.npz") as file:
            top = TopK(file["ids"], file["scores"])
    finally:
        shutil.rmtree(folder / "model", ignore_errors=True)
    best = {
        name: min(variant[name] for variant in predicted["variants"].values())
        for name in ("batch_us_per_row", "single_p50_us", "single_p99_us")
    }
    return {"at": at, "others_cores": busy, **trained, **predicted, **best, "accuracy": accuracy(data, top)}


class Others:
    """How many cores other programs keep busy from now on: times of a busy machine say little."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.before = self._others()

    @staticmethod
    def _others() -> float | None:
        """Return the CPU seconds of this machine so far, without those of this program's children."""
        file = Path("/proc/stat")
        if not file.exists():
            return None
        user, nice, system, *_ = (int(word) for word in file.read_text().split("\n", 1)[0].split()[1:])
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (user + nice + system) / os.sysconf("SC_CLK_TCK") - own.ru_utime - own.ru_stime

    def cores(self) -> float | None:
        after = self._others()
        if after is None or self.before is None:
            return None
        return round(max(after - self.before, 0.0) / (time.monotonic() - self.started), 2)


def rehearse(method: Method, python: Path, data: Path, folder: Path, threads: int, timeout: float) -> None:
    """Run a method on a few rows, so that nothing is compiled while it is measured."""
    spec_file = _spec(method, data, folder, 0, threads)
    _work("rehearse", spec_file, python, threads, timeout, time.monotonic() + timeout)
    shutil.rmtree(folder, ignore_errors=True)


def accuracy(data: Path, top: TopK) -> dict[str, float]:
    """Return the metrics in percent; labels that only test rows have count as rare as can be."""
    Y, Y_train = read_prepared(data, "test")[1], read_prepared(data, "train")[1]
    counts = np.zeros(Y.shape[1], dtype=np.int64)
    counts[: Y_train.shape[1]] = np.bincount(Y_train.indices, minlength=Y_train.shape[1])
    propensity = propensities(counts, n_rows=Y_train.shape[0])
    scores = precisions(Y, top) | {f"psp@{k}": 100 * psp_at_k(Y, top, propensity, k=k) for k in KS}
    return rounded({**scores, "ndcg@5": 100 * ndcg_at_k(Y, top, k=5)})


def _spec(method: Method, data: Path, folder: Path, seed: int, threads: int) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    spec = {
        "library": method.library,
        "params": method.params,
        "threads": threads,
        "seed": seed,
        "data": str(data),
        "model": str(folder / "model"),
    }
    spec_file = folder / "spec.json"
    spec_file.write_text(json.dumps(spec))
    return spec_file


def _work(task: str, spec_file: Path, python: Path, threads: int, timeout: float, end: float) -> dict[str, Any]:
    variables = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)), "PYTHONNOUSERSITE": "1"}
    command = [str(python), "-m", "benchmarks.peers.worker", task, str(spec_file)]
    log = spec_file.parent / f"{task}.log"
    with log.open("w") as out:
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=max(end - time.monotonic(), 1.0),
            )
        except subprocess.TimeoutExpired:
            raise CellError("timeout", f"not finished after {timeout:g} s, in {task}") from None
    if done.returncode:
        lines = log.read_text(errors="replace").strip().splitlines() or [f"exit status {done.returncode}"]
        raise CellError("failed", f"{task}: {lines[-1][:300]}")
    return json.loads((spec_file.parent / f"{task}.json").read_text())
