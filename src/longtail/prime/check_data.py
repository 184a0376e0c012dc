"""What `Prime` is trained on, checked: texts, labels and label texts that fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scipy.sparse as sp

from longtail.data import Dataset
from longtail.errors import DataError
from longtail.text import as_texts, check_unicode, is_unicode
from longtail.validate import as_labels


def check_training(texts: Any, Y: Any, label_texts: Any) -> tuple[list[str], sp.csr_array, list[str]]:
    """Return texts, labels and label texts that fit together; one sentence for those that do not."""
    found, Y = as_texts(texts), as_labels(Y, "Y")
    if not found:
        raise DataError(input="texts", problem="must hold at least one text; got 0.")
    check_unicode(found)
    if len(found) != Y.shape[0]:
        raise DataError(f"texts and Y must have as many rows; got {len(found)} and {Y.shape[0]}.")
    for row, text in enumerate(found):
        if not text.strip():
            raise DataError("{input} must not be empty; the one of row {row} is.", input="texts", row=row)
    if Y.nnz == 0:
        raise DataError(input="Y", problem="must hold at least one label; every row is empty.")
    return found, Y, check_label_texts(label_texts, Y.shape[1])


def check_label_texts(label_texts: Any, n_labels: int) -> list[str]:
    """Return the texts of all labels; a label without one is named."""
    if label_texts is None:
        raise DataError("label_texts must hold one text per label; got None.")
    found = list(label_texts) if not isinstance(label_texts, str) else as_texts(label_texts, "label_texts")
    if len(found) != n_labels:
        raise DataError(f"label_texts must hold one text per label ({n_labels}); got {len(found)}.")
    for label, text in enumerate(found):
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"label_texts must hold a text for every label; label {label} has {text!r}.")
    check_unicode(found, "label_texts")
    return found


def check_more(texts: Any, Y: Any, label_texts: Sequence[str]) -> tuple[list[str], sp.csr_array]:
    """Return texts and labels that a fitted model with these labels can be trained on further."""
    n_labels, width = len(label_texts), as_labels(Y, "Y").shape[1]
    if width != n_labels:
        raise DataError(f"Y must have one column per label of the model ({n_labels}); got {width}.")
    found, Y, _ = check_training(texts, Y, label_texts)
    return found, Y


def texts_of(model: Any, data: Dataset) -> tuple[str, ...]:
    """Return the texts of the data; one sentence where it has none."""
    if data.texts is None:
        raise DataError(
            "{model} is trained on texts, and {input} has only rows of features.",
            model=type(model).__name__,
            input="the data",
        )
    return data.texts


def label_texts_of(model: Any, data: Dataset) -> tuple[str, ...]:
    """Return what the labels are read as: their texts, or their names where the data has no texts for them.

    >>> label_texts_of(None, Dataset.from_lists(["a red apple"], [["fruit"]]))
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
