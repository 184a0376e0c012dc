"""Names for the types that cross the borders of longtail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

# what users may pass
MatrixLike: TypeAlias = "np.ndarray | sp.sparray | sp.spmatrix | Sequence[Sequence[float]]"
"""Rows or labels as users have them: dense, sparse in any format, or nested lists; checked by `validate`."""
LabelNumbers: TypeAlias = "np.ndarray | Sequence[int]"
"""Labels by number, 0 to n_labels - 1."""
RandomState: TypeAlias = "int | np.random.Generator | np.random.RandomState | None"
"""A seed as scikit-learn takes it; None means 0, so that the same call gives the same model."""

# what the checked values are
Rows: TypeAlias = "np.ndarray | sp.csr_array"
"""Checked rows: C-ordered dense float32, or CSR float32 with sorted int32 ids."""
Json: TypeAlias = "dict[str, Any]"
"""An object that can be written as JSON."""
