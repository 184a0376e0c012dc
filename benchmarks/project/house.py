"""Measure the code of longtail itself: its modules and names, the files each command runs, scikit-learn's checks.

    python benchmarks/project/house.py                                     # this repository, as "after"
    python benchmarks/project/house.py --source FOLDER --name before       # an older copy of it

The source is a folder with `src/longtail` in it, of any layout. Three parts, each of which `--parts` can choose:

- code: counts from the source alone (see code_counts.py);
- commands: small trainings, predictions and so on under a tracer (see traced_command.py);
- checks: scikit-learn's check_estimator for every estimator (see estimator_checks.py).

Results of other names and parts stay in the file. It takes about five minutes on 2 cores, most of it for the checks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import ROOT, Facts, command, machine, make_parser, read_results, versions, write_results
from benchmarks.harness.terminal import show_table
from benchmarks.project.code_counts import count_code

HERE = Path(__file__).parent
PARTS = ("code", "commands", "checks")
TRAIN, FEW, TEST = 600, 100, 100  # rows of the bundled debtags; few for PRIME
SECONDS = 1200  # before a command or the checks are ended


def main() -> None:
    args = options()
    facts = read_results(args.output) if args.output.exists() else {}
    facts |= {"command": command(), "machine": machine(), "versions": versions()}
    house = facts.setdefault(args.name, {})
    measures = {"code": count_code, "commands": trace_commands, "checks": check_estimators}
    for part in args.parts:
        house[part] = measures[part](args.source.resolve())
        write_results(facts, args.output)
    show({name: facts[name] for name in ("before", "after") if name in facts})


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "house.json")
    parser.add_argument("--source", type=Path, default=ROOT, metavar="FOLDER", help="default: this repository")
    parser.add_argument("--name", choices=("before", "after"), help="default: after for this repository, else before")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    args.name = args.name or ("after" if args.source.resolve() == ROOT else "before")
    return args


# --- commands ---------------------------------------------------------------------------------------------------------


def trace_commands(source: Path) -> Facts:
    """Run every command in a process of its own; return how many modules it imports, and in how many it runs code."""
    facts: Facts = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_data(folder)
        for title, words in commands():
            out = folder / "facts.json"
            out.unlink(missing_ok=True)
            run_child(["-m", "longtail", *words], source, folder)  # compiles what is to be compiled, without a tracer
            run_child([str(HERE / "traced_command.py"), str(out), *words], source, folder)
            traced = json.loads(out.read_text())
            if traced["status"]:
                raise SystemExit(f"longtail {' '.join(words)} ended with status {traced['status']}")
            facts[title] = {"imported": len(traced["imported"]), "run": len(traced["run"]), "files": traced["run"]}
            print(f"{title}: {facts[title]['imported']} modules imported, {facts[title]['run']} run", flush=True)
    return facts


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the words of every command, in an order in which each finds the models it needs."""
    yield "train", ["train", "train.jsonl", "-o", "tree"]
    yield "predict", ["predict", "tree", "test.jsonl", "-o", "predictions.jsonl"]
    yield "evaluate", ["evaluate", "tree", "test.jsonl"]
    yield "train --method ova", ["train", "train.jsonl", "-o", "ova", "--method", "ova"]
    yield "audit", ["audit", "ova", "test.jsonl", "--rows", "20"]
    yield "impute", ["impute", "rows.jsonl", "--groups", "groups.jsonl", "-o", "imputed.jsonl"]
    prime = ["--method", "prime", "--encoder", "none", "--tree", "--epochs", "1"]
    yield "train --method prime --tree", ["train", "few.jsonl", "-o", "prime", *prime]


def write_data(folder: Path) -> None:
    """Write training and test rows, and training rows again as groups of four whose labels are known together."""
    from longtail.data import load_bundled

    for file, part, count in (("train", "train", TRAIN), ("few", "train", FEW), ("test", "test", TEST)):
        data = load_bundled("debtags", part).take(slice(0, count))
        names, texts = data.names(), data.texts or ()
        labels = [[names[i] for i in data.Y[[row]].indices] for row in range(data.n_rows)]
        pairs = zip(texts, labels, strict=True)
        write_jsonl(folder / f"{file}.jsonl", ({"text": text, "labels": tags} for text, tags in pairs))
        if file == "train":
            write_jsonl(folder / "rows.jsonl", ({"text": t, "group": f"page {i // 4}"} for i, t in enumerate(texts)))
            pages = [sorted({name for row in labels[i : i + 4] for name in row}) for i in range(0, count, 4)]
            groups = ({"group": f"page {i}", "labels": tags} for i, tags in enumerate(pages))
            write_jsonl(folder / "groups.jsonl", groups)


def write_jsonl(file: Path, records: Iterator[Facts]) -> None:
    """Write one record a line."""
    file.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


# --- checks -----------------------------------------------------------------------------------------------------------


def check_estimators(source: Path) -> Facts:
    """Return how many of scikit-learn's checks every estimator passes."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "facts.json"
        run_child([str(HERE / "estimator_checks.py"), str(out)], source, Path(scratch))
        return json.loads(out.read_text())


def run_child(words: list[str], source: Path, folder: Path) -> None:
    """Run Python with the code that is measured; end with its last lines if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"}
    python = [sys.executable, *words]
    done = subprocess.run(python, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")


# --- the table --------------------------------------------------------------------------------------------------------


def show(houses: dict[str, Facts]) -> None:
    """Print all counts, one column per name."""
    rows: dict[str, dict[str, object]] = {}
    for name, house in houses.items():
        for title, value in figures(house):
            rows.setdefault(title, {})[name] = value
    table = [[title, *(values.get(name, "") for name in houses)] for title, values in rows.items()]
    show_table("the house", ["", *houses], table)


def figures(house: Facts) -> Iterator[tuple[str, object]]:
    """Yield the titles and values of the table."""
    for title, value in house.get("code", {}).items():
        if title != "names":
            yield title.replace("_", " "), len(value) if isinstance(value, dict | list) else value
    for title, traced in house.get("commands", {}).items():
        yield f"{title}: files run (imported)", f"{traced['run']} ({traced['imported']})"
    for title, checked in house.get("checks", {}).items():
        yield f"{title}: checks passed", f"{checked.get('passed', 0)} of {checked['checks']}"


if __name__ == "__main__":
    main()
