"""Any readable file to a row store: rows, labels and texts in one pass, TF-IDF features of the texts in two more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtail.data import Dataset, StoreWriter, fill_store, is_streamed, iter_texts, open_store, plain_name, read
from longtail.errors import DataError
from longtail.model import Stages
from longtail.storage import MappedStrings
from longtail.text import TfidfFeatures
from longtail.validate import Json, used_memory

ROWS_AT_ONCE = 10_000
CHARACTERS_AT_ONCE = 1 << 25  # bytes of text that are counted, or turned into rows, at once
TERM_BYTES = 400  # of memory for each n-gram that is counted, while two tables of them are merged
LEAST_TERMS = 100_000


def convert_to_store(
    path: str | Path,
    target: str | Path,
    *,
    features: TfidfFeatures | None = None,
    keep_texts: bool = True,
    memory: int | None = None,
    part: str = "train",
    split: int = 0,
    labels_file: str | Path | None = None,
    progress: Stages | None = None,
    **reading: Any,
) -> Json:
    """Write a file as a row store, in constant memory where the format can be read row by row.

    Parameters
    ----------
    path : str or Path
        A file or folder that `longtail.data.read` reads.
    target : str or Path
        The folder of the store.
    features : TfidfFeatures or None, default=None
        What makes X of texts, not fitted; None leaves texts as they are. They learn the vocabulary in one pass over the
        texts and make the rows in another.
    keep_texts : bool, default=True
        Keep the texts, which only models that read texts themselves need once there are features.
    memory : int or None, default=None
        Bytes that may be in use; the table of n-grams is cut to fit. None for no limit.
    part, split, labels_file, **reading
        As for `longtail.data.read`.
    progress : callable or None, default=None
        Called as `progress(stage, done, total)`.

    Returns
    -------
    facts : dict
        `rows`, `labels`, `features`, `bytes`, and `terms_missed`: in how many rows a term may be that was not counted.

    Examples
    --------
    >>> import tempfile
    >>> from longtail.data import write
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = write(Dataset.from_lists(["a red apple"], [["fruit"]]), folder / "a.jsonl")
    >>> facts = convert_to_store(folder / "a.jsonl", folder / "a.store", features=TfidfFeatures())
    >>> facts["rows"], facts["labels"], facts["features"]
    (1, 1, 2)
    """
    path, target, missed = Path(path), Path(target), 0
    most_terms = None
    if memory is not None:
        most_terms = max(LEAST_TERMS, (memory - used_memory()) // TERM_BYTES)
    if path.resolve() == target.resolve():
        raise DataError(f"{path} is the store itself; choose another folder to write.")
    with StoreWriter(target, Path(plain_name(path)).stem) as store:
        names, texts = _listed(labels_file, reading)
        store.label_names, store.label_texts = names, texts
        if is_streamed(path, reading.get("format")):
            blocks = _blocks(path, names, reading)
        else:
            whole = read(path, part=part, split=split, labels_required=False, label_names=names, **reading)
            if names is None:  # all labels of the file, also those that no row has
                store.label_names, store.label_texts = whole.label_names, whole.label_texts
            blocks = iter([whole])
            del whole
        fill_store(store, blocks, _told(progress, "Reading rows"))
        found = store.strings_so_far("texts")
        if found is not None and store.n_features is None and features is not None:
            missed = features.fit_blocks(_parts(found, progress, "Counting words"), most_terms=most_terms)
            for block in _parts(found, progress, "Making rows"):
                store.add_rows(features.transform(block))
            store.text_features = features.to_part()
        if found is not None and not keep_texts:
            if store.n_features is None:
                raise DataError(f"{target} cannot be written without texts: there are no features.")
            del found
            store.drop("texts")
    written = open_store(target, verify=False)
    facts = {name: written.manifest[name] for name in ("rows", "labels", "features")}
    return {
        "file": str(target),
        "format": "store",
        **facts,
        "bytes": written.n_bytes,
        "files": len(written.manifest["files"]),
        "texts": written.strings("texts") is not None,
        "terms_missed": missed,
    }


def _listed(labels_file: str | Path | None, reading: dict[str, Any]) -> tuple[Any, Any]:
    """Return the names and texts of a list of labels."""
    from longtail.data import read_labels

    if labels_file is None:
        return None, None
    listed = read_labels(labels_file, **({"limits": reading["limits"]} if "limits" in reading else {}))
    return listed.names, listed.texts_of(listed.names)


def _blocks(path: Path, names: Sequence[str] | None, reading: dict[str, Any]) -> Iterator[Dataset]:
    """Yield the rows of a file block by block."""
    streamed = {name: value for name, value in reading.items() if name not in ("group_column", "n_labels")}
    n_rows = 0
    for block in iter_texts(path, ROWS_AT_ONCE, **{"labels_column": "labels", **streamed}, label_names=names):
        n_rows += block.n_rows
        yield block
    if not n_rows:
        raise DataError(f"{path} has no rows.")


def _parts(texts: MappedStrings, progress: Stages | None, stage: str) -> Iterator[Sequence[str]]:
    """Yield texts some megabytes at a time."""
    low = 0
    while low < len(texts):
        end = int(texts.offsets[low]) + CHARACTERS_AT_ONCE
        high = min(max(low + 1, int(np.searchsorted(texts.offsets, end, side="right")) - 1), len(texts))
        yield texts[low:high]
        low = high
        if progress is not None:
            progress(stage, low, len(texts))


def _told(progress: Stages | None, stage: str) -> Any:
    return None if progress is None else lambda done: progress(stage, done, 0)
