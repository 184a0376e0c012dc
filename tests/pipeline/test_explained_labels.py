"""Labels that a model does not know are refused in one sentence, whichever argument names them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from longtail.errors import ParameterError
from longtail.one_vs_all import OneVsAllClassifier
from longtail.pipeline import Tagger
from longtail.tree import LabelTreeClassifier


def bottleneck():
    pytest.importorskip("torch")
    from longtail.bottleneck import BottleneckClassifier

    return BottleneckClassifier(k=1, width=2, hidden=8, epochs=1, valid=0, device="cpu")


@pytest.fixture(scope="module", params=[LabelTreeClassifier, OneVsAllClassifier, bottleneck])
def model(request):
    Y = np.eye(4)[:, :3].repeat(5, axis=0)  # the last rows have no label
    return request.param().fit(np.eye(4).repeat(5, axis=0), np.hstack([Y, np.zeros((20, 1))]))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["fruit"], "must hold label numbers from 0 to 3; got 'fruit'."),
        ([0, 4], "must hold label numbers from 0 to 3; got 4."),
        (np.array([0, 4]), "must hold label numbers from 0 to 3; got 4."),
        ([-1], "must hold label numbers from 0 to 3; got -1."),
        ([2**40], "must hold label numbers from 0 to 3; got 1099511627776."),
        ([2**80], f"must hold label numbers from 0 to 3; got {2**80}."),
        ([1, None], "must hold label numbers from 0 to 3; got None."),
        ([True], "must hold label numbers from 0 to 3; got True."),
        ([1.0], "must hold label numbers from 0 to 3; got 1.0."),
        (2, "must be a list of label numbers from 0 to 3; got 2."),
        ("fruit", "must be a list of label numbers from 0 to 3; got 'fruit'."),
    ],
)
def test_numbers_of_no_label_are_refused(model, labels, said):
    row = np.eye(4)[:1]
    for name, ask in [
        ("labels", lambda: model.explain(row, labels)),
        ("allow", lambda: model.predict_topk(row, allow=labels)),
        ("deny", lambda: model.predict_topk(row, deny=labels)),
    ]:
        with pytest.raises(ParameterError, match=re.escape(f"{name} {said}")):
            ask()


def test_none_is_no_list_of_labels(model):
    with pytest.raises(ParameterError, match=r"labels must be a list of label numbers from 0 to 3; got None\."):
        model.explain(np.eye(4)[:1], None)


def test_a_label_without_a_training_row_is_not_explained(model):
    assert [why.label for why in model.explain(np.eye(4)[:1], [1, 0])] == [1, 0]
    with pytest.raises(ParameterError, match=r"label 3 has no training row, so there is nothing to explain\."):
        model.explain(np.eye(4)[:1], [3])


def test_a_tagger_names_the_nearest_label():
    tagger = Tagger(calibrate=0).fit(["red apple", "old car"] * 5, [["fruit"], ["vehicle"]] * 5)
    with pytest.raises(ParameterError, match=r"label must be one the model knows; got 'vehicles'\. Did you mean"):
        tagger.explain("a car", labels=["vehicles"])
