"""Compare settings of the label tree on held-out parts of train, to choose its defaults; test sets are not read.

    python benchmarks/tree/defaults.py --data FOLDER

FOLDER holds `eurlex-4k`, `eurlex57k`, `pubmed-mesh` and `yso-titles`; LONGTAIL_DATA is its default. A fifth of every
train set is held out. Each line changes one thing against the default. CPU seconds, not wall time: the machine may be
shared.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.data_sets import read_rows
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import precisions
from benchmarks.harness.timing import timed
from longtail.data import Dataset, split_random
from longtail.tree import LabelTreeClassifier

VARIANTS: dict[str, Facts] = {
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


def load(folder: Path, most: int) -> tuple[Dataset, Dataset]:
    """Return four fifths of the training rows, and the fifth held out of them; of at most so many rows together."""
    data, _ = read_rows(folder, label_list=False)
    if data.n_rows > most:
        data = data.take(split_random(data.Y, test_size=most, random_state=1)[1])
    train, held = split_random(data.Y, test_size=0.2, random_state=0)
    return data.take(train), data.take(held)


def measure(variant: str, train: Dataset, test: Dataset) -> Facts:
    """Train with the settings of a variant; return precision, times and size."""
    params = dict(VARIANTS[variant])
    make = LabelTreeClassifier.fast if params.pop("preset", None) else LabelTreeClassifier
    training, model = timed(lambda: make(random_state=0, **params).fit(train.X, train.Y))
    predicting, top = timed(lambda: model.predict_topk(test.X, k=5))
    size = sum(a.nbytes for a in model.to_part().arrays.values())
    return {
        **{name: round(value, 2) for name, value in precisions(test.Y, top).items()},
        "train_cpu_s": round(training.cpu, 2),
        "predict_cpu_us": round(1e6 * predicting.cpu / test.n_rows, 1),
        "mb": round(size / 1e6, 2),
    }


def main() -> None:
    parser = make_parser(__doc__, "tree_defaults.json", data="required", resume=True)
    parser.add_argument("--only", nargs="+", default=["eurlex-4k", "pubmed-mesh", "eurlex57k", "yso-titles"])
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--most", type=int, default=60_000, help="rows used of a train set, at most")
    args = parser.parse_args()
    facts = start_facts(args, {"held_out": "a fifth of train", "results": {}})
    facts["defaults"] = {k: v for k, v in LabelTreeClassifier().get_params().items() if k != "n_jobs"}
    facts["fast"] = LabelTreeClassifier.fast().get_params()
    for name in args.only:
        train, test = load(args.data / name, args.most)
        shape = {"rows": train.n_rows, "features": train.n_features, "labels": train.n_labels}
        measured = facts["results"].setdefault(name, {**shape, "variants": {}})["variants"]
        for variant in args.variants:
            if variant not in measured:
                measured[variant] = measure(variant, train, test)
                print(f"{name:12} {variant:20}", measured[variant], flush=True)
                write_results(facts, args.output)


if __name__ == "__main__":
    main()
