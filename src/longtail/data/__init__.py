"""Data: the Dataset, predictions, file formats, splits, generators and the bundled real data."""

from longtail.data.dataset import Dataset, labels_to_matrix
from longtail.data.topk import TopK, binary_hits

__all__ = ["Dataset", "TopK", "binary_hits", "labels_to_matrix"]
