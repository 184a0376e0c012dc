"""Decisions about label sets as rows and sentences, for pages and terminal alike."""

from __future__ import annotations

from typing import TypedDict

from longtail.facts import AssignedFacts, DecisionFacts, MetricFacts, TradeoffFacts
from longtail.report.formatting import percent, plural
from longtail.report.plots.canvas import finite

AVERAGES = {  # key of the average -> its name, what it means
    "micro": ("micro", "all assigned labels together"),
    "row": ("per row", "each row, averaged over rows"),
    "macro": ("macro", "each label, averaged over labels with a test row"),
}


class SetRow(TypedDict):
    """Precision, recall and F1 of assigned label sets under one average."""

    name: str
    meaning: str
    cells: list[MetricFacts]


def set_rows(assigned: AssignedFacts) -> list[SetRow]:
    """Return precision, recall and F1 of assigned label sets, a row for each way to average."""
    metrics = assigned.get("metrics") or {}
    return [
        {"name": name, "meaning": meaning, "cells": [metrics.get(f"{key}_{m}") or {} for m in ("p", "r", "f1")]}
        for key, (name, meaning) in AVERAGES.items()
        if f"{key}_p" in metrics
    ]


def sets_sentence(assigned: AssignedFacts) -> str:
    """Return how many labels rows get, and how many get none.

    >>> sets_sentence({"metrics": {"labels_per_row": {"value": 2.5}, "empty_rows": {"value": 0.081}}})
    'A row gets 2.50 labels on average; 8.1% of the rows get none.'
    """
    metrics = assigned.get("metrics") or {}
    labels = (metrics.get("labels_per_row") or {}).get("value")
    empty = (metrics.get("empty_rows") or {}).get("value")
    if not finite(labels) or not finite(empty):
        return ""
    return f"A row gets {labels:.2f} labels on average; {percent(empty, 1)}% of the rows get none."


def decision_sentence(decision: DecisionFacts) -> str:
    """Return in one sentence how labels are assigned.

    >>> decision_sentence({"purpose": "precision=0.8", "per": "global", "threshold": 0.4321, "rows": 1200})
    'Labels from a probability of 0.432 on are assigned, chosen for precision=0.8 on 1,200 rows.'
    """
    purpose, rows = decision.get("purpose"), decision.get("rows") or 0
    if not purpose:
        return ""
    if purpose == "score":
        return "Labels with a score for them are assigned; the model has no probabilities."
    threshold, k, per = decision.get("threshold"), decision.get("k"), decision.get("per")
    chosen = f", chosen for {purpose} on {plural(rows, 'row')}."
    if k is not None:
        return f"Every row gets {plural(k, 'label')} with the largest gain{chosen}"
    if per in ("band", "label"):
        own = "each label has" if per == "label" else "labels of similar frequency share"
        return f"Labels are assigned from a threshold on that {own}{chosen}"
    if finite(threshold) and threshold > 1:
        return f"No label is assigned{chosen}"
    return f"Labels from a probability of {threshold:.3g} on are assigned{chosen}"


def decision_sentences(decision: DecisionFacts) -> list[str]:
    """Return how labels are assigned, and what that came to on the rows it was chosen on."""
    reached: dict[str, MetricFacts] = {key: {"value": value} for key, value in (decision.get("reached") or {}).items()}
    out = [decision_sentence(decision)]
    if reached:
        told = ", ".join(
            f"{name} {percent(reached.get(f'micro_{key}', {}).get('value'), 1)}%"
            for key, name in (("p", "precision"), ("r", "recall"), ("f1", "F1"))
        )
        macro = percent(reached.get("macro_f1", {}).get("value"), 1)
        out.append(f"On these rows: {told}, macro-F1 {macro}%. {sets_sentence({'metrics': reached})}")
    return out


def tradeoff_rows(tradeoff: TradeoffFacts | None) -> list[tuple[str, str, str, str]]:
    """Return the curve of P@k against macro-F1@k as rows: share of macro-F1, P@k, macro-F1@k, coverage@k."""
    return [
        (percent(p["mix"], 0), percent(p["p"], 1), percent(p["macro_f1"], 1), percent(p["coverage"], 1))
        for p in (tradeoff or {}).get("points") or []
    ]


def tradeoff_sentence(tradeoff: TradeoffFacts) -> str:
    """Return what the curve shows, from one end to the other.

    >>> ends = [{"mix": 0.0, "p": 0.469, "macro_f1": 0.262}, {"mix": 1.0, "p": 0.422, "macro_f1": 0.435}]
    >>> tradeoff_sentence({"k": 5, "points": ends})
    'Choosing 5 labels a row for rare labels takes macro-F1@5 from 26.2 to 43.5 and P@5 from 46.9 to 42.2'
    """
    first, last, k = tradeoff["points"][0], tradeoff["points"][-1], tradeoff["k"]
    macro = f"macro-F1@{k} from {percent(first['macro_f1'], 1)} to {percent(last['macro_f1'], 1)}"
    return (
        f"Choosing {k} labels a row for rare labels takes {macro} and P@{k} from {percent(first['p'], 1)} to "
        f"{percent(last['p'], 1)}"
    )
