"""Reading a file as the commands do, and checking that what came is sound; shared by the targets of data files."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.case import Case, Wrong
from fuzz.mutations import change_bytes
from longtail.data import Dataset, iter_texts, read, write
from longtail.errors import LongtailError

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda raw: gzip.compress(raw, 1, mtime=0),
    ".bz2": lambda raw: bz2.compress(raw, 1),
    ".xz": lambda raw: lzma.compress(raw, preset=0),
}


def packed(rng: Random, name: str, raw: bytes, change: str) -> tuple[str, bytes, str]:
    """Return a file's name, its bytes and the kind of change: now and then packed, and the packed bytes changed."""
    if rng.random() > 0.04:
        return name, raw, change
    suffix = rng.choice((".gz", ".gz", ".bz2", ".xz"))
    raw = PACKERS[suffix](raw)
    if rng.random() < 0.5:
        return name + suffix, change_bytes(rng, raw), f"packed{suffix}"
    return name + suffix, raw, change + suffix


def read_and_check(case: Case, folder: Path) -> None:
    """Read a case as a whole or row by row, check it, and at times write what came and read it again."""
    options = dict(case.options)
    way, again = options.pop("way", "read"), options.pop("again", None)
    path = folder / case.main
    if way == "rows":
        for data in iter_texts(path, max(2, case.size // 1000), options.get("format")):
            check_dataset(data)
        return
    if "labels_file" in options:
        options["labels_file"] = folder / options["labels_file"]
    data = read(path, **options)
    check_dataset(data)
    if again is not None:
        check_copy(data, folder, again)


def check_dataset(data: Dataset) -> None:
    """Raise `Wrong` where a Dataset is not sound: ids out of range, values that are not finite, lengths that differ."""
    check_matrix("Y", data.Y)
    for name in ("X", "groups"):
        matrix = getattr(data, name)
        if matrix is not None:
            check_matrix(name, matrix)
            if matrix.shape[0] != data.n_rows:
                raise Wrong(f"{name} has {matrix.shape[0]} rows of {data.n_rows}")
    lengths = {"texts": data.n_rows, "ids": data.n_rows, "label_names": data.n_labels, "label_texts": data.n_labels}
    for name, wanted in lengths.items():
        strings = getattr(data, name)
        if strings is not None and (len(strings) != wanted or not all(type(s) is str for s in strings)):
            raise Wrong(f"{name} are not {wanted} strings")
    if data.label_names is not None and len(set(data.label_names)) != data.n_labels:
        raise Wrong("label names come twice")
    for row in range(min(data.n_rows, 3)):
        data.labels_of(row)


def check_matrix(name: str, matrix: sp.csr_array | np.ndarray) -> None:
    """Raise `Wrong` where a matrix has ids out of range, pointers that do not rise, or values that are not finite."""
    if isinstance(matrix, np.ndarray):
        if matrix.dtype != np.float32 or not np.isfinite(matrix).all():
            raise Wrong(f"{name} holds values that are not finite float32")
        return
    ends = matrix.indptr.tolist()
    rows, columns = matrix.shape
    if len(ends) != rows + 1 or ends[0] != 0 or ends[-1] > matrix.indices.size or ends != sorted(ends):
        raise Wrong(f"{name} has row pointers that do not fit")
    ids = matrix.indices[: ends[-1]]
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= columns):
        raise Wrong(f"{name} has column ids out of range")
    if matrix.data.dtype != np.float32 or not np.isfinite(matrix.data).all():
        raise Wrong(f"{name} holds values that are not finite float32")


def check_copy(data: Dataset, folder: Path, name: str) -> None:
    """Write data, read it again and raise `Wrong` where labels, texts or features differ; it may be refused."""
    copy = folder.parent / "work" / name
    try:
        write(data, copy)
    except LongtailError:
        return
    try:
        again = read(copy, labels_required=False, zero_based=True, n_features=data.n_features or None)
    finally:
        copy.unlink()
    if (again.n_rows, again.texts) != (data.n_rows, data.texts if name != "copy.ft" else again.texts):
        raise Wrong(f"{name} differs: {again!r}")
    if data.texts is not None:
        same = all(sorted(again.labels_of(r)) == sorted(data.labels_of(r)) for r in range(data.n_rows))
    else:
        same = all(_equal(getattr(again, part), getattr(data, part)) for part in ("X", "Y"))
    if not same:
        raise Wrong(f"{name} differs in labels or features")


def _equal(one: Any, other: Any) -> bool:
    """Say whether two matrices have the same values; text keeps enough digits for that."""
    if (one is None) != (other is None):
        return False
    if one is None:
        return True
    one, other = sp.csr_array(one), sp.csr_array(other)
    width = max(one.shape[1], other.shape[1])
    one.resize((one.shape[0], width))
    other.resize((other.shape[0], width))
    return bool(one.shape == other.shape and abs(one - other).max() == 0) if one.size + other.size else True


def draw_options(rng: Random, drawn: Mapping[str, tuple[Any, ...]], again: str | None = None) -> dict[str, Any]:
    """Return options of `read`, few of them at a time, and how it is read."""
    options: dict[str, Any] = {name: rng.choice(values) for name, values in drawn.items() if rng.random() < 0.05}
    if rng.random() < 0.2:
        options["way"] = "rows"
    elif again is not None and rng.random() < 0.04:  # it takes as long as ten others
        options["again"] = again
    return options


def warm_up(folder: Path) -> None:
    """Read and write sound files, so that kernels are compiled and packages loaded."""
    (folder / "rows.jsonl").write_bytes(b'{"text": "a", "labels": ["b"]}\n')
    (folder / "rows.xmc").write_bytes(b"2 3 2\n0 0:1 2:0.5\n0,1 1:2\n")
    (folder / "rows.svm").write_bytes(b"0 0:1 2:0.5\n0,1 1:2\n")
    for copy in ("copy.npz", "copy.jsonl", "copy.csv"):
        read_and_check(Case("none", {}, "rows.jsonl", {"again": copy}), folder)
    for copy in ("copy.npz", "copy.svm", "copy.xmc"):
        read_and_check(Case("none", {}, "rows.xmc", {"again": copy}), folder)
    for name in ("rows.jsonl", "rows.xmc", "rows.svm"):
        read_and_check(Case("none", {}, name, {"way": "rows"}), folder)
        packed_name = f"{name}.xz"
        (folder / packed_name).write_bytes(PACKERS[".xz"]((folder / name).read_bytes()))
        read_and_check(Case("none", {}, packed_name), folder)
