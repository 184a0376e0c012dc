"""Files beside the data: labels of groups, lists of labels, filters, label sets, layers to audit, certificates."""

from __future__ import annotations

import contextlib
import struct
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.archives import Member, archive, npy_bytes, zip_bytes
from fuzz.case import Case, Target, Wrong
from fuzz.mutations import change_array, change_bytes, change_json, change_text, dump_json
from fuzz.targets import matrices, records
from fuzz.targets.model_files import safetensors_bytes
from fuzz.targets.reading import check_dataset, check_matrix, packed

# --- labels of groups -------------------------------------------------------------------------------------------------

ROWS = b'{"text": "a red apple", "group": "g1"}\n{"text": "a car", "group": ["g1", "g2"]}\n{"text": "b"}\n'


def make_groups(rng: Random) -> Case:
    """Return sound rows in groups beside a changed groups file, or changed rows beside sound groups."""
    groups: list[Any] = [{"group": f"g{i}", "labels": rng.choices(("art", "law", "été"), k=2)} for i in (1, 2)]
    form = rng.choice(("jsonl", "csv", "tsv", "npz"))
    name, change = f"groups.{form}", "none"
    if form == "jsonl":
        change = rng.choice(("fields", "text"))
        at = rng.randrange(2)
        groups[at] = change_json(rng, groups[at]) if change == "fields" else groups[at]
        raw = b"".join(dump_json(rng, group) + b"\n" for group in groups)
    elif form == "npz":
        Y = np.array([[1.0, 2, 0], [0, 1, 1]], dtype=np.float32)
        arrays = {"Y": Y} if rng.random() < 0.5 else matrices.scipy_arrays(rng, matrices.sp.csr_array(Y))
        change, raw = archive(rng, arrays)
    else:
        tab = "," if form == "csv" else "\t"
        raw = f"group{tab}labels\ng1{tab}art;law\ng2{tab}art;art\n".encode()
        change = "text"
    if change == "text":
        change, raw = change_text(rng, raw)
    if form != "npz":
        name, raw, change = packed(rng, name, raw, change)
    rows = ROWS if rng.random() < 0.8 else change_text(rng, ROWS)[1]
    return Case(change, {"rows.jsonl": rows, name: raw}, name)


def run_groups(case: Case, folder: Path) -> None:
    """Read rows in groups with the labels of the groups."""
    from longtail.data import read_grouped

    data = read_grouped(folder / "rows.jsonl", folder / case.main)
    check_dataset(data.rows)
    check_matrix("Y_groups", data.Y_groups)


# --- lists of labels, filters, label sets -----------------------------------------------------------------------------


def make_labels(rng: Random) -> Case:
    """Return a list of labels, as JSONL or one name per line."""
    listed: list[Any] = [{"id": name, "text": "about"} for name in records.NAMES]
    if rng.random() < 0.3:
        change, raw = change_text(rng, "\n".join(records.NAMES).encode())
        return Case(change, {"labels.txt": raw}, "labels.txt")
    change = rng.choice(("fields", "text"))
    if change == "fields":
        at = rng.randrange(len(listed))
        listed[at] = change_json(rng, listed[at])
    raw = b"".join(dump_json(rng, label) + b"\n" for label in listed)
    if change == "text":
        change, raw = change_text(rng, raw)
    name, raw, change = packed(rng, "labels.jsonl", raw, change)
    return Case(change, {name: raw}, name)


def run_labels(case: Case, folder: Path) -> None:
    """Read a list of labels."""
    from longtail.data import read_labels

    listed = read_labels(folder / case.main)
    if len(set(listed.names)) != len(listed.names) or (listed.texts and len(listed.texts) != len(listed.names)):
        raise Wrong("names come twice, or texts are missing")


def make_filter(rng: Random) -> Case:
    """Return pairs of a row and a label."""
    raw = "".join(f"{rng.randrange(9)} {rng.randrange(9)}\n" for _ in range(rng.randint(0, 6))).encode()
    change, raw = change_text(rng, raw)
    return Case(change, {"filter.txt": raw}, "filter.txt")


def run_filter(case: Case, folder: Path) -> None:
    """Read the pairs and take them out of predictions."""
    from longtail.data import TopK, read_filter
    from longtail.metrics import filter_topk

    pairs = read_filter(folder / case.main)
    if pairs.dtype != np.int64 or pairs.ndim != 2 or pairs.shape[1] != 2:
        raise Wrong(f"pairs have the shape {pairs.shape}")
    top = TopK(np.array([[1, 2, 3], [4, 5, 6]]), np.array([[3.0, 2, 1], [3, 2, 1]]))
    left = filter_topk(top, pairs)
    removed = set(map(tuple, pairs.tolist()))
    wanted = [[label for label in top.ids[row].tolist() if (row, label) not in removed] for row in range(2)]
    if [[label for label in row if label >= 0] for row in left.ids.tolist()] != wanted:
        raise Wrong(f"{left.ids.tolist()} are left instead of {wanted}")


def make_label_sets(rng: Random) -> Case:
    """Return label sets for an audit: JSONL without texts, or a matrix."""
    if rng.random() < 0.5:
        change, raw = archive(rng, matrices.scipy_arrays(rng, matrices._matrices(rng)[1]))
        return Case(change, {"sets.npz": raw}, "sets.npz")
    rows: list[Any] = [{"labels": rng.sample(records.NAMES, rng.randint(0, 3))} for _ in range(3)]
    at = rng.randrange(3)
    rows[at] = change_json(rng, rows[at])
    change, raw = "fields", b"".join(dump_json(rng, row) + b"\n" for row in rows)
    if rng.random() < 0.5:
        change, raw = change_text(rng, raw)
    return Case(change, {"sets.jsonl": raw}, "sets.jsonl")


def run_label_sets(case: Case, folder: Path) -> None:
    """Read label sets."""
    from longtail.data import read_label_sets

    data = read_label_sets(folder / case.main)
    if data is not None:
        check_dataset(data)


# --- layers and certificates ------------------------------------------------------------------------------------------


def make_weights(rng: Random) -> Case:
    """Return a layer to audit as npz (ours or scipy's), npy or safetensors."""
    W = np.array([[1.0, 0], [0, 1], [-1, -1]], dtype=rng.choice(("f4", "f8", "f2")))
    arrays = {"weight": W, "bias": np.zeros(3, W.dtype)}
    form = rng.choice(("npz", "npz", "scipy", "npy", "safetensors"))
    if form == "npz":
        if rng.random() < 0.3:
            arrays["labels"] = np.array(["a", "b", "c"])
        change, raw = archive(rng, arrays)
    elif form == "scipy":
        change, raw = archive(rng, matrices.scipy_arrays(rng, matrices.sp.csr_array(W.astype("f4"))))
        if change == "none":
            return Case(change, {"layer.npz": raw}, "layer.npz", {"weights": W.tolist()})
    elif form == "npy":
        change, changed = change_array(rng, W)
        raw = npy_bytes(changed)
        raw = change_bytes(rng, raw) if rng.random() < 0.4 else raw
    else:
        change, arrays["weight"] = change_array(rng, W)
        raw = safetensors_bytes(arrays)
        if rng.random() < 0.4:
            head = 8 + struct.unpack("<Q", raw[:8])[0]
            change, raw = "header", change_bytes(rng, raw[:head]) + raw[head:]
    name = f"layer.{'npz' if form == 'scipy' else form}"
    return Case(change, {name: raw}, name)


def run_weights(case: Case, folder: Path) -> None:
    """Read a layer and audit its label sets, as `audit --weights` does."""
    from longtail.audit import argmaxable
    from longtail.audit.read_weights import names_in_file, read_layer

    names_in_file(folder / case.main)
    W, bias = read_layer(folder / case.main, keep_sparse=True)
    wanted = case.options.get("weights")
    if wanted is not None and not np.array_equal(W if isinstance(W, np.ndarray) else W.toarray(), wanted):
        raise Wrong("the weights are not those of the file")
    values = W if isinstance(W, np.ndarray) else W.data
    if not np.isfinite(values).all() or (bias is not None and len(bias) != W.shape[0]):
        raise Wrong("weights are not finite, or there are as many biases as labels not")
    if W.shape[0] <= 8 and W.shape[1] <= 8:
        argmaxable(W, np.eye(W.shape[0])[:1], bias=bias)


@cache
def certificate_arrays() -> dict[str, np.ndarray]:
    """Return the arrays of a sound certificate file."""
    import tempfile

    from longtail.audit import argmaxable, save_certificates

    W = np.array([[1.0, 0], [0, 1], [-1, -1]])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "certificates.npz"
        save_certificates(file, argmaxable(W, [[1, 1, 0], [1, 1, 1]]), W, names=["a", "b", "c"])
        with np.load(file) as loaded:
            return {name: loaded[name] for name in loaded.files}


def make_certificates(rng: Random) -> Case:
    """Return a changed certificate file."""
    change, raw = archive(rng, certificate_arrays())
    return Case(change, {"certificates.npz": raw}, "certificates.npz")


def run_certificates(case: Case, folder: Path) -> None:
    """Read certificates and prove each again; nothing that is not proved may be called so."""
    from longtail.audit import load_certificates

    proofs = load_certificates(folder / case.main).check()
    if case.change == "none" and [proof.reachable for proof in proofs] != [True, False]:
        raise Wrong("a sound certificate was not proved")


def warm_up(folder: Path, make: Any, run: Any) -> None:
    """Read a few files, sound ones among them, so that everything is loaded and compiled."""
    from longtail.errors import LongtailError

    rng = Random(3)
    if make is make_certificates:
        whole = [Member(f"{name}.npy", npy_bytes(array)) for name, array in certificate_arrays().items()]
        (folder / "certificates.npz").write_bytes(zip_bytes(whole))
        run(Case("none", {}, "certificates.npz"), folder)
        return
    if make is make_weights:
        with contextlib.suppress(ImportError):
            import highspy  # noqa: F401 (solves hard audits, where it is installed)

        (folder / "layer.npz").write_bytes(zip_bytes([Member("weight.npy", npy_bytes(np.eye(3)))]))
        run(Case("none", {}, "layer.npz"), folder)
        return
    for _ in range(20):
        case = make(rng)
        case.write(folder)
        try:
            run(case, folder)
        except LongtailError:
            continue


def targets() -> list[Target]:
    """Return the targets of side files."""
    parts = (
        ("groups", make_groups, run_groups, 100),
        ("labels", make_labels, run_labels, 100),
        ("filter", make_filter, run_filter, 50),
        ("label-sets", make_label_sets, run_label_sets, 50),
        ("weights", make_weights, run_weights, 50),
        ("certificates", make_certificates, run_certificates, 50),
    )
    return [
        Target(name, "sides", make, run, partial(warm_up, make=make, run=run), turns)
        for name, make, run, turns in parts
    ]
