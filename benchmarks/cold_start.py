"""Cold start: how long `longtail predict` takes for one text in a fresh process.

    python benchmarks/cold_start.py

A tagger is trained on the bundled `debtags`. Then one text is tagged again and again, each time in a new process: once
with an empty cache of compiled kernels, which must say that it compiles, and then with a warm one. Wall seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TEXT = {"text": "a small library to draw graphs and charts"}
GOAL = 1.5  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "cold_start.json")
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
        found = [run(predict, env) for _ in range(args.repeats)]
    seconds = [t for t, _ in found]
    facts: dict[str, Any] = {
        "command": "python benchmarks/cold_start.py",
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
        "seconds": seconds,
        "median_seconds": statistics.median(seconds),
        "worst_seconds": max(seconds),
        "goal_seconds": GOAL,
        "first_run_ever": {
            "seconds": first_seconds,
            "says_that_it_compiles": "compil" in first.stderr.lower(),
            "second_run_says_so": "compil" in again.stderr.lower(),
            "second_run_seconds": again_seconds,
        },
        "same_output": len({done.stdout for _, done in found} | {first.stdout}) == 1,
    }
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(facts, indent=1) + "\n")
    worst, told = facts["worst_seconds"], facts["first_run_ever"]["says_that_it_compiles"]
    print(f"one text, fresh process: {facts['median_seconds']:.2f} s (worst {worst:.2f}), goal {GOAL} s")
    print(f"first run ever: {first_seconds:.1f} s, says that it compiles: {told}")


def run(words: list[str], env: Any) -> tuple[float, subprocess.CompletedProcess[str]]:
    started = time.perf_counter()
    command = [sys.executable, "-m", "longtail", *words]
    done = subprocess.run(command, env=dict(env), capture_output=True, text=True, check=True)
    return time.perf_counter() - started, done


if __name__ == "__main__":
    main()
