"""Trainings in given minutes, and of no epoch at all."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

from longtail.errors import ParameterError
from longtail.pipeline import folder_schemas
from longtail.prime import time_budget
from longtail.prime.estimator import Prime
from longtail.storage import load_folder

SMALL = {"width": 16, "layers": 1, "heads": 2}
WORDS = ["apple", "pear", "train", "wheel", "chess", "poker", "river", "ocean"]


def rows_of(n_rows=120, seed=0):
    rng = np.random.default_rng(seed)
    texts, Y = [], np.zeros((n_rows, len(WORDS)), dtype=np.float32)
    for row in range(n_rows):
        chosen = rng.choice(len(WORDS), size=2, replace=False)
        Y[row, chosen] = 1
        texts.append(" ".join(WORDS[i] for i in chosen) + " and" * int(rng.integers(4)))
    return texts, Y, WORDS


def prime(**params):
    settings = {"epochs": 6, "lr": 3e-3, "batch_size": 20, "device": "cpu", "random_state": 0, "n_jobs": 1, **params}
    return Prime(SMALL, "prime-lite", **settings)


def same_model(first, second):
    one, other = first.to_part().arrays, second.to_part().arrays
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


class Clock:
    """A clock on which a step takes a second and all else nothing."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        original = torch.optim.AdamW.step

        def step(optimizer, *given):
            self.now += 1.0
            return original(optimizer, *given)

        monkeypatch.setattr(torch.optim.AdamW, "step", step)
        monkeypatch.setattr(time_budget.time, "perf_counter", lambda: self.now)


def test_as_many_epochs_as_fit_are_trained_and_told(monkeypatch, tmp_path):
    Clock(monkeypatch)
    model = prime(minutes=24 / 60, validation=0.0).fit(*rows_of())  # 6 steps an epoch; some seconds go into timing
    budget = model.budget_
    assert budget["epochs"] == len(model.history_) == 3
    assert budget["epochs_asked"] == 6
    assert budget["minutes"] == pytest.approx(24 / 60)
    assert budget["minutes_used"] <= 24 / 60
    assert model.effective_params()["epochs"] == 3
    assert model.describe()["budget"] == budget
    same_model(model, prime(epochs=3).fit(*rows_of()))  # timing has left nothing behind
    part = load_folder(model.save(tmp_path / "model"), folder_schemas()).parts["model"]
    assert Prime.from_part(part).budget_ == budget
    assert Prime.describe_saved(part)["encoder_model"]["epochs"] == "3 of 6, as fitted 0.4 minutes"


@pytest.mark.parametrize(("minutes", "epochs"), [(1e-9, 1), (1e6, 6)])
def test_at_least_one_epoch_and_at_most_all(monkeypatch, minutes, epochs):
    Clock(monkeypatch)
    model = prime(minutes=minutes, accumulate=2).fit(*rows_of())
    assert len(model.history_) == epochs
    same_model(model, prime(epochs=epochs, accumulate=2).fit(*rows_of()))


def test_a_resumed_training_keeps_its_plan(monkeypatch, tmp_path):
    clock = Clock(monkeypatch)
    expected = prime(epochs=3).fit(*rows_of())

    def stop(done, total):
        if done == 8:
            raise KeyboardInterrupt

    settings = {"minutes": 24 / 60, "checkpoint": tmp_path, "checkpoint_minutes": 0.0}
    with pytest.raises(KeyboardInterrupt):
        prime(**settings).fit(*rows_of(), progress=stop)
    before = clock.now
    model = prime(**settings).fit(*rows_of())
    assert clock.now - before == 18 - 7  # nothing is timed again
    same_model(model, expected)
    assert model.budget_["epochs"] == 3


def test_without_an_epoch_the_encoder_stays_as_it_is(tmp_path):
    texts, Y, names = rows_of()
    model = prime(epochs=0, tree=True).fit(texts, Y, names)
    assert model.history_ == []
    folder = model.save(tmp_path / "model")
    loaded = Prime.from_part(load_folder(folder, folder_schemas()).parts["model"])
    np.testing.assert_array_equal(loaded.predict_topk(texts, k=3).ids, model.predict_topk(texts, k=3).ids)
    alone = prime(epochs=0).fit(texts, Y, names)
    assert alone.score(texts, Y) > 0.5  # chance is 0.25: even random vectors of words tell texts apart
    again = prime(epochs=0, classifier=True, fusion=1.0).fit(texts, Y, names)
    np.testing.assert_array_equal(again.encode(texts[:3]), alone.encode(texts[:3]))
    assert again.score(texts, Y) > 0.5
    for preset in ("prime-lite", "dexa", "ngame"):  # without vectors that nothing has trained
        assert prime(epochs=0).set_params(preset=preset).fit(texts, Y, names).network_.free is None
    with pytest.raises(ParameterError, match="warm_start must be True with epochs=0"):
        prime(epochs=0, warm_start=False).fit(texts, Y, names)


def test_minutes_that_cannot_be():
    for minutes in (0, -1, float("nan"), "long"):
        with pytest.raises(ParameterError, match="minutes must be a number"):
            prime(minutes=minutes).fit(*rows_of())
    with pytest.warns(UserWarning, match="minutes=5 has no effect with epochs=0"):
        prime(minutes=5, epochs=0).fit(*rows_of())
