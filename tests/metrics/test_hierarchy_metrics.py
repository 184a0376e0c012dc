"""Metrics with partial credit for broader and narrower concepts, against sets in plain Python."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import TopK
from longtail.errors import DataError
from longtail.metrics import compare, evaluate
from longtail.vocabulary import Concept, Vocabulary

TREE = {"root": (), "animals": ("root",), "cats": ("animals",), "dogs": ("animals", "pets"), "pets": (), "cars": ()}
VOCABULARY = Vocabulary([Concept(id, broader=above) for id, above in TREE.items()])
LABELS = ["cats", "dogs", "animals", "cars", "stranger"]


def up_plain(labels):
    out = set(labels)
    for label in labels:
        out |= up_plain(TREE.get(label, ()))
    return out


def metrics_plain(true, predicted):
    shared = sum(len(up_plain(t) & up_plain(p)) for t, p in zip(true, predicted, strict=True))
    n_predicted, n_true = (sum(len(up_plain(s)) for s in sets) for sets in (predicted, true))
    return [
        a / b if b else 0.0 for a, b in ((shared, n_predicted), (shared, n_true), (2 * shared, n_predicted + n_true))
    ]


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.sets(st.integers(0, 4)), st.permutations(range(5))), min_size=1, max_size=8),
)
def test_sets_with_all_that_stands_above(k, rows):
    Y = np.zeros((len(rows), 5))
    for row, (true, _) in enumerate(rows):
        Y[row, list(true)] = 1
    ids = np.array([order[:3] for _, order in rows], dtype=np.int32)
    ids[0, 1:] = -1  # missing predictions
    top = TopK(ids, np.zeros(ids.shape, dtype=np.float32))
    facts = evaluate(Y, top, ks=(k,), ancestors=VOCABULARY.ancestors(LABELS), n_bootstrap=0)["metrics"]
    true = [{LABELS[i] for i in labels} for labels, _ in rows]
    predicted = [{LABELS[i] for i in row[:k] if i >= 0} for row in ids]
    assert [facts[f"{m}@{k}"]["value"] for m in ("hp", "hr", "hf1")] == pytest.approx(metrics_plain(true, predicted))


def test_a_narrower_concept_gets_part_of_the_credit():
    top = TopK(np.array([[0]], np.int32), np.zeros((1, 1), np.float32))  # cats, for dogs
    facts = evaluate([[0, 1, 0, 0, 0]], top, ks=(1,), ancestors=VOCABULARY.ancestors(LABELS))["metrics"]
    assert facts["p@1"]["value"] == 0
    assert facts["hp@1"]["value"] == pytest.approx(2 / 3)  # animals and root, of cats, animals and root
    assert facts["hr@1"]["value"] == pytest.approx(2 / 4)  # dogs, animals, root and pets
    assert facts["hf1@1"]["low"] <= facts["hf1@1"]["value"] <= facts["hf1@1"]["high"]


def test_compare_has_them_and_plain_evaluations_do_not():
    top = TopK(np.array([[0]], np.int32), np.zeros((1, 1), np.float32))
    assert "hp@1" in compare([[0, 1, 0, 0, 0]], top, top, ks=(1,), ancestors=VOCABULARY.ancestors(LABELS))["metrics"]
    assert "hp@1" not in evaluate([[0, 1, 0, 0, 0]], top, ks=(1,))["metrics"]
    with pytest.raises(DataError, match="ancestors must be a sparse matrix with one row per label"):
        evaluate([[0, 1]], top, ks=(1,), ancestors=sp.csr_array((3, 3)))
