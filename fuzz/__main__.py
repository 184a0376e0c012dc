"""Run fuzzers, or past findings (`corpus`): cases of one target, of a group, or of all."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fuzz import corpus
from fuzz.case import Case, Drawn, Target, draw_case
from fuzz.runner import Runner, Tally
from fuzz.targets import GROUPS, all_targets, chosen_targets

MEMORY = Path("/dev/shm")


def main() -> None:
    """Run one case, or many, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", nargs="?", default="all", help=f"a target, all, corpus, {', '.join(GROUPS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this case alone, here, and show what it does")
    parser.add_argument("--cases", type=int, default=1000, help="cases of each target")
    parser.add_argument("--minutes", type=float, help="go on for so long instead, targets taking turns")
    parser.add_argument("--keep", type=Path, help="with --case: write its files to this folder")
    parser.add_argument("--save", nargs=2, metavar=("NAME", "NOTE"), help="with --case: add it to the corpus")
    parser.add_argument("--expect", default="", choices=("", "read", "refused"), help="with --save: how it must end")
    parser.add_argument("--name", help="with corpus: this one alone, here")
    parser.add_argument("--list", action="store_true", help="list the targets")
    args = parser.parse_args()
    if args.list:
        print("\n".join(f"{target.group:10}{name}" for name, target in all_targets().items()))
        return
    if args.target == "corpus" and args.name:
        source = corpus.sources(args.name)[0]
        show_case(source.target, source.case(0), args.keep)
        return
    if args.case is not None:
        target = chosen_targets(args.target)[0]
        case = draw_case(target, args.seed, args.case)
        if args.save:
            print(corpus.save(args.save[0], target, case, args.save[1], args.expect))
        show_case(target, case, args.keep)
        return
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None, prefix="fuzz-") as sandbox:
        runner = Runner(Path(sandbox))
        if args.target == "corpus":
            tallies = replay(runner)
        else:
            tallies = campaign(runner, chosen_targets(args.target), args.seed, args.cases, args.minutes)
    sys.exit(print_findings(tallies))


def replay(runner: Runner) -> dict[str, Tally]:
    """Run all past findings again."""
    tallies = {}
    for source in corpus.sources():
        tallies[source.target.name] = runner.run(source, 0, len(source.cases))
        print_tally(source.target.name, tallies[source.target.name])
    return tallies


def campaign(runner: Runner, targets: list[Target], seed: int, cases: int, minutes: float | None) -> dict[str, Tally]:
    """Run cases of each target, or turns until the time is up, and print a line per target."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    tallies = {target.name: Tally() for target in targets}
    turn = 0
    while turn == 0 or (end is not None and time.monotonic() < end):
        for target in targets:
            first, count = (0, cases) if end is None else (turn * 10 * target.turns, 10 * target.turns)
            tallies[target.name].merge(runner.run(Drawn(target, seed), first, first + count).as_dict())
            if end is None:
                print_tally(target.name, tallies[target.name])
            elif time.monotonic() > end:
                break
        turn += 1
    if end is not None:
        for name, tally in tallies.items():
            print_tally(name, tally)
    return tallies


def print_findings(tallies: dict[str, Tally]) -> int:
    """Print what was found, with the commands that show it again; return the exit code."""
    for tally in tallies.values():
        for key, finding in tally.findings.items():
            print(f"\n{key}: {finding['count']} times\n  {finding['sentence']}")
            print("\n".join(f"  python -m fuzz {label}" for label in finding["cases"]))
    return int(any(tally.findings for tally in tallies.values()))


def print_tally(name: str, tally: Tally) -> None:
    """Print the counts of a target."""
    each = 1000 * tally.cpu_seconds / max(tally.cases, 1)
    print(f"{name:22} {tally.cases:8,} cases  {each:6.2f} ms each  {dict(tally.outcomes)}", flush=True)


def show_case(target: Target, case: Case, keep: Path | None) -> None:
    """Run a case in this process, without limits, and show its files and how it ends."""
    print(f"change: {case.change}; options: {json.dumps(dict(case.options))}")
    for name, raw in case.files.items():
        print(f"--- {name} ({len(raw)} bytes)\n{raw[:2000]!r}")
    folder = keep or Path(tempfile.mkdtemp(prefix="fuzz-case-"))
    inside = folder / "case"
    inside.mkdir(parents=True, exist_ok=True)
    (folder / "work").mkdir(exist_ok=True)
    case.write(inside)
    os.chdir(folder / "work")
    try:
        print("result:", target.run(case, inside))
    except BaseException:
        traceback.print_exc()


if __name__ == "__main__":
    main()
