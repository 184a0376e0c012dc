"""The network of a `Prime` as plain parameters and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from longtail.errors import ModelError
from longtail.nn.encoders import KIND, TextEncoder
from longtail.nn.prime_network import PrimeNetwork
from longtail.nn.prime_settings import PROTOTYPES
from longtail.nn.prototypes import Centroids, FreeVectors
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
        encoder = TextEncoder.from_part(Part(KIND, params["encoder"], _under(part, ENCODER)))
        arrays = _under(part, NETWORK)
        if params["prototype"] not in PROTOTYPES:
            raise ValueError(f"prototype is {params['prototype']!r}")
        centroids = free = None
        if "centroids.values" in arrays:
            centroids = Centroids(torch.from_numpy(np.array(arrays["centroids.values"])), params["momentum"])
        if "free.vectors" in arrays:
            n_vectors, width = arrays["free.vectors"].shape
            free = FreeVectors(np.array(arrays["free.cluster"]), width, n_vectors)
        network = PrimeNetwork(encoder, params["prototype"], centroids, free, params.get("hidden", 1))
        weights = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        missing = network.load_state_dict(weights, strict=False).missing_keys
        if [name for name in missing if not name.startswith("encoder.")]:
            raise ValueError("weights are missing")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ModelError(f"the model's part '{part.kind}' is damaged: {error}") from error
    return network


def _under(part: Part, prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): a for name, a in part.arrays.items() if name.startswith(prefix)}
