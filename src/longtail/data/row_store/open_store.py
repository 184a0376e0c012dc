"""Open a row store: everything in it is checked, and then mapped; no byte of it is copied into memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.data.row_store.check_rows import NUMBER, ORDER, POINTERS, RANGE, SOUND, find_problem
from longtail.data.row_store.manifest import (
    LABEL_TYPES,
    MANIFEST,
    NUMBER_TYPES,
    OF_FEATURES,
    STRINGS,
    read_manifest,
)
from longtail.data.row_store.pieces import digest_of, map_pieces, release_pages
from longtail.errors import DataError
from longtail.kernels import blocks, run_tasks
from longtail.storage import MappedStrings, Part, strings_problem
from longtail.validate import Json, check_flag, make_csr, resolve_jobs

ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class RowStore:
    """A row store, open: its arrays are mapped files.

    Attributes
    ----------
    path : Path
        The folder.
    manifest : dict
        What `store.json` says.
    arrays : dict of str to ndarray
        The mapped arrays by name, read-only.
    """

    path: Path
    manifest: Json
    arrays: Mapping[str, np.ndarray]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.manifest["rows"])

    @property
    def n_bytes(self) -> int:
        """The bytes of all files."""
        return sum(entry["bytes"] for entry in self.manifest["files"].values())

    @property
    def text_features(self) -> Part | None:
        """What made the features of the texts, as it is saved; None where the rows came with features."""
        entry = self.manifest["text_features"]
        if entry is None:
            return None
        own = {n.removeprefix(OF_FEATURES): a for n, a in self.arrays.items() if n.startswith(OF_FEATURES)}
        return Part(entry["kind"], entry["params"], own)

    def strings(self, field: str) -> MappedStrings | None:
        """Return the strings of a field ("texts", "ids", "label_names", "label_texts"), or None."""
        if f"{field}.bytes" not in self.arrays:
            return None
        return MappedStrings(self.arrays[f"{field}.bytes"], self.arrays[f"{field}.offsets"])

    def _matrix(self, names: tuple[str, ...], width: int) -> sp.csr_array:
        pointers, ids, values = (self.arrays[name] for name in names)
        return make_csr(pointers, ids, values, width)

    def dataset(self) -> Dataset:
        """Return the rows as a Dataset on the mapped files."""
        width = self.manifest["features"]
        X = None if width is None else self._matrix(tuple(NUMBER_TYPES), width)
        fields = {field: self.strings(field) for field in STRINGS}
        return Dataset.checked_before(
            Y=self._matrix(tuple(LABEL_TYPES), self.manifest["labels"]),
            X=X,
            name=self.manifest["name"],
            made_by=self.text_features,
            **fields,
        )


def open_store(path: str | Path, *, verify: bool = True, limits: Limits = DEFAULT_LIMITS) -> RowStore:
    """Open a row store that `longtail convert` wrote, or refuse it in one sentence.

    Every file is held against its size and its digest; then every row is looked at once: its ids are in range and in
    order, its values are finite. Only then is anything computed with it.

    Parameters
    ----------
    path : str or Path
        The folder.
    verify : bool, default=True
        Check digests; all other checks are always made.
    limits : Limits, default=Limits()
        The most rows, labels and features it may have.

    Returns
    -------
    store : RowStore

    Examples
    --------
    >>> import tempfile
    >>> from longtail.data import write
    >>> folder = Path(tempfile.mkdtemp()) / "rows.store"
    >>> _ = write(Dataset.from_lists(["a red apple"], [["fruit"]]), folder)
    >>> open_store(folder).dataset()
    Dataset(unnamed: 1 rows of texts, 1 labels)
    """
    path, verify = Path(path), check_flag("verify", verify)
    manifest = read_manifest(path, limits)
    arrays = {name: _mapped(path, name, entry, manifest["files"]) for name, entry in manifest["arrays"].items()}
    if verify:
        _check_digests(path, manifest, arrays)
    store = RowStore(path, manifest, arrays)
    _check_matrix(store, "X", tuple(NUMBER_TYPES), manifest["features"], -np.inf)
    _check_matrix(store, "Y", tuple(LABEL_TYPES), manifest["labels"], 0.0)
    for field in STRINGS:
        _check_strings(store, field, manifest["labels"] if field.startswith("label") else store.n_rows)
    known = {*NUMBER_TYPES, *LABEL_TYPES, *(f"{field}.{of}" for field in STRINGS for of in ("bytes", "offsets"))}
    for name in arrays:
        if name not in known and not (name.startswith(OF_FEATURES) and manifest["text_features"] is not None):
            raise DataError(f"{path / MANIFEST} is damaged: the array {name!r} is not known.")
    if manifest["features"] is None and "texts.bytes" not in arrays:
        raise DataError(f"{path / MANIFEST} is damaged: it has neither features nor texts.")
    for array in arrays.values():
        release_pages(array)
    return store


def _mapped(path: Path, name: str, entry: Json, files: Json) -> np.ndarray:
    own = entry["files"]
    sizes = [files[file]["bytes"] for file in own]
    return map_pieces([path / file for file in own], sizes, np.dtype(entry["dtype"]))


def _check_digests(path: Path, manifest: Json, arrays: Mapping[str, np.ndarray]) -> None:
    """Hold every file against its digest, on threads."""
    tasks = []
    for name, entry in manifest["arrays"].items():
        raw, at = arrays[name].view(np.uint8), 0
        for file in entry["files"]:
            size = manifest["files"][file]["bytes"]
            tasks.append((file, raw[at : at + size]))
            at += size

    def sound(task: tuple[str, np.ndarray]) -> bool:
        return digest_of(task[1]) == manifest["files"][task[0]]["sha256"]

    for (file, _), fits in zip(tasks, run_tasks(sound, tasks, resolve_jobs(None)), strict=True):
        if not fits:
            raise DataError(f"{path / file} is damaged: its digest does not match the manifest.")


def _check_matrix(store: RowStore, matrix: str, names: tuple[str, ...], width: int | None, least: float) -> None:
    """Refuse a matrix with pointers, ids or values that lead anywhere but into it."""
    there = [name for name in names if name in store.arrays]
    types = {**NUMBER_TYPES, **LABEL_TYPES}
    if width is None and not there:
        return
    if len(there) < len(names) or any(store.arrays[name].dtype != types[name] for name in names) or width is None:
        raise DataError(f"{store.path / MANIFEST} is damaged: the arrays of {matrix} are not those of sparse rows.")
    pointers, ids, values = (store.arrays[name] for name in names)
    n = store.n_rows
    if pointers.size != n + 1 or values.size != ids.size or pointers[0] != 0 or pointers[-1] != ids.size:
        raise DataError(f"{store.path} is damaged: the pointers of {matrix} do not fit its entries.")

    def look(at: slice) -> tuple[int, int, int]:
        kind, row, column = find_problem(pointers[at.start : at.stop + 1], ids, values, width, least)
        return int(kind), int(row) + at.start, int(column)

    for kind, row, column in run_tasks(look, blocks(n, ROWS_AT_ONCE), resolve_jobs(None)):
        if kind == SOUND:
            continue
        what = {
            POINTERS: "its pointers do not fit its entries",
            RANGE: f"it has the id {column}, which is not from 0 to {width - 1}",
            ORDER: f"the id {column} is out of order",
            NUMBER: f"the value of id {column} is not allowed",
        }[kind]
        raise DataError(f"{store.path} is damaged: row {row} of {matrix}: {what}.")


def _check_strings(store: RowStore, field: str, n: int) -> None:
    """Refuse strings whose offsets do not fit, that are no UTF-8, or names of labels that come twice."""
    raw, offsets = store.arrays.get(f"{field}.bytes"), store.arrays.get(f"{field}.offsets")
    if raw is None and offsets is None:
        return
    problem = strings_problem(raw, offsets, n)
    if problem is None and field == "label_names" and raw is not None and offsets is not None:
        twice = MappedStrings(raw, offsets).repeated()
        problem = None if twice is None else f"{twice!r} stands there twice"
    if problem is not None:
        raise DataError(f"{store.path} is damaged: {field}: {problem}.")
