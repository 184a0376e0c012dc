"""Estimators: rows and labels in, ranked labels out."""

from longtail.models.base import XMCEstimator
from longtail.models.calibration import Calibration
from longtail.models.one_vs_all import OneVsAllClassifier

MODELS: dict[str, type[XMCEstimator]] = {OneVsAllClassifier.kind: OneVsAllClassifier}

__all__ = ["MODELS", "Calibration", "OneVsAllClassifier", "XMCEstimator"]
