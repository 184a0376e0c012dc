"""Precision and recall by training frequency of the labels: head, torso, tail and unseen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.data import TopK
from longtail.errors import DataError, ParameterError
from longtail.facts import BandRangeFacts, FrequencyBinFacts, PooledFacts
from longtail.metrics.label_metrics import LabelTally, tally_labels
from longtail.metrics.measures import Means, Measure, share
from longtail.metrics.propensity import NumberPerLabel, check_counts
from longtail.metrics.row_metrics import Judged, judge
from longtail.validate import MatrixLike, check_integer

BAND_NAMES = ("head", "torso", "tail", "unseen")


@dataclass(frozen=True, eq=False)
class LabelBands:
    """The band of every label, by its number in `BAND_NAMES`, and the frequencies it was made from."""

    of_label: np.ndarray  # int8 (n_labels,)
    train_counts: np.ndarray  # int64 (n_labels,)

    def describe(self) -> list[BandRangeFacts]:
        """Return name, number of labels and lowest and highest frequency of each band."""
        out: list[BandRangeFacts] = []
        for number, name in enumerate(BAND_NAMES):
            counts = self.train_counts[self.of_label == number]
            low, high = (int(counts.min()), int(counts.max())) if counts.size else (None, None)
            out.append({"name": name, "labels": int(counts.size), "lowest": low, "highest": high})
        return out


def label_bands(train_counts: NumberPerLabel, thresholds: tuple[int, int] | None = None) -> LabelBands:
    """Put every label into head, torso, tail or unseen by its number of training rows.

    By default each band holds about a third of all label occurrences: the head is the most frequent
    labels, taken until they make up a third, the torso the next ones until two thirds, the tail the rest.
    Labels of the same frequency are never separated. Labels without a training row are unseen.

    Parameters
    ----------
    train_counts : array of shape (n_labels,)
        The number of training rows of every label.
    thresholds : tuple of (int, int) or None, default=None
        `(low, high)`: the tail is below `low` training rows, the head at or above `high`. None makes bands of thirds.

    Returns
    -------
    bands : LabelBands
        `of_label` numbers the band of every label in `BAND_NAMES`.

    Examples
    --------
    >>> bands = label_bands([50, 30, 10, 5, 4, 1, 0])
    >>> [BAND_NAMES[b] for b in bands.of_label]
    ['head', 'torso', 'tail', 'tail', 'tail', 'tail', 'unseen']
    >>> [BAND_NAMES[b] for b in label_bands([50, 30, 10, 5], thresholds=(10, 40)).of_label]
    ['head', 'torso', 'torso', 'tail']
    """
    counts = check_counts(train_counts)
    if thresholds is None:
        total = counts.sum()
        values, inverse, size = np.unique(counts, return_inverse=True, return_counts=True)
        mass = values * size
        above = (total - np.cumsum(mass))[inverse]  # occurrences of labels strictly more frequent
        band = np.where(3 * above < total, 0, np.where(3 * above < 2 * total, 1, 2))
    else:
        low, high = _check_thresholds(thresholds)
        band = np.where(counts >= high, 0, np.where(counts >= low, 1, 2))
    band[counts == 0] = 3
    return LabelBands(band.astype(np.int8), counts)


def by_band(
    Y_true: MatrixLike, topk: TopK, bands: LabelBands, k: int = 5, *, remove_empty: bool = False
) -> dict[str, Any]:
    """Return precision, recall and F1 of every band of labels.

    Precision is right / predicted pairs of the band among the first k predictions, recall right / true pairs;
    they are pooled over all rows, since most rows have no label of a given band. A quotient of nothing is None.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    bands : LabelBands
        The bands of the labels (see `label_bands`).
    k : int, default=5
        How many predictions of each row count.
    remove_empty : bool, default=False
        Leave out rows without true labels.

    Returns
    -------
    facts : dict
        For each band `labels`, `lowest`, `highest`, `tested`, `true`, `predicted`, `right`, `precision`, `recall` and
        `f1`.

    Examples
    --------
    >>> bands = label_bands([50, 30, 10])
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=2)
    >>> facts = by_band([[1, 0, 0], [1, 1, 1]], top, bands, k=2)
    >>> facts["head"]["precision"], facts["torso"]["precision"], facts["tail"]["recall"]
    (1.0, 0.5, 0.0)
    """
    judged = judge(Y_true, topk, k, remove_empty=remove_empty)
    check_bands(bands, judged.n_labels)
    counts = tally_labels(judged, k)
    out = {}
    for number, band in enumerate(bands.describe()):
        facts: dict[str, Any] = {**band, **pooled(counts, bands.of_label == number)}
        out[facts.pop("name")] = facts
    return out


def band_measures(judged: Judged, bands: LabelBands, k: int) -> list[Measure]:
    """Return precision, recall and F1 of every band, with one unit per row."""
    check_bands(bands, judged.n_labels)
    ids, hits = judged.ids[:, :k], judged.hits[:, :k]
    predicted_band = np.full(ids.shape, -1, dtype=np.int8)
    predicted_band[ids >= 0] = bands.of_label[ids[ids >= 0]]
    rows = np.repeat(np.arange(judged.n_rows), judged.n_true)
    true_band = bands.of_label[judged.Y.indices]
    out = []
    for number, name in enumerate(BAND_NAMES):
        inside = predicted_band == number
        right = (inside & hits).sum(axis=1).astype(np.float64)
        said = inside.sum(axis=1).astype(np.float64)
        true = np.bincount(rows[true_band == number], minlength=judged.n_rows).astype(np.float64)
        out.append(Measure(f"{name}:p@{k}", (right, said), share))
        out.append(Measure(f"{name}:r@{k}", (right, true), share))
        out.append(Measure(f"{name}:f1@{k}", (right, said, true), _pooled_f1))
    return out


def by_frequency(judged: Judged, train_counts: np.ndarray, k: int) -> list[FrequencyBinFacts]:
    """Return precision and recall in bins of training frequency: 0, 1, 2-3, 4-7, 8-15 and so on.

    Bins without any label are left out.
    """
    counts = tally_labels(judged, k)
    number = np.zeros(train_counts.size, dtype=np.int64)  # bin b > 0 holds 2^(b-1) .. 2^b - 1
    seen = train_counts > 0
    number[seen] = np.frexp(train_counts[seen].astype(np.float64))[1]
    out: list[FrequencyBinFacts] = []
    for b in np.unique(number).tolist():
        inside = number == b
        low, high = (2 ** (b - 1), 2**b - 1) if b else (0, 0)
        out.append({"lowest": low, "highest": high, "labels": int(inside.sum()), **pooled(counts, inside)})
    return out


def pooled(counts: LabelTally, inside: np.ndarray) -> PooledFacts:
    """Return the pooled facts of some labels (a mask)."""
    true, predicted, hits = (int(part[inside].sum()) for part in (counts.true, counts.predicted, counts.hits))
    p, r = hits / predicted if predicted else None, hits / true if true else None
    f1 = 2.0 * hits / (predicted + true) if predicted + true else None
    tested = int((counts.true[inside] > 0).sum())
    return {
        "tested": tested,
        "true": true,
        "predicted": predicted,
        "right": hits,
        "precision": p,
        "recall": r,
        "f1": f1,
    }


def check_bands(bands: LabelBands, n_labels: int) -> None:
    """Refuse bands made for another number of labels."""
    if not isinstance(bands, LabelBands):
        raise ParameterError(name="bands", problem=f"must come from label_bands; got {type(bands).__name__}.")
    if bands.of_label.size != n_labels:
        raise DataError(f"bands must have one entry per label ({n_labels}); got {bands.of_label.size}.")


def _pooled_f1(right: Means, said: Means, true: Means) -> Means:
    return share(2.0 * np.asarray(right), np.asarray(said) + np.asarray(true))


def _check_thresholds(thresholds: tuple[int, int]) -> tuple[int, int]:
    try:
        low, high = thresholds
    except (TypeError, ValueError):
        raise ParameterError(name="thresholds", allowed="two integers (low, high)", got=thresholds) from None
    low = check_integer("thresholds[0]", low, low=1)
    return low, check_integer("thresholds[1]", high, low=low)
