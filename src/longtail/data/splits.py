"""Split rows into training and test rows: at random, or so that every label keeps its share on both sides.

Both return sorted row numbers, depend only on the labels' shape or content and the seed, and go with
`Dataset.take(rows)`.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset, spread_labels, take_labels
from longtail.data.stratify import TEST, TRAIN, UNDECIDED, stratify_rows
from longtail.errors import DataError, ParameterError
from longtail.validate import MatrixLike, RandomState, as_labels, check_integer, resolve_seed


def split_random(
    data: Dataset | MatrixLike, test_size: float | int = 0.2, random_state: RandomState = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Split rows at random.

    Parameters
    ----------
    data : Dataset or matrix of shape (n_rows, n_labels)
        The data, or its labels alone.
    test_size : float or int, default=0.2
        The share of test rows between 0 and 1 (0.2), or their number (500).
    random_state : int, numpy generator or None, default=0
        The seed; None means 0.

    Returns
    -------
    train, test : ndarray of int
        Sorted row numbers, for `Dataset.take`.

    Examples
    --------
    >>> train, test = split_random(np.ones((10, 1)), test_size=0.3)
    >>> train.size, test.size
    (7, 3)
    """
    n_rows = data.n_rows if isinstance(data, Dataset) else as_labels(data).shape[0]
    n_test = _count_test_rows(n_rows, test_size)
    order = np.random.default_rng(resolve_seed(random_state)).permutation(n_rows)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def split_stratified(
    data: Dataset | MatrixLike, test_size: float | int = 0.2, random_state: RandomState = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Split rows so that every label keeps its share in train and test, as closely as it can.

    Every label that has a row has one in train. Test has as many rows as asked for unless that would take a label's
    last row from train; then it has fewer. The time is in proportion to the number of labels of all rows.

    Parameters
    ----------
    data : Dataset or matrix of shape (n_rows, n_labels)
        The data, or its labels alone.
    test_size : float or int, default=0.2
        The share of test rows between 0 and 1 (0.2), or their number (500).
    random_state : int, numpy generator or None, default=0
        The seed; None means 0.

    Returns
    -------
    train, test : ndarray of int
        Sorted row numbers, for `Dataset.take`.

    Examples
    --------
    >>> Y = np.array([[1, 0]] * 8 + [[0, 1]] * 2)
    >>> train, test = split_stratified(Y, test_size=0.5)
    >>> Y[train].sum(axis=0).tolist(), Y[test].sum(axis=0).tolist()
    ([4, 1], [4, 1])
    """
    Y = data.Y if isinstance(data, Dataset) else as_labels(data)
    n_rows, used = Y.shape[0], spread_labels(Y)
    Y = Y if used is None else take_labels(Y, used)
    n_test = _count_test_rows(n_rows, test_size)
    order = np.random.default_rng(resolve_seed(random_state)).permutation(n_rows)
    by_row = sp.csr_array(Y[order])
    by_label = by_row.tocsc()
    side = np.empty(n_rows, dtype=np.int8)
    done = stratify_rows(
        by_row.indptr.astype(np.int64),
        by_row.indices.astype(np.int32),
        by_label.indptr.astype(np.int64),
        by_label.indices.astype(np.int32),
        n_test,
        side,
    )
    free = np.flatnonzero(side == UNDECIDED)  # rows without labels fill what is missing
    side[free] = TRAIN
    side[free[: n_test - done]] = TEST
    test = np.sort(order[side == TEST])
    if test.size == 0:
        raise DataError("no row can go to test: every row has a label that no other row has.")
    return np.sort(order[side == TRAIN]), test


def _count_test_rows(n_rows: int, test_size: float | int) -> int:
    """Return the number of test rows; train and test must both have one."""
    if n_rows < 2:
        raise DataError(f"a split needs at least 2 rows; got {n_rows}.")
    if isinstance(test_size, int | np.integer) and not isinstance(test_size, bool):
        return check_integer("test_size", test_size, low=1, high=n_rows - 1)
    if not isinstance(test_size, float | np.floating) or not 0 < test_size < 1:
        raise ParameterError(name="test_size", allowed="a share between 0 and 1 or a number of rows", got=test_size)
    return min(math.ceil(n_rows * float(test_size)), n_rows - 1)
