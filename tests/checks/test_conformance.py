"""Every estimator passes every check; both are found, not listed."""

import numpy as np
import pytest

from longtail.checks import CheckFailed, all_estimators, check_estimator, checks_of
from longtail.checks.estimators import check_parameters_after_fit
from longtail.checks.row_classifiers import check_deterministic, check_topk
from longtail.data import TopK, make_topics
from longtail.one_vs_all import OneVsAllClassifier
from longtail.pipeline import MODELS, Tagger, load
from longtail.text import TfidfFeatures


def checks(*estimators):
    return [
        pytest.param(check, id=f"{type(estimator).__name__}-{name}")
        for estimator in estimators
        for name, check in checks_of(estimator).items()
    ]


@pytest.mark.parametrize("check", checks(*(kind.small() for kind in all_estimators())))
def test_conformance(check):
    check()


@pytest.mark.parametrize("check", checks(OneVsAllClassifier(loss="logistic", C=10)))
def test_conformance_of_the_logistic_loss(check):
    check()


def numpy_value(value):
    """Return a parameter as numpy has it."""
    if isinstance(value, dict):
        return {name: numpy_value(inner) for name, inner in value.items()}
    return np.array(value)[()] if isinstance(value, bool | int | float) else value


@pytest.mark.parametrize(
    ("kind", "make"),
    [*((kind, np.random.default_rng) for kind in all_estimators()), (OneVsAllClassifier, np.random.RandomState)],
)
def test_parameters_of_numpy_and_random_generators_are_saved(kind, make, tmp_path):
    model = kind.small()
    given = {name: numpy_value(value) for name, value in model.get_params(deep=False).items()}
    model.set_params(**{**given, "random_state": make(0)})
    data = make_topics(60, 6, random_state=0)[0]
    rows = np.arange(60)
    model.fit_dataset(data, features=None if model.reads_texts else TfidfFeatures(), split=(rows[10:], rows[:10]))
    loaded = load(model.save(tmp_path / "m"))
    assert loaded.saved_params() == model.saved_params() and loaded.random_state is None


def test_a_tagger_of_a_random_generator_is_saved_with_the_seed_that_was_drawn(tmp_path):
    data = make_topics(60, 6, random_state=0)[0]
    generator = np.random.default_rng(0)
    tagger = Tagger(random_state=generator, calibrate=np.float32(0.25)).fit_dataset(data)
    before = generator.bit_generator.state
    first, again = (load(tagger.save(tmp_path / name)) for name in "ab")
    assert generator.bit_generator.state == before
    assert first.random_state == again.random_state == np.random.default_rng(0).integers(2**31 - 1)


def test_every_model_is_checked():
    pytest.importorskip("torch")
    assert {kind.__name__ for kind in all_estimators()} == {
        *("BottleneckClassifier", "Hybrid", "LabelTreeClassifier", "MIMLClassifier", "OneVsAllClassifier", "Prime")
    }
    assert [kind.kind for kind in all_estimators()] == list(MODELS)


def test_the_checks_find_a_model_that_is_not_deterministic():
    class Moody(OneVsAllClassifier):
        moods = 0

        def fit(self, X, Y, progress=None):
            super().fit(X, Y)
            Moody.moods += 1
            self.bias_ = self.bias_ + np.float32(Moody.moods)
            return self

    with pytest.raises(CheckFailed, match="'bias' must not vary between runs"):
        check_deterministic(Moody())


def test_the_checks_find_a_model_that_repeats_a_label():
    class Stutterer(OneVsAllClassifier):
        def predict_topk(self, X, k=5):
            top = super().predict_topk(X, k)
            return TopK(np.zeros_like(top.ids), np.zeros_like(top.scores))

    with pytest.raises(CheckFailed, match="a label must not come twice"):
        check_topk(Stutterer())
    with pytest.raises(CheckFailed):
        check_estimator(Stutterer())


def test_the_checks_find_a_parameter_that_is_read_and_not_checked():
    class Careless(OneVsAllClassifier):
        def predict_topk(self, X, k=5, *, allow=None, deny=None):
            top = super().predict_topk(X, k, allow=allow, deny=deny)
            return top if self.max_iter == 100 else TopK(top.ids, top.scores - 1)

    with pytest.raises(CheckFailed, match="max_iter must wait for the next fit"):
        check_parameters_after_fit(Careless())
