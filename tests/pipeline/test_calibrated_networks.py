"""A Tagger's calibration and its held-out figures belong to the network that it keeps."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

from longtail.bottleneck import BottleneckClassifier
from longtail.data import binary_hits, load_bundled
from longtail.metrics import precision_at_k
from longtail.pipeline import Tagger, plan_training
from longtail.pipeline.held_out import hold_out
from longtail.prime import Prime


@pytest.fixture(scope="module")
def rows():
    return load_bundled("debtags").take(slice(0, 300))


def few_epochs(method):
    """Networks that were trained for a few steps only, whose scores differ much from one training to the next."""
    if method == "prime":
        pytest.importorskip("transformers")
        sizes = {"width": 32, "layers": 1, "heads": 2}
        return Prime(sizes, epochs=1, lr=3e-3, batch_size=30, max_length=16, device="cpu", n_jobs=1)
    return BottleneckClassifier(head=method, epochs=5, k=5, width=8, device="cpu", n_jobs=1)


@pytest.mark.parametrize("method", ["dft", "bottleneck", "prime"])
def test_held_out_figures_and_probabilities_are_those_of_the_kept_network(method, rows):
    tagger = Tagger(model=few_epochs(method), random_state=1).fit_dataset(rows)
    _, test = hold_out(rows.Y, tagger.calibrate, seed=1)
    top, Y = tagger.predict_topk([rows.texts[i] for i in test], k=20), rows.Y[test]
    for k in (1, 3, 5):
        assert tagger.held_out_["metrics"][f"p@{k}"]["value"] == pytest.approx(precision_at_k(Y, top, k))
    said, right = tagger.model_.probabilities(top).scores, binary_hits(top, Y)
    assert said.max() > 0 and said.mean() == pytest.approx(right.mean(), abs=0.05)
    assert tagger.model_.n_rows_ == rows.n_rows - test.size


def test_a_network_is_planned_to_be_trained_once(rows):
    tagger = Tagger(model=few_epochs("dft"), random_state=0)
    facts = plan_training(rows, tagger)
    assert (facts["trainings"], facts["calibration_rows"]) == (1, 30)
    assert plan_training(rows, Tagger(random_state=0), probe=False)["trainings"] == 2
    assert plan_training(rows, Tagger(calibrate=0, random_state=0), probe=False)["trainings"] == 1


def test_where_no_prediction_was_right_no_label_is_given(rows):
    model = few_epochs("dft").fit(np.eye(4).repeat(10, axis=0), np.eye(4).repeat(10, axis=0))
    never_right = np.zeros((4, 4))
    never_right[np.arange(4), model.predict_topk(np.eye(4), k=4).ids[:, 3]] = 1
    model.calibrate(np.eye(4), never_right, k=3)
    assert model.predict_proba(np.eye(4), k=3).max() == 0
    assert model.predict(np.eye(4), k=3).nnz == 0
