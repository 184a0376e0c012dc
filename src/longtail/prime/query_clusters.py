"""Balanced clusters of dense vectors on their own device: all nodes of a level are halved at once.

The label trees have their own clustering (`longtail.tree`), made for sparse vectors and threads. Here the vectors
are the dense embeddings of a network in training; on a GPU, hundreds of thousands are clustered in a second.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.validate import check_integer


@torch.no_grad()
def balanced_clusters(vectors: Tensor, size: int, seed: int, max_iter: int = 8) -> Tensor:
    """Return the cluster of every vector, int64 (n,): 2**ceil(log2(n / size)) clusters, sizes differing by at most 1.

    Spherical 2-means with halves of equal size, again and again: two members as first centres, all ranked by which of
    them they are nearer to, cut in the middle, centres moved, until nothing changes or `max_iter` times.

    >>> vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]])
    >>> cluster = balanced_clusters(vectors, size=2, seed=0).tolist()
    >>> cluster[0] == cluster[2] != cluster[1] == cluster[3]
    True
    """
    n = vectors.shape[0]
    depth = max(0, math.ceil(math.log2(n / check_integer("size", size, low=1)))) if n else 0
    n_positions = -(-n // 2**depth) * 2**depth
    # rows that are not there fill every node up to the same size; they sit at both ends of a ranking, so they are
    # shared out evenly
    order = torch.full((n_positions,), -1, dtype=torch.int64, device=vectors.device)
    order[:n] = torch.arange(n, device=vectors.device)
    rng = np.random.default_rng(seed)
    unit = F.normalize(vectors.float(), dim=1)
    for level in range(depth):
        order = _halve(unit, order.view(2**level, -1), rng, max_iter).reshape(-1)
    out = torch.empty(n, dtype=torch.int64, device=vectors.device)
    numbers = torch.arange(2**depth, device=vectors.device).repeat_interleave(n_positions // 2**depth)
    out[order[order >= 0]] = numbers[order >= 0]
    return out


def _halve(unit: Tensor, nodes: Tensor, rng: np.random.Generator, max_iter: int) -> Tensor:
    """Return nodes (n_nodes, size) with the members of each ranked, so that its halves are the two clusters."""
    n_nodes, size = nodes.shape
    real = nodes >= 0
    count = real.sum(dim=1)
    # rows that are not there: the first half of them ranks first, the rest last
    absent = (~real).cumsum(dim=1)
    ends = torch.where(absent <= ((size - count + 1) // 2)[:, None], -math.inf, math.inf)
    members = unit[nodes.clamp(min=0)] * real[:, :, None]  # (n_nodes, size, d)
    draws = torch.as_tensor(rng.random((n_nodes, 2)), device=unit.device)
    first = (draws[:, 0] * count).long().clamp(max=size - 1)
    second = (draws[:, 1] * (count - 1).clamp(min=1)).long()
    second = (second + (second >= first)).clamp(max=size - 1)
    present_first = real.to(torch.int8).argsort(dim=1, descending=True, stable=True)  # members that are there, first
    every = torch.arange(n_nodes, device=unit.device)
    left, right = (members[every, present_first[every, at]] for at in (first, second))
    before: Tensor | None = None
    rank = present_first
    for _ in range(max_iter):
        direction = F.normalize(right, dim=1) - F.normalize(left, dim=1)
        scores = torch.where(real, torch.bmm(members, direction[:, :, None])[:, :, 0], ends)
        rank = scores.argsort(dim=1, stable=True)
        upper = torch.zeros_like(real).scatter_(1, rank[:, size // 2 :], True)
        if before is not None and bool((upper == before).all()):
            break
        before = upper
        chosen = (upper & real).to(members.dtype)
        right = torch.bmm(chosen[:, None], members)[:, 0]
        left = members.sum(dim=1) - right
    return nodes.gather(1, rank)
