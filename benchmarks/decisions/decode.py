"""Measure decisions: thresholds for targets, and decoding for rare labels, with the price in P@5 as a curve.

    python benchmarks/decisions/decode.py --data FOLDER

FOLDER holds `eurlex-4k` and `yso-titles` (every tenth training and every second test row); debtags is bundled. Label
trees, three seeds, means over seeds in percent. Thresholds are chosen on one half of the test rows and judged on the
other; those of `held_out` on the rows that the training held out, and judged on all test rows. Gains for single rows
are learned on the half too.
"""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decisions.tagged_data import SETS, Tagged, read_set, train_and_tag
from benchmarks.harness.program import DOCS, Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.data import TopK
from longtail.decisions import Decision, assigned_only, decode_batch, learn_decision, read_goal, tradeoff_curve
from longtail.errors import DataError
from longtail.metrics import coverage_at_k, evaluate_sets, macro_f1_at_k, macro_recall_at_k, precision_at_k
from longtail.report import TradeoffSeries, standalone, tradeoff_plot

K = 5
GOALS = ("macro-f1@5", "coverage@5", "macro-recall@5", "macro-f1@5:0.1", "coverage@5:0.5", "macro-recall@5:0.5")
TARGETS = ("precision=0.7", "recall=0.7", "labels-per-row=3", "f1", "macro-f1")
HELD_OUT = "precision=0.7"
METRICS = {"p": precision_at_k, "macro_f1": macro_f1_at_k, "macro_r": macro_recall_at_k, "coverage": coverage_at_k}


def ranked(tagged: Tagged, top: TopK, rows: slice = slice(None)) -> dict[str, float]:
    """Return the metrics at 5 of labels chosen for some of the test rows, in percent."""
    return {name: 100 * metric(tagged.Y[rows], top, K) for name, metric in METRICS.items()}


def decoded(tagged: Tagged) -> dict[str, dict[str, float]]:
    """Return the metrics of the likeliest labels, and of every goal for all rows together and for single rows."""
    top, half = tagged.probabilities, tagged.probabilities.n_rows // 2
    first, second = slice(None, half), slice(half, None)
    out = {"likeliest": ranked(tagged, top), "likeliest, second half": ranked(tagged, top[second], second)}
    for goal in GOALS:
        spent, found = timed(lambda goal=goal: decode_batch(top, read_goal(goal), tagged.shares))
        seconds = {"seconds": spent.wall, "passes": float(len(found.expected))}
        out[f"{name_of(goal)} together"] = ranked(tagged, assigned_only(top, found.keep)) | seconds
        together = assigned_only(top[second], decode_batch(top[second], read_goal(goal), tagged.shares).keep)
        out[f"{name_of(goal)} together, second half"] = ranked(tagged, together, second)
        gains = decide(tagged, first, target=goal)
        single = assigned_only(top[second], gains.chosen(top[second]))
        out[f"{name_of(goal)} single, second half"] = ranked(tagged, single, second)
    return out


def name_of(word: str) -> str:
    """Return a target or a goal as a name without points: shares as percent.

    >>> name_of("macro-f1@5:0.1"), name_of("labels-per-row=3")
    ('macro-f1@5:10%', 'labels-per-row=3')
    """
    return re.sub(r"0\.\d+", lambda share: f"{100 * float(share[0]):g}%", word)


def decide(tagged: Tagged, rows: slice, **purpose: str) -> Decision:
    """Return the decision chosen on some of the test rows."""
    model = tagged.tagger.model_
    return learn_decision(tagged.Y[rows], tagged.probabilities[rows], model.label_counts_, model.n_rows_, **purpose)


def judged(tagged: Tagged, decision: Decision, rows: slice = slice(None)) -> dict[str, float]:
    """Return the metrics of the sets that a decision assigns, in percent (labels per row as they are)."""
    top = tagged.probabilities[rows]
    metrics = evaluate_sets(tagged.Y[rows], assigned_only(top, decision.chosen(top)), n_bootstrap=0)["metrics"]
    return {name: (value["value"] or 0.0) * (1 if name == "labels_per_row" else 100) for name, value in metrics.items()}


def targets(tagged: Tagged) -> dict[str, dict[str, float]]:
    """Return the metrics of sets assigned for every target, on rows that it was not chosen on."""
    half = tagged.probabilities.n_rows // 2
    held_out = tagged.tagger.decision_
    out = {} if held_out is None else {f"{name_of(HELD_OUT)} held_out": judged(tagged, held_out)}
    for target in TARGETS:
        for per in ("global", "band", "label"):
            with contextlib.suppress(DataError):  # out of reach
                decision = decide(tagged, slice(None, half), target=target, per=per)
                out[f"{name_of(target)} per {per}"] = judged(tagged, decision, slice(half, None))
    return out


def curve(tagged: Tagged) -> dict[str, dict[str, float]]:
    """Return P@5, macro-F1@5 and coverage@5 of mixes of P@5 and macro-F1@5, in percent."""
    points = tradeoff_curve(tagged.Y, tagged.probabilities, K, tagged.shares)["points"]
    return {f"{100 * p['mix']:g}%": {name: 100 * p[name] for name in ("p", "macro_f1", "coverage")} for p in points}


def means(runs: list[dict[str, dict[str, float]]]) -> Facts:
    """Return means over seeds, and the range of each."""
    return {
        case: {
            name: {"mean": round(float(np.mean(found)), 2), "low": round(min(found), 2), "high": round(max(found), 2)}
            for name in runs[0][case]
            for found in [[run[case][name] for run in runs]]
        }
        for case in runs[0]
        if all(case in run for run in runs)
    }


def draw(results: Facts, target: Path) -> None:
    """Draw the curves of all data sets."""
    series: list[TradeoffSeries] = [
        {
            "name": name,
            "points": [
                {"mix": float(mix[:-1]) / 100, "p": p["p"]["mean"] / 100, "macro_f1": p["macro_f1"]["mean"] / 100}
                for mix, p in found["curve"].items()
            ],
        }
        for name, found in results.items()
    ]
    target.write_text(standalone(tradeoff_plot(series, K, title="What rare labels cost")) + "\n", "utf-8")


def main() -> None:
    parser = make_parser(__doc__, "decisions.json", data="optional", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--only", nargs="+", default=list(SETS))
    parser.add_argument("--figure", type=Path, default=DOCS / "decisions.svg")
    args = parser.parse_args()
    facts = start_facts(args, {"candidates": 50, "results": {}})
    for name in args.only:
        if name in facts["results"]:
            continue
        train, test = read_set(name, args.data)
        runs = []
        for seed in args.seeds:
            tagged = train_and_tag(train, test, seed, target=HELD_OUT)
            runs.append((decoded(tagged), targets(tagged), curve(tagged)))
        parts = dict(zip(("decoding", "targets", "curve"), (means(list(part)) for part in zip(*runs)), strict=True))
        facts["results"][name] = {"rows": train.n_rows, "test_rows": test.n_rows, "seeds": args.seeds, **parts}
        write_results(facts, args.output)
        for part, cases in parts.items():
            columns = list(next(iter(cases.values())))
            rows = [[case, *(f"{values[column]['mean']:.1f}" for column in columns)] for case, values in cases.items()]
            show_table(f"{name}, {part}", ["", *columns], rows)
    draw(facts["results"], args.figure)


if __name__ == "__main__":
    main()
