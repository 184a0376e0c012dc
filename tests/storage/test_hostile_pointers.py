"""Pointers that only seem to ascend, since differences of int64 wrap around, are refused before they are followed."""

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.errors import DataError, ModelError
from longtail.storage import Part, pack_csr, pack_strings, unpack_csr, unpack_strings
from longtail.text import TfidfFeatures
from longtail.tree import LabelTree

HUGE = 2**63 - 1
EYE = np.eye(40, dtype=np.float32)


def test_wrapped_pointers_of_one_vs_all_are_refused(tmp_path):
    model = lt.OneVsAllClassifier().fit(EYE, EYE)
    model.weights_.indptr[10:12] = HUGE, -2
    model.save(tmp_path / "m")
    with pytest.raises(ModelError, match="weights"):
        lt.load(tmp_path / "m")


@pytest.mark.parametrize("name", ["child_indptr", "line_indptr"])
def test_wrapped_pointers_of_a_tree_are_refused(tmp_path, name):
    model = lt.LabelTreeClassifier(max_leaf=4, branching=4).fit(EYE, EYE)
    getattr(model.chunks_[0], name)[2:4] = HUGE, -2
    model.save(tmp_path / "m")
    with pytest.raises(ModelError, match="label-tree"):
        lt.load(tmp_path / "m")


def test_wrapped_leaves_of_a_tree_are_refused():
    labels = np.arange(6)
    with pytest.raises(DataError, match="leaf_indptr must ascend from 0"):
        LabelTree((np.zeros(4, np.int32),), np.array([0, HUGE, -2, 4, 6]), labels, 6)


@pytest.mark.parametrize("offsets", [[0, HUGE, -2, 17], [0, 2**64 - 1, 5, 17], [0, 5, 5, 17], [0, 5, 8, 18]])
def test_wrapped_offsets_of_a_vocabulary_are_refused(offsets):
    part = TfidfFeatures(ngrams=(1, 2)).fit(["red apple"] * 2).to_part()
    dtype = np.uint64 if max(offsets) > HUGE else np.int64
    arrays = {**part.arrays, "vocabulary.offsets": np.array(offsets, dtype=dtype)}
    with pytest.raises(ModelError, match="offsets"):
        TfidfFeatures.from_part(Part(part.kind, part.params, arrays))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("indptr", np.array([0, HUGE, -2, 3])),
        ("indptr", np.array([0, 3, 1, 3], dtype=np.uint64)),
        ("indptr", np.array([0.0, 1.0, 2.0, 3.0])),
        ("indptr", np.array([[0, 1, 2, 3]])),
        ("indices", np.array([0, 1, 2], dtype=np.int64)),
        ("indices", np.array([0, 1, 7], dtype=np.int32)),
        ("data", np.array([1, 2, 3])),
        ("shape", np.array([3, 3, 3])),
        ("shape", np.array([3.0, 3.0])),
        ("shape", np.array([3, 2**40])),
    ],
)
def test_a_sparse_matrix_must_be_of_the_right_kind(name, value):
    part = Part("t.v1", {}, pack_csr("M", sp.csr_array(np.eye(3, dtype=np.float32))))
    assert unpack_csr("M", part).nnz == 3
    part.arrays[f"M.{name}"] = value
    with pytest.raises(ModelError, match="the sparse matrix 'M'"):
        unpack_csr("M", part)


@pytest.mark.parametrize("offsets", [np.array([0, 2**64 - 1, 2], np.uint64), np.array([0, HUGE, -2, 2]), np.array([])])
def test_strings_need_ascending_offsets(offsets):
    part = Part("t.v1", {}, {**pack_strings("s", ["a", "b"]), "s.offsets": offsets})
    with pytest.raises(ModelError, match="the strings 's'"):
        unpack_strings("s", part)
