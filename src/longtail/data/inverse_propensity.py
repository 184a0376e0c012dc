"""How much more a rare label should count than its rows: the inverse propensities of Jain et al. (2016)."""

from __future__ import annotations

import numpy as np


def inverse_propensities(counts: np.ndarray, n_rows: int, A: float, B: float) -> np.ndarray:
    """Return 1 / p of labels with `counts` of `n_rows` training rows: float64, 1 or more.

    With fewer than three rows ln N - 1 is negative and the model has no meaning: all are 1.

    >>> inverse_propensities(np.array([1, 1000]), 10_000, A=0.55, B=1.5).round(2).tolist()
    [9.21, 1.3]
    """
    C = max(np.log(max(n_rows, 1)) - 1.0, 0.0) * (B + 1.0) ** A
    # 1 / p = 1 + C · exp(-A · ln(N_l + B))
    return 1.0 + C * (counts + B) ** -A
