"""Fixed features for `layers.py`, small enough to be carried to a machine with a GPU.

pubmed-mesh and eurlex57k: words as TF-IDF, reduced to 384 dimensions by a truncated SVD fitted on train, each dimension
as 8-bit integers with a scale of its own. delicious: its 500 binary features. Rows are scaled to length 1 when read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from benchmarks.harness.data_sets import read_parts
from benchmarks.harness.prepared_data import prepare, read_prepared
from longtail.text import unit_rows

DATA_SETS = ("pubmed-mesh", "eurlex57k", "delicious")
DIMENSIONS = 384
CLIP = 5.0  # standard deviations at which a dimension is cut off


class Prepared(NamedTuple):
    """Rows and labels; labels without training rows come last in the test labels and are in no model."""

    X: np.ndarray
    Y: sp.csr_array
    Xt: np.ndarray
    Yt: sp.csr_array


def write_features(name: str, data: Path, work: Path, folder: Path) -> Path:
    """Make the file of a data set if it is not there, and return it."""
    file = folder / f"{name}.npz"
    if file.exists():
        return file
    if name == "delicious":
        (X, Y), (Xt, Yt) = ((sp.csr_array(part.X).toarray() != 0, part.Y) for part in read_parts(data / name))
        arrays: dict[str, Any] = {"X": np.packbits(X, axis=1), "Xt": np.packbits(Xt, axis=1), "columns": X.shape[1]}
    else:
        source, _ = prepare(name, data, work)
        (rows, Y), (test_rows, Yt) = (read_prepared(source, part) for part in ("train", "test"))
        _, _, axes = randomized_svd(sp.csr_matrix(rows), DIMENSIONS, n_iter=3, random_state=0)
        X, Xt = rows @ axes.T, test_rows @ axes.T
        scale = CLIP * X.std(axis=0) / 127
        small = [np.clip(np.rint(A / scale), -127, 127).astype(np.int8) for A in (X, Xt)]
        arrays = {"X": small[0], "Xt": small[1], "scale": scale.astype(np.float32)}
    for key, M in (("Y", Y), ("Yt", Yt)):
        arrays |= {f"{key}_ids": M.indices.astype(np.uint16), f"{key}_counts": np.diff(M.indptr).astype(np.uint16)}
        arrays[f"{key}_columns"] = M.shape[1]
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(file, **arrays)
    return file


def read_features(file: Path) -> Prepared:
    """Return the rows as float32 of unit length, and the labels."""
    with np.load(file) as arrays:
        if "scale" in arrays:
            X, Xt = (arrays[key].astype(np.float32) * arrays["scale"] for key in ("X", "Xt"))
        else:
            X, Xt = (np.unpackbits(arrays[key], axis=1, count=int(arrays["columns"])) for key in ("X", "Xt"))
        Y, Yt = (_labels(arrays, key) for key in ("Y", "Yt"))
    return Prepared(np.asarray(unit_rows(X)), Y, np.asarray(unit_rows(Xt)), Yt)


def _labels(arrays: Any, key: str) -> sp.csr_array:
    """Return the label matrix that was packed into a file under this key."""
    ids, counts = arrays[f"{key}_ids"].astype(np.int32), arrays[f"{key}_counts"]
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return sp.csr_array(
        (np.ones(ids.size, np.float32), ids, indptr), shape=(counts.size, int(arrays[f"{key}_columns"]))
    )
