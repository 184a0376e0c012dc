"""Weights of an output layer from wherever they are: an array, a torch layer, a scikit-learn model, a file.

Weights are taken as they are and read as 64-bit floats, which is exact for 16-, 32- and 64-bit ones: what is proved
later is proved for these numbers.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError
from longtail.storage.arrays import map_arrays

WEIGHT_NAMES = ("weight", "weights", "W", "coef_", "coef")
BIAS_NAMES = ("bias", "b", "intercept_", "intercept")
MOST_BYTES = 1 << 34


def read_layer(W: Any, bias: Any = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return weights (n_labels, d) and bias (n_labels,) or None, as float64.

    `W` is an array, a sparse matrix, a torch tensor or `nn.Linear`, anything with `weight` (an array or a function
    that returns one) or `coef_`, a one-vs-rest model, or the path of an .npz or .safetensors file. A bias that comes
    with it is used unless `bias` is given.

    >>> import numpy as np
    >>> class Linear: weight, bias = np.eye(2, dtype=np.float32), np.array([0, 1])
    >>> read_layer(Linear())
    (array([[1., 0.], [0., 1.]]), array([0., 1.]))
    """
    found = None
    if isinstance(W, str | Path):
        W, found = _from_file(Path(W))
    elif hasattr(W, "weight") and not isinstance(W, np.ndarray):
        owner = W
        W = owner.weight() if callable(owner.weight) else owner.weight
        found = getattr(owner, "bias", None)
    elif hasattr(W, "coef_"):
        W, found = W.coef_, getattr(W, "intercept_", None)
    elif hasattr(W, "estimators_") and all(hasattr(e, "coef_") for e in W.estimators_):
        models = W.estimators_
        W = np.concatenate([np.atleast_2d(e.coef_) for e in models])
        found = np.concatenate([np.ravel(e.intercept_) for e in models])
    if bias is None:
        bias = found
    weights = _numbers(W, "W")
    if weights.ndim != 2:
        raise DataError(f"W must have 2 dimensions, one row per label; got {weights.ndim}.")
    n, d = weights.shape
    if n == 0 or d == 0:
        raise DataError(f"W must have at least one label and one dimension; got shape {n} x {d}.")
    _check_finite(weights, "W")
    if bias is None or isinstance(bias, bool):
        return weights, None
    offsets = _numbers(bias, "bias").ravel()
    if offsets.size == 1 and n > 1:
        offsets = np.repeat(offsets, n)  # one intercept for all, as scikit-learn keeps it without an intercept
    if offsets.shape != (n,):
        raise DataError(f"bias must have one number per label, {n}; got {offsets.size}.")
    _check_finite(offsets, "bias")
    return weights, (offsets if offsets.any() else None)


def _numbers(value: Any, name: str) -> np.ndarray:
    for step in ("detach", "cpu", "float"):  # a torch tensor, without importing torch; bfloat16 becomes float32
        if hasattr(value, step) and hasattr(value, "numpy"):
            if step == "float" and "float64" in str(value.dtype):
                continue
            value = getattr(value, step)()
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        value = value.numpy()
    if sp.issparse(value):
        size = 8 * value.shape[0] * value.shape[-1]
        if size > MOST_BYTES:
            raise DataError(f"{name} would take {size / 2**30:.0f} GiB as dense weights; audit fewer labels at a time.")
        value = value.toarray()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(f"{name} must be a rectangular array; got rows of different lengths.") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} must hold numbers; got {type(value).__name__} of dtype {array.dtype}.")
    if array.dtype.itemsize > 8:
        raise DataError(f"{name} must hold floats of at most 64 bits; got dtype {array.dtype}.")
    return np.ascontiguousarray(array, dtype=np.float64)


def _check_finite(array: np.ndarray, name: str) -> None:
    wrong = np.argwhere(~np.isfinite(array))
    if wrong.size:
        where = ", ".join(f"{word} {at}" for word, at in zip(("row", "column"), wrong[0].tolist(), strict=False))
        raise DataError(f"{name} must be finite; got {array[tuple(wrong[0])]} in {where}.")


def _from_file(path: Path) -> tuple[Any, Any]:
    if not path.is_file():
        raise DataError(f"{path} is no file; W must be weights, a layer, or an .npz or .safetensors file.")
    if path.suffix == ".safetensors":
        arrays = map_arrays(path)
    elif path.suffix in (".npz", ".npy"):
        try:
            with path.open("rb") as file:
                loaded = np.load(file, allow_pickle=False)
                arrays = {path.stem: loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise DataError(f"{path} is not a readable {path.suffix} file.") from error
    else:
        raise DataError(f"{path} must be an .npz, .npy or .safetensors file.")
    tables = [name for name, a in arrays.items() if a.ndim == 2]
    named = [n for n in tables if n.rsplit(".", 1)[-1] in WEIGHT_NAMES]
    choice = named if named else tables
    if len(choice) != 1:
        have = f"it has {sorted(tables)}" if tables else "it has none"
        raise DataError(f"{path} must hold one array of weights with 2 dimensions, named 'weight'; {have}.")
    prefix = choice[0].rpartition(".")[0]
    vectors = [
        n for n, a in arrays.items()
        if a.ndim == 1 and n.rsplit(".", 1)[-1] in BIAS_NAMES and n.rpartition(".")[0] == prefix
    ]  # fmt: skip
    return arrays[choice[0]], arrays[vectors[0]] if vectors else None
