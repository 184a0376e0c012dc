"""Write a row store block by block, all or nothing.

Files carry their own digests in their names, so a new store never overwrites a file of the old one; replacing
`store.json` is the one step that makes the new store the store. What a killed writer leaves behind is removed by the
next one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.row_store.manifest import (
    FORMAT,
    LABEL_TYPES,
    MANIFEST,
    NUMBER_TYPES,
    OF_FEATURES,
    OURS,
    VERSION,
)
from longtail.data.row_store.pieces import PIECE_BYTES, ArrayWriter
from longtail.errors import DataError
from longtail.storage import MappedStrings, Part
from longtail.validate import Json, as_labels, as_sparse

ROWS_AT_ONCE = 1 << 14
DTYPES = {**NUMBER_TYPES, **LABEL_TYPES}


class StoreWriter:
    """Writes a row store: give it blocks of rows, and it becomes the store when the `with` block ends without error.

    Rows, labels and texts may be given together or one after the other; all must have as many rows in the end.

    Parameters
    ----------
    path : str or Path
        The folder: nothing, an empty folder, or an older store, which is replaced.
    name : str
        The name of the data, shown in reports.
    """

    name: str
    path: Path
    piece_bytes: int

    def __init__(self, path: str | Path, name: str = "", *, piece_bytes: int = PIECE_BYTES) -> None:
        self.path, self.name, self.piece_bytes = Path(path), name, piece_bytes
        self.n_labels: int = 0
        self.n_features: int | None = None
        self.label_names: Sequence[str] | None = None
        self.label_texts: Sequence[str] | None = None
        self.text_features: Part | None = None
        self._writers: dict[str, ArrayWriter] = {}
        self._ends: dict[str, int] = {}
        self._lock = -1

    def add_rows(self, X: sp.csr_array) -> None:
        """Append rows of features; `n_features` becomes the width of the widest block."""
        X = as_sparse(X)
        self.n_features = max(self.n_features or 0, X.shape[1])
        self._add_matrix(X, tuple(NUMBER_TYPES))

    def add_labels(self, Y: sp.csr_array) -> None:
        """Append the labels of rows; `n_labels` becomes the width of the widest block."""
        Y = as_labels(Y)
        self.n_labels = max(self.n_labels, Y.shape[1])
        self._add_matrix(Y, tuple(LABEL_TYPES))

    def add_strings(self, field: str, strings: Iterable[str]) -> None:
        """Append strings of a field: "texts" or "ids"."""
        encoded = [s.encode("utf-8", "surrogatepass") for s in strings]
        ends = np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)))
        self._add_ends(f"{field}.offsets", ends)
        self._writer(f"{field}.bytes", np.uint8).add(np.frombuffer(b"".join(encoded), dtype=np.uint8))

    def strings_so_far(self, field: str) -> MappedStrings | None:
        """Return all strings of a field, to which nothing can be added any more; None where there are none."""
        if f"{field}.bytes" not in self._writers:
            return None
        return MappedStrings(*(self._writers[f"{field}.{name}"].mapped() for name in ("bytes", "offsets")))

    def drop(self, field: str) -> None:
        """Leave out the strings of a field that were added."""
        for name in ("bytes", "offsets"):
            writer = self._writers.pop(f"{field}.{name}")
            writer.finish()
            writer.remove()

    def draft(self, name: str, dtype: type[np.generic]) -> ArrayWriter:
        """Return the writer of an array that is needed while the store is written and is not kept."""
        return ArrayWriter(self.path, name, dtype, self.piece_bytes)

    def __enter__(self) -> Self:
        check_target(self.path)
        self._fresh = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path)
            self._remove_leftovers(self._named())
        except OSError as error:
            raise DataError(f"{self.path} cannot be written: {error.strerror}.") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self._finish()
                return
            self._tidy()
            if isinstance(error, OSError):
                raise DataError(f"{self.path} cannot be written: {error.strerror or error}.") from error
        except OSError as late:
            self._tidy()
            raise DataError(f"{self.path} cannot be written: {late.strerror or late}.") from late
        except BaseException:
            self._tidy()
            raise
        finally:
            if self._lock >= 0:
                os.close(self._lock)

    def _finish(self) -> None:
        """Write what stands once, and the manifest, which makes the store."""
        if self.label_names is not None:
            self._add_all("label_names", self.label_names)
        if self.label_texts is not None:
            self._add_all("label_texts", self.label_texts)
        rows = self._count_rows()
        if "Y.pointers" not in self._writers:
            self.add_labels(sp.csr_array((rows, self.n_labels), dtype=np.float32))
        part = self.text_features
        for name, array in ({} if part is None else part.arrays).items():
            self._writer(OF_FEATURES + name, array.dtype.type).add(array)
        arrays = {name: writer.finish() for name, writer in sorted(self._writers.items())}
        files = {name: entry for writer in self._writers.values() for name, entry in writer.files.items()}
        manifest: Json = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "rows": rows,
            "labels": self.n_labels if self.label_names is None else len(self.label_names),
            "features": self.n_features,
            "arrays": arrays,
            "files": files,
            "text_features": None if part is None else {"kind": part.kind, "params": part.params},
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n"
        temporary = self.path / f"{MANIFEST}.tmp"
        with temporary.open("wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path / MANIFEST)
        self._remove_leftovers({MANIFEST, *files})

    def _count_rows(self) -> int:
        """Return how many rows there are; different numbers of rows, labels and texts are refused."""
        counts = {
            name.partition(".")[0]: self._writers[name].entries - 1
            for name in ("X.pointers", "Y.pointers", "texts.offsets", "ids.offsets")
            if name in self._writers
        }
        if not {"X", "texts"} & set(counts):
            raise DataError(f"{self.path} cannot be written: there are no rows.")
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{name} {n}" for name, n in counts.items())
            raise DataError(f"{self.path} cannot be written: all must have as many rows; got {told}.")
        return next(iter(counts.values()))

    def _add_matrix(self, M: sp.csr_array, names: tuple[str, ...]) -> None:
        pointers, ids, values = names
        self._add_ends(pointers, M.indptr[1:].astype(np.int64))
        self._writer(ids, np.int32).add(M.indices)
        self._writer(values, np.float32).add(M.data)

    def _add_ends(self, name: str, ends: np.ndarray) -> None:
        """Append where entries end, counted from the first of this block, to the pointers of all."""
        writer = self._writer(name, np.int64)
        if not writer.entries:
            writer.add(np.zeros(1, dtype=np.int64))
        before = self._ends.get(name, 0)
        writer.add(ends + before)
        self._ends[name] = before + (int(ends[-1]) if ends.size else 0)

    def _add_all(self, field: str, strings: Sequence[str]) -> None:
        self.add_strings(field, ())
        for low in range(0, len(strings), ROWS_AT_ONCE):
            self.add_strings(field, strings[low : low + ROWS_AT_ONCE])

    def _writer(self, name: str, dtype: type[np.generic]) -> ArrayWriter:
        if name not in self._writers:
            self._writers[name] = ArrayWriter(self.path, name, dtype, self.piece_bytes)
        return self._writers[name]

    def _named(self) -> set[str]:
        """Return the files of the store that is there."""
        with contextlib.suppress(OSError, ValueError):
            return {MANIFEST, *json.loads((self.path / MANIFEST).read_text("utf-8"))["files"]}
        return set()

    def _tidy(self) -> None:
        """Remove what was written, after an error; an old store stays as it was."""
        for writer in self._writers.values():
            writer.close()
        with contextlib.suppress(OSError):
            self._remove_leftovers(self._named())
            if self._fresh:
                self.path.rmdir()

    def _remove_leftovers(self, keep: set[str]) -> None:
        for file in self.path.iterdir():
            if file.name not in keep and OURS.fullmatch(file.name):
                file.unlink(missing_ok=True)


def write_store(dataset: Dataset, path: str | Path) -> None:
    """Write a Dataset as a row store."""
    if dataset.groups is None and isinstance(dataset.X, np.ndarray) and dataset.X.shape[1] == 0:
        raise DataError(f"{path} cannot be written: X has no columns.")
    with StoreWriter(path, dataset.name) as store:
        store.n_labels = dataset.n_labels
        store.label_names, store.label_texts = dataset.label_names, dataset.label_texts
        store.text_features = dataset.made_by
        for low in range(0, dataset.n_rows, ROWS_AT_ONCE):
            at = slice(low, min(low + ROWS_AT_ONCE, dataset.n_rows))
            store.add_labels(dataset.Y[at])
            if dataset.X is not None:
                store.add_rows(as_sparse(dataset.X[at]))
            for field in ("texts", "ids"):
                strings = getattr(dataset, field)
                if strings is not None:
                    store.add_strings(field, strings[at])


def check_target(path: Path) -> None:
    """Refuse a path at which something else than a row store stands."""
    try:
        there = path.exists()
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error
    if there and not path.is_dir():
        raise DataError(f"{path} is a file; a row store is written as a folder.")
    if there and not (path / MANIFEST).is_file():
        foreign = sorted(file.name for file in path.iterdir() if not OURS.fullmatch(file.name))
        if foreign:
            raise DataError(f"{path} is not a row store and holds other files ({foreign[0]}); choose another folder.")


def _locked(path: Path) -> int:
    """Hold the folder for one writer; a killed writer's lock vanishes with it."""
    try:
        import fcntl
    except ImportError:
        return -1
    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(folder)
        raise DataError(f"{path} is being written by another process.") from error
    return folder
