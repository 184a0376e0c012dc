"""The models and features that a Tagger and a model folder know, by kind, and the models by method."""

from __future__ import annotations

from longtail.bottleneck import BottleneckClassifier
from longtail.encoder import EncoderFeatures
from longtail.groups import MIMLClassifier
from longtail.model import SavedFeatures, TextFeatures, XMCEstimator, clone
from longtail.one_vs_all import OneVsAllClassifier
from longtail.prime import Prime, PrimeFeatures
from longtail.text import TfidfFeatures
from longtail.tree import LabelTreeClassifier

_MODELS: tuple[type[XMCEstimator], ...] = (
    LabelTreeClassifier,
    OneVsAllClassifier,
    BottleneckClassifier,
    Prime,
    MIMLClassifier,
)
_FEATURES: tuple[type[SavedFeatures], ...] = (TfidfFeatures, EncoderFeatures, PrimeFeatures)

MODELS: dict[str, type[XMCEstimator]] = {model.kind: model for model in _MODELS}
FEATURES: dict[str, type[SavedFeatures]] = {features.kind: features for features in _FEATURES}
METHODS: dict[str, type[XMCEstimator]] = {model.tagger_method: model for model in _MODELS if model.tagger_method}
DEFAULT_METHOD = "tree"


def new_features(features: TextFeatures | None, n_jobs: int | None) -> TextFeatures:
    """Return a copy of the features, not fitted, or `TfidfFeatures()`; threads are set where they are left open."""
    made = TfidfFeatures() if features is None else clone(features)
    if made.get_params(deep=False).get("n_jobs", 0) is None:
        made.set_params(n_jobs=n_jobs)
    return made
