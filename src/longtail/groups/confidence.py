"""How likely labels found for rows are right: calibrated by what other groups say, without the truth of any row.

The share of a label that EAGLE gives to a row is too high where the label's vector was refined on that very row, and
where few groups have the label. So the vectors are learned again without the group (`held_out_shares`), and three
things are weighed: the share, the held-out share, and the share of the group's rows that has the label. The weights are
constants, learned by `benchmarks/groups/confidence.py` from data sets whose rows' labels are known, and tested on data
sets that they were not learned from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.groups.eagle import Eagle
from longtail.groups.grouped_rows import GroupedRows
from longtail.groups.held_out_shares import expected_rows, held_out_shares
from longtail.validate import MatrixLike, as_labels, as_rows, as_sparse, make_csr, resolve_jobs

CERTAIN = 1e-3  # no share is taken to be nearer to 0 or 1


class ConfidenceWeights(NamedTuple):
    """Weights of a logistic model: what the logit of a confidence is made of.

    Gains are logits less the logit of the group's share; the mean is over all labels found.
    """

    constant: float
    own: float  # gain of the share that EAGLE gave
    held_out: float  # gain of the share by vectors of other groups
    group: float  # logit of the share of the group's rows that has the label
    agreement: float  # held-out gain, times its mean: where other groups tell much in general, they count for more


# by how labels were assigned; see the module's docstring
WEIGHTS = {
    "auto": ConfidenceWeights(0.586, 0.09, 0.621, 1.029, 1.38),
    "published": ConfidenceWeights(0.523, 0.03, 1.302, 1.138, -0.601),
}


def calibrated_confidence(
    eagle: Eagle, X: MatrixLike, groups: MatrixLike, Y_groups: MatrixLike, seed: int
) -> sp.csr_array:
    """Return how likely each label is right that a fitted Eagle found, CSR like its `row_labels_`.

    >>> X = np.eye(2)[[0, 1] * 12]
    >>> groups, Y_groups = np.eye(12)[np.arange(24) // 2], np.ones((12, 2))
    >>> Y_groups[0, 0] = Y_groups[1, 1] = 0  # what tells the labels apart
    >>> eagle = Eagle(assign="auto").fit(X, groups, Y_groups)
    >>> calibrated_confidence(eagle, X, groups, Y_groups, seed=0).nnz == eagle.row_labels_.nnz
    True
    """
    X, groups, Y_groups = as_rows(X, "X"), as_labels(groups, "groups"), as_labels(Y_groups, "Y_groups")
    grouped, found = GroupedRows.make(X, groups, Y_groups), eagle.row_labels_
    learner = Eagle(**{**eagle.get_params(deep=False), "model": None, "rounds": 0, "folds": 2, "random_state": seed})

    def learn_vectors(rows: np.ndarray, some: np.ndarray) -> sp.csr_array:
        return learner.fit(X[rows], groups[rows][:, some], Y_groups[some]).label_vectors_

    held_out, base = held_out_shares(grouped, found, learn_vectors, seed, resolve_jobs(eagle.n_jobs))
    weights = WEIGHTS["auto" if eagle.assign == "auto" else "published"]
    chances = weigh(eagle.confidence_.data.astype(np.float64), held_out, base, weights)
    return make_csr(found.indptr, found.indices, chances.astype(np.float32), found.shape[1])


def group_shares(groups: MatrixLike, Y_groups: MatrixLike) -> sp.csr_array:
    """Return, for every label a row gets by propagation, which share of its group's rows has it, CSR.

    The greatest if it comes from several groups; if counts are not known, what is to be expected.

    >>> group_shares([[1, 0], [1, 0], [0, 1]], [[2, 1], [0, 1]]).toarray().tolist()
    [[1.0, 0.5], [1.0, 0.5], [0.0, 1.0]]
    """
    groups, Y_groups = as_labels(groups, "groups"), as_labels(Y_groups, "Y_groups")
    group_sizes = np.bincount(groups.indices, minlength=groups.shape[1])
    sizes = np.repeat(group_sizes, np.diff(Y_groups.indptr)).astype(np.float64)
    rows = Y_groups.data.astype(np.float64)
    if rows.max(initial=0) <= 1:
        times = np.bincount(Y_groups.indices, minlength=Y_groups.shape[1])[Y_groups.indices]
        rows = expected_rows(sizes, times, group_sizes)
    each = np.minimum(rows / np.maximum(sizes, 1), 1).astype(np.float32)
    share = make_csr(Y_groups.indptr, Y_groups.indices, each, Y_groups.shape[1])
    times_in = np.diff(groups.indptr)
    out = sp.csr_array((groups.shape[0], share.shape[1]), dtype=np.float32)
    for turn in range(int(times_in.max(initial=0))):  # the first group of every row, the second, ...
        has = times_in > turn
        of = make_csr(
            np.concatenate([[0], np.cumsum(has)]),
            groups.indices[groups.indptr[:-1][has] + turn],
            np.ones(int(has.sum()), dtype=np.float32),
            groups.shape[1],
        )
        out = out.maximum(of @ share)
    return as_sparse(out)


def weigh(own: np.ndarray, held_out: np.ndarray, base: np.ndarray, weights: ConfidenceWeights) -> np.ndarray:
    """Return confidences from the three shares of every label found; a label that all rows of a group have is certain.

    >>> flat = ConfidenceWeights(0, 0, 0, 1, 0)
    >>> weigh(np.array([0.9, 0.9]), np.array([0.8, 1]), np.array([0.25, 1]), flat).tolist()
    [0.25, 1.0]
    """
    own_gain, held_gain = gains_over(own, base), gains_over(held_out, base)
    slope = weights.held_out + weights.agreement * (held_gain.mean() if base.size else 0.0)
    logits = weights.constant + weights.own * own_gain + max(slope, 0.0) * held_gain + weights.group * logit(base)
    return np.where(base >= 1, 1.0, 1 / (1 + np.exp(-logits)))


def gains_over(shares: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Return by how much the logits of shares are above those of a base."""
    return logit(shares) - logit(base)


def logit(shares: np.ndarray) -> np.ndarray:
    """Return log(p / (1 - p)), finite also for 0 and 1."""
    p = np.clip(shares, CERTAIN, 1 - CERTAIN)
    return np.log(p / (1 - p))
