"""What it costs to change a label tree instead of training it anew: new rows, new labels, labels that go.

    python benchmarks/tree_updates.py --data FOLDER

FOLDER holds `eurlex-4k` and `pubmed-mesh`; LONGTAIL_DATA is its default. Three seeds; P@1/3/5 on the test set as mean
and standard deviation, beside training anew on everything. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail.data import Dataset, read
from longtail.metrics import precision_at_k

KS = (1, 3, 5)


def load(folder: Path) -> tuple[Dataset, Dataset]:
    if (folder / "train.txt.xz").exists():
        return read(folder / "train.txt.xz"), read(folder / "test.txt.xz")
    labels = folder / "labels.jsonl.xz"
    train, test = (read(folder / f"{part}.jsonl.xz", labels_file=labels) for part in ("train", "test"))
    features = lt.TfidfFeatures(min_df=2).fit(train.texts or ())
    return (
        Dataset(X=features.transform(train.texts or ()), Y=train.Y),
        Dataset(X=features.transform(test.texts or ()), Y=test.Y),
    )


def timed(function: Callable[[], Any]) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started


def precisions(Y: sp.csr_array, top: lt.TopK) -> dict[str, float]:
    return {f"p@{k}": 100 * precision_at_k(Y, top, k=k) for k in KS}


def one_seed(train: Dataset, test: Dataset, seed: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    out: dict[str, dict[str, float]] = {}

    def fresh() -> lt.LabelTreeClassifier:
        return lt.LabelTreeClassifier(random_state=seed)

    anew = fresh()
    seconds = timed(lambda: anew.fit(train.X, train.Y))
    out["trained on everything"] = {"cpu_s": seconds, **precisions(test.Y, anew.predict_topk(test.X))}
    order = rng.permutation(train.n_rows)
    for share in (0.5, 0.2, 0.05):
        old, new = np.split(order, [round((1 - share) * train.n_rows)])
        before, after = train.take(np.sort(old)), train.take(np.sort(new))
        model = fresh().fit(before.X, before.Y)
        out[f"without {share:.0%} of the rows"] = {"cpu_s": 0.0, **precisions(test.Y, model.predict_topk(test.X))}
        seconds = timed(lambda m=model, a=after: m.partial_fit(a.X, a.Y))  # type: ignore[misc]
        out[f"the same, partial_fit with the {share:.0%}"] = {
            "cpu_s": seconds,
            **precisions(test.Y, model.predict_topk(test.X)),
        }
    some = np.sort(rng.permutation(train.n_labels)[: train.n_labels // 10])
    rest = np.setdiff1d(np.arange(train.n_labels), some)
    numbers = np.concatenate([rest, some])
    model = fresh().fit(train.X, train.Y[:, rest])
    seconds = timed(lambda: model.add_labels(train.X, train.Y[:, some]))
    top = model.predict_topk(test.X)
    renamed = lt.TopK(np.where(top.ids >= 0, numbers[top.ids], -1), top.scores)
    out["add_labels with 10% of the labels"] = {"cpu_s": seconds, **precisions(test.Y, renamed)}
    left = test.Y[:, rest]
    out["trained without 10% of the labels, judged on the rest"] = {
        "cpu_s": 0.0,
        **precisions(left, fresh().fit(train.X, train.Y[:, rest]).predict_topk(test.X)),
    }
    seconds = timed(lambda: anew.remove_labels(some))
    out["remove_labels with the same 10%, judged on the rest"] = {
        "cpu_s": seconds,
        **precisions(left, anew.predict_topk(test.X)),
    }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LONGTAIL_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None)
    parser.add_argument("--only", nargs="*", default=["eurlex-4k", "pubmed-mesh"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "tree_updates.json")
    args = parser.parse_args()
    facts: dict[str, Any] = {"command": f"python benchmarks/tree_updates.py --seeds {args.seeds}", "results": {}}
    for name in args.only:
        train, test = load(args.data / name)
        runs = [one_seed(train, test, seed) for seed in range(args.seeds)]
        table: dict[str, Any] = {}
        for case in runs[0]:
            table[case] = {
                key: {
                    "mean": round(float(np.mean([run[case][key] for run in runs])), 3),
                    "sd": round(float(np.std([run[case][key] for run in runs])), 3),
                }
                for key in runs[0][case]
            }
            shown = "  ".join(f"{k} {v['mean']:.2f} ±{v['sd']:.2f}" for k, v in table[case].items())
            print(f"{name:12} {case:55} {shown}", flush=True)
        facts["results"][name] = table
        args.output.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
