"""Metrics of assigned label sets against scikit-learn's, and the rows where nothing is assigned."""

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from longtail.data import TopK
from longtail.metrics import evaluate_sets


def test_they_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 12)) < 0.2).astype(int)
    Y[:, 11] = 0
    said = (rng.random((60, 12)) < 0.25).astype(int)
    said[3] = 0
    keep = (Y.sum(axis=1) > 0) | (said.sum(axis=1) > 0)
    Y, said = Y[keep], said[keep]
    width = said.sum(axis=1).max()
    ids = np.array([[*np.flatnonzero(row), *[-1] * (width - row.sum())] for row in said])
    facts = evaluate_sets(Y, TopK(ids, np.where(ids >= 0, 1.0, -np.inf)), n_bootstrap=50)
    tested = Y.sum(axis=0) > 0
    for ours, theirs in (("micro", "micro"), ("row", "samples"), ("macro", "macro")):
        a, b = (Y[:, tested], said[:, tested]) if ours == "macro" else (Y, said)
        want = precision_recall_fscore_support(a, b, average=theirs, zero_division=0)[:3]
        got = [facts["metrics"][f"{ours}_{m}"]["value"] for m in ("p", "r", "f1")]
        assert got == pytest.approx(want)
    assert facts["metrics"]["empty_rows"]["value"] == pytest.approx((said.sum(axis=1) == 0).mean())
    assert facts["metrics"]["labels_per_row"]["value"] == pytest.approx(said.sum(axis=1).mean())
    assert (
        facts["metrics"]["micro_p"]["low"] < facts["metrics"]["micro_p"]["value"] < facts["metrics"]["micro_p"]["high"]
    )


def test_nothing_assigned_where_nothing_is_due_is_right():
    facts = evaluate_sets([[0, 0], [1, 0]], TopK(np.zeros((2, 0)), np.zeros((2, 0))), n_bootstrap=0)["metrics"]
    assert facts["row_f1"]["value"] == 0.5 and facts["empty_rows"]["value"] == 1.0
    assert facts["micro_p"]["value"] is None and facts["micro_r"]["value"] == 0.0
