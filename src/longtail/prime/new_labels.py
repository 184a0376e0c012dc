"""Labels that a `Prime` never saw: prototypes from their texts and from the labels nearest to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.kernels import blocks
from longtail.prime.network import PrimeNetwork

CENTROIDS = ("neighbours", "text", "none")
COMPARED = 10  # the place in a ranking at which texts and label vectors are compared; less for few labels
LABELS_PER_PLACE = 100
SAMPLE = 2000  # queries that compare them
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
    place = min(COMPARED, 1 + len(vectors) // LABELS_PER_PLACE)
    ours, theirs = (
        torch.cat([(queries[at] @ side.T).topk(place, dim=1).values[:, -1] for at in blocks(len(queries), 256)]).mean()
        for side in (vectors, texts)
    )
    if not (ours > 0 and theirs > 0):
        return 1.0
    return min(1.0, float(ours / theirs))


@torch.no_grad()
def new_prototypes(network: PrimeNetwork, label_texts: list[str], centroid: str, known: Tensor | None) -> np.ndarray:
    """Return prototypes of unit length, float32 (n, width), for labels known by their texts alone.

    `known` are the vectors of the trained labels' texts (see `trained_text_vectors`), among which a new label finds
    its neighbours; None where it needs none.
    """
    encoder = network.encoder
    texts = encoder.embed_all(encoder.tokens(label_texts))
    unit = F.normalize(texts, dim=1)
    if known is None:
        return unit.cpu().numpy()
    cosines, nearest = (unit @ known.T).topk(min(NEIGHBOURS, len(known)), dim=1)
    parts = [texts]
    if network.centroids is not None:
        weights = torch.softmax(SHARPNESS * cosines, dim=1)
        means = (weights[:, :, None] * network.centroids.values[nearest]).sum(dim=1)
        parts.append(F.normalize(means, dim=1) if centroid == "neighbours" else unit)
    if network.free is not None:
        parts.append(network.free(nearest[:, 0]))
    return F.normalize(network.join(parts), dim=1).cpu().numpy()


@torch.no_grad()
def trained_text_vectors(network: PrimeNetwork, label_texts: Sequence[str]) -> Tensor | None:
    """Return the unit vectors of the texts of the trained labels, the first ones; None where texts stand alone."""
    trained = None if network.free is None else network.free.cluster
    trained = trained if network.centroids is None else network.centroids.values
    if trained is None or network.prototype == "text":
        return None
    encoder = network.encoder
    return F.normalize(encoder.embed_all(encoder.tokens(list(label_texts[: trained.shape[0]]))), dim=1)
