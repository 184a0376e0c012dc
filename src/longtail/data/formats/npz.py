"""npz: X and Y in one file, or scipy's `X.npz` beside `Y.npz`; pickled objects are never loaded.

One file holds X and Y each as a dense array (`X`) or as the arrays of a CSR matrix (`X.indptr`, `X.indices`, `X.data`,
`X.shape`). Files written here also hold texts, ids, names and groups, so nothing of a Dataset is lost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.formats.files import replacing
from longtail.data.formats.npz_arrays import read_npz_arrays, scipy_matrix
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError, ModelError
from longtail.storage import Part, pack_csr, pack_strings, unpack_strings
from longtail.validate import Rows, as_labels

STRINGS = ("texts", "ids", "label_names", "label_texts", "group_names")


def read_npz(
    path: str | Path,
    name: str = "",
    labels_required: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    ignored: set[str] | None = None,
) -> Dataset:
    """Read one .npz file, an `X….npz` file with its `Y….npz` beside it, or a folder with `X.npz` and `Y.npz`.

    With `labels_required=False` an X without its Y is read too, as rows without labels.
    `ignored` receives the names of arrays that are not read.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "X.npz"
    arrays = read_npz_arrays(path, limits)
    if ignored is not None and "format" not in arrays:
        known = {"X", "Y", "groups", *STRINGS}
        ignored.update(array for array in arrays if array.partition(".")[0] not in known)
    if "Y" in arrays or "Y.data" in arrays:
        X, Y, groups = (_unpack_matrix(path, arrays, key, limits) for key in ("X", "Y", "groups"))
        strings: dict[str, Any] = {
            key: tuple(_unpack_names(path, arrays, key)) for key in STRINGS if f"{key}.bytes" in arrays
        }
        with _naming(path):
            return Dataset(Y=Y, X=X, groups=groups, name=name, **strings)
    if not labels_required and {"groups", "groups.data"} & set(arrays):
        with _naming(path):
            groups = as_labels(_unpack_matrix(path, arrays, "groups", limits), "groups")
            empty = sp.csr_array((groups.shape[0], 0), dtype=np.float32)
            of_rows = [key for key in ("texts", "ids", "group_names") if f"{key}.bytes" in arrays]
            strings = {key: tuple(_unpack_names(path, arrays, key)) for key in of_rows}
            return Dataset(X=_unpack_matrix(path, arrays, "X", limits), Y=empty, groups=groups, name=name, **strings)
    if "format" not in arrays and "X" not in arrays:
        raise DataError(f"{path} has no arrays 'X' and 'Y'; it has: {', '.join(sorted(arrays)) or 'nothing'}.")
    partner = path.with_name("Y" + path.name[1:])
    if not path.name.startswith("X") or not partner.is_file():
        if not labels_required:
            X = _saved_by_scipy(path, arrays, limits)
            with _naming(path):
                return Dataset(X=X, Y=sp.csr_array((X.shape[0] if X.ndim else 0, 0), dtype=np.float32), name=name)
        raise DataError(f"{path} has no labels: it has no array 'Y', and there is no {partner.name} beside it.")
    Y = _saved_by_scipy(partner, read_npz_arrays(partner, limits), limits)
    with _naming(path, partner):
        return Dataset(X=_saved_by_scipy(path, arrays, limits), Y=Y, name=name)


@contextlib.contextmanager
def _naming(path: Path, labels: Path | None = None) -> Iterator[None]:
    """Let an error about an array name the file it is from; `labels` is that of Y, where it has its own."""
    try:
        yield
    except DataError as error:
        if str(path) not in str(error):
            of_labels = labels is not None and error.fields.get("name", error.fields.get("input")) == "Y"
            error.restate("{path}: " + error.template, path=str(labels if of_labels else path))
        raise


def read_npz_counts(
    path: Path, limits: Limits = DEFAULT_LIMITS
) -> tuple[sp.csr_array, tuple[str, ...] | None, tuple[str, ...] | None]:
    """Read how often groups have labels: the counts, and the names of groups and of labels where the file has them.

    The file has `Y` with perhaps `group_names` and `label_names`, or is a matrix saved by scipy.
    """
    arrays = read_npz_arrays(path, limits)
    if "Y" not in arrays and "Y.data" not in arrays:
        with _naming(path):
            return as_labels(_saved_by_scipy(path, arrays, limits), "Y_groups"), None, None
    group_names, label_names = (
        tuple(_unpack_names(path, arrays, key)) if f"{key}.bytes" in arrays else None
        for key in ("group_names", "label_names")
    )
    with _naming(path):
        return as_labels(_unpack_matrix(path, arrays, "Y", limits), "Y_groups"), group_names, label_names


def write_npz(dataset: Dataset, path: str | Path) -> None:
    """Write everything a Dataset holds into one .npz file."""
    arrays: dict[str, np.ndarray] = {}
    for key in ("X", "Y", "groups"):
        matrix = getattr(dataset, key)
        if isinstance(matrix, np.ndarray):
            arrays[key] = matrix
        elif matrix is not None:
            arrays |= pack_csr(key, matrix)
    for key in STRINGS:
        if getattr(dataset, key) is not None:
            arrays |= pack_strings(key, getattr(dataset, key))
    with replacing(Path(path)) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _unpack_matrix(path: Path, arrays: dict[str, np.ndarray], key: str, limits: Limits) -> Rows | None:
    """Return the dense or sparse matrix saved under a name, or None."""
    if key in arrays:
        return arrays[key]
    if f"{key}.data" not in arrays:
        return None
    try:
        own = {part: arrays[f"{key}.{part}"] for part in ("data", "indices", "indptr", "shape")}
        return scipy_matrix(path, {**own, "format": np.array("csr")}, limits)
    except (KeyError, DataError) as error:
        if isinstance(error, DataError) and "limit" in error.fields:
            raise
        raise DataError(f"{path}: the sparse matrix '{key}' is damaged.") from error


def _saved_by_scipy(path: Path, arrays: dict[str, np.ndarray], limits: Limits) -> Rows:
    """Return the matrix of a file written by scipy.sparse.save_npz, or a single dense array."""
    if "format" in arrays:
        return scipy_matrix(path, arrays, limits)
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    raise DataError(f"{path} was not written by scipy.sparse.save_npz.")


def _unpack_names(path: Path, arrays: dict[str, np.ndarray], key: str) -> list[str]:
    part = Part("npz", arrays=arrays)
    try:
        return unpack_strings(key, part)
    except (UnicodeDecodeError, LookupError, TypeError, ModelError) as error:
        raise DataError(f"{path}: the strings '{key}' are damaged.") from error
