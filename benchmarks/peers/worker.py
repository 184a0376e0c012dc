"""One measurement in a process of its own: `python -m peers.worker train|predict|rehearse SPEC.json`.

It runs in the environment of the library it measures and writes its findings beside the specification. Training and
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers.adapters import Adapter, adapter, read_part

K = 5
PASSES = 3  # over the test rows, at least; the median counts
SHORT = 1.0  # seconds; short passes are repeated until they take this long together
LONG_PASS = 60.0  # seconds; a pass longer than this is not repeated
SINGLE_ROWS = 500


def memory(field: str) -> int:
    """Return VmRSS (now) or VmHWM (the most so far) of this process in bytes.

    On Linux ru_maxrss would begin with the memory of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> bool:
    """Start counting the peak of memory anew, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(task: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    found = task(*given)
    return time.perf_counter() - started, found


def folder_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def train(method: Adapter, data: Path, model: Path, started: float) -> dict[str, Any]:
    method.start()
    import_seconds = time.perf_counter() - started
    method.read(data)
    warm_seconds, _ = timed(method.warm, data)
    gc.collect()
    peak_before, before = memory("VmHWM"), memory("VmRSS")
    anew = forget_peak()
    cpu = cpu_seconds()
    seconds, _ = timed(method.train, model)
    cpu = cpu_seconds() - cpu
    peak = memory("VmHWM")
    save_seconds, _ = timed(method.save, model)
    return {
        "import_seconds": import_seconds,
        "warm_seconds": warm_seconds,
        "train_seconds": seconds,
        "train_cpu_seconds": cpu,
        "save_seconds": save_seconds,
        "peak_bytes": max(peak, peak_before),
        "peak_in_training_bytes": peak if anew else None,
        "before_training_bytes": before,
        "added_bytes": (peak if anew else max(peak, peak_before)) - before,
        "model_bytes": folder_bytes(model),
    }


def predict(method: Adapter, data: Path, model: Path, out: Path) -> dict[str, Any]:
    np = __import__("numpy")
    method.start()
    X, _ = read_part(data, "test")
    rows = method.rows(X[:SINGLE_ROWS])
    batch_rows = method.rows(X) if method.row_by_row else X
    few = batch_rows[:50]
    facts: dict[str, Any] = {"variants": {}}
    for variant in method.variants:
        gc.collect()
        load_seconds, _ = timed(method.load, model, variant)
        method.batch(few, K)
        passes: list[float] = []
        while (len(passes) < PASSES or sum(passes) < SHORT) and (not passes or passes[0] < LONG_PASS):
            seconds, found = timed(method.batch, batch_rows, K)
            passes.append(seconds)
        if variant == method.variants[0]:
            facts["load_seconds"] = load_seconds
            write_top(np, method.pairs(found), out)
        del found
        one = method.one(K)
        for row in rows[:20]:
            one(row)
        times = np.array([timed(one, row)[0] for row in rows])
        facts["variants"][variant] = {
            "load_seconds": load_seconds,
            "batch_us_per_row": 1e6 * float(np.median(passes)) / X.shape[0],
            "single_p50_us": 1e6 * float(np.percentile(times, 50)),
            "single_p99_us": 1e6 * float(np.percentile(times, 99)),
        }
    return facts


def rehearse(method: Adapter, data: Path, model: Path) -> dict[str, Any]:
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
    """Write the K best labels of every row; missing places hold -1 and -inf."""
    ids = np.full((len(pairs), K), -1, dtype=np.int32)
    scores = np.full((len(pairs), K), -np.inf, dtype=np.float32)
    for row, found in enumerate(pairs):
        for place, (label, score) in enumerate(found[:K]):
            ids[row, place], scores[row, place] = label, score
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
