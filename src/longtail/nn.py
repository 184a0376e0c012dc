"""Torch modules under one name: output layers, losses, label prototypes, encoders; torch loads when one is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from longtail.errors import MissingExtraError

if TYPE_CHECKING:
    from longtail.bottleneck import BottleneckOutput, DFTOutput
    from longtail.encoder import TextEncoder
    from longtail.groups import DeepMIML
    from longtail.prime import (
        Centroids,
        ConsistencyRegulariser,
        Curriculum,
        DynamicMarginLoss,
        FreeVectors,
        LabelSearch,
        PositiveSampler,
        PrimeLoss,
        PrimeNetwork,
        PrototypeNetwork,
    )

_FOLDER_OF_NAME = {
    "BottleneckOutput": "bottleneck",
    "Centroids": "prime",
    "ConsistencyRegulariser": "prime",
    "Curriculum": "prime",
    "DFTOutput": "bottleneck",
    "DeepMIML": "groups",
    "DynamicMarginLoss": "prime",
    "FreeVectors": "prime",
    "LabelSearch": "prime",
    "PositiveSampler": "prime",
    "PrimeLoss": "prime",
    "PrimeNetwork": "prime",
    "PrototypeNetwork": "prime",
    "TextEncoder": "encoder",
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
    if name not in _FOLDER_OF_NAME:
        raise AttributeError(f"module 'longtail.nn' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"longtail.{_FOLDER_OF_NAME[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(f"longtail.nn.{name}", "torch", "torch") from error


def __dir__() -> list[str]:
    return __all__
