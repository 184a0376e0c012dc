"""The measures by which the hybrid, its experts and its peers are compared, all in percent."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import scipy.sparse as sp

from benchmarks.harness.scores import KS, precisions
from longtail.data import TopK
from longtail.metrics import by_band, label_bands, macro_f1_at_k, propensities, psp_at_k, recall_at_k

K = 100  # predictions of each row that the measures read
BANDS = {"tail": "1-3", "torso": "4-30", "head": "31+", "unseen": "0"}  # band of longtail: its training rows
THRESHOLDS = (4, 31)


class BandMeasures(TypedDict):
    """Pooled precision and recall among the first five predictions, of the labels of one band; None of nothing."""

    labels: int
    true: int
    precision: float | None
    recall: float | None


def measures(
    top: TopK, Y_test: sp.csr_array, counts: np.ndarray, n_train: int
) -> dict[str, float | dict[str, BandMeasures]]:
    """Return P, PSP, R and macro F1 at the usual k, and P@5 and R@5 by the training rows of the labels.

    Parameters
    ----------
    top : TopK
        The 100 best labels of every test row.
    Y_test : csr_array of shape (n_rows, n_labels)
        The truth, with the labels that no training row has.
    counts : ndarray of shape (n_labels,)
        The number of training rows of every label; propensities (A=0.55, B=1.5) and bands come from it.
    n_train : int
        The number of training rows.

    Returns
    -------
    facts : dict
        "p@1" to "p@5", "psp@1" to "psp@5", "r@10", "r@100", "macro_f1@5", and under "bands" precision and recall at 5
        of the labels with 1-3, 4-30, 31+ and 0 training rows.
    """
    weights = propensities(counts, n_train)
    facts: dict[str, float | dict[str, BandMeasures]] = {**precisions(Y_test, top)}
    facts |= {f"psp@{k}": 100 * psp_at_k(Y_test, top, weights, k) for k in KS}
    facts |= {f"r@{k}": 100 * recall_at_k(Y_test, top, k) for k in (10, K)}
    facts["macro_f1@5"] = 100 * macro_f1_at_k(Y_test, top, 5)
    found = by_band(Y_test, top, label_bands(counts, THRESHOLDS), 5)
    facts["bands"] = {
        name: {
            "labels": found[band]["labels"],
            "true": found[band]["true"],
            "precision": _percent(found[band]["precision"]),
            "recall": _percent(found[band]["recall"]),
        }
        for band, name in BANDS.items()
    }
    return facts


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
