"""Kill `longtail train` at random moments: the old model must always still load.

    python benchmarks/killed.py

A first model is trained, then `train` is started again and again with the same output folder and killed with SIGKILL:
at moments spread over its whole run, and as many more around the moment it writes. After every kill the folder must
hold an intact model, the old one or the new one; a folder without a model yet must not be accepted. At the end one
undisturbed run must leave nothing behind but its own files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from longtail.data import write
from longtail.data.bundled import load_bundled
from longtail.errors import ModelError
from longtail.pipeline import load
from longtail.storage import read_manifest


def start(data: Path, model: Path, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "longtail", "train", str(data), "-o", str(model), "--seed", str(seed)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_writing(process: subprocess.Popen[bytes], folder: Path, before: set[str], limit: float) -> None:
    """Return as soon as the folder changes or the process ends."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end and process.poll() is None:
        if folder.is_dir() and {p.name for p in folder.iterdir()} != before:
            return
        time.sleep(0.0005)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "killed.json")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, model, fresh = folder / "rows.jsonl", folder / "model", folder / "fresh"
        write(load_bundled("debtags").take(slice(0, args.rows)), data)
        started = time.perf_counter()
        if start(data, model, 0).wait() != 0:
            sys.exit("training failed")
        seconds = time.perf_counter() - started
        counts: dict[str, int] = {"killed": 0, "ended first": 0, "old model": 0, "new model": 0, "leftovers": 0}
        moments: list[dict[str, Any]] = []
        for kill in range(2 * args.kills):
            writing = kill >= args.kills
            seed_before = read_manifest(model)["seed"]
            before = {p.name for p in model.iterdir()}
            process = start(data, model, kill + 1)
            if writing:
                wait_for_writing(process, model, before, 10 * seconds)
                delay = rng.uniform(0, 0.03)
            else:
                delay = rng.uniform(0, seconds)
            time.sleep(delay)
            ended = process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.wait()
            counts["ended first" if ended else "killed"] += 1
            load(model)  # raises if the folder is not intact
            changed = read_manifest(model)["seed"] != seed_before
            counts["new model" if changed else "old model"] += 1
            named = {"manifest.json", *read_manifest(model)["files"]}
            left = sorted(p.name for p in model.iterdir() if p.name not in named)
            counts["leftovers"] += bool(left)
            when = "writing" if writing else "running"
            moments.append({"while": when, "after_seconds": round(delay, 4), "left": len(left)})
        refused = accepted = 0
        for _ in range(args.kills):
            process = start(data, fresh, 1)
            wait_for_writing(process, fresh, set(), 10 * seconds)
            time.sleep(rng.uniform(0, 0.01))
            process.send_signal(signal.SIGKILL)
            process.wait()
            try:
                load(fresh)
                accepted += 1  # it had finished: the folder is whole
                for file in fresh.iterdir():
                    file.unlink()
            except ModelError:
                refused += 1
        if start(data, model, 99).wait() != 0 or start(data, fresh, 99).wait() != 0:
            sys.exit("training after the kills failed")
        clean = all(
            {p.name for p in m.iterdir()} == {"manifest.json", *read_manifest(m)["files"]} for m in (model, fresh)
        )
    facts = {
        "command": f"python benchmarks/killed.py --kills {args.kills} --rows {args.rows} --seed {args.seed}",
        "undisturbed_seconds": seconds,
        "over_an_old_model": counts,
        "into_a_new_folder": {"half-written, refused": refused, "finished, whole": accepted},
        "always_loadable": True,
        "clean_after_the_next_run": clean,
        "cores": os.cpu_count(),
        "moments": moments,
    }
    print(json.dumps({k: v for k, v in facts.items() if k != "moments"}, indent=1))
    args.output.write_text(json.dumps(facts, indent=1) + "\n")
    if not clean:
        sys.exit("leftovers were not cleaned up")


if __name__ == "__main__":
    main()
