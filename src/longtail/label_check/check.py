"""Check the labels of a dataset: everything that is found, as facts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from longtail.data import Dataset
from longtail.errors import DataError
from longtail.facts import (
    DuplicateFacts,
    LabelCheckFacts,
    SuspectFacts,
    SynonymFacts,
    UnlearnedFacts,
)
from longtail.label_check.duplicates import Duplicate, find_duplicates
from longtail.label_check.folds import out_of_fold
from longtail.label_check.other_labels import with_other_labels
from longtail.label_check.shown import ShownCheck
from longtail.label_check.suspects import Suspects, find_missing, find_wrong, recall_of_labels, unexplained, weigh
from longtail.label_check.synonyms import Synonyms, find_synonyms
from longtail.model import Stages, rows_of_dataset
from longtail.notebook import shown_as
from longtail.text import TfidfFeatures
from longtail.validate import RandomState, check_integer, resolve_seed

CANDIDATES = 50  # likeliest labels of every row
TEXT_SHOWN = 80  # letters


def check_labels(
    data: Dataset,
    *,
    folds: int = 5,
    fewest_rows: int = 3,
    limit: int | None = 1000,
    plain_names: Mapping[str, str] | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    progress: Stages | None = None,
) -> LabelCheckFacts:
    """Find labels that look wrong or missing, duplicates that differ, labels nobody can learn, and likely synonyms.

    Parameters
    ----------
    data : Dataset
        Rows with labels, from `longtail.data.read` or `Dataset.from_lists`.
    folds : int, default=5
        Every row is judged by a label tree that was trained on the other folds; so many are trained.
    fewest_rows : int, default=3
        Labels with fewer rows are listed as having too few, and are not judged.
    limit : int or None, default=1000
        List so many of each kind, the most suspect first; None for all.
    plain_names : dict of str to str or None, default=None
        What people call labels that are ids: labels with the same name may mean the same. None compares the labels.
    random_state : int, numpy generator or None, default=None
        The seed; None means 0.
    n_jobs : int or None, default=None
        Threads; None for all cores.
    progress : callable or None, default=None
        Called with stage, done and total.

    Returns
    -------
    facts : dict
        `counts` of each kind, and the lists `wrong`, `missing`, `duplicates`, `unlearned` and `synonyms`.

    Examples
    --------
    >>> texts = ["red apple", "green apple", "fast car", "old car"] * 20
    >>> labels = [["fruit"], ["fruit"], ["vehicle"], ["vehicle"]] * 20
    >>> labels[0] = ["vehicle"]
    >>> facts = check_labels(Dataset.from_lists(texts, labels))
    >>> [(w["row"], w["label"]) for w in facts["wrong"]], [(m["row"], m["label"]) for m in facts["missing"]]
    ([(0, 'vehicle')], [(0, 'fruit')])
    """
    folds = check_integer("folds", folds, low=2)
    fewest_rows = check_integer("fewest_rows", fewest_rows, low=1)
    limit = None if limit is None else check_integer("limit", limit, low=1)
    data, seed = data.compact_labels(), resolve_seed(random_state)
    Y, names = data.Y, data.names()
    if Y.shape[0] < folds or not Y.nnz:
        what = "no labels" if Y.shape[0] >= folds else f"{Y.shape[0]} rows"
        needs = f"a check of labels in {folds} folds needs as many rows, and labels"
        raise DataError(needs + "; {input} has {got}.", input="the data", got=what)
    X = rows_of_dataset(data, None if data.texts is None else TfidfFeatures(n_jobs=n_jobs), progress)
    found = out_of_fold(X, Y, folds, min(CANDIDATES, Y.shape[1]), seed, n_jobs, progress)
    judged = with_other_labels(Y, found, seed, progress)
    evidence, recall = weigh(Y, *judged), recall_of_labels(Y, found.top)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    unlearned = _unlearned(names, counts, recall, fewest_rows)
    can_be_wrong = ((counts >= fewest_rows) & (recall > 0))[Y.indices] & unexplained(Y, found.top)
    wrong = find_wrong(Y, evidence, can_be_wrong)
    missing = find_missing(Y, judged.top, evidence)
    duplicates = find_duplicates(data.texts, X, Y)
    called = names if plain_names is None else [plain_names.get(name, name) for name in names]
    synonyms = find_synonyms(X, Y, called, n_jobs)
    facts: LabelCheckFacts = {
        "rows": Y.shape[0],
        "labels": int((counts > 0).sum()),
        "pairs": int(Y.nnz),
        "folds": folds,
        "limit": limit,
        "counts": {
            "wrong": wrong.rows.size,
            "missing": missing.rows.size,
            "duplicates": len(duplicates),
            "unlearned": len(unlearned),
            "synonyms": len(synonyms),
        },
        "wrong": _suspects(data, wrong, limit),
        "missing": _suspects(data, missing, limit),
        "duplicates": [_duplicate(data, found) for found in duplicates[:limit]],
        "unlearned": unlearned[:limit],
        "synonyms": [_synonyms(names, counts, found) for found in synonyms[:limit]],
    }
    return shown_as(ShownCheck, facts)


def _unlearned(names: tuple[str, ...], counts: np.ndarray, recall: np.ndarray, fewest: int) -> list[UnlearnedFacts]:
    """Return labels with too few rows, and those that no left-out row of theirs got; the most frequent first."""
    at = np.flatnonzero((counts > 0) & ((counts < fewest) | (recall == 0)))
    at = at[np.lexsort((at, -counts[at]))]
    return [
        {
            "label": names[i],
            "rows": int(counts[i]),
            "recall": float(recall[i]),
            "reason": "too few rows" if counts[i] < fewest else "never predicted",
        }
        for i in at.tolist()
    ]


def _suspects(data: Dataset, found: Suspects, limit: int | None) -> list[SuspectFacts]:
    """Return pairs as facts, with names."""
    names = data.names()
    columns = (column[:limit].tolist() for column in found)
    return [
        {
            "row": row,
            "id": None if data.ids is None else data.ids[row],
            "label": names[label],
            "probability": round(probability, 4),
            "usual": round(usual, 4),
            "suspicion": round(suspicion, 4),
            "text": _text(data, row),
        }
        for row, label, probability, usual, suspicion in zip(*columns, strict=True)
    ]


def _duplicate(data: Dataset, found: Duplicate) -> DuplicateFacts:
    """Return duplicates as facts, with names."""
    names = data.names()
    return {
        "kind": found.kind,
        "rows": found.rows,
        "shared": [names[i] for i in found.shared],
        "differing": [names[i] for i in found.differing],
        "text": _text(data, found.rows[0]),
    }


def _synonyms(names: tuple[str, ...], counts: np.ndarray, found: Synonyms) -> SynonymFacts:
    """Return likely synonyms as facts, with names."""
    pair = (found.first, found.second)
    return {
        "labels": [names[i] for i in pair],
        "rows": [int(counts[i]) for i in pair],
        "cosine": round(found.cosine, 4),
        "together": found.together,
        "expected": round(found.expected, 2),
        "reason": found.reason,
    }


def _text(data: Dataset, row: int) -> str | None:
    """Return the beginning of the text of a row."""
    if data.texts is None:
        return None
    text = " ".join(data.texts[row][: 4 * TEXT_SHOWN].split())
    return text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…"
