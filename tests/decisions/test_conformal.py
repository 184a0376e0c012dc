"""Guarantees: by simulation over 1,000 random splits the mean risk is at most α, and what cannot be is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.decisions.test_threshold_targets import rows

from longtail.data import TopK
from longtail.decisions import JudgedRows, Target, control_risk, learn_decision, mean_missed, mean_wrong
from longtail.errors import DataError, ParameterError

SPLITS = 1000


def taken(judged, at):
    return JudgedRows(
        judged.probabilities[at], judged.hits[at], judged.row_true[at], judged.label_true, judged.train_counts
    )


def missed_plain(Y, top, threshold):
    """Return the share of missed labels of every row, by sets."""
    out = []
    for row in range(top.n_rows):
        true = set(Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist())
        given = {i for i, p in zip(top.ids[row].tolist(), top.scores[row], strict=True) if i >= 0 and p >= threshold}
        out.append(len(true - given) / len(true) if true else 0.0)
    return out


def wrong_plain(Y, top, threshold):
    """Return the share of wrong labels of every row, by sets, the worst at the threshold or any higher one."""
    out = []
    for row in range(top.n_rows):
        true = set(Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist())
        worst = 0.0
        for limit in {threshold, *(p for p in top.scores[row].tolist() if p >= threshold)}:
            given = {i for i, p in zip(top.ids[row].tolist(), top.scores[row], strict=True) if i >= 0 and p >= limit}
            worst = max(worst, len(given - true) / len(given) if given else 0.0)
        out.append(worst)
    return out


@pytest.mark.parametrize(
    ("name", "alpha", "n"), [("missed", 0.4, 60), ("missed", 0.35, 300), ("wrong", 0.2, 60), ("wrong", 0.4, 300)]
)
def test_over_a_thousand_splits_the_mean_risk_is_at_most_alpha(name, alpha, n):
    Y, top, counts = rows(n_rows=1500, seed=3)
    judged = JudgedRows.of(Y, top, counts)
    loss = mean_missed if name == "missed" else mean_wrong
    rng, risks = np.random.default_rng(0), []
    for _ in range(SPLITS):
        order = rng.permutation(judged.n_rows)
        threshold = -control_risk(taken(judged, order[:n]), Target(name, alpha)).shift
        risks.append(loss(taken(judged, order[n:]), threshold))
    error = np.std(risks) / np.sqrt(SPLITS)
    assert np.mean(risks) <= alpha + 3 * error
    if name == "missed":
        assert np.mean(risks) > alpha - 2 / n - 3 * error  # not by being more cautious than the formula asks for


@pytest.mark.parametrize("ties", [False, True])
def test_the_threshold_is_the_least_cautious_that_the_formula_allows(ties):
    Y, top, counts = rows(n_rows=40, n_labels=10, candidates=6, seed=5)
    if ties:
        top = TopK(top.ids, np.round(top.scores * 5) / 5)
    judged = JudgedRows.of(Y, top, counts)
    grid = np.unique(top.scores)
    between = np.concatenate([grid, np.nextafter(grid, np.float32(2)), [np.float32(0)]])
    for alpha in (0.3, 0.5, 0.7):
        may = [t for t in between if (sum(missed_plain(Y, top, t)) + 1) / 41 <= alpha]
        if may:
            assert -control_risk(judged, Target("missed", alpha)).shift == max(may)
        may = [t for t in between if (sum(wrong_plain(Y, top, t)) + 1) / 41 <= alpha]
        assert -control_risk(judged, Target("wrong", alpha)).shift == min(may)


def test_what_cannot_be_guaranteed_is_said_with_what_can():
    Y, top, counts = rows(n_rows=40, seed=1)
    with pytest.raises(
        DataError, match=r"missed=0.01 cannot be guaranteed on these 40 rows; the least .* missed=0\.\d+, with all"
    ):
        learn_decision(Y, top, counts, 3000, guarantee="missed=0.01")
    with pytest.raises(DataError, match=r"wrong=0.01 .* least that can be is wrong=0.0244, with nothing assigned"):
        learn_decision(Y, top, counts, 3000, guarantee="wrong=0.01")
    least = 0.0244
    decision = learn_decision(Y, top, counts, 3000, guarantee=f"wrong={least}")
    assert mean_wrong(JudgedRows.of(Y, top, counts), -decision.shift) == 0


@pytest.mark.parametrize("word", ["missed", "missed=0", "missed=1", "lost=0.1", "wrong=x", ""])
def test_words_that_are_no_guarantee_are_refused(word):
    Y, top, counts = rows(n_rows=20)
    with pytest.raises(ParameterError, match=r"guarantee must be missed=0.1 or wrong=0.1"):
        learn_decision(Y, top, counts, 3000, guarantee=word)
    with pytest.raises(ParameterError, match="per must be 'global' with a guarantee"):
        learn_decision(Y, top, counts, 3000, guarantee="missed=0.5", per="band")
    with pytest.raises(ParameterError, match="give either a target or a guarantee"):
        learn_decision(Y, top, counts, 3000, target="f1", guarantee="missed=0.5")


def test_rows_without_labels_miss_nothing_and_a_row_of_none_right_is_all_wrong():
    top = TopK([[0, 1], [0, 1]], [[0.9, 0.5], [0.8, 0.4]])
    judged = JudgedRows.of(sp.csr_array([[0, 0], [1, 0]]), top, np.array([5, 5]))
    assert mean_missed(judged, 2.0) == 0.5 and mean_wrong(judged, 0.7) == 0.5 and mean_wrong(judged, 2.0) == 0.0
