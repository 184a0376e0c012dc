"""The models of the study of PRIME: PRIME-lite with one thing changed, and those of the learning curves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch.nn.functional as F
from torch import Tensor

from longtail.prime import Centroids, DynamicMarginLoss, PrimeNetwork

LITE: dict[str, Any] = {"preset": "prime-lite"}
PRIME: dict[str, Any] = {"preset": "prime"}


@dataclass(frozen=True)
class Variant:
    """Parameters of `Prime`, batch and epochs as multiples of the study's, and what is replaced in the library."""

    params: dict[str, Any] = field(default_factory=lambda: dict(LITE))
    batch: float = 1.0
    epochs: float = 1.0
    classifier: bool = False  # whether the classifier stage follows
    replaced: Callable[[], AbstractContextManager[Any]] | None = None  # what has no parameter

    def patched(self) -> AbstractContextManager[Any]:
        """Return the context in which the model is trained."""
        return nullcontext() if self.replaced is None else self.replaced()


class UnitCentroids(Centroids):
    """Centroids that are scaled to unit length after every batch."""

    def move(self, labels: Tensor, counts: Tensor, queries: Tensor, before: Tensor | None = None) -> None:
        super().move(labels, counts, queries, before)
        self.values[labels] = F.normalize(self.values[labels], dim=1)


class UnitTextNetwork(PrimeNetwork):
    """A network that joins the text of a label to its prototype at unit length, as the centroid."""

    def join(self, parts: list[Tensor]) -> Tensor:
        return super().join([F.normalize(parts[0], dim=1), *parts[1:]])


class EvenNegatives(DynamicMarginLoss):
    """A triplet loss in which all negatives that violate the margin count alike, as in Equation 1."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.temperature = 1e4


class EveryPositive(DynamicMarginLoss):
    """A triplet loss over all positives that the batch shows, as Equation 1, in place of one that is drawn."""

    def forward(self, S: Tensor, target: Tensor, positives: Tensor | None = None) -> Tensor:
        rows, columns = target.nonzero(as_tuple=True)
        return super().forward(S[rows], target[rows], columns)


def lite(**params: Any) -> Variant:
    """Return PRIME-lite with other parameters."""
    return Variant({**LITE, **params})


def replacing(name: str, new: type) -> Variant:
    """Return PRIME-lite with a class of the library replaced, by its full name."""
    return Variant(replaced=lambda: patch(name, new))


CHOICES: dict[str, Variant] = {  # the most telling first
    "PRIME-lite": lite(),
    # Table 11
    "uniform sampling": lite(sampling="uniform"),
    # PRIME against PRIME-lite, and PRIME(W)
    "PRIME, batch x2": Variant(PRIME, batch=2, classifier=True),
    "PRIME, same batch": Variant(PRIME),
    "PRIME-lite, batch x2": Variant(batch=2),
    # Table 6
    "query to prototype only, fixed margin": lite(loss_weights=(0, 0, 0), margin=0.3),
    "+ query to label": lite(loss_weights=(1, 0, 0), margin=0.3),
    "+ dynamic margin": lite(loss_weights=(1, 0, 0)),
    "+ label to query": lite(loss_weights=(1, 1, 0)),
    "without centroids": lite(centroids=False),
    # the paper as printed
    "inverted zone": lite(inverted_zone=True),
    "linear regulariser": lite(regulariser="linear"),
    "without warm start": lite(warm_start=False),
    "centroids are means": lite(centroid_rule="mean"),
    "centroids at unit length": replacing("longtail.prime.network.Centroids", UnitCentroids),
    # Table 9
    "without free vectors": lite(n_free=0),
    "4,096 free vectors": lite(n_free=4096, n_private=0),
    "16,384 free vectors": lite(n_free=16_384, n_private=0),
    "1,024 free vectors": lite(n_free=1024, n_private=0),
    # more of the paper as printed
    "every positive of the batch": replacing("longtail.prime.fit.DynamicMarginLoss", EveryPositive),
    "even weights of negatives": replacing("longtail.prime.fit.DynamicMarginLoss", EvenNegatives),
    "label text at unit length": replacing("longtail.prime.network.PrimeNetwork", UnitTextNetwork),
    # as many steps as with the smaller batch
    "PRIME, batch x2, epochs x2": Variant(PRIME, batch=2, epochs=2),
    "PRIME-lite, batch x2, epochs x2": Variant(batch=2, epochs=2),
}
CLASSIFIERS: dict[str, dict[str, Any]] = {  # settings of the classifier stage
    "classifier": {},
    "classifier, warm-up of 50 steps": {"warmup": 50},
    "classifier, 5 epochs, warm-up of 50 steps": {"warmup": 50, "epochs": 5},
}
CURVES: dict[str, Variant] = {  # Figure 3
    "PRIME-lite": lite(),
    "DEXA-like": Variant({"preset": "dexa", "sampling": "propensity"}),
    "PRIME-lite, without warm start": lite(warm_start=False),
    "without centroids": lite(centroids=False),
    "without free vectors": lite(n_free=0),
    "NGAME-like": Variant({"preset": "ngame", "sampling": "propensity"}),
}
