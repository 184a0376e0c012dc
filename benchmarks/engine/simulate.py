"""What a training would take on many machines, from the measured times of its tasks and the bytes that travel.

    python benchmarks/engine/simulate.py

The label tree is trained on one thread, with every task timed (processor time) and its result weighed;
the data is generated in the shape of Amazon-670K. Then the schedule is played for 1 to 32 machines of 16 cores: what is
shared goes to every machine once, from machine to machine as a binary tree, results go back to the driver one after the
other, tasks begin heaviest first on the core that is free first, and what the driver does itself is waited for. Each
task costs the driver a moment too. Nothing here was run on more than one machine. Draws docs/scale.svg.
"""

from __future__ import annotations

import heapq
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import DOCS, Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail.data.synthetic.generate import make_extreme
from longtail.engine import Arrays, LocalEngine, Shared, Work
from longtail.report.plots.canvas import (
    WIDTH,
    dot,
    drawing,
    line,
    logarithmic,
    path,
    short_number,
    standalone,
    text,
)
from longtail.tree import LabelTreeClassifier

MACHINES = (1, 2, 4, 8, 16, 32)
CORES = 16
BANDWIDTH = 10e9 / 8  # bytes a second between two machines
LATENCY = 0.5e-3  # seconds of a message
PER_TASK = (
    1.5e-3  # seconds of the driver for a task: measured as the driver's time in `cluster.py` by its tasks, roundly
)
DRIVER_SPEEDUP = 8  # of what the driver does itself, on its 16 cores: growing the tree and putting results together
STYLES = (("stroke", "dot"), ("stroke2", "dot2"))
SIZES = ((100_000, 30_000), (1_000_000, 100_000))  # rows and labels


class Watching(LocalEngine):
    """Threads that note what every task takes and what travels, as if it were another machine's."""

    in_process = False

    def __init__(self) -> None:
        super().__init__(1)
        self.phases: list[Facts] = []
        self.new_bytes = 0

    def share(self, arrays: Arrays) -> Shared:
        self.new_bytes += sum(array.nbytes for array in arrays.values())
        return super().share(arrays)

    def map(
        self, work: Work, shared: Sequence[Shared], settings: Any, tasks: Sequence[Any], **more: Any
    ) -> list[Arrays]:
        seconds: dict[int, float] = {}
        numbers = {id(task): number for number, task in enumerate(tasks)}

        def timed(prepared: Any, task: Any) -> Arrays:
            started = time.thread_time()
            out = work.run(prepared, task)
            seconds[numbers[id(task)]] = time.thread_time() - started
            return out

        begun = time.thread_time()
        prepared = work.prepare({name: a for one in shared for name, a in one.arrays.items()}, settings)
        in_every_process = time.thread_time() - begun
        del prepared
        out = super().map(Work(work.prepare, timed), shared, settings, tasks, **more)
        self.phases.append(
            {
                "work": work.name.rpartition(":")[2],
                "shared_bytes": self.new_bytes,
                "prepare_seconds": in_every_process,
                "task_seconds": [seconds[i] for i in range(len(tasks))],
                "result_bytes": [sum(array.nbytes for array in one.values()) for one in out],
            }
        )
        self.new_bytes = 0
        return out


def measure(n_rows: int, n_labels: int) -> Facts:
    """Train once and return what every phase takes, and what the driver does itself."""
    data = make_extreme(n_rows, n_labels)
    engine = Watching()
    small = make_extreme(600, 300, 2000)
    LabelTreeClassifier(max_leaf=20, random_state=0).fit(small.X, small.Y, engine=engine)  # compiles
    engine.phases, engine.new_bytes = [], 0
    started = time.process_time()
    LabelTreeClassifier(random_state=0, n_jobs=1).fit(sp.csr_array(data.X), data.Y, engine=engine)
    whole = time.process_time() - started
    tasks = sum(sum(phase["task_seconds"]) for phase in engine.phases)
    prepared = sum(2 * phase["prepare_seconds"] for phase in engine.phases)  # here, and within the map
    return {"rows": n_rows, "labels": n_labels, "cpu_seconds": whole, "driver_seconds": whole - tasks - prepared} | {
        "phases": engine.phases
    }


def play(facts: Facts, machines: int) -> Facts:
    """Return the seconds of a training on so many machines, by what they go to."""
    cores, hops = machines * CORES, math.ceil(math.log2(machines)) if machines > 1 else 0
    spent = {"driver": facts["driver_seconds"] / DRIVER_SPEEDUP, "transfer": 0.0, "tasks": 0.0}
    for phase in facts["phases"]:
        spent["transfer"] += hops * (phase["shared_bytes"] / BANDWIDTH + LATENCY)
        free = [phase["prepare_seconds"]] * cores
        order = sorted(zip(phase["task_seconds"], phase["result_bytes"], strict=True), reverse=True)
        arrivals = []
        for number, (seconds, size) in enumerate(order):
            begin = max(heapq.heappop(free), number * PER_TASK)
            heapq.heappush(free, begin + seconds)
            arrivals.append((begin + seconds, size))
        now = 0.0
        for done, size in sorted(arrivals):
            now = max(now, done) + (size / BANDWIDTH * (machines - 1) / machines)
        spent["tasks"] += now
    return {"machines": machines, "seconds": round(sum(spent.values()), 2)} | {
        f"{name}_seconds": round(value, 2) for name, value in spent.items()
    }


def summed(facts: Facts) -> Facts:
    """Return phases with sums in place of single tasks."""
    return {
        **{name: round(value, 2) if isinstance(value, float) else value for name, value in facts.items()},
        "phases": [
            {
                "work": phase["work"],
                "tasks": len(phase["task_seconds"]),
                "seconds": round(sum(phase["task_seconds"]), 2),
                "longest_task": round(max(phase["task_seconds"]), 3),
                "shared_mb": round(phase["shared_bytes"] / 1e6, 1),
                "returned_mb": round(sum(phase["result_bytes"]) / 1e6, 1),
            }
            for phase in facts["phases"]
        ],
    }


def plot(runs: list[Facts]) -> str:
    """Draw how much faster a training gets with machines."""
    left, right, top, low = 52.0, WIDTH - 84, 34.0, 226.0
    x, y = logarithmic(1, MACHINES[-1], left, right), logarithmic(1, MACHINES[-1], low, top)
    body = [text(0, 14, "Times as fast as one machine of 16 cores", css="strong")]
    for n in MACHINES:
        body.append(line(left, y(n), right, y(n), "grid"))
        body.append(text(left - 8, y(n) + 4, str(n), "end", "soft small"))
        body.append(text(x(n), low + 16, str(n), "middle", "soft small"))
    body.append(text((left + right) / 2, low + 34, "machines", "middle", "soft small"))
    told = []
    for (stroke, mark), run in zip(STYLES, runs, strict=False):
        alone, plays = run["play"]["1"]["seconds"], list(run["play"].values())
        points = [(x(one["machines"]), y(alone / one["seconds"])) for one in plays]
        body.append(path(points, stroke))
        body += [dot(*point, mark) for point in points]
        name = f"{short_number(run['rows'])} rows"
        body.append(text(points[-1][0] + 8, points[-1][1] + 4, name, css="small"))
        told += [f"{name}, {one['machines']} machines: {alone / one['seconds']:.1f} times" for one in plays]
    return drawing(low + 44, "Speed-up of training by machines, simulated", "; ".join(told), body)


def main() -> None:
    """Measure, play and draw."""
    parser = make_parser(__doc__, "cluster_simulation.json", resume=True)
    args = parser.parse_args()
    facts = start_facts(args, {"runs": {}})
    facts["assumed"] = {
        "cores": CORES,
        "bytes_per_second": BANDWIDTH,
        "latency": LATENCY,
        "driver_per_task": PER_TASK,
        "driver_speedup": DRIVER_SPEEDUP,
    }
    parts = ("tasks", "driver", "transfer")
    for n_rows, n_labels in SIZES:
        key = f"{n_rows}_rows"
        if key in facts["runs"]:
            continue
        run = measure(n_rows, n_labels)
        out = {**summed(run), "play": {str(machines): play(run, machines) for machines in MACHINES}}
        facts["runs"][key] = out
        write_results(facts, args.output)
        show_table(
            f"{n_rows:,} rows, {n_labels:,} labels",
            ["machines", "seconds", *parts],
            [[one["machines"], one["seconds"], *(one[f"{n}_seconds"] for n in parts)] for one in out["play"].values()],
        )
    (DOCS / "scale.svg").write_text(standalone(plot(list(facts["runs"].values()))) + "\n", "utf-8")


if __name__ == "__main__":
    main()
