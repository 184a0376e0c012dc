"""Data sets and an encoder in a small folder that can be carried to a machine with a GPU and no network."""

from __future__ import annotations

import json
import lzma
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.harness.data_sets import read_parts
from longtail.encoder import DEFAULT_ENCODER, find_encoder
from longtail.storage.arrays import arrays_to_blocks, map_arrays

LENGTH = {"yso-titles": 32, "eurlex57k": 128}  # tokens of a text that count
CHARACTERS = {"yso-titles": 10_000, "eurlex57k": 900}  # more than 128 tokens need, but for odd texts
PIECE = 15 * 2**20  # files that come back are at most 16 MiB


class Texts(NamedTuple):
    """A data set: labels with training rows come first; `Y` has only these, `Y_test` all."""

    texts: list[str]
    Y: sp.csr_array
    test_texts: list[str]
    Y_test: sp.csr_array
    label_texts: list[str]


def prepare(name: str, data: Path, work: Path) -> Path:
    """Write a data set as one compressed file: texts as far as they are read, label texts, numbers of labels."""
    source, target = data / name, work / f"{name}.json.xz"
    train, test = read_parts(source)
    used = [np.bincount(part.Y.indices, minlength=part.Y.shape[1]) > 0 for part in (train, test)]
    kept = np.flatnonzero(used[0])
    every = np.concatenate([kept, np.flatnonzero(used[1] & ~used[0])])
    names = train.label_texts or ()
    facts: dict[str, Any] = {"label_texts": [names[i] for i in kept], "n_labels": int(every.size)}
    for part, rows in (("train", train), ("test", test)):
        Y = sp.csr_array(rows.Y[:, every])
        Y.sort_indices()
        facts[part] = [text[: CHARACTERS[name]] for text in rows.texts or ()]
        facts[f"Y_{part}"] = {"indptr": Y.indptr.tolist(), "indices": Y.indices.tolist()}
    work.mkdir(parents=True, exist_ok=True)
    with lzma.open(target, "wt", encoding="utf-8") as file:
        json.dump(facts, file, ensure_ascii=False)
    return target


def prepare_encoder(work: Path) -> Path:
    """Copy the encoder with weights of half precision."""
    source, target = find_encoder(DEFAULT_ENCODER), work / "encoder"
    if source is None:
        raise FileNotFoundError(f"{DEFAULT_ENCODER} is not installed")
    for name in (
        "modules.json",
        "config.json",
        "sentence_bert_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "1_Pooling/config.json",
    ):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)
    (target / "2_Normalize").mkdir(exist_ok=True)
    weights = map_arrays(source / "model.safetensors")
    half = {name: a.astype(np.float16) if a.dtype == np.float32 else a for name, a in weights.items()}
    (target / "model.safetensors").write_bytes(b"".join(arrays_to_blocks(half)))
    return target


def load(name: str, work: Path) -> Texts:
    """Read a prepared data set."""
    with lzma.open(work / f"{name}.json.xz", "rt", encoding="utf-8") as file:
        facts = json.load(file)
    n_train = len(facts["label_texts"])
    Y, Y_test = (_matrix(facts[f"Y_{part}"], facts["n_labels"]) for part in ("train", "test"))
    return Texts(facts["train"], sp.csr_array(Y[:, :n_train]), facts["test"], Y_test, facts["label_texts"])


def write_pieces(arrays: dict[str, np.ndarray], folder: Path, name: str) -> list[str]:
    """Write arrays in half precision, cut into files that are not too large; return their names."""
    half = {n: a.astype(np.float16) if a.dtype == np.float32 else np.asarray(a) for n, a in arrays.items()}
    raw = b"".join(arrays_to_blocks(half))
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for number, at in enumerate(range(0, len(raw), PIECE)):
        names.append(f"{name}.{number}.bin")
        (folder / names[-1]).write_bytes(raw[at : at + PIECE])
    return names


def read_pieces(folder: Path, names: list[str]) -> dict[str, np.ndarray]:
    """Return the arrays of such files."""
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch) / "whole.safetensors"
        whole.write_bytes(b"".join((folder / name).read_bytes() for name in names))
        return {name: np.array(array) for name, array in map_arrays(whole).items()}


def _matrix(lists: dict[str, list[int]], n_labels: int) -> sp.csr_array:
    """Return a label matrix from the lists of a prepared file."""
    indices = np.array(lists["indices"], dtype=np.int32)
    return sp.csr_array(
        (np.ones(indices.size, dtype=np.float32), indices, np.array(lists["indptr"])),
        shape=(len(lists["indptr"]) - 1, n_labels),
    )


def held_out(texts: Texts, n: int) -> Texts:
    """Return the data with n training rows in place of the test rows."""
    if not n:
        return texts
    train, test = held_rows(len(texts.texts), n)
    both = [[texts.texts[i] for i in rows] for rows in (train, test)]
    return Texts(both[0], sp.csr_array(texts.Y[train]), both[1], sp.csr_array(texts.Y[test]), texts.label_texts)


def held_rows(n_rows: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those to score, drawn at random, in order."""
    order = np.random.default_rng(5).permutation(n_rows)
    return np.sort(order[n:]), np.sort(order[:n])


def some_rows(texts: Texts, rows: int | None) -> Texts:
    """Return some of the training rows and the labels they have; the test rows stay, other labels come last."""
    if rows is None or rows >= len(texts.texts):
        return texts
    chosen = np.sort(np.random.default_rng(0).permutation(len(texts.texts))[:rows])
    Y = sp.csr_array(texts.Y[chosen])
    used = np.unique(Y.indices)
    rest = np.setdiff1d(np.arange(texts.Y_test.shape[1]), used)
    names = [texts.label_texts[i] for i in used]
    Y_test = sp.csr_array(texts.Y_test[:, np.concatenate([used, rest])])
    return Texts([texts.texts[i] for i in chosen], sp.csr_array(Y[:, used]), texts.test_texts, Y_test, names)
