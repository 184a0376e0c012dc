"""Every model by the kind that its folder names: those that read rows, groups of rows, and texts."""

from __future__ import annotations

from longtail.bottleneck import BottleneckClassifier
from longtail.groups import MIMLClassifier
from longtail.model import XMCEstimator
from longtail.one_vs_all import OneVsAllClassifier
from longtail.prime import Prime
from longtail.tree import LabelTreeClassifier

MODELS: dict[str, type[XMCEstimator]] = {
    kind.kind: kind for kind in (LabelTreeClassifier, OneVsAllClassifier, BottleneckClassifier)
}
GROUPED: dict[str, type[XMCEstimator]] = {MIMLClassifier.kind: MIMLClassifier}  # fit(X, groups, Y_groups)
TEXTUAL: dict[str, type[XMCEstimator]] = {Prime.kind: Prime}  # fit(texts, Y, label_texts)
