"""Compare new rows with those held out of a Tagger's training: `Monitor`, and the reference that a training leaves."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK
from longtail.errors import DataError, Keyword, ModelError
from longtail.facts import (
    CalibrationFacts,
    LabelChangeFacts,
    MonitorFacts,
    StrangeRowFacts,
)
from longtail.kernels import blocks
from longtail.metrics import calibration_of_bins
from longtail.model import HeldOut
from longtail.monitoring import (
    JUDGED,
    FrequentNames,
    LabelChanges,
    Profile,
    Reference,
    RowMeasures,
    compare_profiles,
    judge_rows,
    monitor_advice,
    worst_verdict,
)
from longtail.notebook import shown_as
from longtail.pipeline.deciding import assign, n_candidates
from longtail.pipeline.label_numbering import with_ids_of
from longtail.pipeline.shown import ShownMonitor
from longtail.text import BeginningFeatures, TfidfFeatures, UnknownTerms
from longtail.validate import Rows
from longtail.vocabulary import add_names

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger

VERSION = 1
BLOCK = 4096
WORDS_LISTED = 50
LABELS_LISTED = 50
ROWS_LISTED = 10
FEWEST_WORDS = 3  # of a row that is listed for its unknown words
TEXT_SHOWN = 80  # letters
NO_REFERENCE = "the model holds nothing to compare with: it was trained by an earlier version, or without rows held out"
REMEDY = "train it again, or give rows that it has not seen as a reference"


class Monitor:
    """Measures rows with a Tagger, batch by batch in constant memory, and compares them with a reference.

    Parameters
    ----------
    tagger : Tagger
        The fitted Tagger.

    Examples
    --------
    >>> from longtail.pipeline import Tagger
    >>> texts, labels = ["red apple", "old car"] * 100, [["fruit"], ["vehicle"]] * 100
    >>> monitor = Monitor(Tagger(random_state=0).fit(texts, labels))
    >>> monitor.add(Dataset.from_lists(["red apple", "old car"] * 20, [["fruit"], ["vehicle"]] * 20))
    >>> monitor.facts()["verdict"]
    'steady'
    """

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger
        self.profile = Profile(tagger.n_labels_)
        self._numbers = {label: number for number, label in enumerate(tagger.labels_)}
        self._words, self._labels = FrequentNames(), FrequentNames()
        self._strange: list[tuple[float, int, int, StrangeRowFacts]] = []  # a heap, the least strange first

    @property
    def rows(self) -> int:
        """Rows seen so far."""
        return self.profile.rows

    def add(self, data: Dataset) -> None:
        """Measure some more rows; their labels are judged where they have some."""
        self.profile.add(self.measure(data))

    def measure(self, data: Dataset) -> RowMeasures:
        """Return the measures of some rows, and note their unknown words and labels."""
        tagger, model = self.tagger, self.tagger.model_
        rows = tagger.dataset_rows(data)
        top = model.predict_topk(rows, k=n_candidates(tagger))
        found = unknown_terms(tagger, data)
        if found is not None:
            self._words.add(found.names, found.rows.tolist())
            self._note_strange(data, found)
        judged: dict[str, np.ndarray] = {}
        if data.Y.nnz:
            Y, strange = self._own_numbers(data)
            self._labels.add(strange, np.bincount(Y.indices, minlength=Y.shape[1])[tagger.n_labels_ :].tolist())
            judged = judge_rows(Y, top, np.arange(Y.shape[1]) < tagger.n_labels_)
        return row_measures(tagger, top, lengths(data, rows), found, judged)

    def facts(self, reference: Reference | Monitor | None = None, *, name: str = "") -> MonitorFacts:
        """Return how the rows differ from a reference: that of the training, or other rows that were measured."""
        if not self.rows:
            raise DataError(input="the data", problem="has no rows.")
        if isinstance(reference, Monitor):
            name, reference = name or "given rows", Reference.of(reference.profile, most=None)
        not_compared: list[str] = []
        if reference is None:
            name, reference = "training", self.tagger.reference_
            if reference is None:
                reference = self._metrics_as_reference()
                not_compared.append(f"Only P@1 could be compared: {NO_REFERENCE}; {REMEDY}.")
        unit = "characters" if self.tagger.reads_texts_ else "features"
        comparisons, changes = compare_profiles(reference, self.profile, unit)
        verdict = worst_verdict(one["verdict"] for one in comparisons)
        not_compared += self._gaps(reference, {one["what"] for one in comparisons}) if not not_compared else []
        off = {one["what"] for one in comparisons if one["verdict"] != "steady"}
        facts: MonitorFacts = {
            "version": VERSION,
            "verdict": verdict,
            "advice": monitor_advice(verdict, comparisons),
            "rows": self.rows,
            "labelled_rows": self.profile.labelled_rows,
            "reference_rows": reference.rows,
            "reference": name,
            "comparisons": comparisons,
            "not_compared": not_compared,
            "unknown_words": [{"word": word, "rows": rows} for word, rows in self._words.top(WORDS_LISTED)],
            "unknown_labels": [{"label": label, "rows": rows} for label, rows in self._labels.top(LABELS_LISTED)],
            **self._label_lists(changes),
            "strange_rows": [entry[-1] for entry in sorted(self._strange, key=lambda entry: entry[:3], reverse=True)]
            if "unknown_words" in off
            else [],
            "calibration": _calibration_facts(self.profile),
        }
        return shown_as(ShownMonitor, add_names(facts, self.tagger.vocabulary_))

    def _own_numbers(self, data: Dataset) -> tuple[sp.csr_array, list[str]]:
        """Return the labels of rows by the Tagger's numbers, those it does not know after them, and their names."""
        data = with_ids_of(self.tagger, data)
        used, codes = np.unique(data.Y.indices, return_inverse=True)
        names = [str(i) if data.label_names is None else data.label_names[i] for i in used.tolist()]
        strange = [name for name in names if name not in self._numbers]
        after = {name: self.tagger.n_labels_ + i for i, name in enumerate(strange)}
        columns = np.array([self._numbers.get(name, after.get(name, -1)) for name in names], dtype=np.int32)
        shape = (data.n_rows, self.tagger.n_labels_ + len(strange))
        Y = sp.csr_array((np.ones(codes.size, np.float32), columns[codes], data.Y.indptr), shape=shape)
        Y.sort_indices()
        return Y, strange

    def _note_strange(self, data: Dataset, found: UnknownTerms) -> None:
        """Keep the rows with the largest share of unknown words."""
        shares = found.unknown / np.maximum(found.terms, 1)
        able = np.flatnonzero((found.unknown > 0) & (found.terms >= FEWEST_WORDS))
        best = able[np.lexsort((able, -found.unknown[able], -shares[able]))][:ROWS_LISTED]
        for i in best.tolist():
            row = self.rows + i
            text = " ".join((data.texts or ())[i][: 4 * TEXT_SHOWN].split())
            facts: StrangeRowFacts = {
                "row": row,
                "id": None if data.ids is None else data.ids[i],
                "unknown": int(found.unknown[i]),
                "words": int(found.terms[i]),
                "text": text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…",
            }
            entry = (float(shares[i]), int(found.unknown[i]), -row, facts)
            if len(self._strange) < ROWS_LISTED:
                heapq.heappush(self._strange, entry)
            else:
                heapq.heappushpop(self._strange, entry)

    def _label_lists(self, changes: LabelChanges) -> Any:
        """Return the labels that are assigned more and less often than chance allows."""
        out: dict[str, list[LabelChangeFacts]] = {"labels_more": [], "labels_less": []}
        columns = (changes.labels, changes.rows, changes.shares, changes.reference_shares)
        for number, rows, share, before in zip(*(column.tolist() for column in columns), strict=True):
            listed = out["labels_more" if share > before else "labels_less"]
            if len(listed) < LABELS_LISTED:
                times = share / before if before else None
                listed.append(
                    {
                        "label": self.tagger.labels_[number],
                        "rows": rows,
                        "share": share,
                        "reference_share": before,
                        "times": times,
                    }
                )
        return out

    def _metrics_as_reference(self) -> Reference:
        """Return what the metrics of a model without a reference allow to compare: P@1, where labels are known."""
        held_out = self.tagger.held_out_ or {}
        metric = (held_out.get("metrics") or {}).get("p@1") or {}
        if metric.get("value") is None or not self.profile.labelled_rows:
            raise ModelError(f"{NO_REFERENCE}; {REMEDY} ({{how}}).", how=Keyword("reference"))
        rows = int(held_out["rows"])
        right = min(max(round(rows * metric["value"]), 0), rows)
        empty = Reference.of(Profile(self.tagger.n_labels_))
        return Reference(empty.drawn, empty.given, histograms={"hits_at_1": np.array([rows - right, right])})

    def _gaps(self, reference: Reference, compared: set[str]) -> list[str]:
        """Return why some comparisons were not made, a sentence each."""
        out = []
        if "precision_at_1" not in compared:
            out.append("Right labels and calibration were not compared: the rows have no labels.")
        if "unknown_words" not in compared:
            why = (
                "it was trained on rows of features"
                if not self.tagger.reads_texts_
                else "it counts no words, or was trained by an earlier version"
            )
            out.append(f"Unknown words were not compared: the model knows none, since {why}.")
        if "probability" not in compared:
            out.append("Probabilities were not compared: the model was trained without rows held out to learn them.")
        return out


def reference_of_held_out(
    tagger: Tagger, held_out: HeldOut, rows: Dataset, *, learned_from: int, first: int = 0
) -> Reference:
    """Return the reference that a training leaves: the rows held out as a model saw them that had not learned them.

    The features have learned the words of these rows too, among `learned_from` rows, from the column `first` on; a
    word that only one row has counts as unknown there, as it would be had that row not been among them.
    """
    profile = Profile(tagger.n_labels_)
    known = held_out.label_counts > 0
    known = np.append(known, np.zeros(max(held_out.Y.shape[1] - known.size, 0), dtype=bool))
    for at in blocks(rows.n_rows, BLOCK):
        part, top = rows.take(at), held_out.top[at]
        found = unknown_terms(tagger, part, learned_from=learned_from, first=first)
        judged = judge_rows(held_out.Y[at], top, known)
        profile.add(row_measures(tagger, top, lengths(part, part.X), found, judged))
    return Reference.of(profile)


def row_measures(
    tagger: Tagger, top: TopK, length: np.ndarray, found: UnknownTerms | None, judged: dict[str, np.ndarray]
) -> RowMeasures:
    """Return the measures of rows from the predictions for them."""
    more: dict[str, np.ndarray] = dict(judged)
    assigned = assign(tagger, top).ids
    if tagger.model_._why_no_probabilities() is None:
        chances = np.full((top.n_rows, JUDGED), -1.0)
        best = tagger.model_.probabilities(top.head(JUDGED))
        chances[:, : best.k] = np.where(best.ids >= 0, best.scores, -1.0)
        more["probability"] = np.maximum(chances[:, 0], 0.0)
        if judged:
            more["chances"], more["given"] = chances, np.zeros(chances.shape, dtype=bool)
            more["given"][:, : best.k] = (best.ids[:, :, None] == assigned[:, None, :]).any(axis=2) & (best.ids >= 0)
    if found is not None:
        more["unknown_words"] = found.unknown / np.maximum(found.terms, 1)
    return RowMeasures(length, assigned=assigned, **more)


def unknown_terms(tagger: Tagger, data: Dataset, **how: int) -> UnknownTerms | None:
    """Return the unknown words of texts, where the Tagger reads words."""
    words = tagger.model_.word_features(tagger.features_)
    if not isinstance(words, TfidfFeatures | BeginningFeatures) or data.texts is None:
        return None
    return words.unknown_terms(data.texts, **how)


def lengths(data: Dataset, rows: Rows | None) -> np.ndarray:
    """Return the characters of every text or, where there are none, the features of every row."""
    if data.texts is not None:
        return np.fromiter(map(len, data.texts), dtype=np.int64, count=data.n_rows)
    if sp.issparse(rows):
        return np.diff(sp.csr_array(rows).indptr)
    return np.count_nonzero(rows, axis=1) if rows is not None else np.zeros(data.n_rows, dtype=np.int64)


def monitor_dataset(tagger: Tagger, data: Dataset, reference: Dataset | None = None) -> MonitorFacts:
    """Return how the rows of a Dataset differ from those of the training, or of another Dataset."""
    monitor = _measured(tagger, data)
    return monitor.facts(None if reference is None else _measured(tagger, reference))


def _measured(tagger: Tagger, data: Dataset) -> Monitor:
    """Return a monitor that has seen all rows of a Dataset."""
    monitor = Monitor(tagger)
    if data.texts is not None:
        tagger.model_.check_texts(data.texts)  # while rows are numbered as in the data
    for at in blocks(data.n_rows, BLOCK):
        monitor.add(data.take(at))
    return monitor


def _calibration_facts(profile: Profile) -> CalibrationFacts | None:
    """Return how far the probabilities of the first suggestions were right; None without any."""
    size, p, right = profile.calibration.T
    return calibration_of_bins(JUDGED, size, p, right) if size.any() else None
