"""Checks of the data `Prime` is trained on: texts, labels and label texts that fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scipy.sparse as sp

from longtail.data import Dataset
from longtail.errors import DataError
from longtail.model import XMCEstimator
from longtail.text import as_texts, check_unicode, is_unicode
from longtail.validate import as_labels


def check_training(texts: Any, Y: Any, label_texts: Any) -> tuple[list[str], sp.csr_array, list[str]]:
    """Return texts, labels and label texts that fit together; one sentence for those that do not."""
    texts, Y = as_texts(texts), as_labels(Y, "Y")
    if not texts:
        raise DataError(input="texts", problem="must hold at least one text; got 0.")
    check_unicode(texts)
    if len(texts) != Y.shape[0]:
        raise DataError(f"texts and Y must have as many rows; got {len(texts)} and {Y.shape[0]}.")
    for row, text in enumerate(texts):
        if not text.strip():
            raise DataError("{input} must not be empty; the one of row {row} is.", input="texts", row=row)
    if Y.nnz == 0:
        raise DataError(input="Y", problem="must hold at least one label; every row is empty.")
    return texts, Y, check_label_texts(label_texts, Y.shape[1])


def check_label_texts(label_texts: Any, n_labels: int) -> list[str]:
    """Return the texts of all labels; a label without one is named."""
    if label_texts is None:
        raise DataError("label_texts must hold one text per label; got None.")
    names = list(label_texts) if not isinstance(label_texts, str) else as_texts(label_texts, "label_texts")
    if len(names) != n_labels:
        raise DataError(f"label_texts must hold one text per label ({n_labels}); got {len(names)}.")
    for label, text in enumerate(names):
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"label_texts must hold a text for every label; label {label} has {text!r}.")
    check_unicode(names, "label_texts")
    return names


def check_more(texts: Any, Y: Any, label_texts: Sequence[str]) -> tuple[list[str], sp.csr_array]:
    """Return texts and labels that a fitted model with these labels can be trained on further."""
    n_labels, width = len(label_texts), as_labels(Y, "Y").shape[1]
    if width != n_labels:
        raise DataError(f"Y must have one column per label of the model ({n_labels}); got {width}.")
    texts, Y, _ = check_training(texts, Y, label_texts)
    return texts, Y


def texts_of(model: XMCEstimator, data: Dataset) -> tuple[str, ...]:
    """Return the texts of the data; one sentence where it has none."""
    if data.texts is None:
        raise DataError(
            "{model} is trained on texts, and {input} has only rows of features.",
            model=type(model).__name__,
            input="the data",
        )
    return data.texts


def label_texts_of(model: XMCEstimator, data: Dataset) -> tuple[str, ...]:
    """Return the texts by which labels are read: their own, or their names where the data has no texts for them.

    >>> from longtail.prime import Prime
    >>> label_texts_of(Prime(), Dataset.from_lists(["a red apple"], [["fruit"]]))
    ('fruit',)
    """
    kind = type(model).__name__
    if data.label_texts is None and data.label_names is None:
        raise DataError(f"{kind} reads the texts or names of labels, and the data has only their numbers.")
    texts = data.names() if data.label_texts is None else data.label_texts
    for name, text in zip(data.names(), texts, strict=True):
        if not text.strip():
            raise DataError(
                "{model} needs a text for every label; {listed_in}label {label!r} has none.",
                model=kind,
                listed_in="",
                label=name,
            )
        if not is_unicode(text):
            raise DataError(f"{kind} needs Unicode text for every label; that of label {name!r} is not.")
    return texts
