"""longtail: extreme multi-label classification, from text to tags.

Names are imported when they are first used, so `import longtail` is cheap and never loads torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from longtail._version import __version__

if TYPE_CHECKING:
    from longtail import audit, checks, data, features, metrics, nn
    from longtail.aggregate import Eagle
    from longtail.data import Dataset, TopK
    from longtail.features import EncoderFeatures, TfidfFeatures
    from longtail.models import BottleneckClassifier, LabelTreeClassifier, MIMLClassifier, OneVsAllClassifier, Prime
    from longtail.partition import LabelTree
    from longtail.pipeline import Tagger, load

_HOMES = {
    "BottleneckClassifier": "longtail.models",
    "Dataset": "longtail.data",
    "Eagle": "longtail.aggregate",
    "EncoderFeatures": "longtail.features",
    "LabelTree": "longtail.partition",
    "LabelTreeClassifier": "longtail.models",
    "MIMLClassifier": "longtail.models",
    "OneVsAllClassifier": "longtail.models",
    "Prime": "longtail.models",
    "Tagger": "longtail.pipeline",
    "TfidfFeatures": "longtail.features",
    "TopK": "longtail.data",
    "load": "longtail.pipeline",
}
_ROOMS = ("audit", "checks", "data", "features", "metrics", "nn")

__all__ = [
    "BottleneckClassifier",
    "Dataset",
    "Eagle",
    "EncoderFeatures",
    "LabelTree",
    "LabelTreeClassifier",
    "MIMLClassifier",
    "OneVsAllClassifier",
    "Prime",
    "Tagger",
    "TfidfFeatures",
    "TopK",
    "__version__",
    "audit",
    "checks",
    "data",
    "features",
    "load",
    "metrics",
    "nn",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"longtail.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'longtail' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
