"""Models that read texts themselves (`Prime`): trained once, on texts, labels and the texts of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data import Dataset
from longtail.errors import DataError, ModelError, ParameterError
from longtail.pipeline.held_out import Stage, judge, of_stage
from longtail.prime import check_training, label_texts_of, texts_of
from longtail.text import as_texts, check_unicode, is_unicode

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger

Report = Callable[[dict[str, Any]], None]


def takes_texts(model: Any) -> bool:
    """Say whether a model is trained on texts and not on rows of features."""
    return bool(getattr(model, "takes_texts", False))


def fit_texts(
    model: Any,
    data: Dataset,
    split: tuple[np.ndarray, np.ndarray] | None,
    seed: int,
    progress: Stage | None,
    on_epoch: Report | None,
) -> dict[str, Any] | None:
    """Train on the rows that are not held out, calibrate on the others; return the facts on these.

    There is one training, not two: these models take hours where others take minutes. So the rows held out are not
    added afterwards, and what they say is about the very model that is kept.
    """
    names = label_texts_of(model, data)
    texts, Y, _ = check_training(texts_of(model, data), data.Y, names)  # rows are numbered as in the data
    check_unicode(texts)
    train, test = split if split is not None else (np.arange(len(texts)), np.empty(0, dtype=np.int64))
    model.fit([texts[i] for i in train], Y[train], names, progress=of_stage(progress, "Training"), on_epoch=on_epoch)
    return judge(model, model.rows([texts[i] for i in test]), Y[test], seed) if split is not None else None


def add_labels(tagger: Tagger, names: Sequence[str], texts: Sequence[str] | None) -> None:
    """Add labels to a tagger by their texts alone, or by their names where there are none."""
    tagger._check_fitted()
    model: Any = tagger.model_
    if not takes_texts(model):
        raise ModelError(
            f"the model is a {type(model).__name__}, which knows labels by their rows; labels can be added by their "
            "texts to models of the method 'prime'."
        )
    found = as_texts(names, "names")
    if not found:
        raise ParameterError(name="names", problem="must hold at least one label; got 0.")
    known = set(tagger.labels_)
    for name in found:
        if not name.strip() or not is_unicode(name):
            why = "it is empty" if is_unicode(name) else "it is no Unicode text"
            raise ParameterError(name="names", problem=f"must be those of new labels; got {name!r}: {why}.")
        if name in known:
            where = "the model has it already" if name in tagger.labels_ else "it stands there twice"
            raise ParameterError(name="names", problem=f"must be those of new labels; got {name!r}: {where}.")
        known.add(name)
    given = found if texts is None else as_texts(texts, "texts")
    if len(given) != len(found):
        raise ParameterError(name="texts", problem=f"must hold one text per label ({len(found)}); got {len(given)}.")
    for name, text in zip(found, given, strict=True):
        if not text.strip():
            raise DataError(f"every new label needs a text; label {name!r} has none.")
        if not is_unicode(text):
            raise DataError(f"every new label needs Unicode text; that of label {name!r} is not.")
    model.add_labels(given)
    if texts is not None or tagger.label_texts_ is not None:
        tagger.label_texts_ = (*(tagger.label_texts_ or tagger.labels_), *given)
    tagger.labels_ = (*tagger.labels_, *found)
    tagger.data_ = {**tagger.data_, "labels_added": tagger.data_.get("labels_added", 0) + len(found)}
