"""Parts for torch models: output layers, losses, label prototypes, encoders; torch is loaded when one is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from longtail.errors import MissingExtraError

if TYPE_CHECKING:
    from longtail.nn.batching import Curriculum, PositiveSampler
    from longtail.nn.encoders import TextEncoder
    from longtail.nn.label_search import LabelSearch
    from longtail.nn.losses import ConsistencyRegulariser, DynamicMarginLoss, PrimeLoss
    from longtail.nn.miml import DeepMIML
    from longtail.nn.output import BottleneckOutput, DFTOutput
    from longtail.nn.prime_network import PrimeNetwork
    from longtail.nn.prototypes import Centroids, FreeVectors, PrototypeNetwork

_HOMES = {
    "BottleneckOutput": "longtail.nn.output",
    "Centroids": "longtail.nn.prototypes",
    "ConsistencyRegulariser": "longtail.nn.losses",
    "Curriculum": "longtail.nn.batching",
    "DFTOutput": "longtail.nn.output",
    "DeepMIML": "longtail.nn.miml",
    "DynamicMarginLoss": "longtail.nn.losses",
    "FreeVectors": "longtail.nn.prototypes",
    "LabelSearch": "longtail.nn.label_search",
    "PositiveSampler": "longtail.nn.batching",
    "PrimeLoss": "longtail.nn.losses",
    "PrimeNetwork": "longtail.nn.prime_network",
    "PrototypeNetwork": "longtail.nn.prototypes",
    "TextEncoder": "longtail.nn.encoders",
}

__all__ = [
    "BottleneckOutput",
    "Centroids",
    "ConsistencyRegulariser",
    "Curriculum",
    "DFTOutput",
    "DeepMIML",
    "DynamicMarginLoss",
    "FreeVectors",
    "LabelSearch",
    "PositiveSampler",
    "PrimeLoss",
    "PrimeNetwork",
    "PrototypeNetwork",
    "TextEncoder",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'longtail.nn' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(f"longtail.nn.{name}", "torch", "torch") from error


def __dir__() -> list[str]:
    return __all__
