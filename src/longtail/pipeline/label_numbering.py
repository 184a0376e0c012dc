"""Rows of a Dataset as a Tagger numbers and predicts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from longtail.data import Dataset, TopK
from longtail.errors import DataError
from longtail.kernels import blocks
from longtail.pipeline.labels_in_vocabulary import with_ids

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger

BLOCK = 4096


def truth(tagger: Tagger, data: Dataset) -> tuple[Any, tuple[str, ...]]:
    """Return the true labels in the tagger's numbering, labels it does not know after those it knows, and the names."""
    data = with_ids(data.compact_labels(), tagger.vocabulary_)
    unknown = sorted(set(data.names()) - set(tagger.labels_))
    names = (*tagger.labels_, *unknown)
    return data.align(names)[0].Y, names


def predict_dataset(tagger: Tagger, data: Dataset, k: int, progress: Callable[[int, int], None] | None = None) -> TopK:
    """Return the k best labels of every row of the data, block by block."""
    parts = []
    if data.texts is not None:
        tagger.model_.check_texts(data.texts)  # while rows are numbered as in the data
    for at in blocks(data.n_rows, BLOCK):
        parts.append(tagger.model_.predict_topk(tagger.dataset_rows(data.take(at)), k=k))
        if progress is not None:
            progress(at.stop, data.n_rows)
    if not parts:
        raise DataError("the data has no rows.")
    return TopK.stack(parts)
