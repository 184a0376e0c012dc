"""The label tree inside a model: the model itself, or a tree beside an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.model import TextReader, XMCEstimator

if TYPE_CHECKING:
    from longtail.tree.estimator import LabelTreeClassifier


@dataclass(frozen=True)
class TreeInside:
    """A trained label tree with the features that make its rows; None where it was trained on rows."""

    tree: LabelTreeClassifier
    features: TextReader | None


def tree_inside(model: XMCEstimator, features: TextReader | None) -> TreeInside | None:
    """Return the label tree inside a model that reads these features; None where there is none."""
    inside = model.label_tree(features)
    return inside if isinstance(inside, TreeInside) else None
