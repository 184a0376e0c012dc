"""One measurement in a process of its own: `python -m benchmarks.peers.worker train|predict|rehearse SPEC.json`.

It runs in the environment of the library it measures and writes its results beside the specification. Training and
prediction are two processes, so that a model is always predicted with as it was loaded from disk. `rehearse` does
everything on a few rows and measures nothing: it fills the cache of compiled kernels.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.harness.timing import folder_bytes, forget_peak, memory, timed
from benchmarks.peers.adapters import Adapter, adapter, read_part

K = 5
PASSES = 3  # over the test rows, at least; the median counts
SHORT = 1.0  # seconds; short passes are repeated until they take this long together
LONG_PASS = 60.0  # seconds; a pass longer than this is not repeated
SINGLE_ROWS = 500


def cpu_seconds() -> float:
    """Return the processor seconds of this process, in user and system mode."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def train(method: Adapter, data: Path, model: Path, started: float) -> dict[str, Any]:
    """Train and save; return times and memory."""
    method.start()
    import_seconds = time.perf_counter() - started
    method.read(data)
    warm, _ = timed(method.warm, data)
    gc.collect()
    peak_before, before = memory("VmHWM"), memory("VmRSS")
    anew = forget_peak()
    cpu = cpu_seconds()
    spent, _ = timed(method.train, model)
    cpu = cpu_seconds() - cpu
    peak = memory("VmHWM")
    saved, _ = timed(method.save, model)
    return {
        "import_seconds": import_seconds,
        "warm_seconds": warm.wall,
        "train_seconds": spent.wall,
        "train_cpu_seconds": cpu,
        "save_seconds": saved.wall,
        "peak_bytes": max(peak, peak_before),
        "peak_in_training_bytes": peak if anew else None,
        "before_training_bytes": before,
        "added_bytes": (peak if anew else max(peak, peak_before)) - before,
        "model_bytes": folder_bytes(model),
    }


def predict(method: Adapter, data: Path, model: Path, out: Path) -> dict[str, Any]:
    """Load the model in every way the library can hold it; return times, and write the predictions of the first."""
    np = __import__("numpy")
    method.start()
    X, _ = read_part(data, "test")
    rows = method.rows(X[:SINGLE_ROWS])
    batch_rows = method.rows(X) if method.row_by_row else X
    facts: dict[str, Any] = {"variants": {}}
    for variant in method.variants:
        gc.collect()
        loaded, _ = timed(method.load, model, variant)
        method.batch(batch_rows[:50], K)
        passes: list[float] = []
        while (len(passes) < PASSES or sum(passes) < SHORT) and (not passes or passes[0] < LONG_PASS):
            spent, predicted = timed(method.batch, batch_rows, K)
            passes.append(spent.wall)
        if variant == method.variants[0]:
            facts["load_seconds"] = loaded.wall
            write_top(np, method.pairs(predicted), out)
        del predicted
        one = method.one(K)
        for row in rows[:20]:
            one(row)
        times = np.array([timed(one, row)[0].wall for row in rows])
        facts["variants"][variant] = {
            "load_seconds": loaded.wall,
            "batch_us_per_row": 1e6 * float(np.median(passes)) / X.shape[0],
            "single_p50_us": 1e6 * float(np.percentile(times, 50)),
            "single_p99_us": 1e6 * float(np.percentile(times, 99)),
        }
    return facts


def rehearse(method: Adapter, data: Path, model: Path) -> dict[str, Any]:
    """Do everything once on 300 rows; nothing is measured."""
    method.start()
    method.read(data)
    method.X, method.Y = method.X[:300], method.Y[:300]
    method.train(model)
    method.save(model)
    method.load(model, method.variants[0])
    method.batch(method.X, K)
    method.one(K)(method.X[0])
    return {}


def write_top(np: Any, pairs: list[list[tuple[int, float]]], out: Path) -> None:
    """Write the K best labels of every row; missing labels are -1 with score -inf."""
    ids = np.full((len(pairs), K), -1, dtype=np.int32)
    scores = np.full((len(pairs), K), -np.inf, dtype=np.float32)
    for row, labels in enumerate(pairs):
        for rank, (label, score) in enumerate(labels[:K]):
            ids[row, rank], scores[row, rank] = label, score
    np.savez(out, ids=ids, scores=scores)


def main() -> None:
    started = time.perf_counter()
    task, spec_file = sys.argv[1], Path(sys.argv[2])
    spec = json.loads(spec_file.read_text())
    if hasattr(os, "sched_setaffinity"):  # a library that ignores the number of threads gets no more cores than others
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: spec["threads"]])
    method = adapter(spec["library"], spec["params"], spec["threads"], spec["seed"])
    data, model = Path(spec["data"]), Path(spec["model"])
    if task == "train":
        facts = train(method, data, model, started)
    elif task == "rehearse":
        facts = rehearse(method, data, model)
    else:
        facts = predict(method, data, model, spec_file.parent / "top.npz")
    (spec_file.parent / f"{task}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
