"""Put rows with known labels into groups and count the labels of the groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.errors import ParameterError
from longtail.kernels import compact_rows, split_rows, unit_scales
from longtail.validate import (
    MatrixLike,
    RandomState,
    as_labels,
    as_rows,
    as_sparse,
    check_integer,
    check_real,
    check_same_rows,
    make_csr,
    resolve_seed,
)

MAX_ITER = 20
NOISE_FEATURES = 16


class Grouped(NamedTuple):
    """The groups of the rows, and how often each group has each label."""

    groups: sp.csr_array  # (n_rows, n_groups), ones
    Y_groups: sp.csr_array  # (n_groups, n_labels), counts


def group_randomly(Y: MatrixLike, size: int, random_state: RandomState = None) -> Grouped:
    """Put rows into random groups of one size; the last group has the rest.

    Parameters
    ----------
    Y : matrix of shape (n_rows, n_labels)
        The labels of the rows.
    size : int
        Rows of a group.
    random_state : int, numpy generator or None, default=None
        The seed; None means 0.

    Returns
    -------
    grouped : Grouped
        `groups` (n_rows, n_groups) and `Y_groups` (n_groups, n_labels), counts.

    Examples
    --------
    >>> grouped = group_randomly([[1, 0], [1, 0], [0, 1]], size=2)
    >>> grouped.groups.shape, float(grouped.Y_groups.sum())
    ((3, 2), 3.0)
    """
    Y = as_labels(Y, "Y")
    check_same_rows(Y, Y, "Y", "Y")
    n_rows = Y.shape[0]
    size = check_integer("size", size, low=1, high=n_rows)
    of = np.empty(n_rows, dtype=np.int32)
    of[np.random.default_rng(resolve_seed(random_state)).permutation(n_rows)] = np.arange(n_rows) // size
    return _make_grouped(of, -(-n_rows // size), Y)


def group_by_clusters(
    X: MatrixLike, Y: MatrixLike, depth: int, noise: float = 0.0, random_state: RandomState = None
) -> Grouped:
    """Put rows into `2**depth` groups of similar rows, by 2-means with halves of equal size.

    Parameters
    ----------
    X : matrix of shape (n_rows, n_features)
        The rows.
    Y : matrix of shape (n_rows, n_labels)
        Their labels.
    depth : int
        How often the rows are divided.
    noise : float, default=0.0
        The share of random numbers mixed into the rows while they are clustered: groups pass from clusters (0) to
        random (1).
    random_state : int, numpy generator or None, default=None
        The seed; None means 0.

    Returns
    -------
    grouped : Grouped
        `groups` (n_rows, n_groups) and `Y_groups` (n_groups, n_labels), counts.

    Examples
    --------
    >>> X, Y = [[1, 0], [0, 1], [1, 0.1], [0.1, 1]], [[1], [0], [1], [0]]
    >>> group_by_clusters(X, Y, depth=1).Y_groups.toarray().max()
    np.float32(2.0)
    """
    X, Y = as_sparse(as_rows(X, "X")), as_labels(Y, "Y")
    check_same_rows(X, Y)
    depth = check_integer("depth", depth, low=0)
    if depth > 40 or 2**depth > X.shape[0]:
        raise ParameterError(
            name="depth", problem=f"must leave every group a row, 2**depth <= {X.shape[0]}; got {depth}."
        )
    noise = check_real("noise", noise, low=0, high=1)
    rng = np.random.default_rng(resolve_seed(random_state))
    if noise:
        X = _with_noise(X, noise, rng)
    scale = np.empty(X.shape[0], dtype=np.float64)
    indptr = X.indptr.astype(np.int64, copy=False)
    unit_scales(indptr, X.data, scale)
    local = np.full(X.shape[1], -1, dtype=np.int32)
    nodes = [np.arange(X.shape[0], dtype=np.int32)]
    for _ in range(depth):
        halves = []
        for node in nodes:
            right = _split_in_halves(indptr, X.indices, X.data, scale, node, local, rng)
            halves += [node[right == 0], node[right == 1]]
        nodes = halves
    of = np.empty(X.shape[0], dtype=np.int32)
    for number, node in enumerate(nodes):
        of[node] = number
    return _make_grouped(of, len(nodes), Y)


def count_labels(groups: MatrixLike, Y: MatrixLike) -> sp.csr_array:
    """Return how many rows of each group have each label.

    Parameters
    ----------
    groups : matrix of shape (n_rows, n_groups)
        Not zero where a row is in a group.
    Y : matrix of shape (n_rows, n_labels)
        Not zero where a row has a label.

    Returns
    -------
    Y_groups : csr_array of shape (n_groups, n_labels)

    Examples
    --------
    >>> count_labels([[1, 0], [1, 0], [0, 1]], [[1, 1], [1, 0], [0, 1]]).toarray().tolist()
    [[2.0, 1.0], [0.0, 1.0]]
    """
    groups, Y = as_labels(groups, "groups"), as_labels(Y, "Y")
    check_same_rows(groups, Y, "groups", "Y")
    member, has = (make_csr(M.indptr, M.indices, np.ones_like(M.data), M.shape[1]) for M in (groups, Y))
    return as_sparse(sp.csr_array(member.T) @ has)


def _make_grouped(of: np.ndarray, n_groups: int, Y: sp.csr_array) -> Grouped:
    groups = make_csr(np.arange(of.size + 1), of, np.ones(of.size, dtype=np.float32), n_groups)
    return Grouped(groups, count_labels(groups, Y))


def _split_in_halves(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    scale: np.ndarray,
    rows: np.ndarray,
    local: np.ndarray,  # all -1, and so again after
    rng: np.random.Generator,
) -> np.ndarray:
    """Return 1 for the rows of the right half, uint8."""
    capacity = int((indptr[rows + 1] - indptr[rows]).sum())
    own_indptr, ids = np.empty(rows.size + 1, dtype=np.int64), np.empty(capacity, dtype=np.int32)
    values, features = np.empty(capacity, dtype=np.float32), np.empty(min(capacity, local.size), dtype=np.int32)
    n = compact_rows(indptr, indices, data, scale, rows, local, True, 0, own_indptr, ids, values, features)
    local[features[:n]] = -1
    first, second = rng.choice(rows.size, size=2, replace=False)
    right = np.empty(rows.size, dtype=np.uint8)
    split_rows(own_indptr, ids, values, first, second, MAX_ITER, np.empty(n, dtype=np.float32), right)
    return right


def _with_noise(X: sp.csr_array, noise: float, rng: np.random.Generator) -> sp.csr_array:
    """Return unit rows beside random unit vectors, in the shares 1 - noise and noise of the squared length."""
    random = rng.standard_normal((X.shape[0], NOISE_FEATURES)).astype(np.float32)
    random *= np.sqrt(noise) / np.linalg.norm(random, axis=1, keepdims=True)
    scale = np.empty(X.shape[0], dtype=np.float64)
    unit_scales(X.indptr.astype(np.int64, copy=False), X.data, scale)
    data = X.data * np.repeat(scale * np.sqrt(1 - noise), np.diff(X.indptr)).astype(np.float32)
    return as_sparse(sp.hstack([make_csr(X.indptr, X.indices, data, X.shape[1]), sp.csr_array(random)], format="csr"))
