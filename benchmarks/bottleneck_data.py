"""Fixed features for `bottleneck_layers.py`, small enough to be carried to a machine with a GPU.

pubmed-mesh and eurlex57k: words as TF-IDF, reduced to 384 dimensions by a truncated SVD fitted on train, each dimension
as 8-bit integers with a scale of its own. delicious: its 500 binary features. Rows are scaled to length 1 when read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from longtail.data import read
from longtail.text.row_vectors import unit_rows
from peers.prepare import prepare, read_labels

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
        parts = [read(data / name / f"{part}.txt.xz") for part in ("train", "test")]
        (X, Y), (Xt, Yt) = ((sp.csr_array(part.X).toarray() != 0, part.Y) for part in parts)
        arrays: dict[str, Any] = {"X": np.packbits(X, axis=1), "Xt": np.packbits(Xt, axis=1), "columns": X.shape[1]}
    else:
        source, _ = prepare(name, data, work)
        rows = [_rows(source, part) for part in ("train", "test")]
        Y, Yt = read_labels(source, "train"), read_labels(source, "test")
        _, _, axes = randomized_svd(sp.csr_matrix(rows[0]), DIMENSIONS, n_iter=3, random_state=0)
        X, Xt = (M @ axes.T for M in rows)
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
    with np.load(file) as found:
        if "scale" in found:
            X, Xt = (found[key].astype(np.float32) * found["scale"] for key in ("X", "Xt"))
        else:
            X, Xt = (np.unpackbits(found[key], axis=1, count=int(found["columns"])) for key in ("X", "Xt"))
        Y, Yt = (_labels(found, key) for key in ("Y", "Yt"))
    return Prepared(np.asarray(unit_rows(X)), Y, np.asarray(unit_rows(Xt)), Yt)


def _labels(found: Any, key: str) -> sp.csr_array:
    ids, counts = found[f"{key}_ids"].astype(np.int32), found[f"{key}_counts"]
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return sp.csr_array((np.ones(ids.size, np.float32), ids, indptr), shape=(counts.size, int(found[f"{key}_columns"])))


def _rows(folder: Path, part: str) -> sp.csr_array:
    with np.load(folder / f"{part}.npz") as file:
        return sp.csr_array((file["X_data"], file["X_indices"], file["X_indptr"]), shape=tuple(file["X_shape"]))
