"""Coverage, macro averages and bands of labels agree with loops over labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import metrics
from longtail.data import TopK
from longtail.errors import DataError, ParameterError

FREQUENT_FIRST = [50, 30, 10, 5, 4, 1, 0]


@st.composite
def cases(draw):
    n_rows, n_labels, k = draw(st.integers(1, 6)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    some = st.lists(st.integers(0, n_labels - 1), unique=True, max_size=n_labels)
    true = [set(draw(some)) for _ in range(n_rows)]
    predicted = [draw(some)[:k] for _ in range(n_rows)]
    counts = [draw(st.integers(0, 20)) for _ in range(n_labels)]
    return n_labels, true, predicted, k, counts


def arrays(n_labels, true, predicted, k):
    Y = np.zeros((len(true), n_labels))
    ids = np.full((len(true), k), -1, dtype=np.int32)
    for i, (t, guess) in enumerate(zip(true, predicted)):
        Y[i, list(t)] = 1
        ids[i, : len(guess)] = guess
    return Y, TopK(ids, np.where(ids >= 0, 0.5, -np.inf))


def of_label(label, true, predicted):
    said = sum(label in guess for guess in predicted)
    is_true = sum(label in t for t in true)
    right = sum(label in t and label in guess for t, guess in zip(true, predicted))
    return is_true, said, right


def mean(values):
    return sum(values) / len(values) if values else 0.0


@given(cases())
@settings(max_examples=120, deadline=None)
def test_coverage_and_macro_agree_with_loops(case):
    n_labels, true, predicted, k, _ = case
    Y, topk = arrays(n_labels, true, predicted, k)
    tested = [t for t in (of_label(label, true, predicted) for label in range(n_labels)) if t[0] > 0]
    assert metrics.coverage_at_k(Y, topk, k) == pytest.approx(mean([right > 0 for _, _, right in tested]))
    expected = mean([right / said if said else 0.0 for _, said, right in tested])
    assert metrics.macro_precision_at_k(Y, topk, k) == pytest.approx(expected)
    assert metrics.macro_recall_at_k(Y, topk, k) == pytest.approx(mean([right / t for t, _, right in tested]))
    expected = mean([2 * right / (said + t) for t, said, right in tested])
    assert metrics.macro_f1_at_k(Y, topk, k) == pytest.approx(expected)


@given(cases())
@settings(max_examples=120, deadline=None)
def test_bands_agree_with_loops(case):
    n_labels, true, predicted, k, counts = case
    Y, topk = arrays(n_labels, true, predicted, k)
    bands = metrics.label_bands(counts)
    total = sum(counts)
    for label, count in enumerate(counts):
        above = sum(c for c in counts if c > count)
        expected = "unseen" if count == 0 else ["head", "torso", "tail"][min(2, 3 * above // total)]
        assert metrics.BAND_NAMES[bands.of_label[label]] == expected
    facts = metrics.by_band(Y, topk, bands, k)
    assert list(facts) == ["head", "torso", "tail", "unseen"]
    for number, found in enumerate(facts.values()):
        members = [of_label(label, true, predicted) for label in range(n_labels) if bands.of_label[label] == number]
        is_true, said, right = (sum(m[i] for m in members) for i in range(3))
        assert (found["labels"], found["true"], found["predicted"], found["right"]) == (
            len(members),
            is_true,
            said,
            right,
        )
        assert found["precision"] == (pytest.approx(right / said) if said else None)
        assert found["recall"] == (pytest.approx(right / is_true) if is_true else None)
    evaluated = metrics.evaluate(Y, topk, ks=(k,), train_counts=counts, n_bootstrap=0)["bands"]
    for found, other in zip(facts.values(), evaluated):
        for short, name in (("p", "precision"), ("r", "recall"), ("f1", "f1")):
            expected = found[name] if found[name] is None else pytest.approx(found[name])
            assert other["metrics"][f"{short}@{k}"]["value"] == expected


def test_bands_hold_about_a_third_of_the_occurrences_each():
    counts = np.sort(np.random.default_rng(0).zipf(1.6, 2000).clip(max=500))
    bands = metrics.label_bands(counts)
    shares = [counts[bands.of_label == b].sum() / counts.sum() for b in range(3)]
    assert min(shares) > 0.2
    names = [band["name"] for band in bands.describe()]
    assert names == ["head", "torso", "tail", "unseen"]
    head, torso, tail = bands.describe()[:3]
    assert head["lowest"] > torso["highest"] >= torso["lowest"] > tail["highest"]
    assert head["labels"] < torso["labels"] < tail["labels"]


def test_band_thresholds():
    bands = metrics.label_bands(FREQUENT_FIRST, thresholds=(5, 30))
    assert bands.of_label.tolist() == [0, 0, 1, 1, 2, 2, 3]
    with pytest.raises(ParameterError, match=r"thresholds must be two integers \(low, high\); got 5"):
        metrics.label_bands(FREQUENT_FIRST, thresholds=5)
    with pytest.raises(ParameterError, match="thresholds\\[1\\] must be an integer >= 30; got 5"):
        metrics.label_bands(FREQUENT_FIRST, thresholds=(30, 5))


def test_bands_of_other_labels_are_refused():
    Y, topk = arrays(2, [{0}], [[0]], 1)
    with pytest.raises(DataError, match=r"bands must have one entry per label \(2\); got 7"):
        metrics.by_band(Y, topk, metrics.label_bands(FREQUENT_FIRST), 1)
    with pytest.raises(ParameterError, match="bands must come from label_bands; got list"):
        metrics.by_band(Y, topk, [0, 1], 1)
    with pytest.raises(DataError, match="train_counts must hold whole numbers >= 0"):
        metrics.label_bands([1.5])
    with pytest.raises(DataError, match="train_counts must be one number per label"):
        metrics.label_bands([[1, 2]])
