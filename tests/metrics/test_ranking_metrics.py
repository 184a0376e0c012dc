"""Every ranking metric agrees with a slow loop written straight from its definition."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import metrics
from longtail.data import TopK
from longtail.errors import DataError, ParameterError

CLOSE = 1e-9


def predictions(rows, k):
    ids = np.full((len(rows), k), -1, dtype=np.int32)
    scores = np.full((len(rows), k), -np.inf, dtype=np.float32)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
        scores[i, : len(row)] = np.linspace(0.9, 0.1, len(row))
    return TopK(ids, scores)


def truth(rows, n_labels):
    Y = np.zeros((len(rows), n_labels), dtype=np.float32)
    for i, row in enumerate(rows):
        Y[i, list(row)] = 1
    return Y


@st.composite
def cases(draw):
    n_labels = draw(st.integers(1, 7))
    n_rows = draw(st.integers(1, 6))
    k = draw(st.integers(1, 5))
    some = st.lists(st.integers(0, n_labels - 1), unique=True, max_size=n_labels)
    true = [set(draw(some)) for _ in range(n_rows)]
    places = k + draw(st.integers(0, 2))  # more places than k: the rest must not matter
    predicted = [draw(some)[:places] for _ in range(n_rows)]
    counts = [draw(st.integers(0, 50)) for _ in range(n_labels)]
    return n_labels, true, predicted, k, places, counts


def slow(true, predicted, k, p):
    """All metrics, row by row, from the formulas."""
    P, R, N, ps, ps_best, psn, psn_best = ([] for _ in range(7))
    for t, guess in zip(true, predicted):
        guess = guess[:k]
        hits = [label in t for label in guess]
        P.append(sum(hits) / k)
        R.append(sum(hits) / len(t) if t else 0.0)
        dcg = sum(1 / math.log2(r + 2) for r, hit in enumerate(hits) if hit)
        best = sum(1 / math.log2(r + 2) for r in range(min(k, len(t))))
        N.append(dcg / best if t else 0.0)
        w = sorted((1 / p[label] for label in t), reverse=True)[:k]
        ps.append(sum(1 / p[label] for label in guess if label in t) / k)
        ps_best.append(sum(w) / k)
        gain = sum(1 / p[label] / math.log2(r + 2) for r, label in enumerate(guess) if label in t)
        psn.append(gain / best if t else 0.0)
        psn_best.append(sum(v / math.log2(r + 2) for r, v in enumerate(w)) / best if t else 0.0)
    n = len(true)
    mp, mr = sum(P) / n, sum(R) / n
    return {
        "p": mp,
        "r": mr,
        "f1": 2 * mp * mr / (mp + mr) if mp + mr else 0.0,
        "ndcg": sum(N) / n,
        "psp": sum(ps) / sum(ps_best) if sum(ps_best) else 0.0,
        "psndcg": sum(psn) / sum(psn_best) if sum(psn_best) else 0.0,
    }


def fast(Y, topk, k, p, **options):
    return {
        "p": metrics.precision_at_k(Y, topk, k, **options),
        "r": metrics.recall_at_k(Y, topk, k, **options),
        "f1": metrics.f1_at_k(Y, topk, k, **options),
        "ndcg": metrics.ndcg_at_k(Y, topk, k, **options),
        "psp": metrics.psp_at_k(Y, topk, p, k, **options),
        "psndcg": metrics.psndcg_at_k(Y, topk, p, k, **options),
    }


@given(cases())
@settings(max_examples=150, deadline=None)
def test_agrees_with_the_definition(case):
    n_labels, true, predicted, k, places, counts = case
    p = metrics.propensities(counts, 50)
    Y, topk = truth(true, n_labels), predictions(predicted, places)
    assert fast(sp.csr_array(Y), topk, k, p) == pytest.approx(slow(true, predicted, k, p), abs=CLOSE)
    kept = [i for i, t in enumerate(true) if t]
    if kept:
        expected = slow([true[i] for i in kept], [predicted[i] for i in kept], k, p)
        assert fast(Y, topk, k, p, remove_empty=True) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize(
    ("true", "predicted", "k"),
    [
        ([{0}, set(), {1, 2}], [[0, 1, 2], [0, 1, 2], [2, 0, 1]], 3),  # a row without true labels
        ([{0, 1}, {2}], [[0], []], 3),  # fewer than k predictions
        ([set(), set()], [[0, 1], [1]], 2),  # nothing is true anywhere
        ([{1}], [[1, 0]], 2),  # a single row
        ([{1}, {0}], [[1, 0], [1, 0]], 1),  # k = 1
        ([{0, 1, 2, 3}], [[3, 2]], 2),  # more true labels than k
    ],
)
def test_agrees_on_explicit_cases(true, predicted, k):
    p = np.array([0.9, 0.1, 0.5, 0.3])
    topk = predictions(predicted, max(k, 3))
    assert fast(truth(true, 4), topk, k, p) == pytest.approx(slow(true, predicted, k, p), abs=CLOSE)


def test_psp_and_psndcg_by_hand():
    # weights 1/p: label 0 -> 1, label 1 -> 2, label 2 -> 4
    p = [1.0, 0.5, 0.25]
    Y, topk = truth([{0, 2}, {1}], 3), predictions([[0, 1], [0, 1]], 2)
    # row 0: gain 1 of best 4 + 1; row 1: gain 2 of best 2
    assert metrics.psp_at_k(Y, topk, p, 2) == pytest.approx((1 + 2) / (5 + 2))
    d = 1 / math.log2(3)
    # row 0: 1 of 4 + 1·d, both over 1 + d; row 1: 2·d of 2, both over 1
    numerator, best = 1 / (1 + d) + 2 * d, (4 + d) / (1 + d) + 2
    assert metrics.psndcg_at_k(Y, topk, p, 2) == pytest.approx(numerator / best)
    # a mean of quotients would be another number: 0.5 * (1/5 + 1) = 0.6
    assert metrics.psp_at_k(Y, topk, p, 2) != pytest.approx(0.6)


def test_ndcg_by_hand():
    # hits at ranks 1 and 3 of three true labels, k = 3
    Y, topk = truth([{0, 2, 4}], 5), predictions([[0, 1, 2]], 3)
    assert metrics.ndcg_at_k(Y, topk, 3) == pytest.approx((1 + 0.5) / (1 + 1 / math.log2(3) + 0.5))


def test_f1_is_the_harmonic_mean_of_the_averages():
    Y, topk = truth([{0}, {0, 1, 2, 3}], 4), predictions([[0, 1], [2, 3]], 2)
    # P = (1/2 + 1) / 2, R = (1 + 1/2) / 2
    assert metrics.f1_at_k(Y, topk, 2) == pytest.approx(0.75)
    # the average of F1 per row is (2/3 + 2/3) / 2
    assert metrics.f1_at_k(Y, topk, 2) != pytest.approx(2 / 3)


def test_order_of_places_decides_between_equal_scores():
    Y = truth([{0}], 2)
    first = TopK(np.array([[0, 1]]), np.array([[0.5, 0.5]]))
    second = TopK(np.array([[1, 0]]), np.array([[0.5, 0.5]]))
    assert metrics.precision_at_k(Y, first, 1) == 1.0
    assert metrics.precision_at_k(Y, second, 1) == 0.0


def test_weights_of_labels_do_not_matter():
    topk = predictions([[0, 1]], 2)
    assert metrics.precision_at_k([[0.2, 0, 7]], topk, 2) == metrics.precision_at_k([[1, 0, 1]], topk, 2) == 0.5


def test_only_empty_rows_removed_leaves_nothing():
    topk = predictions([[0]], 1)
    assert metrics.precision_at_k([[0, 0]], topk, 1, remove_empty=True) == 0.0


def test_callers_arrays_are_not_changed():
    Y = sp.csr_array((np.ones(2), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    topk = predictions([[2, 1]], 2)
    ids = topk.ids.copy()
    metrics.psndcg_at_k(Y, topk, [0.5, 0.5, 0.5], 2)
    assert Y.indices.tolist() == [2, 0]
    assert (topk.ids == ids).all()


def test_bad_input_is_refused_by_name():
    topk = predictions([[0, 1], [1, 0]], 2)
    Y = truth([{0}, {1}], 2)
    with pytest.raises(ParameterError, match="k must be at most 2, the places predicted for each row; got 3"):
        metrics.precision_at_k(Y, topk, 3)
    with pytest.raises(ParameterError, match="k must be an integer >= 1; got 0"):
        metrics.recall_at_k(Y, topk, 0)
    with pytest.raises(DataError, match="Y_true and topk must have as many rows; got 1 and 2"):
        metrics.ndcg_at_k(Y[:1], topk, 2)
    with pytest.raises(DataError, match="label ids below 1, the columns of Y_true, or -1; got 1 in row 0"):
        metrics.f1_at_k(Y[:, :1], topk, 2)
    with pytest.raises(DataError, match="got -2 in row 0"):
        metrics.f1_at_k(Y[:1], TopK(np.array([[-2]]), np.array([[0.0]])), 1)
    with pytest.raises(DataError, match="a label once per row; got 1 twice in row 1"):
        metrics.precision_at_k(Y, predictions([[0, 1], [1, 1]], 2), 2)
    with pytest.raises(ParameterError, match="topk must be a TopK of predictions; got ndarray"):
        metrics.precision_at_k(Y, topk.ids, 1)
    with pytest.raises(ParameterError, match="propensity must be one number per label"):
        metrics.psp_at_k(Y, topk, None, 1)
    with pytest.raises(DataError, match=r"propensity must hold one number per label \(2\)"):
        metrics.psp_at_k(Y, topk, [0.5], 1)
    with pytest.raises(DataError, match=r"at most 1 \(not its inverse\); got 3 for label 1"):
        metrics.psndcg_at_k(Y, topk, [0.5, 3.0], 1)


COUNTS = st.lists(st.integers(0, 1000), min_size=1, max_size=6)


@given(COUNTS, st.integers(1000, 10**6), st.floats(0.1, 1), st.floats(0.1, 3))
@settings(max_examples=60, deadline=None)
def test_propensities_follow_the_formula(counts, n_rows, A, B):
    C = (math.log(n_rows) - 1) * (B + 1) ** A
    expected = [1 / (1 + C * math.exp(-A * math.log(count + B))) for count in counts]
    assert metrics.propensities(counts, n_rows, A, B) == pytest.approx(expected, rel=1e-12)


def test_propensities_from_labels_equal_those_from_counts():
    Y = truth([{0, 1}, {1}, {1}, set()], 3)
    assert metrics.label_counts(sp.csr_matrix(Y)).tolist() == [1, 3, 0]
    assert (metrics.propensities(Y) == metrics.propensities([1, 3, 0], 4)).all()
    rare, frequent = metrics.propensities([1, 3], 4)
    assert 0 < rare < frequent <= 1


def test_propensity_presets_and_their_limits():
    assert metrics.PROPENSITY_CONSTANTS == {"default": (0.55, 1.5), "wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6)}
    assert metrics.propensities([0, 1], 2).tolist() == [1.0, 1.0]  # too few rows for the model
    with pytest.raises(ParameterError, match="n_rows must be given with label counts"):
        metrics.propensities([1, 2])
    with pytest.raises(ParameterError, match="n_rows must be 2, the rows of labels, or None; got 3"):
        metrics.propensities(np.eye(2), 3)
    with pytest.raises(DataError, match="whole numbers >= 0"):
        metrics.propensities([-1, 2], 10)
    with pytest.raises(DataError, match=r"at most n_rows \(10\) rows per label; got 11"):
        metrics.propensities([11], 10)
