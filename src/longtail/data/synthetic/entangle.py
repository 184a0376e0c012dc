"""Make labels with several meanings: sets of labels are joined into one, from easy to hard to tell apart.

How hard it is depends on what is joined. Labels that stand side by side in a cluster are joined in the easy mode: one
cluster can still hold the joined label. In the hard mode any labels are joined, and no single cluster suits them all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError, ParameterError
from longtail.validate import (
    LabelNumbers,
    MatrixLike,
    RandomState,
    as_labels,
    check_choice,
    check_integer,
    make_csr,
    resolve_seed,
)

MODES = ("easy", "medium", "hard")
SETS_IN_A_CLUSTER = 32  # in the medium mode a set is drawn from a cluster of so many


def entangle_labels(
    Y: MatrixLike, k: int = 2, mode: str = "hard", *, order: LabelNumbers | None = None, random_state: RandomState = 0
) -> tuple[sp.csr_array, np.ndarray]:
    """Join the labels of Y, k at a time.

    A row has a joined label if it has one of its components. With L labels there are ⌈L / k⌉ sets; at most one has
    fewer than k labels. Sets are numbered by the smallest of their labels, so the first one holds label 0.

    Parameters
    ----------
    Y : matrix of shape (n_rows, n_labels)
        The labels.
    k : int, default=2
        Labels to join into one.
    mode : {"easy", "medium", "hard"}, default="hard"
        "easy": neighbours in `order`; "medium": random ones of 32 k neighbours; "hard": random ones of all labels.
    order : array of shape (n_labels,) or None, default=None
        All label numbers, similar ones near each other; needed for "easy" and "medium". The leaves of a balanced label
        tree read from left to right are such an order: with `tree = build_tree(pifa(X, Y), branching=2, max_leaf=k,
        balanced=True)`, it is `tree.leaf_labels`, and runs of it are balanced clusters of that size.
    random_state : int, numpy generator or None, default=0
        The seed; None means 0.

    Returns
    -------
    Y : csr_array of shape (n_rows, n_sets)
        The joined labels, 0/1.
    new : ndarray of shape (n_labels,), int32
        The new number of each old label.

    Examples
    --------
    >>> Y = np.eye(6)
    >>> fused, new = entangle_labels(Y, k=2, mode="easy", order=[0, 5, 1, 4, 2, 3])
    >>> new.tolist(), fused.toarray().astype(int).sum(axis=0).tolist()
    ([0, 1, 2, 2, 1, 0], [2, 2, 2])
    """
    Y = as_labels(Y, "Y")
    k = min(check_integer("k", k, low=1), 2**31 - 1)
    mode = check_choice("mode", mode, MODES)
    rng = np.random.default_rng(resolve_seed(random_state))
    n_labels = Y.shape[1]
    if mode == "hard":
        line = rng.permutation(n_labels)
    else:
        line = _check_order(order, n_labels, mode)
        if mode == "medium":
            # shuffled within every run of 32 k labels, and in place across none
            line = line[np.lexsort((rng.random(n_labels), np.arange(n_labels) // (SETS_IN_A_CLUSTER * k)))]
    sets = np.empty(n_labels, dtype=np.int64)
    sets[line] = np.arange(n_labels) // k
    _, first, of_set = np.unique(sets, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    new = rank[of_set]
    return fused_labels(Y, new), new


def fused_labels(Y: MatrixLike, new: LabelNumbers) -> sp.csr_array:
    """Return Y with its labels joined: a row has label j if it has a label i with `new[i] = j`.

    Parameters
    ----------
    Y : matrix of shape (n_rows, n_labels)
        The labels, such as those of test rows.
    new : array of shape (n_labels,)
        The new number of each label, as `entangle_labels` returns it for the training rows.

    Returns
    -------
    Y : csr_array of shape (n_rows, n_new), 0/1

    Examples
    --------
    >>> fused_labels([[1, 1, 0], [0, 0, 1]], [0, 0, 1]).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    Y, new = as_labels(Y, "Y"), component_map(new)
    if new.size != Y.shape[1]:
        raise DataError(f"new must have one number per label ({Y.shape[1]}); got {new.size}.")
    n_new = int(new.max(initial=-1)) + 1
    rows = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
    pairs = np.unique(rows * max(n_new, 1) + new[Y.indices])
    counts = np.bincount(pairs // max(n_new, 1), minlength=Y.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return make_csr(indptr, pairs % max(n_new, 1), np.ones(pairs.size, np.float32), n_new)


def fused_names(names: Sequence[str], new: LabelNumbers) -> tuple[str, ...]:
    """Return a name for every joined label: the names of its components.

    >>> fused_names(["belt", "chess", "karate"], [0, 1, 0])
    ('belt + karate', 'chess')
    """
    new = component_map(new)
    if new.size != len(names):
        raise DataError(f"new must have one number per label ({len(names)}); got {new.size}.")
    parts: list[list[str]] = [[] for _ in range(int(new.max(initial=-1)) + 1)]
    for name, at in zip(names, new.tolist(), strict=True):
        parts[at].append(str(name))
    return tuple(" + ".join(found) for found in parts)


def component_map(new: LabelNumbers) -> np.ndarray:
    """Return the new number of each old label as int32; it must be whole numbers >= 0."""
    out = np.asarray(new)
    if out.ndim != 1 or (out.size and (out.dtype.kind not in "iu" or int(out.min()) < 0)):
        raise DataError(f"new must be one whole number >= 0 per label; got shape {out.shape}, dtype {out.dtype}.")
    if out.size and int(out.max()) >= 2**31 - 1:
        raise DataError(f"new must be whole numbers below 2**31 - 1; got {int(out.max())}.")
    return out.astype(np.int32)


def _check_order(order: LabelNumbers | None, n_labels: int, mode: str) -> np.ndarray:
    """Check that an order holds every label once."""
    if order is None:
        raise ParameterError(
            f"mode {mode!r} needs order, all label numbers with similar ones near each other; got None."
        )
    line = np.asarray(order)
    if line.ndim != 1 or line.dtype.kind not in "iu" or not np.array_equal(np.sort(line), np.arange(n_labels)):
        raise DataError(f"order must hold every label number from 0 to {n_labels - 1} once.")
    return line.astype(np.int64)
