"""The classifier stage, PRIME(W): one vector per label, begun at its prototype and trained on fixed query vectors."""

from __future__ import annotations

from collections.abc import Callable
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
from longtail.prime.sampling import PositiveSampler, cut_batches, sampling_weights
from longtail.prime.train import true_pairs
from longtail.training import send
from longtail.validate import check_integer, check_real


@dataclass(frozen=True)
class ClassifierTraining:
    """How to train the classifier stage: as published, but for fewer epochs with a larger learning rate."""

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
    optimizer = torch.optim.SparseAdam(bank.parameters(), lr=how.lr)
    loss = DynamicMarginLoss(how.n_negatives, how.margin, how.margin)
    sampler = PositiveSampler(Y, sampling_weights(Y), how.n_positives)
    # the queries stay where they are, so their clusters are made once
    cluster = balanced_clusters(queries, how.cluster_size, how.seed).cpu().numpy()
    per_epoch = -(-Y.shape[0] // how.batch_size)
    total = how.epochs * per_epoch
    warmup = min(how.warmup, total // 10)
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(how.seed)
        for epoch in range(how.epochs):
            rng = np.random.default_rng([how.seed, 2, epoch])
            for number, rows in enumerate(cut_batches(Y.shape[0], how.batch_size, rng, cluster)):
                step = epoch * per_epoch + number
                share = (step + 1) / (warmup + 1) if step < warmup else (total - step) / max(1, total - warmup)
                optimizer.param_groups[0]["lr"] = how.lr * share
                pool = sampler(rows, rng)
                target = true_pairs(pool, rows.size, device)
                optimizer.zero_grad(set_to_none=True)
                vectors = F.normalize(bank(send(pool.unique, device)), dim=1)
                loss(queries[send(rows, device)] @ vectors.T, target).backward()
                optimizer.step()
                if on_step is not None:
                    on_step(step + 1, total)
    return F.normalize(bank.weight.detach(), dim=1)
