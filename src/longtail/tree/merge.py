"""From places in leaves to labels: the lists of several trees, or several places of a label, become one list."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.tree.chunks import Chunks
from longtail.tree.label_tree import LabelTree
from longtail.tree.merge_lists import merge_lists


def is_one_row(X: Any, n_features: int) -> bool:
    """Say whether X is one CSR row of real numbers."""
    return (
        isinstance(X, sp.csr_array | sp.csr_matrix)
        and X.shape == (1, n_features)
        and X.data.dtype.kind in "fiub"
        and X.data.size == X.indices.size
    )


def labels_of(tree: LabelTree, chunks: Chunks, children: np.ndarray) -> np.ndarray:
    """Return the labels of children of leaves; -1 stays."""
    places = children - (chunks.n_chunks - 1)
    return np.where(children >= 0, tree.leaf_labels[np.maximum(places, 0)], np.int32(-1))


def merge(ids: np.ndarray, scores: np.ndarray, shares: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Merge lists of labels: the mean of exp(score), over `shares` lists or, if 0, over the places that were found."""
    out_ids, out_scores = np.empty((ids.shape[0], k), np.int32), np.empty((ids.shape[0], k), np.float32)
    merge_lists(np.ascontiguousarray(ids, dtype=np.int32), np.ascontiguousarray(scores), shares, out_ids, out_scores)
    return out_ids, out_scores
