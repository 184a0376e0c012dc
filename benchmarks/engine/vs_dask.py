"""One training on threads, on Ray and on Dask: the same bytes, processor time, memory of the processes, a lost process.

    python benchmarks/engine/vs_dask.py

Two processes on this machine, generated data. Needs Ray and `dask[distributed]`. Memory is the sum of what the working
processes have for themselves, with shared pages divided among those who share them (PSS), at the end of a training.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.engine.cluster import TICKS, model_digest
from benchmarks.engine.warm_up import warm_up
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from longtail.data.synthetic.generate import make_extreme
from longtail.engine import Arrays, Engine, LocalEngine, RayEngine, Shared
from longtail.engine.engine import Run
from longtail.tree import LabelTreeClassifier

PROCESSES = 2
ROWS, LABELS = 50_000, 10_000

_PREPARED: dict[str, Any] = {}


def run_task(call: str, names: list[str], settings: Any, task: Any, *shared: Arrays) -> Arrays:
    """Do one task in a process of Dask."""
    prepare, run = (getattr(importlib.import_module(names[i]), names[i + 1]) for i in (0, 2))
    if call not in _PREPARED:
        _PREPARED.clear()
        _PREPARED[call] = prepare({name: a for arrays in shared for name, a in arrays.items()}, settings)
    return run(_PREPARED[call], task)


class DaskEngine(Engine):
    """Runs tasks on Dask."""

    def __init__(self, client: Any) -> None:
        self.client, self.calls = client, 0

    @property
    def workers(self) -> int:
        return PROCESSES

    def share(self, arrays: Arrays) -> Shared:
        return Shared(arrays, self.client.scatter([dict(arrays)], broadcast=True, hash=False)[0])

    def _do(self, run: Run) -> None:
        from distributed import as_completed

        from benchmarks.engine.vs_dask import run_task  # by its name, not by its code, as it would be of this program

        self.calls += 1
        names = [part for f in (run.work.prepare, run.work.run) for part in (f.__module__, f.__qualname__)]
        handles = [one.handle for one in run.shared]
        waiting = {
            self.client.submit(run_task, str(self.calls), names, run.settings, run.tasks[i], *handles, pure=False): i
            for i in run.order
        }
        for future in as_completed(list(waiting)):
            run.keep(waiting[future], future.result())
            run.told(waiting[future])


def spent(pids: list[int]) -> float:
    """Return the processor seconds of processes so far."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(words[11]) + int(words[12]) for words in stats) / TICKS


def memory_of(pids: list[int]) -> int:
    """Return the bytes of processes, shared pages divided."""
    lines = [Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() for pid in pids]
    return sum(1024 * int(next(x for x in of if x.startswith("Pss:")).split()[1]) for of in lines)


def working(engine: Engine) -> list[int]:
    """Return the processes that do tasks."""
    from benchmarks.engine.warm_up import WARM_UP

    return sorted({int(out["process"][0]) for out in engine.map(WARM_UP, [], {}, list(range(4 * PROCESSES)))})


def train(engine: Engine, X: sp.csr_array, Y: sp.csr_array, kill_after: float | None = None) -> Facts:
    """Train once and return what it took."""
    pids = [] if engine.in_process else working(engine)
    before, cpu, started = spent(pids), time.process_time(), time.perf_counter()
    if kill_after is not None:
        threading.Timer(kill_after, os.kill, (pids[0], signal.SIGKILL)).start()
    model = LabelTreeClassifier(random_state=0, n_jobs=PROCESSES).fit(X, Y, engine=engine)
    out: Facts = {"seconds": round(time.perf_counter() - started, 2), "digest": model_digest(model)}
    if kill_after is None:
        out["cpu_driver"], out["cpu_workers"] = (
            round(seconds, 2) for seconds in (time.process_time() - cpu, spent(pids) - before)
        )
        out["memory_bytes"] = memory_of(pids)
    return out


def attempt(engine: Engine, X: sp.csr_array, Y: sp.csr_array, after: float) -> Facts:
    """Train while a process is killed; return what it took, or how it ended."""
    try:
        return train(engine, X, Y, after)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:200]}


def main() -> None:
    """Measure all three."""
    args = make_parser(__doc__, "engines.json", resume=True).parse_args()
    facts = start_facts(args, {}, "ray", "distributed")
    data = make_extreme(ROWS, LABELS)
    X, Y = sp.csr_array(data.X), data.Y
    facts["data"] = {"rows": ROWS, "labels": LABELS, "rows_bytes": int(X.data.nbytes + X.indices.nbytes)}
    if "ray" not in facts:
        local = LocalEngine(PROCESSES)
        warm_up(local)
        facts["threads"] = train(local, X, Y)
        with RayEngine("local", n_jobs=PROCESSES) as ray:
            facts["ray"] = train(ray, X, Y)
            facts["ray"]["a_process_killed"] = attempt(ray, X, Y, facts["ray"]["seconds"] / 2)
        write_results(facts, args.output)
    from distributed import Client

    with Client(n_workers=PROCESSES, threads_per_worker=1, dashboard_address=None) as client:
        dask = DaskEngine(client)
        facts["dask"] = train(dask, X, Y)
        write_results(facts, args.output)
        facts["dask"]["a_process_killed"] = attempt(dask, X, Y, facts["dask"]["seconds"] / 2)
    facts["same_bytes"] = len({facts[name]["digest"] for name in ("threads", "ray", "dask")}) == 1
    write_results(facts, args.output)
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
