"""Candidates of rows whose labels are known, as (row, label) pairs: what every choice of a decision looks at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK, binary_hits
from longtail.errors import DataError


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Candidates with probabilities, which of them are right, and how many labels rows and labels really have."""

    probabilities: TopK
    hits: np.ndarray  # bool (n_rows, candidates)
    row_true: np.ndarray  # int64 (n_rows,): true labels of every row, those outside the candidates too
    label_true: np.ndarray  # int64 (n_labels,): true rows of every label
    train_counts: np.ndarray  # int64 (n_labels,): training rows of every label

    @classmethod
    def of(cls, Y: sp.csr_array, probabilities: TopK, train_counts: np.ndarray) -> JudgedRows:
        """Compare candidates with the truth; labels that the model does not know stay in the truth of the rows."""
        if probabilities.n_rows == 0:
            raise DataError("a decision needs rows to be chosen on; got 0.")
        n = train_counts.size
        label_true = np.bincount(Y.indices[Y.indices < n], minlength=n).astype(np.int64)
        hits = binary_hits(probabilities, Y)
        return cls(probabilities, hits, np.diff(Y.indptr).astype(np.int64), label_true, np.asarray(train_counts))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.probabilities.n_rows

    @property
    def n_true(self) -> int:
        """The number of true pairs, those outside the candidates too."""
        return int(self.row_true.sum())

    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return label, probability and whether it is right of every pair."""
        present = self.probabilities.ids >= 0
        return self.probabilities.ids[present], self.probabilities.scores[present], self.hits[present]
