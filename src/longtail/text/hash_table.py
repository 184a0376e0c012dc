"""An open-addressing table of 64-bit keys in one array, shared by the kernels for words and for n-grams.

A row of the array is a slot: a key (0 = free) and a value. Entries are never removed, and at least half the slots
stay free, so a search always ends.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FREE, _HALF = np.uint64(0), np.uint64(32)


@njit(nogil=True, cache=True)
def mix(key: np.uint64) -> np.uint64:
    """Spread a key over 64 bits; the low bits choose its slot."""
    key = (key ^ (key >> _HALF)) * MULTIPLIER
    return key ^ (key >> _HALF)


@njit(nogil=True, cache=True)
def refill(
    old: np.ndarray,  # IN      key (0 = free), value   (2**a, 2) uint64
    new: np.ndarray,  # IN/OUT  a larger, empty table   (2**b, 2) uint64
) -> None:
    """Move the entries of a table into a larger one."""
    mask = new.shape[0] - 1
    for i in range(old.shape[0]):
        if old[i, 0] != _FREE:
            at = np.int64(mix(old[i, 0])) & mask
            while new[at, 0] != _FREE:
                at = (at + 1) & mask
            new[at, 0] = old[i, 0]
            new[at, 1] = old[i, 1]


def make_slots(n_entries: int) -> np.ndarray:
    """Return an empty table with at least twice as many slots as entries.

    >>> make_slots(5).shape
    (16, 2)
    """
    return np.zeros((1 << max(4, (2 * n_entries - 1).bit_length()), 2), dtype=np.uint64)
