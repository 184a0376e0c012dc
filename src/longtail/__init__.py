"""longtail: extreme multi-label classification, from text to tags.

Names are imported when they are first used, so `import longtail` is cheap and never loads torch.
"""

from __future__ import annotations

from longtail._version import __version__

TYPE_CHECKING = False  # `typing` itself is slow to import
if TYPE_CHECKING:
    from typing import Any

    from longtail import audit, checks, data, engine, metrics, nn, text
    from longtail.bottleneck import BottleneckClassifier
    from longtail.data import Dataset, TopK
    from longtail.encoder import EncoderFeatures
    from longtail.groups import Eagle, MIMLClassifier
    from longtail.hybrid import Hybrid
    from longtail.label_check import check_labels
    from longtail.one_vs_all import OneVsAllClassifier
    from longtail.pipeline import Tagger, load
    from longtail.prime import Prime
    from longtail.text import BeginningFeatures, TfidfFeatures
    from longtail.tree import LabelTree, LabelTreeClassifier
    from longtail.tuning import tune
    from longtail.vocabulary import Vocabulary

_FOLDER_OF_NAME = {
    "BeginningFeatures": "text",
    "BottleneckClassifier": "bottleneck",
    "Dataset": "data",
    "Eagle": "groups",
    "EncoderFeatures": "encoder",
    "Hybrid": "hybrid",
    "LabelTree": "tree",
    "LabelTreeClassifier": "tree",
    "MIMLClassifier": "groups",
    "OneVsAllClassifier": "one_vs_all",
    "Prime": "prime",
    "Tagger": "pipeline",
    "TfidfFeatures": "text",
    "TopK": "data",
    "Vocabulary": "vocabulary",
    "check_labels": "label_check",
    "load": "pipeline",
    "tune": "tuning",
}
_PUBLIC_MODULES = ("audit", "checks", "data", "engine", "metrics", "nn", "text")

__all__ = [
    "BeginningFeatures",
    "BottleneckClassifier",
    "Dataset",
    "Eagle",
    "EncoderFeatures",
    "Hybrid",
    "LabelTree",
    "LabelTreeClassifier",
    "MIMLClassifier",
    "OneVsAllClassifier",
    "Prime",
    "Tagger",
    "TfidfFeatures",
    "TopK",
    "Vocabulary",
    "__version__",
    "audit",
    "check_labels",
    "checks",
    "data",
    "engine",
    "load",
    "metrics",
    "nn",
    "text",
    "tune",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _PUBLIC_MODULES:
        return importlib.import_module(f"longtail.{name}")
    if name in _FOLDER_OF_NAME:
        return getattr(importlib.import_module(f"longtail.{_FOLDER_OF_NAME[name]}"), name)
    raise AttributeError(f"module 'longtail' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
