"""Measure how long `longtail predict` takes for one text in a fresh process.

    python benchmarks/project/cold_start.py

A tagger is trained on the bundled `debtags`. Then one text is tagged again and again, each time in a new process: once
with an empty cache of compiled kernels, which must say that it compiles, and then with a warm one. Wall seconds.
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
        first_seconds, first = run(predict, env)
        again_seconds, again = run(predict, env)
        later = [run(predict, env) for _ in range(args.repeats)]
    seconds = [t for t, _ in later]
    compiles = "compil" in first.stderr.lower()
    facts = start_facts(args, {}) | {
        "seconds": seconds,
        "median_seconds": statistics.median(seconds),
        "worst_seconds": max(seconds),
        "goal_seconds": GOAL,
        "first_run_ever": {
            "seconds": first_seconds,
            "says_that_it_compiles": compiles,
            "second_run_says_so": "compil" in again.stderr.lower(),
            "second_run_seconds": again_seconds,
        },
        "same_output": len({done.stdout for _, done in later} | {first.stdout}) == 1,
    }
    write_results(facts, args.output)
    print(f"one text, fresh process: {statistics.median(seconds):.2f} s (worst {max(seconds):.2f}), goal {GOAL} s")
    print(f"first run ever: {first_seconds:.1f} s, says that it compiles: {compiles}")


def run(words: list[str], env: Mapping[str, str]) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Run longtail in a process of its own; return the seconds and what it printed."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "longtail", *words]
    done = subprocess.run(command, env=dict(env), capture_output=True, text=True, check=True)
    return time.perf_counter() - started, done


if __name__ == "__main__":
    main()
