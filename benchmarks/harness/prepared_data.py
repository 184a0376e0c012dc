"""Data sets as matrices on disk, the same for every method, made once and kept in a work folder.

A prepared folder holds `train.npz` and `test.npz` (the arrays of X and Y in CSR form), `train.txt` (XMC text, for the
peer that reads nothing else) and `facts.json`. Rows have length 1.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks.harness.data_sets import MIN_DF, read_parts
from longtail.data import Dataset, load_bundled, write_xmc
from longtail.text import TfidfFeatures

DATA_SETS: dict[str, str] = {
    "eurlex-4k": "EURLex-4K of the XMC repository, features as given",
    "eurlex57k": "EU laws with EUROVOC concepts, full text",
    "yso-titles": "library titles with YSO subjects",
    "pubmed-mesh": "titles and abstracts with MeSH headings",
    "debian-relations": "bundled: package descriptions with the packages they depend on or recommend",
}
BUNDLED = "debian-relations"
VERSION = 2  # of the prepared folder; another number makes it again


def prepare(name: str, data: Path, work: Path) -> tuple[Path, dict[str, Any]]:
    """Return the folder of a prepared data set and the facts about it, making it if it is not there yet."""
    folder = work / "data" / name
    facts_file = folder / "facts.json"
    if facts_file.exists():
        facts = json.loads(facts_file.read_text())
        if facts.pop("version") == VERSION:
            return folder, facts
    source = data / name
    if name != BUNDLED and not source.is_dir():
        raise FileNotFoundError(f"no folder {name} in the data")
    folder.mkdir(parents=True, exist_ok=True)
    (X, Y), (Xt, Yt), how = _from_matrices(source) if (source / "train.txt.xz").exists() else _from_texts(source)
    write_xmc(Dataset(X=X, Y=Y), folder / "train.txt")
    for part, rows, labels in (("train", X, Y), ("test", Xt, Yt)):
        arrays: dict[str, Any] = {**_arrays("X", rows), **_arrays("Y", labels)}
        np.savez(folder / f"{part}.npz", **arrays)
    facts = {
        "about": DATA_SETS[name],
        "rows": how,
        "train": [*X.shape, Y.shape[1]],
        "test": [*Xt.shape, Yt.shape[1]],
        "features_per_row": round(X.nnz / X.shape[0], 1),
        "labels_per_row": round(Y.nnz / Y.shape[0], 2),
        "labels_with_training_rows": int((np.bincount(Y.indices, minlength=Y.shape[1]) > 0).sum()),
        "empty_test_rows": int((np.diff(Xt.indptr) == 0).sum()),
    }
    facts_file.write_text(json.dumps({**facts, "version": VERSION}))
    return folder, facts


def prepare_part(name: str, data: Path, work: Path) -> Path:
    """Return the folder of a prepared data set, or of so many thousand rows of one.

    "yso-titles-60k" are the first 60,000 training rows of yso-titles in one random order, and all its test rows.
    """
    thousands = re.fullmatch(r"(.+)-(\d+)k", name) if name not in DATA_SETS else None
    if thousands is None:
        return prepare(name, data, work)[0]
    folder = work / "data" / name
    if (folder / "test.npz").exists():
        return folder
    train, test = read_parts(data / thousands[1])
    order = np.random.default_rng(0).permutation(train.Y.shape[0])
    train = train.take(np.sort(order[: 1000 * int(thousands[2])]))
    folder.mkdir(parents=True, exist_ok=True)
    splits = _words_and_labels(train, test)
    for part, (rows, labels) in zip(("train", "test"), splits, strict=True):
        arrays: dict[str, Any] = {**_arrays("X", rows), **_arrays("Y", labels)}
        np.savez(folder / f"{part}.npz", **arrays)
    return folder


Split = tuple[sp.csr_array, sp.csr_array]


def read_prepared(folder: Path, part: str) -> Split:
    """Return X and Y of a part ("train", "test") of a prepared folder."""
    with np.load(folder / f"{part}.npz") as file:
        ones = np.ones(file["Y_indices"].size, dtype=np.float32)
        rows = sp.csr_array((file["X_data"], file["X_indices"], file["X_indptr"]), shape=tuple(file["X_shape"]))
        return rows, sp.csr_array((ones, file["Y_indices"], file["Y_indptr"]), shape=tuple(file["Y_shape"]))


def _from_matrices(source: Path) -> tuple[Split, Split, str]:
    """Return the features as given, with rows of length 1."""
    train, test = read_parts(source)
    return (_unit(train.X), train.Y), (_unit(test.X), test.Y), "features as given, each row scaled to length 1"


def _from_texts(source: Path) -> tuple[Split, Split, str]:
    """Return words as TF-IDF learned on train, and labels: those with training rows first, then those only in test.

    No method can learn a label without a training row, so none is given its empty column; such labels stay in the
    truth of the test rows, where they count as missed.
    """
    started = time.perf_counter()
    bundled = source.name == BUNDLED
    parts = (load_bundled(BUNDLED), load_bundled(BUNDLED, "test")) if bundled else read_parts(source)
    splits = _words_and_labels(*parts)
    print(f"prepared {source.name} in {time.perf_counter() - started:.1f} s", flush=True)
    return *splits, f"longtail's TfidfFeatures(min_df={MIN_DF}) fitted on train, words"


def _words_and_labels(train: Dataset, test: Dataset) -> tuple[Split, Split]:
    """Return the words of texts and their labels; see `_from_texts`."""
    features = TfidfFeatures(min_df=MIN_DF)
    X, Xt = features.fit_transform(list(train.texts or ())), features.transform(list(test.texts or ()))
    in_train, in_test = (np.bincount(d.Y.indices, minlength=d.Y.shape[1]) > 0 for d in (train, test))
    kept = np.flatnonzero(in_train)
    every = np.concatenate([kept, np.flatnonzero(in_test & ~in_train)])
    Y, Yt = sp.csr_array(train.Y[:, kept]), sp.csr_array(test.Y[:, every])
    Yt.sort_indices()
    return (_unit(X), Y), (_unit(Xt), Yt)


def _unit(X: Any) -> sp.csr_array:
    rows = sp.csr_array(normalize(sp.csr_matrix(X, copy=True)), dtype=np.float32)
    rows.sort_indices()
    return rows


def _arrays(name: str, M: sp.csr_array) -> dict[str, np.ndarray]:
    return {
        f"{name}_data": M.data.astype(np.float32),
        f"{name}_indices": M.indices.astype(np.int32),
        f"{name}_indptr": M.indptr.astype(np.int32),
        f"{name}_shape": np.array(M.shape, dtype=np.int64),
    }
