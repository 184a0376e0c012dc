"""Choosing the label tree's defaults: settings compared on held-out parts of train, never on a test set.

    python benchmarks/tree_defaults.py --data FOLDER

FOLDER holds `eurlex-4k`, `eurlex57k`, `pubmed-mesh` and `yso-titles`; LONGTAIL_DATA is its default. A fifth of every
train set is held out. Each line changes one thing against the default. CPU seconds, not wall time: the machine may be
shared.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import longtail as lt
from longtail.data import Dataset, read, split_random
from longtail.metrics import precision_at_k
from longtail.tree import LabelTreeClassifier

KS = (1, 3, 5)
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {"preset": "fast"},
    "balanced clusters": {"balanced": True, "max_leaf": 64},
    "max_leaf=50": {"max_leaf": 50},
    "max_leaf=200": {"max_leaf": 200},
    "branching=32": {"branching": 32},
    "branching=512": {"branching": 512},
    "beam=5": {"beam": 5},
    "beam=20": {"beam": 20},
    "negatives='tfn'": {"negatives": "tfn"},
    "C=0.25": {"C": 0.25},
    "C=0.5": {"C": 0.5},
    "C=1": {"C": 1.0},
    "C=2": {"C": 2.0},
    "positive_weight=2": {"positive_weight": 2.0},
    "tol=0.1": {"tol": 0.1},
    "tol=1": {"tol": 1.0},
    "threshold=0.05": {"threshold": 0.05},
    "threshold=0.2": {"threshold": 0.2},
    "path_weight=0.1": {"path_weight": 0.1},
    "path_weight=1": {"path_weight": 1.0},
    "link='l2-hinge'": {"link": "l2-hinge"},
    "link='noop'": {"link": "noop", "path_weight": 0.0},
    "cost_sensitive": {"cost_sensitive": True},
}


def load(folder: Path, most: int) -> Dataset:
    if (folder / "train.txt.xz").exists():
        data = read(folder / "train.txt.xz")
    else:
        texts = read(folder / "train.jsonl.xz")
        X = lt.TfidfFeatures(min_df=2).fit_transform(texts.texts or ())
        data = Dataset(X=X, Y=texts.Y)
    if data.n_rows > most:
        data = data.take(split_random(data.Y, test_size=most, random_state=1)[1])
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LONGTAIL_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None)
    parser.add_argument("--only", nargs="*", default=["eurlex-4k", "pubmed-mesh", "eurlex57k", "yso-titles"])
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--most", type=int, default=60_000, help="rows used of a train set, at most")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "tree_defaults.json")
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for name in args.only:
        data = load(args.data / name, args.most)
        train, held = split_random(data.Y, test_size=0.2, random_state=0)
        part, test = data.take(train), data.take(held)
        results[name] = {"rows": part.n_rows, "features": part.n_features, "labels": part.n_labels, "variants": {}}
        for variant in args.variants:
            params = dict(VARIANTS[variant])
            make = LabelTreeClassifier.fast if params.pop("preset", None) else LabelTreeClassifier
            started = time.process_time()
            model = make(random_state=0, **params).fit(part.X, part.Y)
            seconds = time.process_time() - started
            started = time.process_time()
            top = model.predict_topk(test.X, k=5)
            predict = 1e6 * (time.process_time() - started) / test.n_rows
            found = {f"p@{k}": round(100 * precision_at_k(test.Y, top, k=k), 2) for k in KS}
            size = sum(a.nbytes for a in model.to_part().arrays.values())
            found |= {"train_cpu_s": round(seconds, 2), "predict_cpu_us": round(predict, 1), "mb": round(size / 1e6, 2)}
            results[name]["variants"][variant] = found
            print(f"{name:12} {variant:20}", found, flush=True)
        facts = {
            "command": f"python benchmarks/tree_defaults.py --most {args.most}",
            "held_out": "a fifth of train",
            "defaults": {k: v for k, v in LabelTreeClassifier().get_params().items() if k not in ("n_jobs",)},
            "fast": LabelTreeClassifier.fast().get_params(),
            "results": results,
        }
        args.output.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
