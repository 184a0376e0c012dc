"""The classifier stage, PRIME(W): one vector per label, trained on fixed query vectors from its prototype on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.errors import ParameterError
from longtail.prime.losses import DynamicMarginLoss
from longtail.prime.query_clusters import balanced_clusters
from longtail.prime.sampling import LabelPool, PositiveSampler, cut_batches, sampling_weights
from longtail.prime.train import true_pairs
from longtail.training import Training, to_device, train, warmup_and_decay
from longtail.validate import check_integer, check_real


@dataclass(frozen=True)
class ClassifierTraining:
    """Settings of the classifier stage: as published, but for fewer epochs with a larger learning rate.

    Parameters
    ----------
    epochs : int, default=20
        Passes over the queries.
    batch_size : int, default=2048
        Queries of a batch.
    lr : float, default=1e-3
        Largest learning rate.
    n_positives : int, default=5
        Labels shown per query.
    n_negatives : int, default=100
        Hardest labels of the batch that a query is held against.
    margin : float, default=0.2
        Margin of the triplet loss.
    warmup : int, default=500
        Steps until the learning rate is at its largest.
    cluster_size : int, default=32
        Similar queries that stay together in a batch.
    seed : int, default=0
        Seed.
    """

    epochs: int = 20
    batch_size: int = 2048
    lr: float = 1e-3
    n_positives: int = 5
    n_negatives: int = 100
    margin: float = 0.2
    warmup: int = 500
    cluster_size: int = 32
    seed: int = 0


def classifier_settings(given: dict[str, Any]) -> ClassifierTraining:
    """Return the settings of a training, checked.

    >>> classifier_settings({"epochs": 3}).epochs
    3
    """
    known = {field.name: field.default for field in fields(ClassifierTraining)}
    for name, value in given.items():
        if name not in known:
            raise ParameterError(f"settings of the classifier must be among {sorted(known)}; got {name!r}.")
        if name == "margin" or isinstance(known[name], float):
            check_real(name, value, low=0, open_low=name != "margin")
        else:
            check_integer(name, value, low=0 if name in ("seed", "warmup") else 1)
    return ClassifierTraining(**given)


def train_classifier(
    queries: Tensor,  # (n_rows, width), unit length
    Y: sp.csr_array,
    prototypes: Tensor,  # (n_labels, width), unit length
    how: ClassifierTraining,
    on_step: Callable[[int, int], None] | None = None,
) -> Tensor:
    """Return one vector per label at unit length (n_labels, width); labels without a row keep their prototypes.

    Gradients are sparse: a step touches the labels of its batch only, whatever the number of labels.

    >>> queries, Y = F.normalize(torch.eye(4) + 0.5, dim=1), sp.csr_array(np.eye(4, dtype=np.float32))
    >>> W = train_classifier(queries, Y, queries.flip(0), ClassifierTraining(epochs=40, lr=0.1))
    >>> (queries @ W.T).argmax(dim=1).tolist()
    [0, 1, 2, 3]
    """
    device = queries.device
    bank = nn.Embedding.from_pretrained(prototypes.clone(), freeze=False, sparse=True)
    loss = DynamicMarginLoss(how.n_negatives, how.margin, how.margin)
    sampler = PositiveSampler(Y, sampling_weights(Y), how.n_positives)
    cluster = balanced_clusters(queries, how.cluster_size, how.seed).cpu().numpy()

    def epoch_batches(epoch: int) -> Iterator[tuple[np.ndarray, LabelPool]]:
        rng = np.random.default_rng([how.seed, 2, epoch])
        for rows in cut_batches(Y.shape[0], how.batch_size, rng, cluster):
            yield rows, sampler(rows, rng)

    def batch_loss(batch: tuple[np.ndarray, LabelPool]) -> Tensor:
        rows, pool = batch
        vectors = F.normalize(bank(to_device(pool.unique, device)), dim=1)
        return loss(queries[to_device(rows, device)] @ vectors.T, true_pairs(pool, rows.size, device))

    train(
        bank,
        [torch.optim.SparseAdam(bank.parameters(), lr=how.lr)],
        -(-Y.shape[0] // how.batch_size),
        epoch_batches,
        batch_loss,
        Training(epochs=how.epochs, mixed=False, seed=how.seed),
        learning_rate=warmup_and_decay(how.lr, how.warmup),
        on_step=on_step,
    )
    return F.normalize(bank.weight.detach(), dim=1)
