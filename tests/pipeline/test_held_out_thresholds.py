"""What thresholds give on held-out rows is kept in the model, and targets choose among them."""

import numpy as np
import pytest

import longtail as lt
from longtail.data import TopK
from longtail.errors import ParameterError
from longtail.model import Calibration, Cuts
from longtail.pipeline import offered_targets, threshold_facts, threshold_for


@pytest.fixture(scope="module")
def tagger():
    return lt.Tagger(random_state=0).fit_dataset(lt.data.load_bundled("debtags").take(slice(None, None, 16)))


def test_counts_are_those_of_every_pair():
    rng = np.random.default_rng(0)
    p, right = rng.random(500).astype(np.float32), rng.random(500) < 0.4
    cuts = Cuts.count(p, right, 100, 300)
    for at in (0, 1, 57, 100, 200):
        assert (
            cuts.given[at] == (p >= at / 200 - 1e-8).sum() and cuts.right[at] == (right & (p >= at / 200 - 1e-8)).sum()
        )


def test_they_are_saved_and_joined(tagger, tmp_path):
    loaded = lt.load(tagger.save(tmp_path / "m"))
    assert threshold_facts(loaded) == threshold_facts(tagger)
    cuts = tagger.model_.calibration_.cuts
    twice = tagger.model_.calibration_.joined(tagger.model_.calibration_).cuts
    assert (twice.given == 2 * cuts.given).all() and twice.n_rows == 2 * cuts.n_rows
    assert threshold_facts(tagger)["rows"] == tagger.held_out_["rows"]


def test_a_target_is_reached_on_the_rows_held_out(tagger):
    points = {point["threshold"]: point for point in threshold_facts(tagger)["points"]}
    assert points[threshold_for(tagger, "precision=0.8")]["precision"] >= 0.8
    assert points[threshold_for(tagger, "recall=0.8")]["recall"] >= 0.8
    assert points[threshold_for(tagger, "labels-per-row=3")]["labels_per_row"] <= 3
    assert threshold_for(tagger, "f1") == tagger.model_.calibration_.threshold
    assert offered_targets(tagger)[0]["name"] == "f1"
    assert "of the labels given are right" in offered_targets(tagger)[0]["sentence"]


def test_a_stored_decision_is_followed(tagger):
    rows = lt.data.load_bundled("debtags", "test").take(slice(0, 400))
    tagger = lt.Tagger(random_state=0, target="precision=0.7").fit_dataset(rows)
    assert threshold_for(tagger, "precision=0.7") == tagger.decision_.threshold
    assert threshold_facts(tagger)["default"] == tagger.decision_.threshold


@pytest.mark.parametrize("target", ["recall=1", "macro-f1@5", "macro-f1", "precission=0.8"])
def test_what_cannot_be_chosen_is_refused(tagger, target):
    with pytest.raises(ParameterError, match="target"):
        threshold_for(tagger, target)


def test_older_models_say_that_nothing_is_known():
    curve = Calibration(np.float32([0.0, 1.0]), np.float32([0.1, 0.9]), 0.5, 10)
    assert Calibration.from_part(curve.to_part()).cuts is None
    top = TopK([[0]], [[0.5]])
    assert Calibration.fit(top, np.array([[True]]), np.array([1])).cuts.given[0] == 1
