"""Components of a label prototype: free vectors, centroids, and the network that joins them with the text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.errors import DataError
from longtail.prime.settings import CENTROID_RULES
from longtail.tree import NodeSeed, Vectors, balanced_leaves
from longtail.validate import check_choice, check_integer, check_real, resolve_jobs, resolve_seed

MAX_ITER = 20  # divisions of a cluster of labels, at most


class PrototypeNetwork(nn.Module):
    """Joins the vectors of a label to one prototype: a transformer layer over them, then the mean.

    One post-norm layer; the vectors have no order and no names, so any number of them works.

    Parameters
    ----------
    width : int
        Length of the vectors.
    hidden : int, default=1024
        Width of the layer's feed-forward network.
    heads : int, default=1
        Attention heads.
    dropout : float, default=0.1
        Dropout of the layer.

    Examples
    --------
    >>> network = PrototypeNetwork(8, hidden=16).eval()
    >>> text, centroid, free = torch.randn(3, 5, 8)
    >>> network(text, centroid, free).shape
    torch.Size([5, 8])
    >>> bool(torch.allclose(network(text, centroid), network(centroid, text), atol=1e-6))
    True
    """

    def __init__(self, width: int, hidden: int = 1024, heads: int = 1, dropout: float = 0.1) -> None:
        super().__init__()
        self.layer: nn.TransformerEncoderLayer = nn.TransformerEncoderLayer(
            check_integer("width", width, low=1),
            check_integer("heads", heads, low=1),
            check_integer("hidden", hidden, low=1),
            check_real("dropout", dropout, low=0, high=1),
            activation="gelu",
            batch_first=True,
            norm_first=False,
        )

    def forward(self, *vectors: Tensor) -> Tensor:
        """Return one prototype per label from vectors of shape (n_labels, width) each."""
        return self.layer(torch.stack(vectors, dim=1)).mean(dim=1)


class FreeVectors(nn.Module):
    """Learned vectors that similar labels share; frequent labels may have one of their own.

    They are trained without weight decay, as published.

    Parameters
    ----------
    cluster : ndarray of shape (n_labels,)
        Number of the vector of every label, as `label_clusters` returns it.
    width : int
        Length of the vectors.
    n_vectors : int, default=None
        Number of vectors; None for the largest number in `cluster` plus one.

    Examples
    --------
    >>> bank = FreeVectors(np.array([0, 1, 0]), width=4)
    >>> vectors = bank(torch.tensor([0, 2, 1]))
    >>> bool((vectors[0] == vectors[1]).all()), bool((vectors[0] == vectors[2]).all())
    (True, False)
    """

    cluster: Tensor

    def __init__(self, cluster: np.ndarray, width: int, n_vectors: int | None = None) -> None:
        super().__init__()
        n = int(cluster.max(initial=-1)) + 1 if n_vectors is None else n_vectors
        self.register_buffer("cluster", torch.as_tensor(np.asarray(cluster, dtype=np.int64)), persistent=True)
        self.vectors: nn.Parameter = nn.Parameter(torch.empty(n, check_integer("width", width, low=1)))
        nn.init.xavier_uniform_(self.vectors)

    def forward(self, labels: Tensor) -> Tensor:
        """Return the vectors of some labels."""
        return F.embedding(self.cluster[labels], self.vectors)


def label_clusters(
    vectors: Any,
    n_clusters: int,
    counts: np.ndarray | None = None,
    n_private: int = 0,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return the number of its vector for every label: int64 (n_labels,).

    Labels with similar vectors share a number, in clusters of equal size (within one) that come from dividing them in
    halves again and again; `n_clusters` is rounded down to a power of two and to the number of labels. The `n_private`
    labels with the largest `counts` get a number of their own instead, after those of the clusters.

    >>> like = label_clusters([[1, 0], [0, 1], [1, 0.1], [0.1, 1], [1, 1]], 2, np.array([1, 1, 1, 1, 9]), n_private=1)
    >>> bool(like[0] == like[2] != like[1] == like[3]), int(like[4])
    (True, 2)
    """
    rows = Vectors(vectors)
    n_clusters = check_integer("n_clusters", n_clusters, low=1)
    n_private = min(check_integer("n_private", n_private, low=0), rows.n_labels)
    private = np.empty(0, dtype=np.int64)
    if n_private:
        if counts is None or len(counts) != rows.n_labels:
            raise DataError(f"counts must have one entry per label ({rows.n_labels}).")
        private = np.argsort(-np.asarray(counts), kind="stable")[:n_private]
    shared = np.setdiff1d(np.arange(rows.n_labels), private).astype(np.int32)
    out = np.zeros(rows.n_labels, dtype=np.int64)
    used = 0
    if shared.size:
        depth = int(math.log2(min(n_clusters, shared.size)))
        seed, used = NodeSeed(resolve_seed(random_state)), 2**depth
        leaves = balanced_leaves(
            rows, shared, depth, max_iter=MAX_ITER, sample=None, seed=seed, n_jobs=resolve_jobs(n_jobs)
        )
        for number, leaf in enumerate(leaves):
            out[leaf] = number
    out[private] = used + np.arange(n_private)
    return out


class Centroids(nn.Module):
    """The running mean of the queries of every label, without gradient.

    With "momentum", every query h of a label moves its centroid one step (Equation 4 of the paper)::

        c <- momentum * c + (1 - momentum) * h

    With "mean", the centroid is the mean of the latest vectors of all n queries of the label; a query that has moved
    from h_before to h moves it by (h - h_before) / n.

    Parameters
    ----------
    values : Tensor of shape (n_labels, width)
        Centroids at first.
    momentum : float, default=0.95
        How slowly they move.
    rule : {"momentum", "mean"}, default="momentum"
        How they follow their queries.
    counts : Tensor of shape (n_labels,), default=None
        Number of queries of every label, for "mean".

    Examples
    --------
    >>> centroids = Centroids(torch.eye(2), momentum=0.5)
    >>> centroids.update(torch.tensor([0, 0]), torch.tensor([[0.0, 1.0], [0.0, 1.0]]))
    >>> centroids(torch.tensor([0, 1])).tolist()
    [[0.25, 0.75], [0.0, 1.0]]
    """

    values: Tensor
    counts: Tensor

    def __init__(
        self, values: Tensor, momentum: float = 0.95, rule: str = "momentum", counts: Tensor | None = None
    ) -> None:
        super().__init__()
        self.momentum: float = check_real("momentum", momentum, low=0, high=1)
        self.rule: str = check_choice("rule", rule, CENTROID_RULES)
        if rule == "mean" and (counts is None or len(counts) != len(values)):
            raise DataError(f"counts must have one entry per label ({len(values)}).")
        self.register_buffer("values", values.detach().float().clone())
        ones = torch.ones(len(values)) if counts is None else counts.detach().float().clamp(min=1)
        self.register_buffer("counts", ones, persistent=False)  # follows from the data

    def forward(self, labels: Tensor) -> Tensor:
        """Return the centroids of some labels."""
        return self.values[labels]

    @torch.no_grad()
    def update(self, labels: Tensor, queries: Tensor, before: Tensor | None = None) -> None:
        """Move the centroids of labels (n_pairs,) by their queries (n_pairs, width), one step a pair, in this order.

        With "mean", `before` (n_pairs, width) are the vectors that these queries had.
        """
        order = torch.argsort(labels, stable=True)
        unique, counts = torch.unique_consecutive(labels[order], return_counts=True)
        self.move(unique, counts, queries[order], None if before is None else before[order])

    @torch.no_grad()
    def move(self, labels: Tensor, counts: Tensor, queries: Tensor, before: Tensor | None = None) -> None:
        """Do the same for pairs that lie label after label, `counts` of them for each of `labels` (once each).

        Sums are made in a fixed order, also on a GPU, which is not waited for.
        """
        queries = queries.detach().to(self.values.dtype)
        if self.rule == "mean":
            if before is None:
                raise DataError("before must be given where centroids are means.")
            moved = _sum_segments(queries - before.to(queries.dtype), counts)
            self.values[labels] += moved / self.counts[labels][:, None]
            return
        ends = counts.cumsum(0).repeat_interleave(counts, output_size=queries.shape[0])
        later = ends - 1 - torch.arange(queries.shape[0], device=ends.device)  # steps of the same label that follow
        steps = (1 - self.momentum) * self.momentum ** later.to(queries.dtype)
        kept = self.momentum ** counts.to(queries.dtype)
        self.values[labels] = kept[:, None] * self.values[labels] + _sum_segments(steps[:, None] * queries, counts)


def _sum_segments(rows: Tensor, lengths: Tensor) -> Tensor:
    """Return the sums of consecutive rows, `lengths` of them each."""
    return torch.segment_reduce(rows, "sum", lengths=lengths, axis=0, unsafe=True)
