"""Rows of features: XMC text, libsvm text and numpy archives, of our own and of scipy."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.archives import archive
from fuzz.case import Case, Target
from fuzz.mutations import change_text
from fuzz.targets.reading import draw_options, packed, read_and_check, warm_up
from fuzz.values import integer
from longtail.storage import pack_csr, pack_strings

ROWS, FEATURES, LABELS = 4, 6, 3
LIBSVM_DRAWN: dict[str, tuple[Any, ...]] = {
    "zero_based": (True, False, "auto"),
    "n_features": (6, 7, 1, 2**31 - 1),
    "n_labels": (3, 1, 2**31 - 1),
    "label_names": (["a", "b", "c"],),
}


def _lines(rng: Random, first: int) -> list[str]:
    """Return sound rows of text."""
    out = []
    for _ in range(rng.randint(1, 6)):
        labels = ",".join(map(str, sorted(rng.sample(range(LABELS), rng.randint(0, 3)))))
        ids = sorted(rng.sample(range(first, FEATURES + first), rng.randint(0, 5)))
        out.append(" ".join([labels, *(f"{i}:{rng.choice(('1', '0.5', '-2.25', '3e-4', '1e5'))}" for i in ids)]))
    return out


def make_xmc(rng: Random) -> Case:
    """Return XMC text with a changed header, changed rows or both."""
    lines = _lines(rng, 0)
    sizes = [len(lines), FEATURES, LABELS]
    change = "none" if rng.random() < 0.03 else rng.choice(("header", "rows", "rows", "rows", "text"))
    if change == "header":
        at = rng.randrange(3)
        sizes[at] = integer(rng, sizes[at])
    body = "\n".join([*lines, ""]).encode()
    if change == "rows":  # below a header that counts them
        change, body = change_text(rng, body)
        sizes[0] = body.count(b"\n") + (not body.endswith(b"\n"))
    raw = " ".join(map(str, sizes)).encode() + b"\n" + body
    if change == "text":
        change, raw = change_text(rng, raw)
    name, raw, change = packed(rng, rng.choice(("rows.xmc", "rows.xmc", "rows.txt")), raw, change)
    drawn: dict[str, tuple[Any, ...]] = {"label_names": (["a", "b", "c"], ["a"])}
    return Case(change, {name: raw}, name, draw_options(rng, drawn, again=rng.choice(("copy.npz", "copy.xmc"))))


def make_libsvm(rng: Random) -> Case:
    """Return libsvm text with changed rows."""
    raw = "\n".join([*_lines(rng, rng.choice((0, 1))), ""]).encode()
    change, raw = change_text(rng, raw) if rng.random() > 0.03 else ("none", raw)
    name, raw, change = packed(rng, "rows.svm", raw, change)
    options = draw_options(rng, LIBSVM_DRAWN, again=rng.choice(("copy.npz", "copy.svm")))
    return Case(change, {name: raw}, name, {"way": "rows"} if options.get("way") == "rows" else options)


def _matrices(rng: Random) -> tuple[sp.csr_array, sp.csr_array]:
    draws = np.random.default_rng(rng.randrange(1000))
    X = sp.csr_array(draws.random((ROWS, FEATURES), dtype=np.float32) * (draws.random((ROWS, FEATURES)) < 0.5))
    return X, sp.csr_array((draws.random((ROWS, LABELS)) < 0.5).astype(np.float32))


def make_npz(rng: Random) -> Case:
    """Return one of our own archives: X and Y sparse or dense, perhaps with strings and groups."""
    X, Y = _matrices(rng)
    arrays: dict[str, np.ndarray] = pack_csr("X", X) if rng.random() < 0.7 else {"X": X.toarray()}
    arrays |= pack_csr("Y", Y) if rng.random() < 0.7 else {"Y": Y.toarray()}
    if rng.random() < 0.4:
        arrays |= pack_strings("label_names", ["a", "b", "é"]) | pack_strings("texts", ["x", "", "y z", "é"])
    if rng.random() < 0.2:
        arrays |= pack_csr("groups", Y) | pack_strings("group_names", ["g", "h", "i"])
    change, raw = archive(rng, arrays)
    options = draw_options(rng, {"labels_required": (False,), "label_names": (["a", "b", "é"],)}, again="copy.npz")
    return Case(change, {"rows.npz": raw}, "rows.npz", options)


def scipy_arrays(rng: Random, M: sp.csr_array) -> dict[str, np.ndarray]:
    """Return the arrays that `scipy.sparse.save_npz` writes, in one of its formats."""
    form = rng.choice(("csr", "csr", "csc", "bsr", "coo", "dia"))
    made = M.asformat(form)
    arrays = {"format": np.array(form.encode()), "shape": np.array(M.shape), "data": made.data}
    if rng.random() < 0.5:
        arrays["_is_array"] = np.array(True)
    if form in ("csr", "csc", "bsr"):
        return arrays | {"indices": made.indices, "indptr": made.indptr}
    if form == "dia":
        return arrays | {"offsets": made.offsets}
    return arrays | {"row": made.coords[0], "col": made.coords[1]}


def make_scipy(rng: Random) -> Case:
    """Return scipy's X.npz beside its Y.npz, one of them changed, as files or as a folder."""
    X, Y = _matrices(rng)
    changed = rng.choice("XY")
    change, raw = archive(rng, scipy_arrays(rng, X if changed == "X" else Y))
    whole = _sound_archive(scipy_arrays(rng, Y if changed == "X" else X))
    files = {f"{changed}.npz": raw, f"{'Y' if changed == 'X' else 'X'}.npz": whole}
    main = rng.choice(("X.npz", "X.npz", "."))
    if rng.random() < 0.1:
        files.pop("Y.npz")
    return Case(change, files, main, draw_options(rng, {"labels_required": (False,)}, again="copy.npz"))


def _sound_archive(arrays: dict[str, np.ndarray]) -> bytes:
    from fuzz.archives import Member, npy_bytes, zip_bytes

    return zip_bytes([Member(f"{name}.npy", npy_bytes(array)) for name, array in arrays.items()])


def targets() -> list[Target]:
    """Return the targets of rows of features."""
    makers = {"xmc": make_xmc, "libsvm": make_libsvm, "npz": make_npz, "npz-scipy": make_scipy}
    return [
        Target(name, "readers", make, read_and_check, warm_up, turns)
        for (name, make), turns in zip(makers.items(), (250, 250, 40, 30), strict=True)
    ]
