"""Train a label network on rows, and score rows with it block by block."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from longtail.bottleneck.network import LabelNetwork
from longtail.kernels import blocks
from longtail.training import (
    DenseMatrix,
    Epoch,
    RowTraining,
    SparseMatrix,
    SparseRows,
    Validation,
    mixed_precision,
    train_on_rows,
)
from longtail.validate import Rows

# On a CPU rows are always scored so many at a time, the last ones filled up with zeros: a row then gets the same
# scores, to the last bit, alone and among others.
ROWS_AT_ONCE = 64
ROWS_AT_ONCE_ON_GPU = 1024
DEPTHS = (1, 3, 5)  # of the ranking, at which precision is measured on held-out rows


def fit_labels(
    network: LabelNetwork,
    X: Rows,
    Y: sp.csr_array,
    held_out: tuple[Rows, sp.csr_array] | None,
    how: RowTraining,
    *,
    stop_on: str = "precision",
    on_step: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> list[dict[str, Any]]:
    """Train a network on rows and labels with binary cross-entropy; held-out rows and labels decide when to stop."""
    validate = None
    if held_out is not None:
        prior = prior_precision(Y, held_out[1])
        chance = float(np.sqrt(prior * (1 - prior) / held_out[1].shape[0]))  # one standard error
        validate = held_out_scores(network, *held_out, how, prior + chance if stop_on == "precision" else None)
    identity = [_digest(A) for A in (X, Y, *(held_out or ()))] if how.checkpoint is not None else None
    return train_on_rows(
        network,
        label_loss(network, X, Y),
        X.shape[0],
        how,
        validate=validate,
        identity=identity,
        on_step=on_step,
        on_epoch=on_epoch,
    )


def label_loss(network: LabelNetwork, X: Rows, Y: sp.csr_array) -> Callable[[Tensor], Tensor]:
    """Return a function from row numbers to binary cross-entropy with logits, a mean over rows and labels."""
    device = next(network.parameters()).device
    rows, labels = _source(X, device), SparseMatrix(Y, device)

    def loss(numbers: Tensor) -> Tensor:
        scores = network(_batch(network, rows, numbers))
        return torch.nn.functional.binary_cross_entropy_with_logits(scores.float(), labels.multi_hot(numbers))

    return loss


def held_out_scores(
    network: LabelNetwork, X: Rows, Y: sp.csr_array, how: RowTraining, floor: float | None
) -> Callable[[], float | Validation]:
    """Return a function to the loss on held-out rows and, unless `floor` is None, to their mean precision.

    The loss is a mean over all labels, most of which are rare: a network that grows sure of them has a higher loss on
    new rows long before it ranks labels worse. At first, and for a while, it ranks labels by their frequency: epochs
    do not count as ones without progress before one was better than that, the floor.
    """
    device = next(network.parameters()).device
    rows, labels, n_rows = _source(X, device), SparseMatrix(Y, device), X.shape[0]
    ranks = min(max(DEPTHS), Y.shape[1])

    def judge() -> float | Validation:
        loss, hits = 0.0, np.zeros(ranks)
        with mixed_precision(device, how.mixed):
            for at in blocks(n_rows, how.batch_size):
                numbers = torch.arange(at.start, at.stop)
                scores, truth = network(_batch(network, rows, numbers)).float(), labels.multi_hot(numbers)
                loss += float(torch.nn.functional.binary_cross_entropy_with_logits(scores, truth)) * len(numbers)
                if floor is not None:
                    best = torch.topk(scores, ranks, dim=1).indices
                    hits += truth.gather(1, best).sum(dim=0).double().cpu().numpy()
        if floor is None:
            return loss / n_rows
        return Validation(loss / n_rows, _mean_precision(hits, n_rows), floor)

    return judge


def prior_precision(Y_train: sp.csr_array, Y: sp.csr_array) -> float:
    """Return the mean precision of the labels that most training rows have, given to every row of Y."""
    counts, right = (np.bincount(A.indices, minlength=A.shape[1]) for A in (Y_train, Y))
    best = np.argsort(-counts, kind="stable")[: max(DEPTHS)]
    return _mean_precision(right[best].astype(np.float64), Y.shape[0])


def _mean_precision(hits: np.ndarray, n_rows: int) -> float:
    """Return the mean of precision at 1, 3 and 5, from how many rows have a right label at each rank."""
    right = np.cumsum(hits)
    return float(np.mean([right[min(depth, right.size) - 1] / (depth * n_rows) for depth in DEPTHS]))


def score_blocks(network: LabelNetwork, X: Rows) -> Iterator[tuple[slice, Tensor]]:
    """Yield blocks of rows with their scores (n_rows in the block, n_labels)."""
    device = next(network.parameters()).device
    size = ROWS_AT_ONCE_ON_GPU if device.type == "cuda" else ROWS_AT_ONCE
    network.eval()
    with torch.inference_mode():
        for at in blocks(X.shape[0], size):
            part = X[at]
            if device.type == "cpu" and part.shape[0] < size:
                part = _filled(part, size)
            rows = _source(part, device)
            yield at, network(_batch(network, rows, torch.arange(part.shape[0])))[: at.stop - at.start].float()


def _source(X: Rows, device: torch.device) -> SparseMatrix | DenseMatrix:
    return DenseMatrix(X, device) if isinstance(X, np.ndarray) else SparseMatrix(X, device)


def _batch(network: LabelNetwork, rows: SparseMatrix | DenseMatrix, numbers: Tensor) -> Tensor | SparseRows:
    if network.takes_sparse and isinstance(rows, SparseMatrix):
        return rows.take(numbers)
    return rows.dense(numbers)


def _filled(X: Rows, n_rows: int) -> Rows:
    """Return the rows with rows of zeros below them."""
    if isinstance(X, np.ndarray):
        return np.vstack([X, np.zeros((n_rows - X.shape[0], X.shape[1]), dtype=X.dtype)])
    more = np.full(n_rows - X.shape[0], X.indptr[-1], dtype=X.indptr.dtype)
    return sp.csr_array((X.data, X.indices, np.concatenate([X.indptr, more])), shape=(n_rows, X.shape[1]))


def _digest(A: Rows) -> str:
    """Return a digest of a matrix."""
    arrays = (A,) if isinstance(A, np.ndarray) else (A.indptr, A.indices, A.data)
    digest = hashlib.sha256(str(A.shape).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()
