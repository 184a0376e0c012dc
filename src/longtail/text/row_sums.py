"""Weighted sums of sparse rows, one per list of rows, each with its largest entries only."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

FEW = 16  # touched features are sorted if fewer than 1 in 16 of all; otherwise all features are scanned


@njit(nogil=True, cache=True)
def sum_rows(
    list_indptr, rows, shares,  # IN   lists of rows and the weight of each row   (n_lists + 1,), (n,), (n,)
    indptr, indices, values,    # IN   the rows, CSR; no feature twice
    start, stop,                # IN   the lists to look at
    keep,                       # IN   entries kept of every sum: those of the largest magnitude, the first among equals
    total,                      # TMP  zeros on entry and exit        (n_features,) float32
    seen,                       # TMP  False on entry and exit        (n_features,)
    counts,                     # OUT  entries of every list          (stop - start,) int64
    out_indices, out_values,    # OUT  entries, lists after another   (enough,)
):  # fmt: skip
    """Write the sums of some lists of rows as sparse rows, features ascending; return how many entries that makes."""
    n_features = total.size
    touched = np.empty(n_features, dtype=np.int32)
    size = 0
    for which in range(start, stop):
        n = 0
        for at in range(list_indptr[which], list_indptr[which + 1]):
            row, share = rows[at], shares[at]
            for t in range(indptr[row], indptr[row + 1]):
                f = indices[t]
                total[f] += share * values[t]
                if not seen[f]:
                    seen[f] = True
                    touched[n] = f
                    n += 1
        if n * FEW < n_features:
            touched[:n].sort()
        elif n > 0:
            n = 0
            for f in range(n_features):
                if seen[f]:
                    touched[n] = f
                    n += 1
        smallest, equal = np.float32(-1), n
        if n > keep:
            sizes = np.empty(n, dtype=np.float32)
            for i in range(n):
                sizes[i] = abs(total[touched[i]])
            smallest = np.partition(sizes, n - keep)[n - keep]
            equal = keep
            for i in range(n):
                equal -= sizes[i] > smallest
        first = size
        for i in range(n):
            f = touched[i]
            magnitude = abs(total[f])
            if magnitude > smallest or (magnitude == smallest and equal > 0):
                equal -= magnitude == smallest
                out_indices[size] = f
                out_values[size] = total[f]
                size += 1
            total[f] = 0
            seen[f] = False
        counts[which - start] = size - first
    return size
