"""Measure whether guarantees hold: 1,000 random splits of test rows into rows to choose by and rows to judge by.

    python benchmarks/decisions/conformal.py --data FOLDER

FOLDER holds `eurlex-4k` and `yso-titles` (every tenth training and every second test row); debtags is bundled. Label
trees. In every split 1,000 rows choose the threshold for missed=α or wrong=α, and the others say what share of labels
is missed or wrong. The mean over splits must be at most α, within three standard errors. `refused` counts the splits
in which α is out of reach.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decisions.tagged_data import SETS, Tagged, read_set, train_and_tag
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail.decisions import JudgedRows, Target, control_risk, mean_missed, mean_wrong
from longtail.errors import DataError

ALPHAS = {"missed": (0.1, 0.2, 0.3, 0.5), "wrong": (0.05, 0.1, 0.2, 0.3)}
CHOOSING = 1000
LOSS = {"missed": mean_missed, "wrong": mean_wrong}


def some(judged: JudgedRows, at: np.ndarray) -> JudgedRows:
    """Return some of the rows."""
    top, hits, true = judged.probabilities[at], judged.hits[at], judged.row_true[at]
    return JudgedRows(top, hits, true, judged.label_true, judged.train_counts)


def simulate(judged: JudgedRows, guarantee: Target, splits: int) -> Facts:
    """Return the mean risk over random splits, its standard error, and how many labels a row got."""
    rng, risks, sizes, refused = np.random.default_rng(0), [], [], 0
    for _ in range(splits):
        order = rng.permutation(judged.n_rows)
        rest = some(judged, order[CHOOSING:])
        try:
            threshold = -control_risk(some(judged, order[:CHOOSING]), guarantee).shift
        except DataError:
            refused += 1
            continue
        risks.append(LOSS[guarantee.name](rest, threshold))
        sizes.append((rest.probabilities.scores >= np.float32(threshold)).sum() / rest.n_rows)
    if not risks:
        return {"refused": refused}
    error = float(np.std(risks) / np.sqrt(len(risks)))
    mean, most = float(np.mean(risks)), float(guarantee.value or 0)
    return {
        "mean_risk": round(mean, 5),
        "standard_error": round(error, 5),
        "holds": mean <= most + 3 * error,
        "labels_per_row": round(float(np.mean(sizes)), 2),
        "refused": refused,
    }


def measure(tagged: Tagged, splits: int) -> Facts:
    """Return the simulation of every guarantee."""
    judged = JudgedRows.of(tagged.Y, tagged.probabilities, tagged.tagger.model_.label_counts_)
    return {
        f"{name}={100 * alpha:g}%": simulate(judged, Target(name, alpha), splits)
        for name, alphas in ALPHAS.items()
        for alpha in alphas
    }


def main() -> None:
    parser = make_parser(__doc__, "conformal.json", data="optional", resume=True)
    parser.add_argument("--only", nargs="+", default=list(SETS))
    parser.add_argument("--splits", type=int, default=1000)
    args = parser.parse_args()
    facts = start_facts(args, {"splits": args.splits, "rows_to_choose_by": CHOOSING, "results": {}})
    for name in args.only:
        if name in facts["results"]:
            continue
        train, test = read_set(name, args.data)
        found = measure(train_and_tag(train, test, 0), args.splits)
        facts["results"][name] = {"test_rows": test.n_rows, **found}
        write_results(facts, args.output)
        keys = ("mean_risk", "standard_error", "holds", "labels_per_row", "refused")
        rows = [[case, *(str(values.get(key, "–")) for key in keys)] for case, values in found.items()]
        show_table(name, ["", *keys], rows)


if __name__ == "__main__":
    main()
