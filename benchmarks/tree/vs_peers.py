"""Compare the label tree with PECOS, Omikuji and napkinXC: accuracy, time, memory and size, on one machine.

    python benchmarks/tree/vs_peers.py --data FOLDER

FOLDER holds `eurlex-4k` (XMC text), `eurlex57k`, `yso-titles` and `pubmed-mesh` (JSONL); default LONGTAIL_DATA;
`debian-relations` comes with longtail. All methods get the same rows. Each peer is installed into an environment of its
own under the work folder (this needs pip and a package index), and each measurement is a process of its own, one at a
time, on the same number of cores. Repeats take turns between methods, each with the next seed; a library without a seed
draws anew every time.

The measurements:

- train: seconds of the library's training call with the data in memory, and the CPU seconds it used; longtail's
  kernels are compiled before (their loading is given as `warm_seconds`);
- batch: microseconds per row for all test rows, top 5, median of three passes or more (short ones are repeated for a
  second); Omikuji takes one row a call. Where a library can hold its model in several ways (PECOS: two layouts;
  Omikuji: sparse or denser weights, one or more threads) the fastest way counts for each time;
- one row: 500 test rows one by one on one thread, top 5, the row already in the form the library takes;
- model: bytes on disk after the library's own save; load: seconds to read it back;
- peak: the most resident memory of the training process; added: by how much training raised it.

`others_cores` of a run is how many cores other programs used meanwhile.

The file of results is written after every measurement; `--resume` takes up a run where it ended.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.prepared_data import DATA_SETS, prepare
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.peers.environments import InstallError, environment, peer_versions
from benchmarks.peers.worker import K
from benchmarks.tree.compared_methods import METHODS
from benchmarks.tree.comparison_tables import console, show
from benchmarks.tree.measure_method import CellError, measure, rehearse
from benchmarks.tree.summary import ratios, summarise, verdicts

FORMAT = 1  # of the file of results
ONCE_ABOVE = 900.0  # seconds
WORK = Path(tempfile.gettempdir()) / "longtail-tree-vs-peers"


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "tree_vs_peers.json", data="required", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--only", nargs="+", choices=list(DATA_SETS), default=list(DATA_SETS), help="data sets")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=3, help="repeat i uses the i-th seed, in turn")
    about = "a method whose training took longer than this is not repeated"
    parser.add_argument("--once-above", type=float, default=ONCE_ABOVE, metavar="SECONDS", help=about)
    parser.add_argument("--timeout", type=float, default=1800, metavar="SECONDS", help="per measurement")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=WORK, help="folder for prepared data, environments and models")
    parser.add_argument("--redo", nargs="+", choices=list(METHODS), default=[], help="with --resume: not of these")
    args = parser.parse_args()
    args.work, args.output = args.work.resolve(), args.output.resolve()
    return args


def main() -> None:
    args = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the measurement under way is ended too
    out = console()
    facts = opening(args)
    folders: dict[str, Path] = {}
    for name in args.only:
        try:
            folders[name], facts["data"][name] = prepare(name, args.data, args.work)
        except FileNotFoundError as error:
            out.print(f"{name} is left out: {error}", style="red")
    pythons = install(args, facts)
    rehearsed: set[str] = set()
    for name, folder in folders.items():
        for repeat in range(args.repeats):
            # another method begins each time, so that none always stands behind the same one
            turn = repeat % len(args.methods)
            for method in args.methods[turn:] + args.methods[:turn]:
                if not to_do(facts["runs"], name, method, repeat, args):
                    continue
                run = one_cell(method, pythons.get(METHODS[method].library), folder, repeat, rehearsed, args)
                cell = {"data": name, "method": method, "repeat": repeat}
                facts["runs"] = [r for r in facts["runs"] if not cell.items() <= r.items()]
                facts["runs"].append({**cell, **run})
                print(line(facts["runs"][-1]), flush=True)
                write(facts, args.output)
    write(facts, args.output)
    show(facts, out)
    out.print(f"\nwritten to {args.output.name}")


def opening(args: argparse.Namespace) -> Facts:
    """Return the facts before the first measurement; with --resume, those of the last run."""
    settings = {"format": FORMAT, "threads": args.threads, "k": K}
    facts = start_facts(args, {"settings": settings, "data": {}, "methods": {}, "runs": []})
    if facts["settings"] != settings:
        sys.exit(f"--resume needs the settings of the file, {facts['settings']}; got {settings}.")
    facts["versions"].setdefault("peers", {})
    facts["methods"] = {name: {"title": m.title, "about": m.about, "params": m.params} for name, m in METHODS.items()}
    facts["runs"] = [run for run in facts["runs"] if run["method"] not in args.redo]
    return facts


def install(args: argparse.Namespace, facts: Facts) -> dict[str, Path | str]:
    """Return the interpreter of every library, or the reason why there is none."""
    pythons: dict[str, Path | str] = {}
    for library in dict.fromkeys(METHODS[name].library for name in args.methods):
        try:
            python = environment(library, args.work)
            pythons[library] = python
            if library != "longtail":
                facts["versions"]["peers"][library] = peer_versions(python)
        except InstallError as error:
            pythons[library] = clean(str(error), args)
            print(f"{library} cannot be installed: {pythons[library]}", flush=True)
    return pythons


def one_cell(
    method: str,
    python: Path | str | None,
    data: Path,
    repeat: int,
    rehearsed: set[str],
    args: argparse.Namespace,
) -> Facts:
    """Measure one method on one data set; return its numbers, or why there are none."""
    seed = args.seeds[repeat % len(args.seeds)]
    if not isinstance(python, Path):
        return {"seed": seed, "status": "not installed", "message": str(python)}
    folder = args.work / "cells" / f"{data.name}-{method}-{repeat}"
    try:
        if METHODS[method].ours and method not in rehearsed:
            rehearse(METHODS[method], python, data, folder, args.threads, args.timeout)
            rehearsed.add(method)
        measured = measure(METHODS[method], python, data, folder, seed, args.threads, args.timeout)
    except CellError as error:
        return {"seed": seed, "status": error.status, "message": clean(str(error), args)}
    return {"seed": seed, "status": "ok", **measured}


def to_do(runs: list[Facts], data: str, method: str, repeat: int, args: argparse.Namespace) -> bool:
    """Say whether a cell is still to be measured: not if it has been, nor if the method was too slow or failed."""
    before = [run for run in runs if (run["data"], run["method"]) == (data, method)]
    if any(run["repeat"] == repeat and run["status"] == "ok" for run in before):
        return False
    earlier = [run for run in before if run["repeat"] < repeat]
    return all(run["status"] == "ok" and run["train_seconds"] <= args.once_above for run in earlier)


def line(run: Facts) -> str:
    """Return one measurement in one line."""
    head = f"{run['data']}, {METHODS[run['method']].title}, repeat {run['repeat']}"
    if run["status"] != "ok":
        return f"{head}: {run['status']}: {run['message']}"
    scores = "/".join(f"{run['accuracy'][f'p@{k}']:.2f}" for k in (1, 3, 5))
    return (
        f"{head}: P@1/3/5 {scores}, train {run['train_seconds']:.1f} s (CPU {run['train_cpu_seconds']:.1f}), "
        f"batch {run['batch_us_per_row']:.0f} µs, one row {run['single_p50_us']:.0f} µs, "
        f"{run['model_bytes'] / 1e6:.1f} MB, peak {run['peak_bytes'] / 1e6:.0f} MB"
    )


def write(facts: Facts, output: Path) -> None:
    """Write all measurements so far, with their summary and the goals."""
    facts["summary"] = summarise(facts["runs"])
    facts["ratios"] = {data: ratios(methods) for data, methods in facts["summary"].items()}
    facts["verdicts"] = verdicts(facts["summary"])
    write_results(facts, output)


def clean(message: str, args: argparse.Namespace) -> str:
    """Return a message without the folders of this machine."""
    for folder, name in ((args.work, "WORK"), (args.data, "DATA"), (Path(sys.prefix), "PYTHON"), (Path.home(), "~")):
        message = message.replace(str(folder), name)
    return message


if __name__ == "__main__":
    main()
