"""evaluate() and compare(): values, intervals and tests a report can rely on."""

import json
import time

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import metrics
from longtail.data import TopK
from longtail.errors import DataError, ParameterError
from longtail.metrics import resample
from longtail.metrics.label_metrics import LABEL_METRICS
from longtail.metrics.measures import ROW_METRICS, Measure, RowMetric, identity


def sample(n_rows=400, n_labels=60, quality=0.6, seed=0, places=5, luck=None):
    """Rows with three labels each; a prediction is right at each place with the given probability."""
    rng = np.random.default_rng(seed)
    order = rng.random((n_rows, n_labels)).argsort(axis=1).astype(np.int32)
    indptr = np.arange(0, 3 * n_rows + 1, 3)
    Y = sp.csr_array((np.ones(3 * n_rows), order[:, :3].ravel(), indptr), shape=(n_rows, n_labels))
    wrong = order[:, 3 : 3 + places]
    right = np.full((n_rows, places), -1, dtype=np.int32)
    right[:, :3] = order[:, :3]
    luck = rng if luck is None else np.random.default_rng(luck)
    pick = (luck.random((n_rows, places)) < quality) & (right >= 0)
    ids = np.where(pick, right, wrong)
    return Y, TopK(ids, np.tile(np.linspace(0.9, 0.1, places, dtype=np.float32), (n_rows, 1)))


def everything(Y, topk, **options):
    counts = np.arange(Y.shape[1])
    p = metrics.propensities(counts, 1000)
    return metrics.evaluate(Y, topk, propensity=p, train_counts=counts, probabilities=True, **options)


def test_values_are_those_of_the_single_metrics():
    Y, topk = sample()
    p = metrics.propensities(np.arange(60), 1000)
    found = everything(Y, topk, ks=(1, 3, 5), n_bootstrap=50)["metrics"]
    for k in (1, 3, 5):
        expected = {
            f"p@{k}": metrics.precision_at_k(Y, topk, k),
            f"r@{k}": metrics.recall_at_k(Y, topk, k),
            f"f1@{k}": metrics.f1_at_k(Y, topk, k),
            f"ndcg@{k}": metrics.ndcg_at_k(Y, topk, k),
            f"psp@{k}": metrics.psp_at_k(Y, topk, p, k),
            f"psndcg@{k}": metrics.psndcg_at_k(Y, topk, p, k),
            f"coverage@{k}": metrics.coverage_at_k(Y, topk, k),
            f"macro_p@{k}": metrics.macro_precision_at_k(Y, topk, k),
            f"macro_r@{k}": metrics.macro_recall_at_k(Y, topk, k),
            f"macro_f1@{k}": metrics.macro_f1_at_k(Y, topk, k),
        }
        assert {name: found[name]["value"] for name in expected} == pytest.approx(expected, abs=1e-12)
    assert len(found) == 30


def test_facts_survive_json_and_name_their_counts():
    Y, topk = sample()
    facts = everything(Y, topk, n_bootstrap=20)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert (facts["rows"], facts["labels"], facts["labels_tested"], facts["ks"]) == (400, 60, 60, [1, 3, 5])
    assert facts["rows_without_labels"] == facts["rows_short_of_predictions"] == 0
    assert facts["labels_per_row"] == 3
    assert facts["by_place"][0] == facts["metrics"]["p@1"]["value"]
    for row in facts["metrics"].values():
        assert row["low"] <= row["value"] <= row["high"]


def test_what_is_not_known_is_left_out():
    Y, topk = sample()
    facts = metrics.evaluate(Y, topk, ks=[1], n_bootstrap=0)
    assert facts["bands"] is facts["frequency"] is facts["calibration"] is None
    assert "psp@1" not in facts["metrics"]
    assert facts["metrics"]["p@1"]["low"] is None


def test_extreme_inputs_give_facts():
    one = metrics.evaluate([[1, 0]], TopK.from_scores([[0.9, 0.1]], 2), ks=(2,), n_bootstrap=20)
    assert one["metrics"]["p@2"] == {"value": 0.5, "low": 0.5, "high": 0.5}
    nothing = np.zeros((3, 4))
    topk = TopK(np.full((3, 2), -1), np.full((3, 2), -np.inf))
    for remove_empty in (False, True):
        facts = metrics.evaluate(
            nothing,
            topk,
            ks=(1, 2),
            propensity=[0.5] * 4,
            train_counts=[0, 1, 2, 3],
            probabilities=True,
            n_bootstrap=20,
            remove_empty=remove_empty,
        )
        json.dumps(facts, allow_nan=False)
        assert all(row["value"] == 0 for row in facts["metrics"].values())
        assert facts["calibration"]["brier"]["value"] is None


def test_the_same_seed_gives_the_same_interval():
    Y, topk = sample()
    assert everything(Y, topk, random_state=3, n_bootstrap=100) == everything(Y, topk, random_state=3, n_bootstrap=100)
    assert everything(Y, topk, random_state=4, n_bootstrap=100) != everything(Y, topk, random_state=3, n_bootstrap=100)


def test_interval_equals_a_slow_bootstrap():
    Y, topk = sample(n_rows=80)
    p = metrics.propensities(np.arange(60), 1000)
    found = metrics.evaluate(Y, topk, ks=(5,), propensity=p, n_bootstrap=4000)["metrics"]
    rng = np.random.default_rng(99)
    f1, psp = [], []
    for _ in range(800):
        rows = rng.integers(0, 80, 80)
        f1.append(metrics.f1_at_k(Y[rows], topk[rows], 5))
        psp.append(metrics.psp_at_k(Y[rows], topk[rows], p, 5))
    for name, values in (("f1@5", f1), ("psp@5", psp)):
        low, high = np.quantile(values, [0.025, 0.975])
        assert found[name]["low"] == pytest.approx(low, abs=0.012)
        assert found[name]["high"] == pytest.approx(high, abs=0.012)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    inside = 0
    for seed in range(120):
        Y, topk = sample(n_rows=150, quality=0.6, seed=seed)
        row = metrics.evaluate(Y, topk, ks=(3,), n_bootstrap=200, level=0.9)["metrics"]["p@3"]
        inside += row["low"] <= 0.6 <= row["high"]
    assert 0.82 <= inside / 120 <= 0.97


def test_grouped_rows_give_the_same_interval(monkeypatch):
    Y, topk = sample(n_rows=6000)
    _, other = sample(n_rows=6000, luck=2)  # as good, but right in other rows
    whole = metrics.evaluate(Y, topk, ks=(3,), n_bootstrap=2000)["metrics"]
    p_value = metrics.compare(Y, topk, other, ks=(3,), n_bootstrap=0)["metrics"]["p@3"]["p_value"]
    monkeypatch.setattr(resample, "MAX_UNITS", 1000)
    grouped = metrics.evaluate(Y, topk, ks=(3,), n_bootstrap=2000)["metrics"]
    for name in ("p@3", "f1@3", "ndcg@3"):
        assert grouped[name]["value"] == whole[name]["value"]
        width = whole[name]["high"] - whole[name]["low"]
        assert grouped[name]["low"] == pytest.approx(whole[name]["low"], abs=0.12 * width)
        assert grouped[name]["high"] == pytest.approx(whole[name]["high"], abs=0.12 * width)
    in_groups = metrics.compare(Y, topk, other, ks=(3,), n_bootstrap=0)["metrics"]["p@3"]["p_value"]
    assert 0.05 < p_value < 0.95
    assert in_groups == pytest.approx(p_value, abs=0.08)


def test_thousand_resamples_of_twenty_thousand_rows_are_quick():
    Y, topk = sample(n_rows=20_000, n_labels=40)
    start = time.perf_counter()
    everything(Y, topk)
    assert time.perf_counter() - start < 15  # about half a second on an idle core


def test_frequency_bins_hold_every_label_and_pair():
    Y, topk = sample()
    frequency = everything(Y, topk, n_bootstrap=0)["frequency"]
    bins = frequency["bins"]
    assert [(b["lowest"], b["highest"]) for b in bins] == [(0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63)]
    assert [b["labels"] for b in bins] == [1, 1, 2, 4, 8, 16, 28]
    assert sum(b["true"] for b in bins) == Y.nnz
    assert sum(b["predicted"] for b in bins) == topk.ids.size
    right = metrics.precision_at_k(Y, topk, 5) * topk.ids.size
    assert sum(b["right"] for b in bins) == pytest.approx(right)


def test_calibration_by_loop():
    Y, topk = sample(n_rows=50)
    dense = Y.toarray()
    facts = metrics.calibration(Y, topk, n_bins=4)
    pairs = [(float(s), dense[i, label]) for i in range(50) for label, s in zip(topk.ids[i], topk.scores[i])]
    assert facts["brier"] == pytest.approx(np.mean([(s - y) ** 2 for s, y in pairs]))
    error = 0.0
    for b in range(4):
        inside = [(s, y) for s, y in pairs if b / 4 <= s < (b + 1) / 4]
        assert facts["bins"][b]["count"] == len(inside)
        if inside:
            error += len(inside) / len(pairs) * abs(np.mean([s for s, _ in inside]) - np.mean([y for _, y in inside]))
    assert facts["expected_calibration_error"] == pytest.approx(error)
    evaluated = metrics.evaluate(Y, topk, probabilities=True, n_bootstrap=100)["calibration"]
    assert evaluated["brier"]["low"] < evaluated["brier"]["value"] < evaluated["brier"]["high"]
    assert evaluated["brier"]["value"] == pytest.approx(facts["brier"])


def test_scores_that_are_no_probabilities_are_refused():
    with pytest.raises(DataError, match="topk must hold probabilities between 0 and 1; got 2 in row 0"):
        metrics.evaluate([[1]], TopK.from_scores([[2.0]], 1), ks=(1,), probabilities=True)


def test_bad_options_are_refused():
    Y, topk = sample(n_rows=5)
    with pytest.raises(ParameterError, match="k must be at most 5"):
        metrics.evaluate(Y, topk, ks=(1, 6))
    with pytest.raises(ParameterError, match="ks must be a list of integers >= 1"):
        metrics.evaluate(Y, topk, ks=())
    with pytest.raises(ParameterError, match="level must be a number above 0 and at most 1; got 95"):
        metrics.evaluate(Y, topk, level=95)
    with pytest.raises(DataError, match=r"train_counts must have one entry per label \(60\); got 2"):
        metrics.evaluate(Y, topk, train_counts=[1, 2])


def test_comparing_a_model_with_itself_finds_nothing():
    Y, topk = sample()
    facts = metrics.compare(Y, topk, topk, train_counts=np.arange(60), propensity=np.full(60, 0.5))
    json.dumps(facts, allow_nan=False)
    for row in facts["metrics"].values():
        assert row["difference"] == row["low"] == row["high"] == 0
        assert row["p_value"] == 1


def test_a_clearly_better_model_is_found():
    Y, worse = sample(quality=0.4)
    _, better = sample(quality=0.7)
    facts = metrics.compare(Y, worse, better, train_counts=np.arange(60), propensity=np.full(60, 0.5), ks=(1, 3))
    for name in ("p@1", "p@3", "r@3", "f1@3", "ndcg@3", "psp@3", "psndcg@3", "macro_r@3"):
        row = facts["metrics"][name]
        assert row["difference"] == pytest.approx(row["b"] - row["a"])
        assert 0 < row["low"] < row["difference"] < row["high"]
        assert row["p_value"] < 0.01
    tail = facts["bands"][2]
    assert tail["name"] == "tail"
    assert tail["metrics"]["r@3"]["p_value"] < 0.05
    turned = metrics.compare(Y, better, worse, ks=(1, 3))["metrics"]["p@3"]
    assert turned["difference"] == pytest.approx(-facts["metrics"]["p@3"]["difference"])
    assert turned["p_value"] == facts["metrics"]["p@3"]["p_value"]


def test_p_values_are_those_of_all_swaps():
    # ten units, all 2^10 swaps counted
    rng = np.random.default_rng(5)
    a, b = rng.random(10), rng.random(10) + 0.2
    swaps = np.array(np.meshgrid(*[[-1, 1]] * 10)).reshape(10, -1).T
    exact = (np.abs(swaps @ (b - a)) >= abs((b - a).sum()) - 1e-12).mean()
    [p] = resample.randomisation_p_values([Measure("x", (a,), identity)], [Measure("x", (b,), identity)], 20_000, 0)
    assert p == pytest.approx(exact, abs=0.015)


def test_p_values_are_even_when_there_is_no_difference():
    found = []
    for seed in range(100):
        Y, a = sample(n_rows=60, seed=2 * seed)
        ids = np.where(np.random.default_rng(seed).random((60, 1)) < 0.5, a.ids, np.roll(a.ids[:, ::-1], 1, axis=1))
        b = TopK(ids, a.scores)
        swap = np.random.default_rng(1000 + seed).random((60, 1)) < 0.5  # who is a and who is b is decided by a coin
        a, b = TopK(np.where(swap, a.ids, b.ids), a.scores), TopK(np.where(swap, b.ids, a.ids), a.scores)
        found.append(metrics.compare(Y, a, b, ks=(1,), n_bootstrap=0, n_permutations=200)["metrics"]["p@1"]["p_value"])
    assert np.mean(np.array(found) < 0.05) <= 0.12


def test_predictions_with_too_few_places_are_refused():
    Y, topk = sample(n_rows=5)
    with pytest.raises(ParameterError, match="k must be at most 2"):
        metrics.compare(Y, topk, topk.head(2))


def test_one_line_adds_a_metric(monkeypatch):
    def any_hit(judged, k):
        return judged.hits[:, :k].any(axis=1).astype(np.float64)

    monkeypatch.setitem(ROW_METRICS, "success", RowMetric((any_hit,), identity))
    monkeypatch.setitem(LABEL_METRICS, "never", lambda tested: (tested.predicted == 0).astype(np.float64))
    Y = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    topk = TopK.from_scores(np.array([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1], [0.9, 0.5, 0.1]]), k=2)
    found = metrics.evaluate(Y, topk, ks=(1, 2))["metrics"]
    assert [found[f"success@{k}"]["value"] for k in (1, 2)] == pytest.approx([1 / 3, 2 / 3])
    assert [found[f"never@{k}"]["value"] for k in (1, 2)] == pytest.approx([2 / 3, 1 / 3])
    assert metrics.compare(Y, topk, topk, ks=(2,))["metrics"]["success@2"]["difference"] == 0
    assert metrics.scorer("success@2").k == 2
