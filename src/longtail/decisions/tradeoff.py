"""The curve of P@k against macro-F1@k, for mixes of both goals: the price of finding rare labels."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.decisions.block_ascent import decode_batch
from longtail.decisions.decision import assigned_only
from longtail.decisions.purposes import KGoal
from longtail.facts import TradeoffFacts
from longtail.metrics import coverage_at_k, macro_f1_at_k, precision_at_k

MIXES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 1.0)


def tradeoff_curve(
    Y: sp.csr_array, probabilities: TopK, k: int, shares: np.ndarray | None = None, goal: str = "macro-f1"
) -> TradeoffFacts:
    """Return P@k, macro-F1@k and coverage@k of rows decoded for a goal and P@k, from P@k alone to the goal alone.

    >>> Y = sp.csr_array([[1, 0], [1, 0], [1, 1]])
    >>> top = TopK([[0, 1]] * 3, [[0.9, 0.1], [0.9, 0.1], [0.9, 0.8]])
    >>> points = tradeoff_curve(Y, top, 1)["points"]
    >>> [round(points[end]["macro_f1"], 2) for end in (0, -1)]
    [0.5, 0.9]
    """
    facts: TradeoffFacts = {"k": k, "rows": probabilities.n_rows, "points": []}
    for mix in MIXES:
        chosen = assigned_only(probabilities, decode_batch(probabilities, KGoal(goal, k, mix), shares).keep)
        facts["points"].append(
            {
                "mix": mix,
                "p": precision_at_k(Y, chosen, chosen.k) * chosen.k / k,
                "macro_f1": macro_f1_at_k(Y, chosen, chosen.k),
                "coverage": coverage_at_k(Y, chosen, chosen.k),
            }
        )
    return facts
