"""Deep-MIML: a network that learns labels of instances from labels of bags, with a mask over the instances.

Bags are given flat: all instances one after the other, and how many each bag has. Only the small table of scores
(instances × labels) is padded to the largest bag, never the instances themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longtail.bottleneck import output_width
from longtail.errors import ParameterError
from longtail.groups.bags import SetShares
from longtail.kernels import blocks
from longtail.training import DenseMatrix, SparseMatrix

# Rows are always scored so many at a time, the last ones filled up with zeros: a row then gets the same scores, to the
# last bit, alone and among others.
ROWS_AT_ONCE = 128
BAGS_AT_ONCE = 256
LEAST = 1e-7  # no probability is nearer to 0 or 1 than this


class DeepMIML(nn.Module):
    """A network from the instances of bags to the label scores of the bags.

    An instance goes through the encoder, the hidden layers and one layer of concepts × labels, all with ReLU; the best
    concept counts. For the g instances X of a bag and label vectors L, all at length 1::

        mask = g * softmax(tau * X @ L.T)           over the instances
        score of a bag = max(mask * instance score) + bias      over the instances

    The score is log-odds. Instances near a label's vector count more; `tau=0` is Deep-MIML without a mask.

    Parameters
    ----------
    n_features : int
        Columns of an instance.
    n_labels : int
        Scores per bag.
    concepts : int, default=5
        Concepts per label.
    hidden : sequence of int, default=(256,)
        Widths of the hidden layers.
    dropout : float, default=0.0
        Dropout after each hidden layer.
    tau : float, default=0.0
        Sharpness of the mask; 0 for none.
    label_vectors : ndarray of shape (n_labels, n_features), default=None
        Label vectors L of the mask.
    learn_vectors : bool, default=False
        Whether they are trained too.
    exclusive : bool, default=False
        Whether an instance has one label: its scores are then the log-odds of a softmax over labels.
    learn_bias : bool, default=True
        Whether each label has a bias of its own, or all keep that of `prior`.
    encoder : nn.Module, default=None
        A module in front that returns one row per instance; the mask reads the rows before it.
    prior : float, default=0.25
        Probability of every label at the start, about.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> network = DeepMIML(n_features=4, n_labels=3, concepts=2, hidden=(8,))
    >>> network(torch.randn(5, 4), torch.tensor([3, 2])).shape                  # bags of 3 and of 2
    torch.Size([2, 3])
    """

    concepts: int
    exclusive: bool
    n_labels: int
    tau: float

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        *,
        concepts: int = 5,
        hidden: Sequence[int] = (256,),
        dropout: float = 0.0,
        tau: float = 0.0,
        label_vectors: np.ndarray | None = None,  # (n_labels, n_features)
        learn_vectors: bool = False,
        exclusive: bool = False,
        learn_bias: bool = True,
        encoder: nn.Module | None = None,
        prior: float = 0.25,
    ) -> None:
        super().__init__()
        if tau and label_vectors is None:
            raise ParameterError(f"tau={tau:g} needs label_vectors; without them tau must be 0.")
        if label_vectors is not None and label_vectors.shape != (n_labels, n_features):
            raise ParameterError(
                name="label_vectors",
                problem=f"must have the shape {(n_labels, n_features)}; got {label_vectors.shape}.",
            )
        self.n_labels, self.concepts, self.tau, self.exclusive = n_labels, concepts, float(tau), exclusive
        self.encoder = encoder
        width = n_features if encoder is None else output_width(encoder, n_features, "instance")
        layers: list[nn.Module] = []
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU(), *([nn.Dropout(dropout)] if dropout else [])]
            width = size
        self.hidden: nn.Sequential = nn.Sequential(*layers)
        self.concept: nn.Linear = nn.Linear(width, concepts * n_labels)
        self.bias: nn.Parameter = nn.Parameter(
            torch.full((n_labels,), math.log(prior / (1 - prior))), requires_grad=learn_bias
        )
        if tau and label_vectors is not None:
            start = F.normalize(torch.from_numpy(np.array(label_vectors, dtype=np.float32)), dim=1)
            self.vectors: nn.Parameter = nn.Parameter(start, requires_grad=learn_vectors)

    def instances(self, X: Tensor) -> Tensor:
        """Return the scores of instances before mask and bias, 0 or more (n_instances, n_labels)."""
        rows = X if self.encoder is None else self.encoder(X)
        scores = F.relu(self.concept(self.hidden(rows)))  # (n_instances, concepts · n_labels)
        return scores.view(-1, self.concepts, self.n_labels).amax(dim=1)

    def nearness(self, X: Tensor) -> Tensor:
        """Return τ times the cosine of every instance with every label's vector (n_instances, n_labels)."""
        return self.tau * F.normalize(X, dim=1) @ F.normalize(self.vectors, dim=1).T

    def by_bags(self, scores: Tensor, near: Tensor | None, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores with mask and bias by bags (n_bags, largest, n_labels), and which entries are filled.

        `sizes` is best left on the CPU: reading the largest from a GPU would wait for it.
        """
        position, present = (table.to(scores.device, non_blocking=True) for table in _positions(sizes))
        full = bool((sizes == sizes.max()).all())
        values = _laid_out(scores, position, present, 0.0, full)
        if near is not None:
            # M = g · softmax over the bag's instances
            mask = _laid_out(near, position, present, -torch.inf, full).softmax(dim=1)
            values = values * (mask * present.sum(dim=1)[:, None, None])
        return values + self.bias, present

    def masked_scores(self, X: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of instances by bags, and which entries are filled."""
        return self.by_bags(self.instances(X), self.nearness(X) if self.tau else None, sizes)

    def best(self, values: Tensor, present: Tensor) -> Tensor:
        """Return the log-odds of bags, those of their best instance."""
        if self.exclusive:
            values = log_odds(values.log_softmax(dim=2))
        return values.masked_fill(~present[:, :, None], -torch.inf).amax(dim=1)

    def forward(self, X: Tensor, sizes: Tensor) -> Tensor:
        """Return the log-odds of bags from all instances, flat, and the number of each bag's."""
        return self.best(*self.masked_scores(X, sizes))


def presence_loss(network: DeepMIML, values: Tensor, present: Tensor, counts: Tensor) -> Tensor:
    """Cross-entropy of a bag's best instance with whether the bag has the label, as in Deep-MIML."""
    return F.binary_cross_entropy_with_logits(network.best(values, present), (counts > 0).float())


def counts_loss(network: DeepMIML, values: Tensor, present: Tensor, counts: Tensor) -> Tensor:
    """Cross-entropy of all instances: of a label counted c times, the c best have it and the others do not."""
    order = values.masked_fill(~present[:, :, None], -torch.inf).sort(dim=1, descending=True).values
    rank = torch.arange(values.shape[1], device=values.device)[None, :, None]
    filled = present[:, :, None].expand_as(order)  # the filled entries come first, before and after sorting
    has = (rank < counts[:, None, :]).float()
    return F.binary_cross_entropy_with_logits(order[filled], has[filled])


def shares_loss(network: DeepMIML, values: Tensor, present: Tensor, counts: Tensor) -> Tensor:
    """Cross-entropy of the mean of the instances' probabilities with the shares of the labels in the bag."""
    chances = values.softmax(dim=2) * present[:, :, None]
    mean = chances.sum(dim=1) / present.sum(dim=1, keepdim=True)
    total = counts.sum(dim=1, keepdim=True)
    return -(counts / total.clamp(min=1) * mean.clamp(min=LEAST).log()).sum(dim=1).mean()


def list_loss(network: DeepMIML, values: Tensor, present: Tensor, counts: Tensor) -> Tensor:
    """Cross-entropy of a softmax over the labels of a bag's best scores with the bag's list of labels."""
    best = values.masked_fill(~present[:, :, None], -torch.inf).amax(dim=1)
    return -(counts / counts.sum(dim=1, keepdim=True).clamp(min=1) * best.log_softmax(dim=1)).sum(dim=1).mean()


def sets_loss(
    network: DeepMIML, values: Tensor, present: Tensor, counts: Tensor, usual: Tensor, lacking: float
) -> Tensor:
    """Cross-entropies of what sets of labels say about rows that have one label each.

    No row has a label that its bag lacks; every label of a bag is that of some row; and over the rows of the batch,
    labels are as frequent as their `usual` shares say. Large bags rarely lack a label: the first is a mean over the
    share of bags, `lacking`, that do, so that it weighs as much as the last.
    """
    has, sizes = counts > 0, present.sum(dim=1)
    known = has.any(dim=1)  # a bag without labels says nothing
    logs = values.log_softmax(dim=2)
    inside = logs.masked_fill(~(has | ~known[:, None])[:, None, :], -torch.inf).logsumexp(dim=2)
    outside = -(inside * present).sum(dim=1) / sizes
    chances = logs.exp() * (present & known[:, None])[:, :, None]
    nobody = torch.log1p(-chances.clamp(max=1 - LEAST)).sum(dim=1)  # log of the chance that no row has the label
    somebody = torch.log(-torch.expm1(nobody.clamp(max=-LEAST)))
    missing = -(somebody * has).sum(dim=1) / has.sum(dim=1).clamp(min=1)
    expected = has * usual
    expected = expected / expected.sum(dim=1, keepdim=True).clamp(min=LEAST) * sizes[:, None]
    mean = chances.sum(dim=(0, 1)) / sizes.sum()
    common = -(expected.sum(dim=0) / sizes.sum() * mean.clamp(min=LEAST).log()).sum()
    return outside.mean() / lacking + missing.mean() + common


BAG_LOSSES: dict[str, Callable[..., Tensor]] = {
    "presence": presence_loss,
    "counts": counts_loss,
    "shares": shares_loss,
    "list": list_loss,
    "sets": sets_loss,
}


def bag_loss(
    network: DeepMIML,
    X: sp.csr_array | np.ndarray,
    members: sp.csr_array,  # (n_bags, n_rows): the rows of every bag
    counts: sp.csr_array,  # (n_bags, n_labels): how often each bag has each label
    loss: str,
    sets: SetShares | None = None,  # for loss="sets"
) -> Callable[[Tensor], Tensor]:
    """Return a function from numbers of bags to their mean loss."""
    device = network.bias.device
    more = {} if sets is None else {"usual": torch.from_numpy(sets.usual).to(device), "lacking": sets.lacking}
    rows = DenseMatrix(X, device) if isinstance(X, np.ndarray) else SparseMatrix(X, device)
    bags, labels = SparseMatrix(members, device), SparseMatrix(counts, device)
    sizes = torch.from_numpy(np.diff(members.indptr).astype(np.int64))

    def of(numbers: Tensor) -> Tensor:
        values, present = network.masked_scores(rows.dense(bags.take(numbers).ids), sizes[numbers])
        return BAG_LOSSES[loss](network, values, present, labels.dense(numbers), **more)

    return of


def score_bags(
    network: DeepMIML, rows: Callable[[np.ndarray], np.ndarray], members: sp.csr_array
) -> Iterator[np.ndarray]:
    """Yield the log-odds of one block of bags after the other; `rows` gives dense rows by their numbers."""
    device = network.eval().bias.device
    with torch.inference_mode():
        for at in blocks(members.shape[0], BAGS_AT_ONCE):
            part = members[at]
            scores, near = [], []
            for some in blocks(part.indices.size, ROWS_AT_ONCE):
                taken = rows(part.indices[some])
                filled = np.zeros((ROWS_AT_ONCE, taken.shape[1]), dtype=np.float32)
                filled[: len(taken)] = taken
                batch = torch.from_numpy(filled).to(device)
                scores.append(network.instances(batch)[: len(taken)])
                if network.tau:
                    near.append(network.nearness(batch)[: len(taken)])
            sizes = torch.from_numpy(np.diff(part.indptr).astype(np.int64))
            values = network.by_bags(torch.cat(scores), torch.cat(near) if near else None, sizes)
            yield network.best(*values).float().cpu().numpy()


def log_odds(log_chance: Tensor) -> Tensor:
    """Return log(p / (1 - p)) from log p; chances within 1e-7 of 1 are taken as that.

    >>> log_odds(torch.tensor([0.5]).log()).item()
    0.0
    """
    log_chance = log_chance.clamp(max=-LEAST)
    return log_chance - torch.log(-torch.expm1(log_chance))


def _positions(sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the instance at every position of a bag (n_bags, largest), 0 where there is none, and which are filled."""
    at = torch.arange(int(sizes.max()), device=sizes.device)[None, :]
    present = at < sizes[:, None]
    first = (torch.cumsum(sizes, 0) - sizes)[:, None]
    return torch.where(present, first + at, 0), present


def _laid_out(table: Tensor, position: Tensor, present: Tensor, blank: float, full: bool) -> Tensor:
    """Return rows of a table by bags (n_bags, largest, n_columns), `blank` where there is none."""
    if full:  # bags of one size: nothing to copy
        return table.view(*position.shape, table.shape[1])
    return table[position].masked_fill(~present[:, :, None], blank)
