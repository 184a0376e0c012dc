"""Measure how long `longtail predict` takes for one text in a fresh process.

    python benchmarks/project/cold_start.py

A tagger is trained on the bundled `debtags`. Then one text is tagged again and again, each time in a new process: once
with an empty cache of compiled kernels, which must say that it compiles, and then with a warm one. Wall seconds, and
the most memory that a process held.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import make_parser, start_facts, write_results

TEXT = {"text": "a small library to draw graphs and charts"}
GOAL = 1.5  # seconds


def main() -> None:
    parser = make_parser(__doc__, "cold_start.json")
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        env = {**os.environ, "NUMBA_CACHE_DIR": str(work / "cache")}
        data = work / "one.jsonl"
        data.write_text(json.dumps(TEXT) + "\n")
        run(["train", "bundled:debtags", "-o", str(work / "model")], os.environ)
        predict = ["predict", str(work / "model"), str(data)]
        first, again = run(predict, env), run(predict, env)
        later = [run(predict, env) for _ in range(args.repeats)]
    seconds = [done.seconds for done in later]
    compiles = "compil" in first.said
    facts = start_facts(args, {}) | {
        "seconds": seconds,
        "median_seconds": statistics.median(seconds),
        "worst_seconds": max(seconds),
        "peak_mb": round(statistics.median(done.peak_mb for done in later), 1),
        "goal_seconds": GOAL,
        "first_run_ever": {
            "seconds": first.seconds,
            "says_that_it_compiles": compiles,
            "second_run_says_so": "compil" in again.said,
            "second_run_seconds": again.seconds,
        },
        "same_output": len({done.printed for done in (first, *later)}) == 1,
    }
    write_results(facts, args.output)
    print(f"one text, fresh process: {statistics.median(seconds):.2f} s (worst {max(seconds):.2f}), goal {GOAL} s")
    print(f"first run ever: {first.seconds:.1f} s, says that it compiles: {compiles}")


class Run(NamedTuple):
    """A command that has ended."""

    seconds: float
    printed: str
    said: str  # on stderr, in small letters
    peak_mb: float
    processor_seconds: float


def run(words: list[str], env: Mapping[str, str], python: str | Path = sys.executable, first: bool = False) -> Run:
    """Run longtail in a process of its own, by the Python it is installed for; `first`: before all other processes."""
    if first:  # what this process starts is so as well
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as told:
        command = [str(python), "-m", "longtail", *words]
        process = subprocess.Popen(command, env=dict(env), stdout=out, stderr=told)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if first:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        told.seek(0)
        if process.returncode:
            raise SystemExit(told.read())
        return Run(seconds, out.read(), told.read().lower(), used.ru_maxrss / 1e3, used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main()
