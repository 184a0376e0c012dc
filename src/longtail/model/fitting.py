"""Shared pieces of `fit_dataset`: row splits, progress callbacks, features learned from texts, held-out predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK
from longtail.errors import DataError
from longtail.kernels import Progress
from longtail.model.text_features import TextFeatures
from longtail.validate import Json, Rows, as_rows

Split: TypeAlias = "tuple[np.ndarray, np.ndarray]"
"""Numbers of the rows to train on, and of those held out."""
Stages: TypeAlias = "Callable[[str, int, int], None]"
"""Progress of a work of many stages: `progress(what is being done, done, total)`."""
EpochReport: TypeAlias = "Callable[[Json], None]"
"""Called after every epoch with its record: epoch, loss and more."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions for held-out rows, by a model that was not trained on them."""

    Y: sp.csr_array  # the true labels
    top: TopK
    label_counts: np.ndarray  # training rows per label, of that model
    n_rows: int  # training rows of that model


def rows_of_dataset(data: Dataset, features: TextFeatures | None, progress: Stages | None = None) -> Rows:
    """Return the rows of the data: by features that learn from its texts, or its own where these are there already."""
    if data.texts is None or data.made_by is not None:
        return as_rows(data.X)
    if features is None:
        raise DataError("the data has texts and no rows; give features that turn texts into rows.")
    if progress is not None:
        progress("Reading texts", 0, data.n_rows)
    return features.fit_transform(data.texts)


def of_stage(progress: Stages | None, name: str) -> Progress | None:
    """Return the callable `(done, total)` of one stage."""
    return None if progress is None else lambda done, total: progress(name, done, total)
