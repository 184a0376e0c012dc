"""Order of labels on the circle of a DFT output layer: labels that occur together become neighbours.

A layer with k frequencies can produce every set that forms at most k runs of neighbours on the circle, and the fewer
runs a set forms, the larger the region of inputs that produces it. A set has as many runs as labels, less one for each
pair of neighbours that are both in it. So the order that needs fewest runs is the tour through all labels with the
largest sum of co-occurrences between neighbours: a travelling salesman's problem. Tours are started by greedy linking
or by two eigenvectors, then improved by local moves (`circular_tour`).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from longtail.bottleneck.circular_tour import improve_tour, link_edges, walk_paths
from longtail.validate import MatrixLike, RandomState, as_labels, check_choice, resolve_seed

ORDER_METHODS = ("greedy", "spectral")
NEAR = 16  # partners of a label that local moves try
ROUNDS = 50
LONGEST_ROW = 1000  # a row of m labels has m * m pairs; longer rows say little about who belongs together
SMALL = 8  # parts of the graph too small for eigenvectors


def circle_order(Y: MatrixLike, method: str = "greedy", random_state: RandomState = 0) -> np.ndarray:
    """Return the position of each label on the circle, for `DFTOutput(order=...)`.

    Labels that never occur together with another come last.

    Parameters
    ----------
    Y : array-like or sparse matrix of shape (n_rows, n_labels)
        Label sets of training rows; only which labels a row has counts.
    method : {"greedy", "spectral"}, default="greedy"
        Start of the search: "greedy" links the pairs that occur together most often; "spectral" takes the angle that
        two eigenvectors of the normalised co-occurrences give.
    random_state : int, Generator or RandomState, default=0
        Start of the eigenvectors; the greedy order does not depend on it.

    Returns
    -------
    order : ndarray of int32 of shape (n_labels,)
        A permutation of 0..n_labels-1.

    >>> Y = [[1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 0]]
    >>> circle_order(Y).tolist()
    [0, 2, 3, 1, 4]
    """
    Y = as_labels(Y, "Y")
    check_choice("method", method, ORDER_METHODS)
    seed = resolve_seed(random_state)
    C = co_occurrence(Y)
    joined = np.flatnonzero(np.diff(C.indptr)).astype(np.int32)
    alone = np.flatnonzero(np.diff(C.indptr) == 0)
    C = sp.csr_array(C[joined][:, joined])
    C.sort_indices()
    tour = _greedy(C) if method == "greedy" else _spectral(C, seed)
    improve_tour(C.indptr.astype(np.int64), C.indices, C.data, heaviest_partners(C), tour, ROUNDS)
    labels = np.concatenate([joined[_opened(C, tour)], alone])
    order = np.empty(Y.shape[1], dtype=np.int32)
    order[labels] = np.arange(labels.size, dtype=np.int32)
    return order


def count_runs(Y: MatrixLike, order: np.ndarray | None = None) -> np.ndarray:
    """Return how many runs of neighbours the labels of each row form on the circle: int64 (n_rows,).

    >>> count_runs([[1, 1, 0, 0, 1], [1, 0, 1, 0, 0]]).tolist()
    [1, 2]
    """
    Y = as_labels(Y, "Y")
    n = Y.shape[1]
    positions = Y.indices.astype(np.int64) if order is None else np.asarray(order, dtype=np.int64)[Y.indices]
    sizes = np.diff(Y.indptr).astype(np.int64)
    rows = np.repeat(np.arange(Y.shape[0]), sizes)
    keys = np.sort(rows * n + positions)
    together = np.zeros(Y.shape[0], dtype=np.int64)
    beside = np.flatnonzero((np.diff(keys) == 1) & (np.diff(keys // n) == 0)) if keys.size else keys
    np.add.at(together, keys[beside] // n, 1)
    first = keys[np.searchsorted(keys, np.arange(Y.shape[0]) * n)[sizes > 0]] % n if keys.size else keys
    last = keys[(np.searchsorted(keys, (np.arange(Y.shape[0]) + 1) * n) - 1)[sizes > 0]] % n if keys.size else keys
    together[sizes > 0] += (first == 0) & (last == n - 1) & (sizes[sizes > 0] < n) & (n > 1)
    return sizes - together


def co_occurrence(Y: sp.csr_array) -> sp.csr_array:
    """Return how many rows have both labels of each pair, int64 CSR, without the diagonal."""
    sizes = np.diff(Y.indptr)
    Y = sp.csr_array(Y[sizes <= LONGEST_ROW]) if sizes.max(initial=0) > LONGEST_ROW else Y
    ones = sp.csr_array((np.ones(Y.nnz, dtype=np.int64), Y.indices, Y.indptr), shape=Y.shape)
    C = sp.csr_array(ones.T @ ones)
    C.setdiag(0)
    C.eliminate_zeros()
    C.sort_indices()
    return C


def _pairs(C: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the two labels and the weight of every entry."""
    rows = np.repeat(np.arange(C.shape[0], dtype=np.int32), np.diff(C.indptr))
    return rows, C.indices.astype(np.int32, copy=False), C.data


def _greedy(C: sp.csr_array) -> np.ndarray:
    """Return a tour that links the heaviest pairs first."""
    rows, columns, weights = _pairs(C)
    upper = np.flatnonzero(rows < columns)
    upper = upper[np.argsort(-weights[upper], kind="stable")]
    beside = np.full((C.shape[0], 2), -1, dtype=np.int32)
    link_edges(rows[upper], columns[upper], beside)
    tour = np.empty(C.shape[0], dtype=np.int32)
    walk_paths(beside, tour)
    return tour


def _spectral(C: sp.csr_array, seed: int) -> np.ndarray:
    """Return a tour through one connected part of the graph after another, each in order of angle."""
    n_parts, part = connected_components(C, directed=False)
    groups = np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part, minlength=n_parts))[:-1])
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [np.empty(0, dtype=np.int64), *(group[_by_angle(sp.csr_array(C[group][:, group]), rng)] for group in groups)]
    ).astype(np.int32)


def _by_angle(C: sp.csr_array, rng: np.random.Generator) -> np.ndarray:
    """Return one connected part in the order of the angle of its second and third eigenvector."""
    if C.shape[0] < SMALL:
        return np.arange(C.shape[0])
    scale = sp.diags_array(1 / np.sqrt(C.sum(axis=1)))
    A = scale @ C.astype(np.float64) @ scale
    start = rng.uniform(0.5, 1.5, C.shape[0])
    try:
        values, vectors = eigsh(A, k=3, which="LA", v0=start, tol=1e-4, maxiter=2000)
    except ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
        if values.size < 3:
            return np.arange(C.shape[0])
    second, third = vectors[:, np.argsort(-values)[1:3]].T
    return np.argsort(np.arctan2(third, second), kind="stable")


def heaviest_partners(C: sp.csr_array) -> np.ndarray:
    """Return the heaviest partners of each label, heaviest first, -1 where there are fewer: (n, NEAR) int32."""
    rows, columns, weights = _pairs(C)
    by_weight = np.lexsort((columns, -weights, rows))
    rank = np.arange(C.nnz) - np.repeat(C.indptr[:-1], np.diff(C.indptr))
    kept = rank < NEAR
    out = np.full((C.shape[0], NEAR), -1, dtype=np.int32)
    out[rows[kept], rank[kept]] = columns[by_weight][kept]
    return out


def _opened(C: sp.csr_array, tour: np.ndarray) -> np.ndarray:
    """Return the tour as a line, cut at its weakest pair: there the labels that occur alone come in."""
    if tour.size < 2:
        return tour
    weights = np.asarray(C[tour, np.roll(tour, -1)]).ravel()
    return np.roll(tour, -(int(np.argmin(weights)) + 1))
