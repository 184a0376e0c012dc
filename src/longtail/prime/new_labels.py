"""Prototypes of labels without training rows, from their texts and from the trained labels nearest to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.kernels import blocks
from longtail.prime.label_means import compared_rank, fair_length
from longtail.prime.network import PrimeNetwork

NEIGHBOURS = 5
SHARPNESS = 10.0  # of the weights of neighbours: exp(SHARPNESS * cosine)


@torch.no_grad()
def text_scale(queries: Tensor, vectors: Tensor, texts: Tensor) -> float:
    """Return the length a label's text vector needs to compete with trained label vectors; at most 1.

    Queries are nearer to label texts in general than to label vectors, which were taught to keep their distance: new
    labels of full length would push the trained ones out of most rankings. At this length the tenth best score of the
    `queries` (n, width) among `texts` (n_labels, width) is that among `vectors`, on average. All but the vectors have
    unit length.

    >>> near, far = torch.tensor([[0.8, 0.6]]), torch.tensor([[0.6, 0.8]])
    >>> round(text_scale(torch.tensor([[1.0, 0.0]]), far, near), 3)
    0.75
    """
    rank = compared_rank(len(vectors))
    ours, theirs = (
        torch.cat([(queries[at] @ side.T).topk(rank, dim=1).values[:, -1] for at in blocks(len(queries), 256)]).mean()
        for side in (vectors, texts)
    )
    return fair_length(float(ours), float(theirs))


@torch.no_grad()
def trained_text_vectors(network: PrimeNetwork, label_texts: Sequence[str]) -> Tensor:
    """Return the vectors of the texts of all trained labels at unit length, (n_trained, width).

    `label_texts` are those of all labels of the model, the trained ones first.
    """
    n_trained = len(label_texts)
    if network.centroids is not None:
        n_trained = network.centroids.values.shape[0]
    elif network.free is not None:
        n_trained = network.free.cluster.shape[0]
    encoder = network.encoder
    return F.normalize(encoder.embed_all(encoder.tokens(list(label_texts[:n_trained]))), dim=1)


@torch.no_grad()
def new_prototypes(network: PrimeNetwork, label_texts: Sequence[str], centroid: str, trained: Tensor) -> np.ndarray:
    """Return prototypes of unit length, float32 (n, width), for labels known by their texts alone.

    `trained` is what `trained_text_vectors` returns.
    """
    encoder = network.encoder
    texts = encoder.embed_all(encoder.tokens(label_texts))
    unit = F.normalize(texts, dim=1)
    cosines, nearest = (unit @ trained.T).topk(min(NEIGHBOURS, len(trained)), dim=1)
    parts = [texts]
    if network.centroids is not None:
        weights = torch.softmax(SHARPNESS * cosines, dim=1)
        means = (weights[:, :, None] * network.centroids.values[nearest]).sum(dim=1)
        parts.append(F.normalize(means, dim=1) if centroid == "neighbours" else unit)
    if network.free is not None:
        parts.append(network.free(nearest[:, 0]))
    return F.normalize(network.join(parts), dim=1).cpu().numpy()
