"""The network of PRIME: one encoder for queries and labels, and the prototypes of labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.encoder import TextEncoder, TokenRows
from longtail.kernels import blocks
from longtail.prime.label_means import mean_queries
from longtail.prime.prototypes import Centroids, FreeVectors, PrototypeNetwork, label_clusters

LABELS_AT_ONCE = 8192


class PrimeNetwork(nn.Module):
    """An encoder of queries and label texts, with a prototype for every label.

    Parameters
    ----------
    encoder : TextEncoder
        Encoder of queries and label texts.
    prototype : {"network", "sum", "text"}, default="network"
        How prototypes are made. "network": a `PrototypeNetwork` over text, centroid and free vector, as many of these
        as there are (PRIME). "sum": text plus free vector (DEXA). "text": the text alone (NGAME).
    centroids : Centroids, default=None
        Centroids of the labels' queries; None for none.
    free : FreeVectors, default=None
        Learned vectors of the labels; None for none.
    hidden : int, default=1024
        Width of the prototype network's feed-forward network.

    Examples
    --------
    >>> from longtail.encoder import new_text_encoder
    >>> names = ["red apple", "old car"]
    >>> encoder = new_text_encoder(names, width=16, layers=1, heads=2)
    >>> network = PrimeNetwork(encoder, centroids=Centroids(torch.eye(2, 16)))
    >>> network.prototypes(encoder.tokens(names)).shape
    torch.Size([2, 16])
    """

    def __init__(
        self,
        encoder: TextEncoder,
        prototype: str = "network",
        centroids: Centroids | None = None,
        free: FreeVectors | None = None,
        hidden: int = 1024,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.prototype = prototype
        self.centroids = centroids
        self.free = free
        self.joiner: PrototypeNetwork | None = (
            PrototypeNetwork(encoder.width, hidden) if prototype == "network" else None
        )

    def prototypes_of(self, texts: Tensor, labels: Tensor) -> Tensor:
        """Return the prototypes of labels whose text vectors are known."""
        parts = [texts]
        if self.centroids is not None:
            parts.append(self.centroids(labels))
        if self.free is not None:
            parts.append(self.free(labels))
        return self.join(parts)

    def join(self, parts: list[Tensor]) -> Tensor:
        """Return prototypes from what is known of the labels: text first, then centroid and free vector, if any."""
        if self.joiner is not None:
            return self.joiner(*parts)
        return torch.stack(parts).sum(dim=0) if self.prototype == "sum" else parts[0]

    @torch.no_grad()
    def queries(self, tokens: TokenRows, mixed: bool = False, rows: np.ndarray | None = None) -> Tensor:
        """Return the vectors of queries at unit length, float32; `rows` for some of them."""
        return F.normalize(self.encoder.embed_all(tokens, mixed, rows), dim=1)

    @torch.no_grad()
    def read(self, texts: Sequence[str], mixed: bool = False) -> Tensor:
        """Return the vectors of texts at unit length, float32, long ones read as the encoder's `long_texts` says."""
        return F.normalize(self.encoder.read(texts, mixed), dim=1)

    @torch.no_grad()
    def prototypes(self, tokens: TokenRows, mixed: bool = False) -> Tensor:
        """Return the prototypes of all labels at unit length, float32."""
        training = self.training
        self.eval()
        texts = self.encoder.embed_all(tokens, mixed)
        numbers = torch.arange(len(tokens), device=texts.device)
        parts = [self.prototypes_of(texts[at], numbers[at]) for at in blocks(len(tokens), LABELS_AT_ONCE)]
        self.train(training)
        return F.normalize(torch.cat(parts).float(), dim=1)


def start_network(
    encoder: TextEncoder,
    queries: TokenRows,
    labels: TokenRows,
    Y: sp.csr_array,
    *,
    prototype: str = "network",
    centroids: bool = True,
    momentum: float = 0.95,
    rule: str = "momentum",
    n_free: int = 0,
    n_private: int = 0,
    hidden: int = 1024,
    warm: bool = True,
    mixed: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    bank: Tensor | None = None,
) -> tuple[PrimeNetwork, Tensor]:
    """Return the network before training, and the vectors of all queries (float16, unit length).

    `bank` are these vectors, where they are known.

    Centroids are the means of each label's queries; labels alike, by their text as the encoder sees it now, share a
    free vector. `warm` starts from sensible prototypes: free vectors from the mean text of their labels, and a joiner
    that at first only averages. Otherwise both start at random, as published, and the first epochs go into that.
    """
    if bank is None:
        bank = F.normalize(encoder.embed_all(queries, mixed), dim=1)
    texts = encoder.embed_all(labels, mixed)
    unit = F.normalize(texts, dim=1)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    means = None
    if centroids:
        first = torch.as_tensor(mean_queries(bank.half().float().cpu().numpy(), Y, unit.cpu().numpy()))
        means = Centroids(first, momentum, rule, torch.as_tensor(counts))
    free = None
    if n_free or n_private:
        cluster = label_clusters(unit.cpu().numpy(), max(1, n_free), counts, n_private, seed, n_jobs)
        free = FreeVectors(cluster, encoder.width)
    network = PrimeNetwork(encoder, prototype, means, free, hidden)
    if warm and prototype == "network":
        _start_warm(network, texts.cpu())
    return network.to(encoder.device), bank.half()


@torch.no_grad()
def _start_warm(network: PrimeNetwork, texts: Tensor) -> None:
    """Let prototypes begin as averages: free vectors as mean texts, and a joiner that adds nothing to its inputs."""
    if network.free is not None:
        sums = torch.zeros_like(network.free.vectors).index_add_(0, network.free.cluster, texts)
        counts = torch.bincount(network.free.cluster, minlength=sums.shape[0]).clamp(min=1)
        network.free.vectors.copy_(sums / counts[:, None])
    if network.joiner is not None:  # what the layer adds to its input starts at zero
        for linear in (network.joiner.layer.self_attn.out_proj, network.joiner.layer.linear2):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
