"""Choose how labels overlap, and how deep trees are, on held-out training rows; the test rows are never read.

    python benchmarks/tree/overlap_settings.py --data FOLDER

FOLDER holds `eurlex-4k`, `eurlex57k`, `yso-titles` and `pubmed-mesh` (default LONGTAIL_DATA); debian-relations comes
with longtail. A sixth of the training rows of each (of 60,000 and of 12,000 rows of yso-titles) is held out. Every
setting changes one thing; the first ones are what is compared against. P@k and CPU times, one line per model. With
small leaves and a narrow beam, on real labels and on labels joined four at a time, `auto` chooses between sharing and
splitting positives by the share of positives that the beam reaches (`recalled`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.prepared_data import prepare_part, read_prepared
from benchmarks.harness.program import Deadline, Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import KS, precisions
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from benchmarks.tree.overlap import share_recalled
from longtail.data import entangle_labels
from longtail.tree.estimator import default_C

DATA = ("yso-titles-60k", "yso-titles-12k", "eurlex-4k", "pubmed-mesh", "debian-relations", "eurlex57k")
NARROW = (
    "eurlex-4k, narrow",
    "eurlex-4k, joined",
    "pubmed-mesh, joined",
    "yso-titles-60k, narrow",
    "yso-titles-12k, narrow",
)
NARROW_SETTINGS = ("default", "overlap 2", "split positives", "auto")
SETTINGS: dict[str, Facts] = {
    "default": {},
    "overlap 2": {"overlap": 2},
    "two levels": {"branching": 128},
    "two levels, overlap 2": {"branching": 128, "overlap": 2},
    "any size of leaf": {"overlap": 2, "balance": None},
    "keep the first leaf": {"overlap": 2, "keep_leaf": True},
    "split positives": {"overlap": 2, "split_positives": True},
    "mean of slots": {"overlap": 2, "merge": "mean"},
    "path weight 0.3": {"overlap": 2, "path_weight": 0.3},
    "matcher kept": {"overlap": 2, "rounds": 0},
    "further slot: 3 rows": {"overlap": 2, "slot_rows": 3},
    "beam 7": {"overlap": 2, "beam": 7},
    "moved only": {"overlap": 1, "rounds": 1},
    "overlap 3": {"overlap": 3},
    "leaves of 400": {"max_leaf": 400},
    "tfn": {"overlap": 2, "negatives": "tfn"},
    "two rounds": {"overlap": 2, "rounds": 2},
    "balance 1.5": {"overlap": 2, "balance": 1.5},
    "two trees": {"n_trees": 2},
    "auto": {"overlap": "auto"},
}


def main() -> None:
    args = options()
    facts = start_facts(args, {"settings": SETTINGS, "runs": []})
    known = {(run["data"], run["setting"]) for run in facts["runs"]}
    deadline = Deadline(args.minutes)
    wanted = [
        (name, setting)
        for setting in (*SETTINGS, "one-vs-all")
        for name in args.only
        if name in DATA or setting in NARROW_SETTINGS
    ]
    rows: dict[str, Any] = {}
    for name, setting in wanted:
        if (name, setting) in known or deadline.passed():
            continue
        if name not in rows:
            rows[name] = held_out(name, args)
        run = {"data": name, "setting": setting, **measure(name, setting, *rows[name])}
        facts["runs"].append(run)
        print(name, setting, [round(run[f"p@{k}"], 2) for k in KS], round(run["train_cpu_s"], 1), flush=True)
        facts["gains"] = gains(facts["runs"])
        write_results(facts, args.output)
    show(facts["gains"])


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "overlap_settings.json", data="required", resume=True)
    parser.add_argument("--work", type=Path, default=Path("longtail-disentangle"), help="folder for prepared data")
    parser.add_argument("--only", nargs="+", choices=(*DATA, *NARROW), default=[*DATA, *NARROW])
    parser.add_argument("--minutes", type=float, help="begin nothing new after so long")
    return parser.parse_args()


def held_out(name: str, args: argparse.Namespace) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array, sp.csr_array]:
    """Return five sixths of the training rows, and the rest; labels without a row in the first part come last."""
    X, Y = read_prepared(prepare_part(name.split(",")[0], args.data, args.work), "train")
    if name.endswith("joined"):
        Y, _ = entangle_labels(Y, 4, "hard", random_state=0)
    order = np.random.default_rng(0).permutation(X.shape[0])
    rest, kept = np.sort(order[: X.shape[0] // 6]), np.sort(order[X.shape[0] // 6 :])
    used = np.bincount(Y[kept].indices, minlength=Y.shape[1]) > 0
    held = sp.csr_array(Y[rest][:, np.concatenate([np.flatnonzero(used), np.flatnonzero(~used)])])
    held.sort_indices()
    return X[kept], sp.csr_array(Y[kept][:, np.flatnonzero(used)]), X[rest], held


def measure(name: str, setting: str, X: sp.csr_array, Y: sp.csr_array, Xt: sp.csr_array, Yt: sp.csr_array) -> Facts:
    """Train on the first rows, score the others."""
    model: lt.OneVsAllClassifier | lt.LabelTreeClassifier
    if setting == "one-vs-all":
        model = lt.OneVsAllClassifier(C=default_C(X.shape[0], X.nnz / X.shape[0]), random_state=0)
    else:
        narrow: Facts = {"max_leaf": 40, "beam": 4} if name in NARROW else {}
        model = lt.LabelTreeClassifier(**narrow, **SETTINGS[setting], random_state=0)
    training, _ = timed(model.fit, X, Y)
    model.predict_topk(Xt[:100], k=max(KS))  # what is made at first use
    predicting, top = timed(lambda: model.predict_topk(Xt, k=max(KS)))
    reached = {"recalled": share_recalled(model, X, Y)} if isinstance(model, lt.LabelTreeClassifier) else {}
    return {
        **precisions(Yt, top),
        **reached,
        "train_cpu_s": training.cpu,
        "predict_cpu_us": 1e6 * predicting.cpu / Xt.shape[0],
    }


def gains(runs: list[Facts]) -> Facts:
    """Return what each setting gains over the default, by data set, and the mean over data sets."""
    base = {run["data"]: run for run in runs if run["setting"] == "default"}
    out: Facts = {}
    for run in runs:
        first = base[run["data"]]
        facts = {f"p@{k}": run[f"p@{k}"] - first[f"p@{k}"] for k in KS}
        facts |= {"train times": run["train_cpu_s"] / first["train_cpu_s"]}
        facts |= {"predict times": run["predict_cpu_us"] / first["predict_cpu_us"]}
        out.setdefault(run["setting"], {})[run["data"]] = facts
    for by_data in out.values():
        names = list(next(iter(by_data.values())))
        wide = [facts for name, facts in by_data.items() if name in DATA]
        if wide:
            by_data["mean"] = {name: float(np.mean([facts[name] for facts in wide])) for name in names}
    return out


def show(table: Facts) -> None:
    """Print the gains, one line per setting."""
    shown = (*DATA, "mean", *NARROW)
    rows = [
        [
            setting,
            *("/".join(f"{by[name][f'p@{k}']:+.2f}" for k in KS) if name in by else "" for name in shown),
        ]
        for setting, by in table.items()
    ]
    show_table("gains of P@1/3/5 over the default, held-out rows", ["", *shown], rows)


if __name__ == "__main__":
    main()
