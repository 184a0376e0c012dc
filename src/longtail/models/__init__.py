"""Estimators: rows and labels in, ranked labels out."""

from longtail.models.base import XMCEstimator
from longtail.models.calibration import Calibration
from longtail.models.label_tree import LabelTreeClassifier
from longtail.models.one_vs_all import OneVsAllClassifier

MODELS: dict[str, type[XMCEstimator]] = {kind.kind: kind for kind in (LabelTreeClassifier, OneVsAllClassifier)}

__all__ = ["MODELS", "Calibration", "LabelTreeClassifier", "OneVsAllClassifier", "XMCEstimator"]
