"""Partitions of the labels: trees grown from label vectors, labels in several places, and labels on a circle."""

from longtail.partition.clustering import build_tree
from longtail.partition.ordering import circle_order, count_runs
from longtail.partition.overlap import check_overlap, disentangle, recalled
from longtail.partition.tree import LabelTree

__all__ = ["LabelTree", "build_tree", "check_overlap", "circle_order", "count_runs", "disentangle", "recalled"]
