"""The measures of benchmarks/hybrid against plain loops."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.hybrid.measure import measures

from longtail.data import TopK

BANDS = {"0": (0, 0), "1-3": (1, 3), "4-30": (4, 30), "31+": (31, math.inf)}


def precision_plain(truth, ranks, k):
    return sum(sum(label in true for label in row[:k]) / k for true, row in zip(truth, ranks)) / len(truth)


def recall_plain(truth, ranks, k):
    return sum(sum(label in true for label in row[:k]) / len(true) for true, row in zip(truth, ranks) if true) / len(
        truth
    )


def psp_plain(truth, ranks, counts, n_train, k):
    factor = (math.log(n_train) - 1) * 2.5**0.55
    worth = [1 + factor * (count + 1.5) ** -0.55 for count in counts]
    gained = sum(worth[label] for true, row in zip(truth, ranks) for label in row[:k] if label in true)
    best = sum(sum(sorted((worth[label] for label in true), reverse=True)[:k]) for true in truth)
    return gained / best


def macro_f1_plain(truth, ranks):
    values = []
    for label in set().union(*truth):
        hits = sum(label in true and label in row[:5] for true, row in zip(truth, ranks))
        said = sum(label in row[:5] for row in ranks)
        values.append(2 * hits / (said + sum(label in true for true in truth)))
    return sum(values) / len(values)


def band_plain(truth, ranks, counts, low, high):
    inside = {label for label, count in enumerate(counts) if low <= count <= high}
    hits = sum(len(true & inside & set(row[:5])) for true, row in zip(truth, ranks))
    said = sum(len(inside & set(row[:5])) for row in ranks)
    return 100 * hits / said, 100 * hits / sum(len(true & inside) for true in truth)


@pytest.fixture(scope="module")
def predicted():
    """Predictions of 300 rows that are often right, with labels of all bands and rows without labels."""
    rng = np.random.default_rng(3)
    n_rows, n_labels = 300, 150
    counts = np.concatenate([np.zeros(20), rng.integers(1, 80, n_labels - 20)]).astype(np.int64)
    counts[20:40] = rng.integers(1, 4, 20)
    scores = rng.random((n_rows, n_labels))
    Y = sp.csr_array((scores + rng.random((n_rows, n_labels)) > 1.9).astype(np.float32))
    return TopK.from_scores(scores, 100), Y, counts


def test_measures_equal_plain_loops(predicted):
    top, Y, counts = predicted
    facts = measures(top, Y, counts, 400)
    truth = [set(Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()) for i in range(Y.shape[0])]
    ranks = top.ids.tolist()
    assert not all(truth)
    for k in (1, 3, 5):
        assert facts[f"p@{k}"] == pytest.approx(100 * precision_plain(truth, ranks, k))
        assert facts[f"psp@{k}"] == pytest.approx(100 * psp_plain(truth, ranks, counts.tolist(), 400, k))
    for k in (10, 100):
        assert facts[f"r@{k}"] == pytest.approx(100 * recall_plain(truth, ranks, k))
    assert facts["macro_f1@5"] == pytest.approx(100 * macro_f1_plain(truth, ranks))
    for name, (low, high) in BANDS.items():
        found = facts["bands"][name]
        assert (found["precision"], found["recall"]) == pytest.approx(band_plain(truth, ranks, counts, low, high))


def test_a_band_without_labels_has_no_recall(predicted):
    top, Y, _ = predicted
    bands = measures(top, Y, np.full(Y.shape[1], 50), 400)["bands"]
    assert bands["1-3"] == {"labels": 0, "true": 0, "precision": None, "recall": None}
    assert bands["31+"]["recall"] > 0
