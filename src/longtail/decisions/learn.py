"""Choose a decision on rows with known labels: thresholds for a target, with a guarantee, or gains for a goal at k."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.decisions.conformal import control_risk
from longtail.decisions.decision import Decision, assigned_only
from longtail.decisions.frank_wolfe import learn_gains
from longtail.decisions.judged_pairs import JudgedRows
from longtail.decisions.purposes import PER, KGoal, read_guarantee, read_target
from longtail.decisions.thresholds import choose_thresholds
from longtail.errors import ParameterError
from longtail.metrics import evaluate_sets
from longtail.validate import check_choice


def check_purpose(target: str | None, guarantee: str | None, per: str) -> None:
    """Refuse a purpose that is none, before anything slow begins."""
    if (target is None) == (guarantee is None):
        raise ParameterError("give either a target or a guarantee for the labels that are assigned.")
    check_choice("per", per, PER)
    if per != "global" and (guarantee is not None or isinstance(read_target(target or ""), KGoal)):
        what = "a guarantee" if guarantee is not None else "a goal at k"
        raise ParameterError(name="per", allowed=f"'global' with {what}", got=per)
    if guarantee is not None:
        read_guarantee(guarantee)


def learn_decision(
    Y: sp.csr_array,
    probabilities: TopK,
    train_counts: np.ndarray,
    n_train: int,
    *,
    target: str | None = None,
    guarantee: str | None = None,
    per: str = "global",
) -> Decision:
    """Return the decision that suits a target or a guarantee on rows with known labels.

    Parameters
    ----------
    Y : sparse matrix (n_rows, n_labels)
        The truth; labels that the model does not know may stand after those it knows.
    probabilities : TopK
        The candidates of these rows with their probabilities.
    train_counts : array of shape (n_labels,)
        The training rows of every label.
    n_train : int
        The number of training rows.
    target : str or None
        "precision=0.8", "recall=0.9", "labels-per-row=3", "f1", "macro-f1", or a goal at k such as "macro-f1@5".
    guarantee : str or None
        "missed=0.1" or "wrong=0.1".
    per : {"global", "band", "label"}, default="global"
        Which labels share a threshold.

    Returns
    -------
    decision : Decision

    Examples
    --------
    >>> Y = sp.csr_array([[1, 0], [1, 1], [0, 1], [1, 0]])
    >>> top = TopK([[0, 1], [0, 1], [1, 0], [0, 1]], [[0.9, 0.3], [0.8, 0.6], [0.7, 0.2], [0.6, 0.5]])
    >>> learn_decision(Y, top, np.array([3, 2]), 4, target="precision=1").threshold
    0.550000011920929
    """
    check_purpose(target, guarantee, per)
    judged = JudgedRows.of(Y, probabilities, train_counts)
    if guarantee is not None:
        decision = control_risk(judged, read_guarantee(guarantee))
    else:
        wanted = read_target(target or "")
        if isinstance(wanted, KGoal):
            decision = learn_gains(probabilities, np.asarray(train_counts) / max(n_train, 1), wanted)
        else:
            decision = choose_thresholds(judged, wanted, per)
    assigned = assigned_only(probabilities, decision.chosen(probabilities))
    metrics = evaluate_sets(Y, assigned, n_bootstrap=0)["metrics"]
    return replace(decision, reached={name: value["value"] for name, value in metrics.items()})
