"""A vector per label, trained on vectors of texts that stay as they are: logistic regressions in batches, numpy alone.

    log-odds that a row has a label = SCALE * (vector · row) - what a label without any row has

Most labels are rare, so log-odds need a constant. There is no room for one in a product, but the vectors of an encoder
have a mean that is not zero: the product with it is about constant, and is learned as a feature of its own. Labels
without a row have vectors of zeros and so the lowest products: all others are moved above them.

A batch of rows is held against the labels of its own rows and some others, so that a step costs the same whatever the
number of labels. A label that is not always among them sees fewer rows without it than there are; that is put right by
taking the logarithm of how often it is among them off its log-odds while it is trained.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

SCALE = 6.0  # of the log-odds that vectors stand for; about the weight that a hybrid starts from
BATCHES = (32, 1024)  # fewest and most rows of a batch
FEWEST_BATCHES = 20  # of an epoch, where there are enough rows
LABELS_AT_ONCE = 4096  # at least, where there are so many
LR = 0.03
DECAY = 1e-4  # of vectors, at every step
MOMENTS = (0.9, 0.99)  # how slowly the mean and the mean square of gradients move
SHORTEST_MEAN = 0.1  # a shorter mean vector stands for a constant no more
LARGEST = 80.0  # of a number whose exponential is taken


def train_logistic_vectors(queries: np.ndarray, Y: sp.csr_array, *, epochs: int, seed: int) -> np.ndarray:
    """Return one vector per label, float32 (n_labels, width), from rows at unit length; zeros without a row.

    >>> rows, Y = np.eye(3, dtype=np.float32), sp.csr_array(np.eye(3, dtype=np.float32))
    >>> W = train_logistic_vectors(rows, Y, epochs=50, seed=0)
    >>> (rows @ W.T).argmax(axis=1).tolist()
    [0, 1, 2]
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    used = np.flatnonzero(counts)
    n_rows, width = queries.shape
    mean = queries.mean(axis=0, dtype=np.float64)
    mean = (mean / max(float(mean @ mean), SHORTEST_MEAN**2)).astype(np.float32)
    rows = np.concatenate([queries, (queries @ mean)[:, None]], axis=1).astype(np.float32, copy=False)
    share = counts[used] / (n_rows + 1)
    W = np.zeros((used.size, width + 1), dtype=np.float32)
    W[:, width] = np.log(share / (1 - share)) / SCALE
    _train(W, rows, sp.csr_array(Y[:, used]), share, epochs, seed)
    out = np.zeros((Y.shape[1], width), dtype=np.float32)
    out[used] = W[:, :width] + (W[:, width:] + np.float32(np.log(2 * n_rows + 2) / SCALE)) * mean
    return out


def _train(W: np.ndarray, rows: np.ndarray, Y: sp.csr_array, share: np.ndarray, epochs: int, seed: int) -> None:
    """Train the vectors of labels in place; `share` says how many of the rows have each label."""
    n_rows, n_labels = Y.shape
    size = min(n_rows, max(BATCHES[0], min(BATCHES[1], n_rows // FEWEST_BATCHES)))
    n_others = min(LABELS_AT_ONCE, n_labels)
    shift = -np.log(np.minimum(1.0, n_others / n_labels + share * size)).astype(np.float32)
    optimiser, rng = Adam(W, epochs * -(-n_rows // size)), np.random.default_rng([seed, 3])
    every = np.arange(n_labels)
    for _ in range(epochs):
        order = rng.permutation(n_rows)
        for begin in range(0, n_rows, size):
            batch = np.sort(order[begin : begin + size])
            truth, labels = sp.csr_array(Y[batch]), every
            if n_others < n_labels:
                labels = np.union1d(truth.indices, rng.choice(n_labels, n_others, replace=False))
            optimiser.step(labels, _gradient(rows[batch], truth, W[labels], labels, shift[labels]))


def _gradient(
    rows: np.ndarray, truth: sp.csr_array, W: np.ndarray, labels: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    """Return the mean gradient of the loss of some rows by the vectors of some labels (rising)."""
    errors = rows @ W.T
    errors *= np.float32(-SCALE)
    errors -= shift
    np.exp(np.minimum(errors, LARGEST, out=errors), out=errors)
    errors += 1
    np.reciprocal(errors, out=errors)  # now probabilities
    at = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr))
    errors[at, np.searchsorted(labels, truth.indices)] -= 1
    gradient = (errors.T @ rows) * np.float32(SCALE / rows.shape[0])
    gradient[:, :-1] += np.float32(DECAY) * W[:, :-1]
    return gradient


class Adam:
    """The Adam optimiser for some rows of a matrix at a time, with a learning rate that falls to zero.

    Parameters
    ----------
    W : ndarray of float32
        The matrix, which steps change.
    n_steps : int
        How many steps there will be.
    """

    done: int
    means: np.ndarray
    n_steps: int
    squares: np.ndarray

    def __init__(self, W: np.ndarray, n_steps: int) -> None:
        self.W, self.n_steps, self.done = W, n_steps, 0
        self.means, self.squares = np.zeros_like(W), np.zeros_like(W)

    def step(self, rows: np.ndarray, gradient: np.ndarray) -> None:
        """Move some rows by their gradient."""
        rate = LR * (1 - self.done / self.n_steps)
        self.done += 1
        slow, slower = MOMENTS
        mean = np.float32(slow) * self.means[rows] + np.float32(1 - slow) * gradient
        square = np.float32(slower) * self.squares[rows] + np.float32(1 - slower) * gradient**2
        self.means[rows], self.squares[rows] = mean, square
        length = np.sqrt(square / np.float32(1 - slower**self.done)) + np.float32(1e-8)
        self.W[rows] -= np.float32(rate / (1 - slow**self.done)) * mean / length
