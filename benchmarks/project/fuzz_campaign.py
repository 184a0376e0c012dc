"""Run the fuzzers for long, in child processes with limits, and count what they find.

    python benchmarks/project/fuzz_campaign.py --readers 1000000 --models 200000 --sides 100000 --commands 10000

Every target gets a share of the cases of its group. Results are written as they come, with the ranges of cases that are
done: with --resume a campaign goes on where it stopped, and adds to the counts. --guided adds the counts that
`python -m fuzz.guided --output` has kept.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import zip_longest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from fuzz.case import Drawn, Target
from fuzz.runner import HANG, Runner, Tally
from fuzz.targets import GROUPS, all_targets
from fuzz.watch import ADDRESS_SPACE, SECONDS, TIMES

from benchmarks.harness.program import Deadline, Facts, make_parser, read_results, start_facts, write_results
from benchmarks.harness.terminal import show_table

CHUNK = {"readers": 5000, "sides": 5000, "models": 1000, "commands": 200}
DEFAULTS = {"readers": 1_000_000, "sides": 100_000, "models": 200_000, "commands": 10_000}
MEMORY = Path("/dev/shm")
EMPTY: Facts = {
    "limits": {
        "processor_seconds_per_case": SECONDS,
        "seconds_without_progress": HANG,
        "memory_times_files": TIMES,
        "address_space_bytes_per_child": ADDRESS_SPACE,
    },
    "seconds": 0.0,
    "groups": {},
    "targets": {},
    "findings": {},
}

Chunk = tuple[str, int, int, int]  # target, seed, first case, end
runner: Runner | None = None  # of a worker process


def start_worker(folder: str) -> None:
    """Give a worker process a folder of its own."""
    global runner
    runner = Runner(Path(tempfile.mkdtemp(dir=folder)))


def run_chunk(chunk: Chunk) -> tuple[Chunk, Facts]:
    """Run some cases of a target in a worker process."""
    name, seed, first, end = chunk
    if runner is None:
        raise RuntimeError("the worker has no folder")
    return chunk, runner.run(Drawn(all_targets()[name], seed), first, end).as_dict()


def chunks(args: argparse.Namespace, facts: Facts) -> Iterator[Chunk]:
    """Yield what is still to be done, targets taking turns."""
    lists = []
    for group in GROUPS:
        targets = [target for target in all_targets().values() if target.group == group]
        targets = [target for target in targets if not args.only or target.name in args.only]
        turns = sum(target.turns for target in targets)
        for target in targets:
            wanted = -(-getattr(args, group) * target.turns // turns)
            lists.append([c for c in _of_target(target, args.seed, wanted) if not _is_done(facts, c)])
    for turn in zip_longest(*lists):
        yield from (chunk for chunk in turn if chunk is not None)


def _of_target(target: Target, seed: int, wanted: int) -> list[Chunk]:
    size = min(CHUNK[target.group], max(wanted, 1))
    return [(target.name, seed, first, min(first + size, wanted)) for first in range(0, wanted, size)]


def _is_done(facts: Facts, chunk: Chunk) -> bool:
    name, seed, first, end = chunk
    return [seed, first, end] in facts["targets"].get(name, {}).get("ranges", [])


def add(facts: Facts, chunk: Chunk, counted: Facts) -> None:
    """Add the counts of some cases to the facts."""
    name, *numbers = chunk
    known = facts["targets"].setdefault(name, {**Tally().as_dict(), "ranges": []})
    tally = Tally()
    tally.merge(known)
    tally.merge(counted)
    each = 1000 * tally.cpu_seconds / max(tally.cases, 1)
    facts["targets"][name] = {
        "group": all_targets()[name].group,
        **tally.as_dict(),
        "milliseconds_each": round(each, 3),
        "ranges": [*known["ranges"], numbers],
    }


def add_results(facts: Facts, other: Facts) -> None:
    """Add the results of a campaign that ran at the same time."""
    for name, counted in other["targets"].items():
        ranges = facts["targets"].get(name, {}).get("ranges", [])
        add(facts, (name, 0, 0, 0), counted)
        facts["targets"][name]["ranges"] = [*ranges, *counted["ranges"]]
    facts["seconds"] = max(facts["seconds"], other["seconds"])


def sum_up(facts: Facts) -> None:
    """Fill in the sums over groups and the list of all findings."""
    facts["findings"] = {key: f for t in facts["targets"].values() for key, f in t["findings"].items()}
    for group in GROUPS:
        targets = [t for t in facts["targets"].values() if t["group"] == group]
        cases = sum(t["cases"] for t in targets)
        facts["groups"][group] = {
            "cases": cases,
            "targets": len(targets),
            "read": sum(t["outcomes"].get("read", 0) for t in targets),
            "refused": sum(t["outcomes"].get("refused", 0) for t in targets),
            "findings": sum(f["count"] for t in targets for f in t["findings"].values()),
            "processor_seconds": round(sum(t["cpu_seconds"] for t in targets), 1),
            "slowest_seconds": max((t["slowest"][0] for t in targets), default=0.0),
            "largest_share_of_allowed_memory": max((t["largest"][0] for t in targets), default=0.0),
        }
    facts["cases"] = sum(g["cases"] for g in facts["groups"].values())
    facts["cases_per_second"] = round(facts["cases"] / max(facts["seconds"], 1e-9), 1)


def campaign(args: argparse.Namespace, facts: Facts, folder: str) -> None:
    """Run chunks in worker processes until all are done or the time is up, and write the results as they come."""
    deadline, before, started = Deadline(args.minutes), facts["seconds"], time.monotonic()
    context = multiprocessing.get_context("fork")
    todo, written = chunks(args, facts), 0.0
    with ProcessPoolExecutor(args.jobs, context, start_worker, (folder,)) as pool:
        running: set[Future[tuple[Chunk, dict[str, Any]]]] = set()
        while True:
            while len(running) < args.jobs and not deadline.passed():
                chunk = next(todo, None)
                if chunk is None:
                    break
                running.add(pool.submit(run_chunk, chunk))
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                add(facts, *future.result())
            facts["seconds"] = round(before + time.monotonic() - started, 1)
            if time.monotonic() - written > 10:
                written = time.monotonic()
                sum_up(facts)
                write_results(facts, args.output)
    sum_up(facts)
    write_results(facts, args.output)


def main() -> None:
    parser = make_parser(__doc__, "fuzz.json", resume=True)
    for group, cases in DEFAULTS.items():
        parser.add_argument(f"--{group}", type=int, default=cases, help=f"cases (default {cases})")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=None, help="begin nothing new after so long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes")
    parser.add_argument("--only", nargs="*", default=[], metavar="TARGET", help="no other targets than these")
    parser.add_argument("--add", type=Path, nargs="*", default=[], help="results of campaigns run beside, to add")
    parser.add_argument("--guided", type=Path, help="counts of `python -m fuzz.guided` to add")
    args = parser.parse_args()
    facts = start_facts(args, EMPTY, "pyarrow", "safetensors")
    for file in args.add:
        add_results(facts, read_results(file))
    if args.guided is not None:
        facts["guided"] = json.loads(args.guided.read_text("utf-8"))
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None, prefix="fuzz-") as folder:
        campaign(args, facts, folder)
    rows = [[name, f"{t['cases']:,}", t["milliseconds_each"], t["outcomes"]] for name, t in facts["targets"].items()]
    show_table("Fuzzing", ["target", "cases", "ms each", "outcomes"], rows)
    for key, finding in facts["findings"].items():
        print(f"\n{key}: {finding['count']} times\n  {finding['sentence']}")
        print("\n".join(f"  python -m fuzz {label}" for label in finding["cases"]))


if __name__ == "__main__":
    main()
