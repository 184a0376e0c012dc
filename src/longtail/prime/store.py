"""Save and restore the network of a `Prime` as plain parameters and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from longtail.encoder import TEXT_ENCODER_SCHEMA, TextEncoder
from longtail.errors import ModelError
from longtail.prime.network import PrimeNetwork
from longtail.prime.prototypes import Centroids, FreeVectors
from longtail.prime.schema import PRIME_SCHEMA
from longtail.storage import Part, checked

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
    part = checked(part, PRIME_SCHEMA)
    params = part.params["fitted"]["network"]
    encoder = TextEncoder.from_part(part.inner(ENCODER, TEXT_ENCODER_SCHEMA.kind, params["encoder"]))
    arrays = part.under(NETWORK)
    centroids = free = None
    if "centroids.values" in arrays:
        centroids = Centroids(torch.from_numpy(np.array(arrays["centroids.values"])), params["momentum"])
    if "free.vectors" in arrays:
        n_vectors, width = arrays["free.vectors"].shape
        free = FreeVectors(np.array(arrays["free.cluster"]), width, n_vectors)
    network = PrimeNetwork(encoder, params["prototype"], centroids, free, params.get("hidden", 1))
    weights = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    try:
        result = network.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise ModelError(
            f"the model's part '{part.kind}' is damaged: its weights do not fit its parameters."
        ) from error
    missing = next((name for name in result.missing_keys if not name.startswith("encoder.")), None)
    if missing is not None:
        raise ModelError(f"the model's part '{part.kind}' is damaged: it has no '{missing}'.")
    return network
