"""Decoding for rare labels: never worse in the expected goal, the same as a slow twin, and better than the top k."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decisions.test_threshold_targets import rows

from longtail.data import TopK
from longtail.decisions import CANDIDATES, Decision, KGoal, assigned_only, decode_batch, learn_decision, learn_gains
from longtail.decisions.ascent_kernel import keep_best_of_rows
from longtail.decisions.tradeoff import tradeoff_curve
from longtail.metrics import coverage_at_k, macro_f1_at_k, macro_recall_at_k, precision_at_k


def tail_rows(n_rows, n_labels=150, candidates=15, seed=0):
    """Return truth, probabilities and training counts of a long tail: rare labels are less likely."""
    rng = np.random.default_rng(seed)
    weight = 1 / (1 + np.arange(n_labels)) ** 0.8
    keys = rng.exponential(1, (n_rows, n_labels)) / weight
    ids = np.argsort(keys, axis=1)[:, :candidates]
    mean = 0.03 + 0.5 * weight**0.5
    chances = rng.beta(0.5, 0.5 * (1 / mean[ids] - 1))
    order = np.argsort(-chances, axis=1)
    ids, chances = np.take_along_axis(ids, order, 1), np.take_along_axis(chances, order, 1)
    at = np.nonzero(rng.random(ids.shape) < chances)
    Y = sp.csr_array((np.ones(at[0].size, np.float32), (at[0], ids[at])), shape=(n_rows, n_labels))
    return Y, TopK(ids, chances), np.bincount(Y.indices, minlength=n_labels)


METRICS = {"macro-f1": macro_f1_at_k, "coverage": coverage_at_k, "macro-recall": macro_recall_at_k}


def expected_plain(top, keep, goal, n_labels):
    """Return the expected goal of a choice, label by label."""
    tested = label_part = hits_of_all = 0.0
    for label in range(n_labels):
        here = top.ids == label
        chances, kept = top.scores[here].astype(float), keep[here]
        true, hits, said = chances.sum(), chances[kept].sum(), kept.sum()
        tested += 1 - np.prod(1 - np.minimum(chances, 1 - 1e-6))
        hits_of_all += hits
        if goal.name == "macro-f1":
            label_part += 2 * hits / (said + true) if said + true else 0
        elif goal.name == "macro-recall":
            label_part += hits / true if true else 0
        else:
            label_part += 1 - np.prod(1 - np.minimum(chances[kept], 1 - 1e-6))
    return goal.mix * label_part / tested + (1 - goal.mix) * hits_of_all / (top.n_rows * goal.k)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("mix", [1.0, 0.4])
def test_the_expected_goal_never_falls_and_is_what_a_slow_twin_says(name, mix):
    _, top, counts = rows(n_rows=60)
    goal = KGoal(name, 3, mix)
    found = decode_batch(top, goal)
    assert (np.diff(found.expected) >= -1e-12).all()
    assert found.expected[-1] == pytest.approx(expected_plain(top, found.keep, goal, counts.size))
    assert (found.keep.sum(axis=1) == 3).all()
    assert np.array_equal(found.keep, decode_batch(top, goal).keep)
    likely = np.zeros(found.keep.shape, dtype=bool)
    likely[:, :3] = True
    assert found.expected[-1] >= expected_plain(top, likely, goal, counts.size)


@pytest.mark.parametrize("name", METRICS)
def test_no_row_alone_can_be_changed_for_the_better(name):
    _, top, counts = rows(n_rows=12, n_labels=8, candidates=5)
    goal = KGoal(name, 2)
    found = decode_batch(top, goal)
    best = expected_plain(top, found.keep, goal, counts.size)
    for row in range(top.n_rows):
        for pair in itertools.combinations(range(top.k), 2):
            other = found.keep.copy()
            other[row] = False
            other[row, list(pair)] = True
            assert expected_plain(top, other, goal, counts.size) <= best + 1e-5


@pytest.mark.parametrize("name", METRICS)
def test_rows_together_and_rows_alone_are_better_than_the_likeliest(name):
    Y, top, counts = tail_rows(1600)
    shares = counts / 1600
    decision = learn_gains(top[:800], shares, KGoal(name, 3))
    new, truth = top[800:], Y[800:]
    metric = METRICS[name]
    likely = metric(truth, new, 3)
    assert metric(truth, assigned_only(new, decode_batch(new, KGoal(name, 3), shares).keep), 3) > likely
    assert metric(truth, assigned_only(new, decision.chosen(new)), 3) > likely
    one = np.vstack([decision.chosen(new[i]) for i in range(50)])
    assert np.array_equal(one, decision.chosen(new[:50]))


def test_the_curve_goes_from_precision_to_the_goal():
    Y, top, counts = tail_rows(800)
    facts = tradeoff_curve(Y, top, 3, counts / 800)
    points = facts["points"]
    assert points[0]["p"] == pytest.approx(precision_at_k(Y, top, 3))
    assert points[-1]["macro_f1"] > points[0]["macro_f1"] and points[-1]["p"] < points[0]["p"]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=4, max_size=4), max_size=4),
    st.integers(1, 5),
)
def test_the_best_of_rows_are_those_of_sorting(table, k):
    ids = np.array([[i for i, _ in row] for row in table], dtype=np.int32).reshape(-1, 4)
    values = np.array([[v for _, v in row] for row in table], dtype=np.float32).reshape(-1, 4)
    keep = np.zeros(ids.shape, dtype=bool)
    keep_best_of_rows(values, ids, k, keep)
    for row in range(ids.shape[0]):
        order = sorted((at for at in range(4) if ids[row, at] >= 0), key=lambda at: (-values[row, at], at))
        assert set(np.flatnonzero(keep[row])) == set(order[:k])


def test_empty_and_short_rows():
    top = TopK([[2, -1], [-1, -1]], [[0.5, -np.inf], [-np.inf, -np.inf]])
    assert decode_batch(top, KGoal("macro-f1", 1)).keep.tolist() == [[True, False], [False, False]]
    assert decode_batch(TopK(np.zeros((0, 2)), np.zeros((0, 2))), KGoal("coverage", 1)).keep.shape == (0, 2)
    decision = Decision.of_thresholds("f1", 0.3)
    assert decision.chosen(top).tolist() == [[True, False], [False, False]]
    assert assigned_only(top, decision.chosen(top)).ids.tolist() == [[2], [-1]]


def test_a_decision_is_saved_and_loaded_as_it_is():
    Y, top, counts = rows(n_rows=200)
    for purpose in ({"target": "macro-f1@3:0.5"}, {"target": "macro-f1", "per": "label"}, {"guarantee": "wrong=0.5"}):
        decision = learn_decision(Y, top, counts, 3000, **purpose)
        again = Decision.from_part(decision.to_part())
        assert np.array_equal(again.chosen(top), decision.chosen(top))
        assert (again.purpose, again.per, again.k, again.reached) == (
            decision.purpose,
            decision.per,
            decision.k,
            decision.reached,
        )
    assert decision.candidates == top.k < CANDIDATES


def test_labels_added_later_follow_the_common_threshold():
    Y, top, counts = rows(n_rows=200)
    decision = learn_decision(Y, top, counts, 3000, target="f1", per="label")
    added = TopK([[counts.size + 5]], [[decision.threshold]])
    assert (
        decision.chosen(added).all()
        and not decision.chosen(TopK([[counts.size + 5]], [[decision.threshold / 2]])).any()
    )
