"""Partitions of the labels: trees, how to grow them from label vectors, and labels in several places."""

from longtail.partition.clustering import build_tree
from longtail.partition.overlap import check_overlap, disentangle, recalled
from longtail.partition.tree import LabelTree

__all__ = ["LabelTree", "build_tree", "check_overlap", "disentangle", "recalled"]
