"""Choose the smoothing of gains for single rows, and the share of training counts in decoding, on training rows alone.

    python benchmarks/decisions/settings.py --data FOLDER

FOLDER holds `eurlex-4k`; debtags is bundled. A fifth of the training rows, drawn anew for every seed, is left out of
the training. Gains are learned on one half of these rows and judged on the other; decoding of rows together is judged
on all of them. No test row is read. Means over seeds in percent.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decisions.decode import decide, means, ranked
from benchmarks.decisions.tagged_data import Tagged, read_set, train_and_tag
from benchmarks.harness.program import make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail.decisions import assigned_only, decode_batch, frank_wolfe, read_goal

SETS = ("debtags", "eurlex-4k")
GOAL = "macro-f1@5"
SMOOTHINGS = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0)
TRAIN_WEIGHTS = (0.0, 0.5, 1.0)


def tried(tagged: Tagged) -> dict[str, dict[str, float]]:
    """Return the metrics of every setting on rows that were left out of the training."""
    top, half = tagged.probabilities, tagged.probabilities.n_rows // 2
    rest = slice(half, None)
    out = {"likeliest": ranked(tagged, top), "likeliest, second half": ranked(tagged, top[rest], rest)}
    shipped = frank_wolfe.SMOOTHING
    for smoothing in SMOOTHINGS:
        frank_wolfe.SMOOTHING = smoothing
        gains = decide(tagged, slice(None, half), target=GOAL)
        out[f"single, smoothing {smoothing:g}"] = ranked(
            tagged, assigned_only(top[rest], gains.chosen(top[rest])), rest
        )
    frank_wolfe.SMOOTHING = shipped
    present = top.ids >= 0
    sums = np.bincount(top.ids[present], weights=top.scores[present], minlength=tagged.shares.size)
    for weight in TRAIN_WEIGHTS:
        true = (1 - weight) * sums + weight * top.n_rows * tagged.shares
        shares = (2 * true - sums) / top.n_rows  # decode_batch takes the mean of these and of the sums
        keep = decode_batch(top, read_goal(GOAL), shares).keep
        out[f"together, {100 * weight:g}% of training counts"] = ranked(tagged, assigned_only(top, keep))
    return out


def main() -> None:
    parser = make_parser(__doc__, "decision_settings.json", data="optional", seeds=(0, 1, 2), resume=True)
    args = parser.parse_args()
    facts = start_facts(args, {"chosen": {"smoothing": frank_wolfe.SMOOTHING, "training counts": "50%"}, "results": {}})
    for name in SETS:
        if name in facts["results"]:
            continue
        rows, _ = read_set(name, args.data)
        runs = []
        for seed in args.seeds:
            order = np.random.default_rng(100 + seed).permutation(rows.n_rows)
            left_out, trained = np.split(order, [rows.n_rows // 5])
            runs.append(tried(train_and_tag(rows.take(np.sort(trained)), rows.take(np.sort(left_out)), seed)))
        facts["results"][name] = means(runs)
        write_results(facts, args.output)
        columns = list(runs[0]["likeliest"])
        table = [
            [case, *(f"{found[column]['mean']:.1f}" for column in columns)]
            for case, found in facts["results"][name].items()
        ]
        show_table(name, ["", *columns], table)


if __name__ == "__main__":
    main()
