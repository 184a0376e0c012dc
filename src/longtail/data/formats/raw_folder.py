"""Read the raw text layout of the XMC repository: a folder with `trn.json`, `tst.json` and `lbl.json`.

The files (also as .json.gz) have one JSON record per line with `uid`, `title` and `content`; rows also have
`target_ind` (label numbers) and may have `target_rel` (their weights). The text of a row is its title and content,
joined by a space; a label is named by its uid, with its title as text. Pairs of a row and a label that do not count
when ranking stand in `filter_labels_train.txt` and `filter_labels_test.txt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.formats.files import COMPRESSED
from longtail.data.formats.jsonl import iter_objects
from longtail.data.formats.records import short_repr
from longtail.data.formats.split_folder import read_integers
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError
from longtail.validate import check_choice

RAW_PARTS = {"train": "trn.json", "test": "tst.json"}
MOST_WEIGHT = float(np.finfo(np.float32).max)
TEXT_FIELDS = ("title", "content")


def is_raw_folder(folder: Path) -> bool:
    """Return whether a folder holds a part of the raw text layout."""
    return any(_find_file(folder, stem) for stem in (*RAW_PARTS.values(), "lbl.json"))


def read_raw_folder(
    folder: str | Path,
    part: str = "train",
    text_fields: Sequence[str] = TEXT_FIELDS,
    limits: Limits = DEFAULT_LIMITS,
    ignored: set[str] | None = None,
) -> Dataset:
    """Return the training or test rows of a raw text folder; `ignored` receives the keys that are not read."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} does not exist." if not folder.exists() else f"{folder} is not a folder.")
    file, label_file = (
        _required_file(folder, s) for s in (RAW_PARTS[check_choice("part", part, list(RAW_PARTS))], "lbl.json")
    )
    names, label_texts = [], []
    for lines, records in iter_objects(label_file, limits=limits):
        for line, record in zip(lines, records, strict=True):
            names.append(_uid(label_file, line, record))
            limits.check("label_characters", len(names[-1]), f"{label_file} line {line}")
            label_texts.append(_joined_text(label_file, line, record, ("title",)))
    texts, ids, counts, indices, weights = [], [], [0], [], []
    for lines, records in iter_objects(file, limits=limits):
        for line, record in zip(lines, records, strict=True):
            ids.append(_uid(file, line, record))
            texts.append(_joined_text(file, line, record, text_fields))
            limits.check("text_characters", len(texts[-1]), f"{file} line {line}")
            labels, rel = _targets(file, line, record, len(names))
            limits.check("row_labels", len(labels), f"{file} line {line}")
            indices += labels
            weights += rel
            counts.append(len(indices))
        limits.check("rows", len(texts), str(file))
        if ignored is not None:
            ignored.update(set().union(*records) - {"uid", "target_ind", "target_rel", *text_fields})
    Y = sp.csr_array(
        (np.array(weights, dtype=np.float32), np.array(indices, dtype=np.int32), np.array(counts, dtype=np.int64)),
        shape=(len(texts), len(names)),
    )
    return Dataset(
        Y=Y,
        texts=tuple(texts),
        ids=tuple(ids),
        label_names=tuple(names),
        label_texts=tuple(label_texts),
        name=f"{folder.name} {part}",
    )


def read_filter(path: str | Path, limits: Limits = DEFAULT_LIMITS) -> np.ndarray:
    """Return the pairs of a filter file, int64 (n_pairs, 2): row, label. An empty file has no pairs.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "filter_labels_test.txt"
    >>> _ = file.write_text("0 17\\n3 2\\n")
    >>> read_filter(file).tolist()
    [[0, 17], [3, 2]]
    """
    return read_integers(Path(path), width=2, may_be_empty=True, limits=limits)


def _targets(path: Path, line: int, record: dict[str, Any], n_labels: int) -> tuple[list[int], list[float]]:
    labels = record.get("target_ind", [])
    rel = record.get("target_rel") or [1.0] * len(labels) if isinstance(labels, list) else None
    if not isinstance(labels, list) or not isinstance(rel, list) or len(rel) != len(labels):
        raise DataError(f"{path} line {line}: 'target_ind' and 'target_rel' must be lists of one length.")
    for label in labels:
        if type(label) is not int or not 0 <= label < n_labels:
            allowed = f"allowed are 0 to {n_labels - 1}"
            raise DataError(f"{path} line {line}: the label {label!r} is out of range; {allowed}.")
    for weight in rel:
        if type(weight) not in (int, float) or not 0 <= weight <= MOST_WEIGHT:
            allowed = f"numbers from 0 to {MOST_WEIGHT:g}"
            raise DataError(f"{path} line {line}: 'target_rel' must hold {allowed}; got {short_repr(weight)}.")
    merged = dict(zip(labels, rel, strict=True))  # a label named twice counts once
    return sorted(merged), [float(merged[label]) for label in sorted(merged)]


def _uid(path: Path, line: int, record: dict[str, Any]) -> str:
    uid = record.get("uid")
    if not isinstance(uid, str | int) or isinstance(uid, bool):
        raise DataError(f"{path} line {line} has no 'uid'; it has: {', '.join(record) or 'nothing'}.")
    return str(uid)


def _joined_text(path: Path, line: int, record: dict[str, Any], fields: Sequence[str]) -> str:
    parts = [record[field] for field in fields if record.get(field)]
    if not all(isinstance(part, str) for part in parts):
        names = "', '".join(fields)
        raise DataError(f"{path} line {line}: '{names}' must be strings.")
    return " ".join(parts)


def _required_file(folder: Path, stem: str) -> Path:
    path = _find_file(folder, stem)
    if path is None:
        raise DataError(f"{folder} has no {stem} or {stem}.gz.")
    return path


def _find_file(folder: Path, stem: str) -> Path | None:
    return next((folder / (stem + s) for s in ("", *COMPRESSED) if (folder / (stem + s)).is_file()), None)
