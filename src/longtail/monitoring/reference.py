"""Measures of many rows as histograms: of a batch while it is read, and of the rows that a model was judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from longtail.monitoring.row_measures import RowMeasures
from longtail.monitoring.schema import BINS, LABELS_KEPT, REFERENCE
from longtail.storage import Part, checked

CALIBRATION_BINS = 10
GOLDEN = 0.6180339887498949  # its multiples, less whole numbers, are spread evenly


class Profile:
    """The histograms of the measures of rows, added to batch by batch.

    >>> profile = Profile(n_labels=2)
    >>> profile.add(RowMeasures(length=np.array([10, 10, 90]), assigned=np.array([[0, 1], [1, -1], [-1, -1]])))
    >>> profile.rows, profile.given.tolist(), profile.histograms["assigned"][:3].tolist()
    (3, [1, 2], [1, 1, 1])
    """

    def __init__(self, n_labels: int) -> None:
        self.rows: int = 0
        self.labelled_rows: int = 0
        self.histograms: dict[str, np.ndarray] = {}
        # rows of which it was drawn, one of those they are given
        self.drawn: np.ndarray = np.zeros(n_labels, dtype=np.int64)
        self.given: np.ndarray = np.zeros(n_labels, dtype=np.int64)  # rows that it is assigned to
        self.given_rows: int = 0  # rows of which the labels assigned are known
        self.calibration: np.ndarray = np.zeros(
            (CALIBRATION_BINS, 3)
        )  # suggestions, their probabilities and the right ones, summed

    def add(self, measures: RowMeasures) -> None:
        """Add the measures of some rows."""
        self.rows += measures.n_rows
        self._count("length", np.floor(4 * np.log2(1.0 + measures.length)))
        if measures.unknown_words is not None:
            self._count("unknown_words", np.rint(200 * measures.unknown_words))
        if measures.probability is not None:
            self._count("probability", 40 * measures.probability)
        if measures.assigned is not None:
            self._add_assigned(measures.assigned)
        if measures.labelled is not None and measures.labelled.any():
            self._add_judged(measures.take(np.flatnonzero(measures.labelled)))

    def _add_assigned(self, assigned: np.ndarray) -> None:
        """Count the labels that rows are given, and one of each row by itself.

        The labels of a row come together, so that chance is known for one label a row only. Which one is drawn goes
        by the number of the row, spread evenly; always the first would hang on which of several sure labels is first.
        """
        sizes = (assigned >= 0).sum(axis=1)
        number = self.given_rows + np.arange(sizes.size)
        at = ((number * GOLDEN) % 1.0 * sizes).astype(np.int64)
        drawn = assigned[np.flatnonzero(sizes), at[sizes > 0]]
        self.given_rows += sizes.size
        self.given += np.bincount(assigned[assigned >= 0], minlength=self.given.size)
        self.drawn += np.bincount(drawn, minlength=self.drawn.size)
        self._count("assigned", sizes)

    def _add_judged(self, measures: RowMeasures) -> None:
        """Add what is known of rows with labels."""
        self.labelled_rows += measures.n_rows
        if measures.unknown_label is not None:
            self._count("unknown_label", measures.unknown_label)
        if measures.hits is None:
            return
        self._count("hits_at_1", measures.hits[:, 0])
        self._count("hits_at_5", measures.hits.sum(axis=1))
        if measures.chances is not None:
            judged = measures.chances >= 0
            if measures.given is not None:
                given = judged & measures.given
                gap = np.where(given, measures.chances - measures.hits, 0.0).sum(axis=1) / np.maximum(
                    given.sum(axis=1), 1
                )
                self._count("gap", 100 + np.rint(100 * gap[given.any(axis=1)]))
            p, right = measures.chances[judged], measures.hits[judged]
            bins = np.minimum((p * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)
            for column, weights in enumerate((None, p, right)):
                self.calibration[:, column] += np.bincount(bins, weights, minlength=CALIBRATION_BINS)

    def _count(self, name: str, values: np.ndarray) -> None:
        """Count values, which are numbers of bins, in a histogram; what is beyond an end counts there."""
        n_bins = BINS[name][0]
        counts = np.bincount(np.clip(values, 0, n_bins - 1).astype(np.int64), minlength=n_bins)
        self.histograms[name] = self.histograms.get(name, 0) + counts


@dataclass(frozen=True, eq=False)
class ListedLabels:
    """The most frequent labels with their rows."""

    labels: np.ndarray  # int32, ascending
    rows: np.ndarray  # int64

    @classmethod
    def of(cls, counts: np.ndarray, most: int | None) -> Self:
        """Return those of the counts of all labels; among equals the lower numbers."""
        best = np.lexsort((np.arange(counts.size), -counts))[: counts.size if most is None else most]
        kept = np.sort(best[counts[best] > 0])
        return cls(kept.astype(np.int32), counts[kept])

    def dense(self, n_labels: int) -> np.ndarray:
        """Return the rows of all labels; 0 for those not listed."""
        out = np.zeros(n_labels, dtype=np.int64)
        out[self.labels] = self.rows
        return out

    def of_labels(self, numbers: Sequence[int]) -> ListedLabels:
        """Return those of some labels, ascending, numbered anew."""
        kept = np.asarray(numbers, dtype=np.int64)
        at = np.searchsorted(kept, self.labels)
        stays = (at < kept.size) & (np.append(kept, -1)[at] == self.labels)
        return ListedLabels(at[stays].astype(np.int32), self.rows[stays])


@dataclass(frozen=True, eq=False)
class Reference:
    """What rows look like that a model has not seen and that are known to be fine; of bounded size.

    Every histogram counts the rows that were measured so, which need not be all.
    """

    drawn: ListedLabels
    given: ListedLabels
    drawn_other: int = 0  # rows whose drawn label is not listed
    given_rows: int = 0  # rows that labels given were counted in
    given_most_other: int = 0  # rows that a label which is not listed has, at most
    histograms: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, profile: Profile, most: int | None = LABELS_KEPT) -> Self:
        """Return the profile with its most frequent labels only."""
        drawn, given = ListedLabels.of(profile.drawn, most), ListedLabels.of(profile.given, most)
        rest = np.delete(profile.given, given.labels)
        return cls(
            drawn,
            given,
            int(profile.drawn.sum() - drawn.rows.sum()),
            profile.given_rows,
            int(rest.max(initial=0)),
            dict(profile.histograms),
        )

    @property
    def rows(self) -> int:
        """How many rows were measured."""
        return int(max((counts.sum() for counts in self.histograms.values()), default=0))

    @property
    def n_labels(self) -> int:
        """How many labels a model must have for those listed here to be among them."""
        return 1 + max(
            (int(listed.labels[-1]) for listed in (self.drawn, self.given) if listed.labels.size), default=-1
        )

    def joined(self, newer: Reference, n_labels: int) -> Reference:
        """Return the reference of the rows of both."""
        drawn = self.drawn.dense(n_labels) + newer.drawn.dense(n_labels)
        given = self.given.dense(n_labels) + newer.given.dense(n_labels)
        listed, assigned = ListedLabels.of(drawn, LABELS_KEPT), ListedLabels.of(given, LABELS_KEPT)
        dropped = int(np.delete(given, assigned.labels).max(initial=0))
        shared = self.histograms.keys() & newer.histograms.keys()
        return Reference(
            listed,
            assigned,
            self.drawn_other + newer.drawn_other + int(drawn.sum() - listed.rows.sum()),
            self.given_rows + newer.given_rows,
            max(dropped, self.given_most_other + newer.given_most_other),
            {name: self.histograms[name] + newer.histograms[name] for name in BINS if name in shared},
        )

    def of_labels(self, numbers: Sequence[int]) -> Reference:
        """Return the reference for some of the labels, ascending, numbered anew."""
        drawn, given = self.drawn.of_labels(numbers), self.given.of_labels(numbers)
        gone = int(self.drawn.rows.sum() - drawn.rows.sum())
        return replace(self, drawn=drawn, given=given, drawn_other=self.drawn_other + gone)

    def with_assigned(self, assigned: np.ndarray, n_labels: int) -> Reference:
        """Return the reference with the labels that rows are given by another decision: int (n_rows, width)."""
        profile = Profile(n_labels)
        profile._add_assigned(assigned)
        own = Reference.of(profile)
        return replace(
            self,
            drawn=own.drawn,
            drawn_other=own.drawn_other,
            given=own.given,
            given_rows=own.given_rows,
            given_most_other=own.given_most_other,
            histograms={**self.histograms, "assigned": own.histograms["assigned"]},
        )

    def to_part(self) -> Part:
        params = {
            "drawn_other": self.drawn_other,
            "given_rows": self.given_rows,
            "given_most_other": self.given_most_other,
        }
        listed = {"drawn": self.drawn, "given": self.given}
        arrays = {f"{name}.{of}": getattr(one, of) for name, one in listed.items() for of in ("labels", "rows")}
        return Part(REFERENCE.kind, params, {**self.histograms, **arrays})

    @classmethod
    def from_part(cls, part: Part) -> Self:
        part = checked(part, REFERENCE)
        listed = {
            name: ListedLabels(part.array(f"{name}.labels"), part.array(f"{name}.rows")) for name in ("drawn", "given")
        }
        histograms = {name: part.array(name) for name in BINS if name in part.arrays}
        return cls(
            listed["drawn"],
            listed["given"],
            part.params["drawn_other"],
            part.params["given_rows"],
            part.params["given_most_other"],
            histograms,
        )
