"""Labels that are assigned far more or less often than in the reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.monitoring.chance import LEVEL
from longtail.monitoring.reference import Profile, Reference


class LabelChanges(NamedTuple):
    """Labels whose share of rows has changed more than chance allows, the largest differences first."""

    labels: np.ndarray  # int
    rows: np.ndarray  # of the batch that have each
    shares: np.ndarray
    reference_shares: np.ndarray
    n_tested: int
    smallest_p: float  # of all labels, times their number

    @property
    def differences(self) -> np.ndarray:
        """Share in the batch less share in the reference."""
        return self.shares - self.reference_shares


def changed_labels(reference: Reference, batch: Profile) -> LabelChanges:
    """Return the labels whose share of rows differs by more than chance allows, once in 1,000 batches for all labels.

    Each label is tested by itself, given how many rows of both have it: a row has a label or not, so that labels which
    come together do no harm. A label that the reference does not list is taken to be as frequent as it can be there.
    That all labels come more or less often is not the doing of one: each must differ by its share of all labels too.
    """
    from scipy.special import betainc

    n, m = batch.given_rows, reference.given_rows
    before = np.full(batch.given.size, reference.given_most_other, dtype=np.int64)
    before[reference.given.labels] = reference.given.rows
    listed = np.zeros(batch.given.size, dtype=bool)
    listed[reference.given.labels] = True
    tested = np.flatnonzero((batch.given > 0) | listed)
    if not (n and m and tested.size):
        empty = np.zeros(0)
        return LabelChanges(tested[:0], batch.given[:0], empty, empty, 0, 1.0)
    now, then = batch.given[tested], before[tested]
    more, less = np.zeros(tested.size), np.zeros(tested.size)
    sizes = reference.histograms.get("assigned", np.zeros(1, dtype=np.int64))
    labels_before = max(float(sizes @ np.arange(sizes.size)), float(reference.given.rows.sum()), 1.0)
    for in_batch, in_reference in ((n, m), (max(float(batch.given.sum()), 1.0), labels_before)):
        # tails of the binomial distribution: a row that has the label is one of the batch with this share
        share = in_batch / (in_batch + in_reference)
        more = np.maximum(more, np.where(now > 0, betainc(np.maximum(now, 1), then + 1, share), 1.0))
        rarer = betainc(np.maximum(then, 1), now + 1, 1 - share)
        less = np.maximum(less, np.where(listed[tested] & (then > 0), rarer, 1.0))
    p = 2 * np.minimum(more, less) * tested.size
    found = np.flatnonzero(p <= LEVEL)
    shares, before_shares = now / n, then / m
    order = found[np.lexsort((tested[found], -np.abs(shares - before_shares)[found]))]
    return LabelChanges(
        tested[order], now[order], shares[order], before_shares[order], int(tested.size), min(float(p.min()), 1.0)
    )
