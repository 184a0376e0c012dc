"""Estimators: rows and labels in, ranked labels out."""

from longtail.models.base import XMCEstimator
from longtail.models.bottleneck import BottleneckClassifier
from longtail.models.calibration import Calibration
from longtail.models.label_tree import LabelTreeClassifier
from longtail.models.miml import MIMLClassifier
from longtail.models.one_vs_all import OneVsAllClassifier
from longtail.models.prime import Prime
from longtail.models.prime_features import PrimeFeatures

MODELS: dict[str, type[XMCEstimator]] = {
    kind.kind: kind for kind in (LabelTreeClassifier, OneVsAllClassifier, BottleneckClassifier)
}
GROUPED: dict[str, type[XMCEstimator]] = {MIMLClassifier.kind: MIMLClassifier}  # fit(X, groups, Y_groups)
TEXTUAL: dict[str, type[XMCEstimator]] = {Prime.kind: Prime}  # fit(texts, Y, label_texts)

__all__ = [
    "GROUPED",
    "MODELS",
    "TEXTUAL",
    "BottleneckClassifier",
    "Calibration",
    "LabelTreeClassifier",
    "MIMLClassifier",
    "OneVsAllClassifier",
    "Prime",
    "PrimeFeatures",
    "XMCEstimator",
]
