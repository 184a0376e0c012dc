"""Weights of experts: learned where there are rows to learn from, never negative, and never far from sense."""

from dataclasses import replace

import numpy as np
import pytest

from longtail.hybrid import combine, fit
from longtail.hybrid.boosted_trees import BoostedTrees
from longtail.hybrid.combine import (
    BANDS,
    EXPERTS,
    FEATURES,
    NEW,
    TREES_SHARE,
    Combination,
    HeldOutCandidates,
    Regression,
    learn_trees,
    learn_weights,
    log_loss,
    odds_of_unused,
    used_features,
)
from longtail.hybrid.experts import AT
from longtail.hybrid.fit import best_tail, cross_fit, learn_from

N_LABELS = 60


def examples(n=200, m=30, seed=0, good="tree", noise=0.7):
    """Return candidates of which one expert knows the truth and the others guess."""
    rng = np.random.default_rng(seed)
    candidates = np.sort(np.stack([rng.permutation(N_LABELS)[:m] for _ in range(n)]), axis=1).astype(np.int32)
    hits = rng.random((n, m)) < 0.12
    features = rng.normal(size=(n, m, len(FEATURES))).astype(np.float32)
    for number, feature in enumerate(FEATURES):
        if feature.expert == good:
            features[:, :, number] = hits * 2 + noise * rng.normal(size=(n, m))
    likely = features.sum(axis=2)
    return HeldOutCandidates.some(features, candidates, hits, likely, seed)


COUNTS = np.repeat([1, 10, 100], N_LABELS // 3)


def precision(scores, of):
    best = np.argmax(scores, axis=1)
    return of.hits[np.arange(len(best)), best].mean()


@pytest.mark.parametrize("good", EXPERTS)
def test_the_expert_that_knows_gets_the_weight(good):
    learned = learn_weights(examples(good=good), None, COUNTS, EXPERTS)
    strength = {
        expert: learned.weights[1:, [f.expert == expert for f in FEATURES]].sum() for expert in (*EXPERTS, "label")
    }
    assert max(EXPERTS, key=lambda name: strength[name]) == good
    fresh = examples(good=good, seed=9)
    scores = learned.scores(fresh.features, fresh.candidates, COUNTS)
    default = Combination.default(EXPERTS).scores(fresh.features, fresh.candidates, COUNTS)
    assert precision(scores, fresh) > precision(default, fresh)


def test_no_expert_speaks_against_a_label():
    against = examples()
    against.features[:, :, 0] = -against.hits.astype(np.float32)
    learned = learn_weights(against, None, COUNTS, EXPERTS)
    of_experts = [feature.expert != "label" for feature in FEATURES]
    assert (learned.weights[:, of_experts] >= 0).all()


def test_experts_that_are_left_out_have_no_weight():
    learned = learn_weights(examples(), None, COUNTS, ("tree", "names"))
    assert (learned.weights[:, ~used_features(("tree", "names"))] == 0).all()


def test_with_nothing_to_learn_from_the_default_stands():
    few = examples(n=2)
    learned, default = learn_weights(few, None, COUNTS, EXPERTS), Combination.default(EXPERTS)
    np.testing.assert_array_equal(learned.weights, default.weights)


def test_a_strong_pull_stays_near_the_default_and_a_weak_one_fits_better():
    some = examples()
    near, far = (learn_weights(some, None, COUNTS, EXPERTS, pull) for pull in (1e7, 0.1))
    default = Combination.default(EXPERTS)
    assert (
        np.abs(near.weights[-1] - default.weights[-1]).max() < 0.1 < np.abs(far.weights[-1] - default.weights[-1]).max()
    )
    assert log_loss(far, some, COUNTS) < log_loss(near, some, COUNTS)


def test_scores_are_log_odds():
    some, fresh = examples(n=600), examples(n=600, seed=4)
    learned = learn_weights(some, None, COUNTS, EXPERTS)
    odds = learned.log_odds(fresh.features, fresh.candidates, COUNTS)
    expected = 1 / (1 + np.exp(-odds))
    assert expected.mean() == pytest.approx(fresh.hits.mean(), abs=0.01)
    sure = expected > 0.5
    assert fresh.hits[sure].mean() == pytest.approx(expected[sure].mean(), abs=0.05)


def test_newton_finds_what_a_general_solver_finds():
    from scipy.optimize import minimize

    some = examples(n=60)
    kept = some.worth > 0
    used = used_features(EXPERTS)
    problem = Regression(some.features[kept], some.hits[kept], some.worth[kept], np.ones(kept.sum(), dtype=int), [1])
    default = Combination.default(EXPERTS)
    found = problem.solve(used, default.weights[-1].astype(float), -5.0, 1.0)
    start = np.append(default.weights[-1] * problem.spread, -5.0 + default.weights[-1] @ problem.mean)
    least = [None if feature.expert == "label" else 0 for feature in FEATURES]
    bounds = [(low, None) for low in (*least, None)] * 2
    slow = minimize(lambda w: problem._loss(w, start, 1.0)[:2], np.tile(start, 2), jac=True, bounds=bounds)
    scaled = np.append(found[1][0] * problem.spread, found[1][1] + found[1][0] @ problem.mean)
    np.testing.assert_allclose(scaled, slow.x[start.size :], atol=0.02)


def test_labels_without_rows_are_judged_by_text_and_name_alone():
    some = examples(good="names")
    learned = learn_weights(some, some, COUNTS, EXPERTS)
    by_text = np.array([feature.expert in ("prototypes", "names") for feature in FEATURES])
    assert (learned.weights[NEW, ~by_text] == 0).all() and learned.weights[NEW, by_text].max() > 0


def test_labels_never_used_are_less_likely_than_labels_that_came_later():
    combination = Combination(
        np.zeros((len(BANDS), len(FEATURES)), np.float32), np.zeros(len(BANDS), np.float32), 0.0, -2.0, 3
    )
    counts = np.array([5, 0, 5, 0])  # label 3 was added after the training of three
    scores = combination.scores(np.zeros((1, 4, len(FEATURES)), np.float32), np.arange(4, dtype=np.int32)[None], counts)
    assert scores.tolist() == [[0.0, -2.0, 0.0, 0.0]]


def test_the_odds_of_unused_labels_follow_those_seen_once():
    assert odds_of_unused(np.array([1, 2, 3])) == 0
    many, few = np.array([0] * 100 + [1, 2, 3]), np.array([0] + [1] * 5)
    assert odds_of_unused(many) < -4 and odds_of_unused(few) == 0


def test_rare_labels_are_favoured_only_where_it_costs_nothing():
    some = examples(n=300)
    frequent = np.where(some.candidates >= 2 * N_LABELS // 3, 1.0, 0.0).astype(np.float32)
    truth = np.where(some.hits, 1.0, 0.0).astype(np.float32)
    assert best_tail(some, 10 * truth, frequent) == 1.0  # the ranking is right however much is added
    only_frequent = HeldOutCandidates(some.features, some.candidates, some.hits & (frequent == 0), some.worth)
    assert best_tail(only_frequent, 0.6 * only_frequent.hits, frequent) < 0.75


def test_rare_labels_are_favoured_more_where_one_expert_alone_finds_more_of_them():
    n, frequent, sixth, rare = 100, 0, 4, 7
    candidates = np.tile(np.arange(8, dtype=np.int32), (n, 1))
    hits = np.zeros((n, 8), dtype=bool)
    hits[:, frequent], hits[:40, rare], hits[40:, sixth] = True, True, True
    some = HeldOutCandidates(np.zeros((n, 8, len(FEATURES)), np.float32), candidates, hits, np.ones((n, 8), np.float32))
    together = np.tile(np.array([10, 9, 8, 7, 5, 0, 0, 4.9], dtype=np.float32), (n, 1))
    bonus = np.where(candidates == rare, 2.0, 0.0).astype(np.float32)  # a quarter of it brings it into the first 5
    of_rare = np.where(candidates == rare, 1.0, -candidates).astype(np.float32)
    of_frequent = np.where(candidates == frequent, 9.0, 0.0).astype(np.float32)
    of_frequent[:, [sixth, rare]] = -1.0
    assert best_tail(some, together, bonus, [of_frequent]) == 0  # it costs precision
    assert best_tail(some, together, bonus, [of_frequent, of_rare]) == 0.25
    assert best_tail(some, together, bonus, [of_rare, np.where(hits, 1.0, 0.0)]) == 0  # none may fall behind an expert


def test_where_rare_labels_cannot_be_found_as_often_as_by_one_expert_most_of_them_are():
    n, fifth, rare = 1000, 4, 7
    candidates = np.tile(np.arange(8, dtype=np.int32), (n, 1))
    hits = np.zeros((n, 8), dtype=bool)
    hits[:, [0, fifth]], hits[::3, rare] = True, True
    some = HeldOutCandidates(np.zeros((n, 8, len(FEATURES)), np.float32), candidates, hits, np.ones((n, 8), np.float32))
    together = np.tile(np.array([10, 9, 8, 7, 5, 0, 0, 0], dtype=np.float32), (n, 1))
    together[:, rare] = 5 - 4 * np.linspace(0, 1, n) / 0.9  # a tenth of the rows does not come in whatever is added
    bonus = np.where(candidates == rare, 4.0, 0.0).astype(np.float32)
    of_rare = np.where(candidates == rare, 1.0, -candidates - 1.0).astype(np.float32)
    of_rare[:, fifth] = -9.0
    assert best_tail(some, together, bonus) == 0  # it costs precision
    assert best_tail(some, together, bonus, [of_rare]) == 1.0


def test_rare_labels_are_not_favoured_so_far_that_an_expert_is_ahead():
    n, frequent, rare = 1000, 0, 1
    candidates = np.tile(np.arange(8, dtype=np.int32), (n, 1))
    hits = np.zeros((n, 8), dtype=bool)
    hits[:800, frequent], hits[800:, rare] = True, True
    some = HeldOutCandidates(np.zeros((n, 8, len(FEATURES)), np.float32), candidates, hits, np.ones((n, 8), np.float32))
    together = np.tile(np.array([1.0, 0, -1, -2, -3, -4, -5, -6], dtype=np.float32), (n, 1))
    together[800:, [frequent, rare]] = [0.0, 1.0]  # all is right
    together[:2, rare] = 0.75  # two rows where half of the bonus is too much
    bonus = np.where(candidates == rare, 0.6, 0.0).astype(np.float32)
    assert best_tail(some, together, bonus) > 0.25
    assert best_tail(some, together, bonus, [together]) == 0.25  # an expert that is right everywhere


def test_held_out_scores_come_from_weights_of_other_rows(monkeypatch):
    monkeypatch.setattr(fit, "PULLS", (0.1,))
    some = examples(n=100)
    _, _, scores = cross_fit(some, None, COUNTS, EXPERTS, seed=0)
    changed = HeldOutCandidates(some.features, some.candidates, some.hits.copy(), some.worth)
    order = np.random.default_rng(0).permutation(100)
    changed.hits[order[0]] = ~changed.hits[order[0]]
    _, _, again = cross_fit(changed, None, COUNTS, EXPERTS, seed=0)
    np.testing.assert_array_equal(scores[order[0::2]], again[order[0::2]])  # its own half does not see it
    assert not np.array_equal(scores[order[1::2]], again[order[1::2]])


def together(n, seed):
    """Return candidates that are right where two experts agree, which no sum of what each says tells."""
    rng = np.random.default_rng(seed)
    some = examples(n=n, seed=seed, noise=1)
    features = rng.random(some.features.shape).astype(np.float32)
    both = (features[:, :, AT["tree", "probability"]] > 0.6) & (features[:, :, AT["neighbours", "share"]] > 0.6)
    hits = both & (rng.random(both.shape) < 0.9)
    return HeldOutCandidates(features, some.candidates, hits, np.ones_like(some.worth))


def test_boosted_trees_see_the_log_odds_by_the_weights():
    learned = Combination.default(EXPERTS)
    leaf = {"starts": [0, 1, 4], "feature": [-1, 0, -1, -1], "right": [0, 3, 0, 0]}
    arrays = {name: np.array(values, dtype=np.int32) for name, values in leaf.items()}
    some = examples(n=20)
    by_weights = learned.log_odds(some.features, some.candidates, COUNTS)
    middle = float(np.median(by_weights))
    step = BoostedTrees(
        **arrays, threshold=np.float32([0, middle, 0, 0]), value=np.float32([0, 0, -8, 8])
    )  # it asks for feature 0 alone
    together = replace(learned, trees=step).log_odds(some.features, some.candidates, COUNTS)
    expected = (1 - TREES_SHARE) * by_weights + TREES_SHARE * np.where(by_weights <= np.float32(middle), -8, 8)
    np.testing.assert_allclose(together, expected, atol=1e-4)


def test_the_log_odds_that_trees_learn_from_are_by_weights_of_other_rows(monkeypatch):
    some, asked, seen = together(600, 0), [], []
    weights, fitted = combine.learn_weights, BoostedTrees.fit
    monkeypatch.setattr(combine, "learn_weights", lambda of, *more: asked.append(of) or weights(of, *more))
    monkeypatch.setattr(BoostedTrees, "fit", lambda features, *more: seen.append(features) or fitted(features, *more))
    learn_trees(some, COUNTS, EXPERTS)
    assert [len(of.candidates) for of in asked] == [300, 300]
    kept = (some.worth > 0) & (COUNTS[some.candidates] > 0)
    even = np.broadcast_to((np.arange(600) % 2 == 0)[:, None], kept.shape)
    of_odd = weights(some.take(np.arange(600) % 2 == 1), None, COUNTS, EXPERTS)
    expected = of_odd.log_odds(some.features, some.candidates, COUNTS)
    np.testing.assert_allclose(seen[0][even[kept], 0], expected[kept & even], atol=1e-5)


def test_boosted_trees_are_taken_where_they_tell_more_than_sums_do():
    fresh = together(300, 1)
    learned = learn_from(together(600, 0), together(600, 0), COUNTS, EXPERTS, 0.0, 0).combination
    alone = replace(learned, trees=None)
    assert log_loss(learned, fresh, COUNTS) < 0.8 * log_loss(alone, fresh, COUNTS)
    few = learn_from(together(60, 0), together(60, 0), COUNTS, EXPERTS, 0.0, 0).combination
    off = learn_from(together(600, 0), together(600, 0), COUNTS, EXPERTS, 0.0, 0, boosted=False).combination
    assert few.trees is None and off.trees is None
