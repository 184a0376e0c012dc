"""Choose features and window of label names in texts, by rows that are held out of the training rows.

    python benchmarks/name_matches/choose.py --data FOLDER --resume --round first

No test row is looked at. Of the training rows of every data set some thousand are held out; others, with 5% of the
labels taken out of them, train the model as it is, the model without one group of features after another, and models
with other windows. A variant is judged by the mean of P@1, P@5 and R@10 of the hidden labels over all data sets, and
taken instead of the model as it is if it is better by more than twice the standard error: that of the mean of these
three over the rows of all sets, paired. What the first round took is part of the model in the second. Figures of test
rows are measured after the choice (vs_mllm.py).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import rounded
from benchmarks.harness.terminal import show_table
from benchmarks.hybrid.peer_data import PeerData, read_data
from benchmarks.name_matches.vs_mllm import hidden_labels, without
from longtail.data import TopK, binary_hits
from longtail.name_matches import NameMatches
from longtail.name_matches.features import FEATURES, POSITION_NAMES, PRODUCTS, TURN_NAMES, candidate_features

ROWS = {  # for training, and held out
    "debtags": (16_000, 8_000),
    "eurlex57k": (6_000, 4_000),
    "pubmed-mesh": (8_000, 6_000),
    "yso-titles": (30_000, 15_000),
}
CHARACTERS = 10_000  # of a text
AS_IS = "as it is"
GROUPS = {  # of features that are left out together
    "position bins": POSITION_NAMES,
    "bends of the link rate": TURN_NAMES,
    "link rate in this context": ("link rate in this context",),
    "numbers of matches as bins": ("one match", "two matches", "eight matches or more"),
    "spread and share of the text": ("spread", "share of the text"),
    "longer names around": (
        "inside longer names only",
        "share outside longer names",
        "link rate × inside longer names only",
    ),
    "words apart": (
        *("loose", "far apart", "words between", "link rate × loose", "link rate × words between"),
        *("no training rows × loose", "no training rows × words between"),
    ),
    "other candidates": ("candidates of the text", "link rates of other candidates"),
    "products of no training rows": tuple(name for name in PRODUCTS if name.startswith("no training rows")),
    "other products": tuple(name for name in PRODUCTS if not name.startswith("no training rows")),
}
WINDOWS = (8, 20, 80)
VARIANTS = (*(f"without {group}" for group in GROUPS), *(f"window {window}" for window in WINDOWS))
MEASURES = ("p@1", "p@5", "hidden_r@10")


def drawn(data: PeerData, n_train: int, n_held: int) -> PeerData:
    """Return training rows, and others of them in place of the test rows."""
    order = np.random.default_rng(3).permutation(len(data.texts))
    train, held = order[:n_train], order[n_train : n_train + n_held]
    return data._replace(
        texts=[data.texts[i][:CHARACTERS] for i in train],
        Y=sp.csr_array(data.Y[train]),
        test_texts=[data.texts[i][:CHARACTERS] for i in held],
        Y_test=sp.csr_array(data.Y[held]),
    )


def features_without(names: tuple[str, ...]) -> Callable[..., np.ndarray]:
    """Return what computes features of training rows with some of them at 0: these get no weight."""
    gone = [FEATURES.index(name) for name in names]

    def features(*given: object) -> np.ndarray:
        out = candidate_features(*given)  # type: ignore[arg-type]
        out[:, gone] = 0.0
        return out

    return features


def measured(data: PeerData, hidden: np.ndarray, variant: str) -> np.ndarray:
    """Return the measures of one variant, in percent, row by row: their means are those of the data (n_rows, 3)."""
    window = {"longtail.name_matches.estimator.WINDOW": int(variant.split()[-1])} if "window" in variant else {}
    group = GROUPS.get(variant.removeprefix("without "), ())
    changes = {"longtail.name_matches.fit.candidate_features": features_without(group), **window}
    patches = [patch(name, value) for name, value in changes.items()]
    for one in patches:
        one.start()
    try:
        model = NameMatches(n_jobs=1).fit(data.texts, without(data.Y, hidden), data.names)
        top = model.predict_topk(data.test_texts, 10)
    finally:
        for one in patches:
            one.stop()
    return 100 * of_rows(top, data.Y_test, hidden)


def of_rows(top: TopK, Y: sp.csr_array, hidden: np.ndarray) -> np.ndarray:
    """Return P@1 and P@5 of every row, and its part in the pooled recall of hidden labels, whose mean is that."""
    truth = without(Y, ~hidden)
    rows = [binary_hits(top.head(k), Y).sum(axis=1) / k for k in (1, 5)]
    rows.append(binary_hits(top, truth).sum(axis=1) * Y.shape[0] / max(truth.nnz, 1))
    return np.stack([np.asarray(row, dtype=np.float64).ravel() for row in rows], axis=1)


def measure_set(name: str, args: argparse.Namespace, facts: Facts) -> None:
    """Measure all variants on one data set."""
    data = drawn(read_data(name, args.data), *ROWS[name])
    hidden = hidden_labels(data.Y.shape[1])
    base = measured(data, hidden, AS_IS)
    kept: Facts = {"rows": len(data.texts), "held_out": len(data.test_texts)}
    kept[AS_IS] = rounded(dict(zip(MEASURES, base.mean(axis=0).tolist(), strict=True)), 2)
    for variant in args.variants:
        gained = measured(data, hidden, variant) - base
        error = gained.mean(axis=1).std() / np.sqrt(len(gained))
        by_measure = dict(zip(MEASURES, gained.mean(axis=0).tolist(), strict=True))
        kept[variant] = rounded({**by_measure, "mean": gained.mean(), "standard_error": error}, 3)
        print(name, variant, kept[variant], flush=True)
    facts["rounds"][args.round]["sets"][name] = kept


def verdicts(sets: Facts) -> Facts:
    """Return what each variant gains on average over the data sets, and whether it is taken."""
    out: Facts = {}
    for variant in next(iter(sets.values())):
        runs = [kept[variant] for kept in sets.values()]
        if isinstance(runs[0], dict) and "mean" in runs[0]:
            gained = float(np.mean([run["mean"] for run in runs]))
            error = float(np.sqrt(sum(run["standard_error"] ** 2 for run in runs)) / len(runs))
            out[variant] = {"gained": round(gained, 3), "standard_error": round(error, 3), "taken": gained > 2 * error}
    return out


def main() -> None:
    parser = make_parser(__doc__, "name_matches_choice.json", data="required", resume=True)
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS), help="data sets")
    parser.add_argument("--round", default="first", help="name of this round in the results")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="what is tried")
    args = parser.parse_args()
    facts = start_facts(args, {}, "snowballstemmer")
    own = facts.setdefault("rounds", {}).setdefault(args.round, {"sets": {}})
    for name in args.only:
        if name not in own["sets"]:
            measure_set(name, args, facts)
            own["over all sets"] = verdicts(own["sets"])
            write_results(facts, args.output)
    rows = [[name, *map(str, one.values())] for name, one in own["over all sets"].items()]
    show_table("held-out rows", ["variant", "gained", "standard error", "taken"], rows)


if __name__ == "__main__":
    main()
