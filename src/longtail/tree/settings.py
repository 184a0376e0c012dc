"""What the parameters of a label tree may be, and what stands for those that are not given."""

from __future__ import annotations

from typing import Any

MERGES = ("max", "mean")
LEAST = 3  # rows that a further place of a label must recall
ROOM = 2.0  # how many times the mean number of labels a leaf may hold once labels overlap
ROUGH = 1.0  # tolerance of the classifiers that only find places
BEAM, BEAM_OVERLAP = 10, 7  # several ways lead to a label that stands in several leaves
NEGATIVES = ("tfn", "man", "tfn+man")
LINKS = {"l1-hinge": 1, "l2-hinge": 2, "l3-hinge": 3, "l4-hinge": 4, "sigmoid": -1, "noop": 0}
PATH_WEIGHT = {"tfn": 1.0, "man": 0.3, "tfn+man": 0.3}
FAST: dict[str, Any] = {"beam": 8, "tol": 1.0}
SLOPE = 0.0
NEARLY_ONE = 1e-6  # rows this near to unit length are taken as they are
ENTRIES_OF_A_VECTOR = 128  # of a label, to cluster by: more gave no better trees on held-out rows of three data sets
MERGED_AT_LEAST = 20  # places taken from each tree of an ensemble before they are merged


def errors_weight(n_rows: int, features_per_row: float) -> float:
    """Return the C for so many rows of so many features: 1 for long rows or few of them, less for many short ones.

    Fitted to what was best on held-out rows of four data sets with 8, 43, 184 and 237 features per row, and on parts of
    two others.

    >>> round(errors_weight(300_000, 8), 2), errors_weight(300_000, 500), errors_weight(1000, 44)
    (0.35, 1.0, 1.0)
    """
    few = max(1.0, 10_000 / max(n_rows, 1)) ** 0.25
    return float(min(1.0, max(0.2, 0.175 * features_per_row ** (1 / 3)) * few))
