"""Triplet losses between queries and labels: fixed or dynamic margin, hardest negatives, a regulariser, their sum.

Everywhere S is a matrix of similarities (rows x columns) and `target` says which columns are true for a row. Columns
known to be true are never negatives, and a row without a true column, or without a false one, adds nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.validate import check_flag, check_integer, check_real

UNSEEN = -1e4  # similarity that stands for "no such negative": far below any cosine
IDLE = -100.0  # logit of a negative that does not violate the margin


def draw_positives(target: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Return one true column per row, drawn uniformly; 0 for a row that has none.

    >>> draw_positives(torch.tensor([[False, True], [True, False], [False, False]])).tolist()
    [1, 0, 0]
    """
    lots = torch.rand(target.shape, device=target.device, generator=generator)
    return torch.where(target, lots, -1.0).argmax(dim=1)


def hardest_negatives(S: Tensor, target: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return the columns of the n most similar false columns of every row, and which of these entries are real.

    >>> columns, real = hardest_negatives(torch.tensor([[0.9, 0.1, 0.5]]), torch.tensor([[True, False, False]]), 5)
    >>> columns[real].tolist()
    [2, 1]
    """
    hardest = S.detach().masked_fill(target, UNSEEN).topk(min(n, S.shape[1]), dim=1)
    return hardest.indices, hardest.values > UNSEEN


class DynamicMarginLoss(nn.Module):
    """Triplet loss whose margin follows the gap between positive and negative, clipped and without gradient.

    For one positive p and the hardest negatives n of a row::

        loss = sum_n w_n * max(0, s_n - s_p + m_n)
        m_n = clip(|s_p - s_n|, low, high)
        w_n = softmax(s_n / temperature) over the negatives with max(...) > 0

    averaged over rows. A pair in the right order and more than `low` apart adds nothing; a pair in the wrong order
    counts the more, the further apart it is. With `low` = `high` the margin is fixed.

    The paper gives this maximum, but its case by case form (Equations 3, 13 and 14) has another sign for pairs in the
    right order that are less than `low` apart: s_p - s_n + low in place of s_n - s_p + low, which draws them together.
    `inverted` follows these equations.

    Parameters
    ----------
    num_negatives : int, default=100
        Hardest negatives of a row.
    low, high : float, default=0.1, 0.3
        Smallest and largest margin.
    temperature : float, default=0.1
        Temperature of the softmax over negatives.
    inverted : bool, default=False
        Draw pairs in the right order that are less than `low` apart together instead of apart.

    Examples
    --------
    >>> loss = DynamicMarginLoss(num_negatives=1)
    >>> target = torch.tensor([[True, False]])
    >>> [round(float(loss(torch.tensor([[p, n]]), target)), 3) for p, n in ((0.8, 0.6), (0.8, 0.75), (0.5, 0.7))]
    [0.0, 0.05, 0.4]
    """

    def __init__(
        self,
        num_negatives: int = 100,
        low: float = 0.1,
        high: float = 0.3,
        temperature: float = 0.1,
        inverted: bool = False,
    ) -> None:
        super().__init__()
        self.num_negatives: int = check_integer("num_negatives", num_negatives, low=1)
        self.low: float = check_real("low", low, low=0)
        self.high: float = check_real("high", high, low=self.low)
        self.temperature: float = check_real("temperature", temperature, low=0, open_low=True)
        self.inverted: bool = check_flag("inverted", inverted)

    def forward(self, S: Tensor, target: Tensor, positives: Tensor | None = None) -> Tensor:
        """Return the loss; `positives` names the positive column of every row, None draws it."""
        if positives is None:
            positives = draw_positives(target)
        columns, real = hardest_negatives(S, target, self.num_negatives)
        real = real & target.any(dim=1, keepdim=True)
        s_p, s_n = S.gather(1, positives[:, None]), S.gather(1, columns)
        gap = s_n - s_p
        margin = gap.detach().abs().clamp(self.low, self.high)
        # relu, not max: where both are equal (all of the zone above `low`) relu passes no gradient
        values = F.relu(gap + margin)
        if self.inverted:
            values = torch.where((gap < 0) & (gap > -self.low), self.low - gap, values)
        losses = torch.where(real, values, 0.0)
        weights = torch.softmax(torch.where(losses > 0, s_n / self.temperature, IDLE), dim=1)
        return (losses * weights).sum() / real.any(dim=1).sum().clamp(min=1)


class ConsistencyRegulariser(nn.Module):
    """Loss that wants prototypes closer than label texts to a query's positive, and farther from its negatives.

    With b the similarities to prototypes and s those to label texts, for one positive p and the hardest negatives n by
    b of every row::

        loss = (mean(max(0, s_p - b_p + margin)) + mean(max(0, b_n - s_n + margin))) / 2

    each mean over the pairs that are above 0; it is 0 where none is. Without `hinge` it is as printed in the paper
    (Equations 6 and 7): no maximum, and means over all pairs.

    Parameters
    ----------
    num_negatives : int, default=100
        Hardest negatives of a row.
    margin : float, default=0.1
        By how much prototypes should do better.
    hinge : bool, default=True
        Whether pairs that do better by the margin count as 0.

    Examples
    --------
    >>> b, s = torch.tensor([[0.8, 0.1]]), torch.tensor([[0.75, 0.15]])
    >>> round(float(ConsistencyRegulariser()(b, s, torch.tensor([[True, False]]))), 3)
    0.05
    """

    def __init__(self, num_negatives: int = 100, margin: float = 0.1, hinge: bool = True) -> None:
        super().__init__()
        self.hinge: bool = check_flag("hinge", hinge)
        self.num_negatives: int = check_integer("num_negatives", num_negatives, low=1)
        self.margin: float = check_real("margin", margin, low=0)

    def forward(self, b: Tensor, s: Tensor, target: Tensor, positives: Tensor | None = None) -> Tensor:
        """Return the regulariser; `positives` names the positive column of every row, None draws it."""
        if positives is None:
            positives = draw_positives(target)
        has_true = target.any(dim=1)
        at = positives[:, None]
        above = (s.gather(1, at) - b.gather(1, at) + self.margin)[:, 0]
        columns, real = hardest_negatives(b, target, self.num_negatives)
        below = b.gather(1, columns) - s.gather(1, columns) + self.margin
        return (self._mean(above, has_true) + self._mean(below, real & has_true[:, None])) / 2

    def _mean(self, values: Tensor, counted: Tensor) -> Tensor:
        """Return the mean of the values that are counted, of those above 0 with `hinge`."""
        kept = counted & (values > 0) if self.hinge else counted
        return torch.where(kept, values, 0.0).sum() / kept.sum().clamp(min=1)


class LossParts(NamedTuple):
    """The total loss and its parts before they are weighted."""

    total: Tensor
    query_prototype: Tensor
    query_label: Tensor
    label_query: Tensor
    consistency: Tensor


class PrimeLoss(nn.Module):
    """The whole loss of PRIME: three triplet losses and the regulariser.

    ::

        total = triplet(queries, prototypes) + query_label * triplet(queries, label texts)
              + label_query * triplet(label texts, queries) + consistency * regulariser

    A part with weight 0 is not computed.

    Parameters
    ----------
    triplet : DynamicMarginLoss, default=None
        The triplet loss; None for `DynamicMarginLoss()`.
    regulariser : ConsistencyRegulariser, default=None
        The regulariser; None for `ConsistencyRegulariser()`.
    query_label, label_query : float, default=1.0
        Weights of the triplet losses between queries and label texts, in both directions.
    consistency : float, default=0.1
        Weight of the regulariser.

    Examples
    --------
    >>> q = F.normalize(torch.tensor([[1.0, 0.2], [0.1, 1.0]]), dim=1)
    >>> parts = PrimeLoss()(q, q, q, torch.eye(2, dtype=torch.bool))
    >>> bool(parts.total == parts.query_prototype + parts.query_label + parts.label_query + 0.1 * parts.consistency)
    True
    """

    def __init__(
        self,
        triplet: DynamicMarginLoss | None = None,
        regulariser: ConsistencyRegulariser | None = None,
        query_label: float = 1.0,
        label_query: float = 1.0,
        consistency: float = 0.1,
    ) -> None:
        super().__init__()
        self.triplet: DynamicMarginLoss = triplet if triplet is not None else DynamicMarginLoss()
        self.regulariser: ConsistencyRegulariser = regulariser if regulariser is not None else ConsistencyRegulariser()
        self.query_label: float = check_real("query_label", query_label, low=0)
        self.label_query: float = check_real("label_query", label_query, low=0)
        self.consistency: float = check_real("consistency", consistency, low=0)

    def forward(
        self,
        queries: Tensor,  # (n_queries, d), unit length
        prototypes: Tensor,  # (n_labels, d), unit length
        texts: Tensor,  # (n_labels, d), unit length
        target: Tensor,  # bool (n_queries, n_labels): every known positive
    ) -> LossParts:
        """Return the loss and its parts."""
        b = queries @ prototypes.T
        nothing = b.new_zeros(())
        first = self.triplet(b, target)
        if not (self.query_label or self.label_query or self.consistency):
            return LossParts(first, first, nothing, nothing, nothing)
        s = queries @ texts.T
        second = self.triplet(s, target) if self.query_label else nothing
        third = self.triplet(s.T, target.T) if self.label_query else nothing
        fourth = self.regulariser(b, s, target) if self.consistency else nothing
        total = first + self.query_label * second + self.label_query * third + self.consistency * fourth
        return LossParts(total, first, second, third, fourth)
