"""Thresholds for a purpose: what is promised on the rows they are chosen on, against slow twins."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data import TopK
from longtail.decisions import JudgedRows, KGoal, Target, assigned_only, learn_decision, read_goal, read_target
from longtail.decisions.cut_kernels import COUNT, PRECISION, RECALL, WORTH, best_cuts, best_macro_cut
from longtail.errors import DataError, ParameterError
from longtail.metrics import evaluate_sets


def rows(n_rows=600, n_labels=40, candidates=12, seed=0, sharp=1.0):
    """Return the truth, calibrated probabilities and training counts of labels of very different frequency."""
    rng = np.random.default_rng(seed)
    ids = np.array([rng.permutation(n_labels)[:candidates] for _ in range(n_rows)])
    rarity = 1 / (1 + np.arange(n_labels))
    chances = rng.beta(0.4, 1.2, ids.shape) ** (0.5 + rarity[ids])
    order = np.argsort(-chances, axis=1)
    ids, chances = np.take_along_axis(ids, order, 1), np.take_along_axis(chances, order, 1)
    true = rng.random(ids.shape) < chances**sharp
    lists = [sorted({*ids[i][true[i]].tolist(), *rng.choice(n_labels, 1).tolist()}) for i in range(n_rows)]
    Y = sp.csr_array((n_rows, n_labels), dtype=np.float32).tolil()
    for i, labels in enumerate(lists):
        Y[i, labels] = 1
    counts = (2000 * rarity).astype(np.int64) + 1
    return sp.csr_array(Y), TopK(ids, chances), counts


def sets(decision, Y, top):
    return {k: v["value"] for k, v in evaluate_sets(Y, assigned_only(top, decision.chosen(top)))["metrics"].items()}


@pytest.mark.parametrize("per", ["global", "band"])
def test_precision_and_recall_are_reached_and_not_by_more_than_needed(per):
    Y, top, counts = rows()
    precise = sets(learn_decision(Y, top, counts, 3000, target="precision=0.7", per=per), Y, top)
    assert 0.7 <= precise["micro_p"] < 0.73
    found = sets(learn_decision(Y, top, counts, 3000, target="recall=0.5", per=per), Y, top)
    assert 0.5 <= found["micro_r"] < 0.52
    assert sets(learn_decision(Y, top, counts, 3000, target="labels-per-row=3", per=per), Y, top)[
        "labels_per_row"
    ] == pytest.approx(3, abs=0.02)


@pytest.mark.parametrize("per", ["global", "band", "label"])
@pytest.mark.parametrize("target", ["precision=0.8", "recall=0.9"])
def test_a_target_costs_nothing_where_all_labels_can_be_told_apart(target, per):
    n_rows, n_labels = 300, 10
    true = np.arange(n_rows) % n_labels
    ids = np.stack([true, (true + 1) % n_labels, (true + 2) % n_labels], axis=1)
    chances = np.stack([0.6 + np.arange(n_rows) / 1000, np.arange(n_rows) / 1000, np.zeros(n_rows)], axis=1)
    Y = sp.csr_array((np.ones(n_rows, dtype=np.float32), true, np.arange(n_rows + 1)), shape=(n_rows, n_labels))
    top, counts = TopK(ids, chances), np.arange(1, n_labels + 1) ** 3
    here = sets(learn_decision(Y, top, counts, 3000, target=target, per=per), Y, top)
    assert (here["micro_p"], here["micro_r"]) == (1.0, 1.0)


def test_finer_thresholds_are_never_worse_on_the_rows_they_are_chosen_on():
    Y, top, counts = rows()
    f1 = [
        sets(learn_decision(Y, top, counts, 3000, target="f1", per=per), Y, top)["micro_f1"]
        for per in ("global", "band")
    ]
    assert f1[1] >= f1[0]
    macro = [
        sets(learn_decision(Y, top, counts, 3000, target="macro-f1", per=per), Y, top)["macro_f1"]
        for per in ("global", "band", "label")
    ]
    assert macro[0] <= macro[1] <= macro[2]


def test_the_best_f1_is_that_of_trying_every_threshold():
    Y, top, counts = rows(n_rows=30)
    for target, metric in (("f1", "micro_f1"), ("macro-f1", "macro_f1")):
        chosen = sets(learn_decision(Y, top, counts, 3000, target=target), Y, top)[metric]
        tried = [
            evaluate_sets(Y, assigned_only(top, top.scores >= t), n_bootstrap=0)["metrics"][metric]["value"]
            for t in np.unique(top.scores)
        ]
        assert chosen == pytest.approx(max(tried))


def test_thresholds_of_rare_labels_are_drawn_to_their_band():
    Y, top, counts = rows()
    by_band = learn_decision(Y, top, counts, 3000, target="macro-f1", per="band")
    by_label = learn_decision(Y, top, counts, 3000, target="macro-f1", per="label")
    true = np.bincount(Y.indices, minlength=counts.size)
    rare, frequent = true < np.quantile(true, 0.2), true > np.quantile(true, 0.8)
    apart = np.abs(by_label.shifts - by_band.shifts)
    assert apart[rare].mean() < apart[frequent].mean()
    unseen = learn_decision(Y[:5], top[:5], counts, 3000, target="macro-f1", per="label")
    none = np.setdiff1d(np.arange(counts.size), top.ids[:5])
    shared = learn_decision(Y[:5], top[:5], counts, 3000, target="macro-f1", per="band")
    assert np.array_equal(unseen.shifts[none], shared.shifts[none])


def test_shrinkage_helps_on_new_rows(monkeypatch):
    Y, top, counts = rows(n_rows=4300, n_labels=40)
    few = np.arange(300)
    values = []
    for shrinkage in (0.0, 20.0):
        monkeypatch.setattr("longtail.decisions.thresholds.SHRINKAGE", shrinkage)
        decision = learn_decision(Y[few], top[few], counts, 3000, target="macro-f1", per="label")
        values.append(sets(decision, sp.csr_array(Y[300:]), top[300:])["macro_f1"])
    assert values[1] > values[0]


def test_what_is_out_of_reach_is_said():
    Y, top, counts = rows(n_rows=50)
    with pytest.raises(DataError, match=r"recall=0.999 is out of reach: .* recall on the rows .* is at most 0\.\d+\.$"):
        learn_decision(Y, top, counts, 3000, target="recall=0.999")
    none = sp.csr_array(Y.shape, dtype=np.float32)
    with pytest.raises(DataError, match=r"precision=0.5 is out of reach: .* at most 0"):
        learn_decision(none, top, counts, 3000, target="precision=0.5")


@pytest.mark.parametrize(
    ("target", "per", "sentence"),
    [
        ("precison=0.8", "global", "target must be precision=0.8, .* got 'precison=0.8'. Did you mean 'precision'?"),
        ("precision=0,8", "global", "got 'precision=0,8'. Write precision=0.8.$"),
        ("precision=80%", "global", "got 'precision=80%'. Write precision=0.8.$"),
        ("precision=high", "global", "target must be precision=0.8, .* got 'precision=high'.$"),
        ("precision", "global", "target must be precision=0.8"),
        ("f1=0.5", "global", "target must be precision=0.8"),
        ("recall=x", "global", "target must be"),
        ("recall=1.5", "global", "target recall must be a number above 0, up to 1|target recall"),
        ("recall=nan", "global", "target recall must be"),
        ("labels-per-row=0", "global", "target labels-per-row must be"),
        ("macro-f2@5", "global", "target must be coverage, macro-f1 or macro-recall .* Did you mean 'macro-f1'?"),
        ("macro-f1@0", "global", "target must be an integer"),
        ("macro-f1@5:2", "global", "target must be"),
        ("f1", "labels", "per must be one of"),
        ("macro-f1@5", "band", "per must be 'global' with a goal at k; got 'band'"),
    ],
)
def test_words_that_are_no_target_are_refused(target, per, sentence):
    Y, top, counts = rows(n_rows=20)
    with pytest.raises(ParameterError, match=sentence):
        learn_decision(Y, top, counts, 3000, target=target, per=per)


def test_words_are_read_and_written_alike():
    for word in ("precision=0.8", "labels-per-row=3", "f1", "macro-f1", "coverage@3", "macro-f1@5:0.25"):
        assert str(read_target(word)) == word
    assert read_goal("macro-recall@2") == KGoal("macro-recall", 2) and read_target("f1") == Target("f1")


def best_cut_plain(chances, right, true, goal, value):
    """Try every number of pairs that does not separate equal probabilities."""
    cuts = [c for c in range(1, len(chances) + 1) if c == len(chances) or chances[c] != chances[c - 1]]
    hits = {c: sum(right[:c]) for c in cuts}
    if goal == PRECISION:
        return max((c for c in cuts if hits[c] >= value * c), key=lambda c: (hits[c], -c), default=-1)
    if goal == RECALL:
        reached = [c for c in cuts if hits[c] >= value * true]
        return max(reached, key=lambda c: (Fraction(hits[c], c), hits[c]), default=-1)
    if goal == COUNT:
        return min([0, *cuts], key=lambda c: (abs(c - value), c))
    return max([0, *cuts], key=lambda c: (2 * hits.get(c, 0) - value * c, -c))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=8), min_size=1, max_size=4),
    st.sampled_from([PRECISION, RECALL, COUNT, WORTH]),
    st.sampled_from([0.25, 0.5, 0.75, 1.0, 2.0]),
)
def test_cuts_of_groups_are_those_of_trying_all(groups, goal, value):
    groups = [sorted(group, key=lambda pair: -pair[0]) for group in groups]
    starts = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    chances = np.array([c / 4 for group in groups for c, _ in group], dtype=np.float32)
    right = np.array([r for group in groups for _, r in group], dtype=bool)
    true = np.array([sum(r for _, r in group) + 1.0 for group in groups])
    cuts = np.zeros(len(groups), dtype=np.int64)
    best_cuts(starts, chances, right, true, goal, np.full(len(groups), value), cuts)
    for group, cut, t in zip(groups, cuts, true, strict=True):
        assert cut == best_cut_plain([c for c, _ in group], [r for _, r in group], t, goal, value)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.booleans()), min_size=1, max_size=10))
def test_the_macro_cut_is_that_of_trying_all(pairs):
    pairs = sorted(pairs, key=lambda pair: -pair[0])
    chances = np.array([c / 4 for c, _, _ in pairs], dtype=np.float32)
    labels, right = np.array([x for _, x, _ in pairs], dtype=np.int32), np.array([r for _, _, r in pairs])
    true = np.bincount(labels[right], minlength=3) + np.array([0.0, 1.0, 2.0])

    def value(cut):
        hits, said = np.bincount(labels[:cut][right[:cut]], minlength=3), np.bincount(labels[:cut], minlength=3)
        return sum(2 * h / (s + t) for h, s, t in zip(hits, said, true, strict=True) if t > 0)

    cut = best_macro_cut(chances, labels, right, true)
    assert cut == 0 or cut == len(pairs) or chances[cut] != chances[cut - 1]
    ends = [c for c in range(len(pairs) + 1) if c in (0, len(pairs)) or chances[c] != chances[c - 1]]
    assert value(cut) == pytest.approx(max(map(value, ends)))


def test_labels_the_model_does_not_know_count_as_missed():
    Y, top, counts = rows(n_rows=100)
    more = sp.csr_array(sp.hstack([Y, np.ones((100, 1))]))
    judged = JudgedRows.of(more, top, counts)
    assert judged.n_true == Y.nnz + 100
    here = sets(learn_decision(more, top, counts, 3000, target="recall=0.4"), more, top)
    assert 0.4 <= here["micro_r"] < 0.45
