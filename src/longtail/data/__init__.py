"""Data: the Dataset, predictions, file formats, splits, generators and the bundled real data.

Formats, splits and generators are imported when they are first used: they load the compiled kernels.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from longtail.data.bundled import bundled_info, bundled_names, load_bundled
from longtail.data.dataset import Dataset, labels_to_matrix
from longtail.data.topk import TopK, binary_hits

if TYPE_CHECKING:
    from longtail.data.formats import FORMATS, iter_texts, read, read_filter, read_labels, write
    from longtail.data.fusion import entangle_labels, fused_labels, fused_names
    from longtail.data.generate import fuse_labels, make_groups, make_linear, make_topics
    from longtail.data.grouped import GroupedDataset, read_grouped
    from longtail.data.groups import count_labels, group_by_clusters, group_randomly
    from longtail.data.splits import split_random, split_stratified

_HOMES = {
    **dict.fromkeys(("FORMATS", "iter_texts", "read", "read_filter", "read_labels", "write"), "formats"),
    **dict.fromkeys(("entangle_labels", "fused_labels", "fused_names"), "fusion"),
    **dict.fromkeys(("fuse_labels", "make_groups", "make_linear", "make_topics"), "generate"),
    **dict.fromkeys(("GroupedDataset", "read_grouped"), "grouped"),
    **dict.fromkeys(("count_labels", "group_by_clusters", "group_randomly"), "groups"),
    **dict.fromkeys(("split_random", "split_stratified"), "splits"),
}

__all__ = [
    "FORMATS",
    "Dataset",
    "GroupedDataset",
    "TopK",
    "binary_hits",
    "bundled_info",
    "bundled_names",
    "count_labels",
    "entangle_labels",
    "fuse_labels",
    "fused_labels",
    "fused_names",
    "group_by_clusters",
    "group_randomly",
    "iter_texts",
    "labels_to_matrix",
    "load_bundled",
    "make_groups",
    "make_linear",
    "make_topics",
    "read",
    "read_filter",
    "read_grouped",
    "read_labels",
    "split_random",
    "split_stratified",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"longtail.data.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'longtail.data' has no attribute {name!r}")
