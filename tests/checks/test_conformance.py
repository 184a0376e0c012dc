"""Every estimator passes every check; both are found, not listed."""

import numpy as np
import pytest

from longtail.checks import CHECKS, CheckFailed, all_estimators, check_estimator
from longtail.checks.estimators import check_deterministic, check_topk
from longtail.data import TopK
from longtail.one_vs_all import OneVsAllClassifier


@pytest.mark.parametrize("kind", all_estimators(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(kind, check):
    check(kind())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance_of_the_logistic_loss(check):
    check(OneVsAllClassifier(loss="logistic", C=10))


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
