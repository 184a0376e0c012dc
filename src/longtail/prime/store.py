"""Save and restore the network of a `Prime` as plain parameters and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from longtail.encoder import TEXT_ENCODER_KIND, TextEncoder
from longtail.errors import ModelError
from longtail.prime.network import PrimeNetwork
from longtail.prime.prototypes import Centroids, FreeVectors
from longtail.prime.settings import PROTOTYPES
from longtail.storage import Part

ENCODER, NETWORK = "encoder.", "network."


def network_part(network: PrimeNetwork) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the parameters and arrays that make the network again."""
    encoder = network.encoder.to_part()
    params: dict[str, Any] = {"encoder": encoder.params, "prototype": network.prototype}
    arrays = {f"{ENCODER}{name}": array for name, array in encoder.arrays.items()}
    for name, value in network.state_dict().items():
        if not name.startswith("encoder."):
            arrays[f"{NETWORK}{name}"] = value.detach().cpu().numpy()
    if network.joiner is not None:
        params["hidden"] = int(network.joiner.layer.linear1.out_features)
    if network.centroids is not None:
        params["momentum"] = network.centroids.momentum
    return params, arrays


def restore_network(part: Part) -> PrimeNetwork:
    """Return the network that a model's part describes."""
    try:
        params = part.params["fitted"]["network"]
        encoder = TextEncoder.from_part(Part(TEXT_ENCODER_KIND, params["encoder"], part.under(ENCODER)))
        arrays = part.under(NETWORK)
        if params["prototype"] not in PROTOTYPES:
            raise ValueError(f"prototype is {params['prototype']!r}")
        _check_sizes(arrays, encoder.width, part.arrays["labels.vectors"].shape)
        centroids = free = None
        if "centroids.values" in arrays:
            centroids = Centroids(torch.from_numpy(np.array(arrays["centroids.values"])), params["momentum"])
        if _has_free(arrays):
            n_vectors, width = arrays["free.vectors"].shape
            free = FreeVectors(np.array(arrays["free.cluster"]), width, n_vectors)
        network = PrimeNetwork(encoder, params["prototype"], centroids, free, params.get("hidden", 1))
        weights = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        missing = [name for name in _load(network, weights) if not name.startswith("encoder.")]
        if missing:
            raise KeyError(missing[0])
    except KeyError as error:
        raise ModelError(f"the model's part '{part.kind}' is damaged: it has no {error}.") from error
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise ModelError(f"the model's part '{part.kind}' is damaged: {str(error).removesuffix('.')}.") from error
    return network


def _check_sizes(arrays: dict[str, np.ndarray], width: int, labels: tuple[int, ...]) -> None:
    """Refuse arrays that do not belong together; later they would be read past their ends."""
    if len(labels) != 2 or labels[1] != width:
        raise ValueError(f"its label vectors do not have the width of its encoder, {width}")
    trained = {}
    for name in ("centroids.values", "free.vectors"):
        if name in arrays and (arrays[name].ndim != 2 or arrays[name].shape[1] != width):
            raise ValueError(f"its '{name}' do not have the width of its encoder, {width}")
    if "centroids.values" in arrays:
        trained["centroids.values"] = arrays["centroids.values"].shape[0]
    if _has_free(arrays):
        cluster, n_vectors = arrays["free.cluster"], arrays["free.vectors"].shape[0]
        sound = cluster.ndim == 1 and cluster.dtype.kind in "iu" and cluster.min(initial=0) >= 0
        if not sound or cluster.max(initial=-1) >= n_vectors:
            raise ValueError(f"its 'free.cluster' must name vectors from 0 to {n_vectors - 1} of 'free.vectors'")
        trained["free.cluster"] = cluster.size
    if len(set(trained.values())) > 1 or any(not 0 < n <= labels[0] for n in trained.values()):
        counts = ", ".join(f"'{name}' {n}" for name, n in trained.items())
        raise ValueError(f"its arrays are of different numbers of labels ({counts}, 'labels.vectors' {labels[0]})")


def _has_free(arrays: dict[str, np.ndarray]) -> bool:
    """Say whether there are free vectors; half of them is refused when the other half is looked for."""
    return "free.vectors" in arrays or "free.cluster" in arrays


def _load(network: PrimeNetwork, weights: dict[str, torch.Tensor]) -> list[str]:
    """Put weights into a network and return the names of those it lacks; refuse weights of other shapes."""
    try:
        result = network.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise ValueError("the shapes of its weights do not fit its parameters") from error
    return list(result.missing_keys)
