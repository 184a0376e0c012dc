"""Partitions of the labels: trees, and how to grow them from label vectors."""

from longtail.partition.clustering import build_tree
from longtail.partition.tree import LabelTree

__all__ = ["LabelTree", "build_tree"]
