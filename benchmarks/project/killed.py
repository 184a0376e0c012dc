"""Kill `longtail train` at random moments, and check that the old model always still loads.

    python benchmarks/project/killed.py

A first model is trained, then `train` is started again and again with the same output folder and killed with SIGKILL:
at moments spread over its whole run, and as many more around the moment it writes. After every kill the folder must
hold an intact model, the old one or the new one; a folder without a model yet must not be accepted. At the end one
undisturbed run must leave nothing behind but its own files.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from longtail.data import load_bundled, write
from longtail.errors import ModelError
from longtail.pipeline import load
from longtail.storage import read_manifest


class Trial(NamedTuple):
    """The training that is killed: its rows, how long it takes undisturbed, and where the moments come from."""

    data: Path
    seconds: float
    rng: random.Random


def start(data: Path, model: Path, seed: int) -> subprocess.Popen[bytes]:
    """Start a training."""
    command = [sys.executable, "-m", "longtail", "train", str(data), "-o", str(model), "--seed", str(seed)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_writing(process: subprocess.Popen[bytes], folder: Path, before: set[str], limit: float) -> None:
    """Return as soon as the folder changes or the process ends."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end and process.poll() is None:
        if folder.is_dir() and {p.name for p in folder.iterdir()} != before:
            return
        time.sleep(0.0005)


def names_in(folder: Path) -> set[str]:
    """Return the names of the files in a folder."""
    return {file.name for file in folder.iterdir()}


def files_of_model(folder: Path) -> set[str]:
    """Return the names of the files that belong to the model in a folder."""
    return {"manifest.json", *read_manifest(folder)["files"]}


def kill(process: subprocess.Popen[bytes]) -> bool:
    """Kill a training; say whether it had ended before."""
    ended = process.poll() is not None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return ended


def kill_over_old_model(trial: Trial, model: Path, kills: int) -> tuple[dict[str, int], list[Facts]]:
    """Kill trainings that would replace a model: first anywhere in their run, then while they write."""
    counts = {"killed": 0, "ended first": 0, "old model": 0, "new model": 0, "leftovers": 0}
    moments: list[Facts] = []
    for number in range(2 * kills):
        writing = number >= kills
        seed_before, before = read_manifest(model)["seed"], names_in(model)
        process = start(trial.data, model, number + 1)
        if writing:
            wait_for_writing(process, model, before, 10 * trial.seconds)
        delay = trial.rng.uniform(0, 0.03 if writing else trial.seconds)
        time.sleep(delay)
        counts["ended first" if kill(process) else "killed"] += 1
        load(model)  # raises if the folder is not intact
        counts["new model" if read_manifest(model)["seed"] != seed_before else "old model"] += 1
        left = len(names_in(model) - files_of_model(model))
        counts["leftovers"] += bool(left)
        moments.append({"while": "writing" if writing else "running", "after_seconds": round(delay, 4), "left": left})
    return counts, moments


def kill_into_new_folder(trial: Trial, fresh: Path, kills: int) -> dict[str, int]:
    """Kill trainings that write into a folder without a model; a half-written one must be refused."""
    counts = {"half-written, refused": 0, "finished, whole": 0}
    for _ in range(kills):
        process = start(trial.data, fresh, 1)
        wait_for_writing(process, fresh, set(), 10 * trial.seconds)
        time.sleep(trial.rng.uniform(0, 0.01))
        kill(process)
        try:
            load(fresh)
        except ModelError:
            counts["half-written, refused"] += 1
            continue
        counts["finished, whole"] += 1
        for file in fresh.iterdir():
            file.unlink()
    return counts


def main() -> None:
    parser = make_parser(__doc__, "killed.json")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, model, fresh = folder / "rows.jsonl", folder / "model", folder / "fresh"
        write(load_bundled("debtags").take(slice(0, args.rows)), data)
        started = time.perf_counter()
        if start(data, model, 0).wait() != 0:
            sys.exit("training failed")
        trial = Trial(data, time.perf_counter() - started, random.Random(args.seed))
        over_old, moments = kill_over_old_model(trial, model, args.kills)
        into_new = kill_into_new_folder(trial, fresh, args.kills)
        if start(data, model, 99).wait() != 0 or start(data, fresh, 99).wait() != 0:
            sys.exit("training after the kills failed")
        clean = all(names_in(m) == files_of_model(m) for m in (model, fresh))
    facts = start_facts(args, {}) | {
        "undisturbed_seconds": trial.seconds,
        "over_an_old_model": over_old,
        "into_a_new_folder": into_new,
        "always_loadable": True,
        "clean_after_the_next_run": clean,
        "moments": moments,
    }
    print(json.dumps({k: v for k, v in facts.items() if k != "moments"}, indent=1))
    write_results(facts, args.output)
    if not clean:
        sys.exit("leftovers were not cleaned up")


if __name__ == "__main__":
    main()
