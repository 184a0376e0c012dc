"""A parameter that was set and has no effect beside the others is told in one sentence, and so is one of `impute`."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import longtail as lt
from longtail.errors import ParameterError
from longtail.groups import Eagle
from longtail.model import clone
from longtail.one_vs_all import OneVsAllClassifier
from longtail.pipeline import impute
from longtail.tree import LabelTree, LabelTreeClassifier

SAVED = Path(__file__).parents[1] / "storage" / "saved"
X, GROUPS = np.eye(4).repeat(2, axis=0), np.eye(4).repeat(2, axis=0)
TEXTS, OF, TAGS = ["red apple", "fast car"], ["1", "2"], {"1": ["fruit"], "2": ["vehicle"]}


def networks():
    pytest.importorskip("torch")
    from longtail.bottleneck import BottleneckClassifier
    from longtail.groups import MIMLClassifier

    return BottleneckClassifier, MIMLClassifier


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"split_positives": True}, "split_positives=True has no effect without overlap."),
        ({"keep_leaf": True}, "keep_leaf=True has no effect without overlap."),
        ({"slot_rows": 3}, "slot_rows=3 has no effect without overlap."),
    ],
)
def test_settings_of_overlap_without_overlap(params, sentence):
    with pytest.warns(UserWarning, match=f"^{re.escape(sentence)}$"):
        LabelTreeClassifier(max_leaf=2, **params).fit(X, GROUPS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelTreeClassifier(max_leaf=2, overlap=2, **params).fit(X, GROUPS)
        LabelTreeClassifier(max_leaf=2, rounds=1, **params).fit(X, GROUPS)
        LabelTreeClassifier.published(overlap=1, rounds=None, max_leaf=2).fit(X, GROUPS)


def test_label_vectors_are_not_asked_for_beside_a_tree():
    with pytest.raises(ParameterError, match=r"label_vectors have no effect where a tree is given"):
        LabelTreeClassifier().fit(X, GROUPS, tree=LabelTree.from_clusters([0, 0, 1, 1]), label_vectors=np.eye(4))


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"assign": "auto", "step": 0.2}, "step=0.2 has no effect with assign='auto'."),
        ({"negatives": True, "step": 0.2}, "step=0.2 has no effect with negatives=True."),
        ({"folds": 3}, "folds=3 has no effect with rounds=0."),
        ({"model": OneVsAllClassifier()}, "model=OneVsAllClassifier() has no effect with rounds=0."),
    ],
)
def test_settings_of_eagle(params, sentence):
    with pytest.warns(UserWarning, match=f"^{re.escape(sentence)}$"):
        Eagle(**params).fit(X, GROUPS, np.eye(4))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"head": "bottleneck", "spacing": "learned"}, "spacing='learned' has no effect with head='bottleneck'."),
        ({"head": "bottleneck", "arithmetic": "float64"}, "arithmetic='float64' has no effect with head='bottleneck'."),
        ({"encoder": "linear", "dropout": 0.1}, "dropout=0.1 has no effect with encoder='linear'."),
        ({"valid": 0, "patience": 3}, "patience=3 has no effect with valid=0."),
        ({"checkpoint_minutes": 1.0}, "checkpoint_minutes=1.0 has no effect without checkpoint."),
    ],
)
def test_settings_of_networks(params, sentence):
    model = networks()[0](**{"epochs": 1, "hidden": 8, "width": 2, "device": "cpu", **params})
    with pytest.warns(UserWarning, match=f"^{re.escape(sentence)}$"):
        model.fit(X, GROUPS)


@pytest.mark.torch
def test_validation_rows_that_are_given_make_patience_count():
    model = networks()[0](k=1, epochs=1, hidden=8, width=2, valid=0, patience=3, device="cpu")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*no effect.*")
        warnings.filterwarnings("ignore", message="the network is no better")
        model.fit(X, GROUPS, X_valid=X, Y_valid=GROUPS)


@pytest.mark.torch
@pytest.mark.parametrize("params", [{"mask": "none", "learn_vectors": True}, {"tau": 0, "learn_vectors": True}])
def test_settings_of_a_mask_without_one(params):
    with pytest.warns(UserWarning, match=r"^learn_vectors=True has no effect with (mask='none'|tau=0)\.$"):
        networks()[1](concepts=1, hidden=4, epochs=1, device="cpu", **params).fit(X, GROUPS, np.eye(4))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"assign": "propagate", "rounds": 1}, "rounds has no effect with assign='propagate', which learns nothing."),
        ({"assign": "propagate", "n_iter": 3}, "n_iter has no effect with assign='propagate', which learns nothing."),
        ({"model": OneVsAllClassifier()}, "model has no effect with rounds=0: it is never asked."),
    ],
)
def test_settings_of_impute_that_do_nothing_are_refused(settings, sentence):
    with pytest.raises(ParameterError, match=f"^{re.escape(sentence)}$"):
        impute(TEXTS, OF, TAGS, **settings)


def test_a_model_saved_before_these_settings_existed_trains_again_without_a_word():
    old = lt.load(SAVED / "tree")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(getattr(old, "model_", old)).fit(X, GROUPS)
