"""Labels that a `Prime` never saw: prototypes from their texts and from the labels nearest to them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

CENTROIDS = ("neighbours", "text", "none")
NEIGHBOURS = 5
SHARPNESS = 10.0  # of the weights of neighbours: exp(SHARPNESS * cosine)


@torch.no_grad()
def new_prototypes(model: Any, label_texts: list[str], centroid: str) -> Any:
    """Return prototypes of unit length, float32 (n, width), for labels known by their texts alone."""
    network = model.network_
    encoder = network.encoder
    texts = encoder.embed_all(encoder.tokens(label_texts))
    unit = F.normalize(texts, dim=1)
    if centroid == "none" or network.prototype == "text":
        return unit.cpu().numpy()
    n_trained = network.centroids.values.shape[0] if network.centroids is not None else network.free.cluster.shape[0]
    if not hasattr(model, "_text_vectors"):
        known = encoder.embed_all(encoder.tokens(list(model.label_texts_[:n_trained])))
        model._text_vectors = F.normalize(known, dim=1)
    cosines, nearest = (unit @ model._text_vectors.T).topk(min(NEIGHBOURS, n_trained), dim=1)
    parts = [texts]
    if network.centroids is not None:
        weights = torch.softmax(SHARPNESS * cosines, dim=1)
        means = (weights[:, :, None] * network.centroids.values[nearest]).sum(dim=1)
        parts.append(F.normalize(means, dim=1) if centroid == "neighbours" else unit)
    if network.free is not None:
        parts.append(network.free(nearest[:, 0]))
    return F.normalize(network.join(parts), dim=1).cpu().numpy()
