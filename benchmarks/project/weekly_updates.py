"""Update a tagger with ten batches of new texts, one after the other, and compare with training anew.

    python benchmarks/project/weekly_updates.py --data FOLDER

The bundled debtags, and of FOLDER `yso-titles` (the first 60,000 training rows of one random order). A tagger is
trained on the first half of the rows in a random order; the other half comes in ten batches. After each batch: the
tagger as it was, the one updated batch by batch, the one updated with all rows so far shown again (`replay`; after the
last batch only), and one trained anew on all rows so far. P@k on the test rows, over all labels of train and test: what
a model does not know it misses. Times are CPU seconds of the step. `few`: one update with so many rows, against before.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.data_sets import read_parts
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import KS, precisions, spread
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.data import Dataset, load_bundled
from longtail.pipeline.label_numbering import truth

BATCHES = 10
ROWS = 60_000
FEW = (1, 10, 100)


def load(name: str, data: Path) -> tuple[Dataset, Dataset]:
    """Return train and test."""
    if name == "debtags":
        return load_bundled("debtags", "train"), load_bundled("debtags", "test")
    train, test = read_parts(data / name, label_list=False)
    return train.take(np.sort(np.random.default_rng(0).permutation(train.n_rows)[:ROWS])), test


def judged(tagger: lt.Tagger, test: Dataset) -> Facts:
    """Return P@k on the test rows."""
    return precisions(truth(tagger, test)[0], tagger.predict_topk(test.texts, k=max(KS)))


def measure(name: str, method: str, seed: int, data: Path) -> Iterator[Facts]:
    """Yield a record per step of one seed."""
    train, test = load(name, data)
    order = np.random.default_rng(seed).permutation(train.n_rows)
    first, rest = np.split(order, [train.n_rows // 2])
    at = {"data": name, "method": method, "seed": seed}
    spent, before = timed(lambda: new(method, seed).fit_dataset(used(train, first)))
    yield {**at, "batch": 0, "how": "as it was", "cpu_s": spent.cpu, **judged(before, test)}
    for n in FEW:
        few = deepcopy(before).update_dataset(used(train, rest[:n]))
        yield {**at, "batch": 0, "how": f"few: {n}", **judged(few, test)}
    tagger, known = deepcopy(before), first
    for number, batch in enumerate(np.array_split(rest, BATCHES), 1):
        spent, _ = timed(lambda batch=batch: tagger.update_dataset(used(train, batch)))
        yield {**at, "batch": number, "how": "updated", "cpu_s": spent.cpu, **judged(tagger, test)}
        known = np.concatenate([known, batch])
        if number in (1, BATCHES // 2, BATCHES):
            spent, anew = timed(lambda known=known: new(method, seed).fit_dataset(used(train, known)))
            yield {**at, "batch": number, "how": "trained anew", "cpu_s": spent.cpu, **judged(anew, test)}
    spent, again = timed(lambda: deepcopy(before).update_dataset(used(train, rest), replay=used(train, first)))
    yield {**at, "batch": BATCHES, "how": "updated once, with replay", "cpu_s": spent.cpu, **judged(again, test)}


def new(method: str, seed: int) -> lt.Tagger:
    """Return an untrained tagger; without a calibration, whose rows held out would cost both the same."""
    return lt.Tagger(method, random_state=seed, calibrate=0)


def used(data: Dataset, rows: np.ndarray) -> Dataset:
    """Return some rows, with the labels they have and no others."""
    part = data.take(np.sort(rows))
    names = [part.names()[i] for i in np.unique(part.Y.indices)]
    return part.align(names)[0]


def summarise(runs: list[Facts]) -> Facts:
    """Return means and spreads over seeds of every step."""
    groups: dict[tuple[str, str, str, str], list[Facts]] = {}
    for run in runs:
        groups.setdefault((run["data"], run["method"], f"after {run['batch']}", run["how"]), []).append(run)
    out: Facts = {}
    for (data, method, batch, how), same in groups.items():
        facts: Facts = {"seeds": len(same)}
        for field in (*(f"p@{k}" for k in KS), "cpu_s"):
            values = [run[field] for run in same if field in run]
            if values:
                facts[field], facts[f"{field} sd"] = statistics.mean(values), spread(values)
        out.setdefault(data, {}).setdefault(method, {}).setdefault(batch, {})[how] = facts
    for methods in out.values():
        for steps in methods.values():
            updates = [step["updated"] for step in steps.values() if "updated" in step]
            last = steps.get(f"after {BATCHES}", {})
            if "trained anew" in last:
                for how in ("updated", "updated once, with replay"):
                    if how in last:
                        gap = {f"p@{k}": last[how][f"p@{k}"] - last["trained anew"][f"p@{k}"] for k in KS}
                        last[how]["against training anew"] = gap
                anew, mean = last["trained anew"]["cpu_s"], statistics.mean(u["cpu_s"] for u in updates)
                last["updated"]["an update takes of training anew"] = mean / anew
    return out


def main() -> None:
    parser = make_parser(__doc__, "weekly_updates.json", data="required", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--only", nargs="+", default=["debtags", "yso-titles"])
    parser.add_argument("--methods", nargs="+", default=["tree", "ova"])
    args = parser.parse_args()
    facts = start_facts(args, {"runs": []})
    known = {(run["data"], run["method"], run["seed"]) for run in facts["runs"]}
    for name in args.only:
        for method in args.methods:
            for seed in args.seeds:
                if (name, method, seed) in known or (name == "yso-titles" and method == "ova"):
                    continue
                facts["runs"] += list(measure(name, method, seed, args.data))
                facts["summary"] = summarise(facts["runs"])
                write_results(facts, args.output)
                show(facts["summary"], name, method)


def show(summary: Facts, data: str, method: str) -> None:
    """Print a table of one data set and method."""
    rows = [
        [step, how, *(f"{one[f'p@{k}']:.2f}" for k in KS), f"{one.get('cpu_s', float('nan')):.1f}"]
        for step, hows in summary[data][method].items()
        for how, one in hows.items()
    ]
    show_table(f"{data}, {method}", ["", "", "P@1", "P@3", "P@5", "CPU s"], rows, left=2)


if __name__ == "__main__":
    main()
