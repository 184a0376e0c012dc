"""Which expert brought a label, and why: its part of the log-odds, and what it rests on."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.facts import ExpertFacts
from longtail.hybrid.combine import EXPERTS, Combination
from longtail.hybrid.experts import AT, Experts, HybridRows

START = "start"  # in place of an expert: what labels of this frequency start from
ROWS_SHOWN = 3  # training rows named for a label


def expert_shares(
    experts: Experts, combination: Combination, text: str, rows: HybridRows, label: int, score: float
) -> list[ExpertFacts]:
    """Return what every expert adds to the score of a label of one text, strongest first, and what that rests on.

    Last comes what the score starts from, that of a label as frequent as this that no expert lists for the text: all
    together are the score.
    """
    allowed = np.zeros(experts.n_labels, dtype=bool)
    allowed[label] = True
    features = experts.evidence(rows, allowed, k=1).features[0, 0]
    average = np.zeros_like(features)  # what a label is like of which an expert knows nothing
    average[AT["tree", "log probability"]] = experts.tree_lowest(rows)
    average[AT["tree", "cube root of log probability"]] = np.cbrt(min(experts.tree_lowest(rows), 0.0))
    behind = AT["classifier", "behind the best"]
    average[behind] = features[behind] - features[AT["classifier", "product"]]
    average[AT["neighbours", "log share"]] = np.log(1e-4)
    if experts.names is not None:
        average[AT["names", "log odds"]] = experts.names.no_match_
    own = AT["label", "log rows"]
    average[own] = features[own]
    added = combination.of_experts(features, average, int(experts.counts[label]))
    out = [_facts(experts, text, rows, label, name, added[name], features) for name in EXPERTS if has(experts, name)]
    out.sort(key=lambda fact: -fact["weight"])
    return [*out, {"expert": START, "weight": score - sum(fact["weight"] for fact in out)}]


def has(experts: Experts, name: str) -> bool:
    """Say whether an expert is there."""
    there: dict[str, Any] = {
        "prototypes": experts.encoder if experts.use_prototypes else None,
        "classifier": experts.classifier,
        "tree": experts.tree,
        "neighbours": experts.neighbours,
        "names": experts.names,
    }
    return there[name] is not None


def _facts(
    experts: Experts, text: str, rows: HybridRows, label: int, name: str, weight: float, features: np.ndarray
) -> ExpertFacts:
    fact: ExpertFacts = {"expert": name, "weight": weight}
    if name in ("prototypes", "classifier"):
        fact["similarity"] = float(features[AT[name, "product"]])
    elif name == "tree":
        fact["probability"] = float(features[AT["tree", "probability"]])
    elif name == "neighbours" and experts.neighbours is not None:
        fact["share"] = float(features[AT["neighbours", "share"]])
        fact["rows"] = [row for row, _ in experts.neighbours.carriers(rows.vectors[0], label, ROWS_SHOWN)]
        if experts.shown is not None:
            fact["similar"] = [experts.shown.facts(row) for row in fact["rows"]]
    elif name == "names" and experts.names is not None:
        fact["matches"] = [
            {"name": named, "spans": [[int(start), int(end)]]}
            for start, end, named in experts.names.matches(text, label)
        ]
    return fact
