"""Reading the weights and the bias of an output layer from an array, a torch layer, a scikit-learn model or a file.

Weights are taken as they are and read as 64-bit floats, which is exact for 16-, 32- and 64-bit ones: what is proved
later is proved for these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from longtail.data import DEFAULT_LIMITS, Limits, read_npy_array, read_npz_arrays, scipy_matrix
from longtail.errors import DataError, ModelError, near
from longtail.model import LabelCircle, LinearLayer
from longtail.storage import map_arrays
from longtail.validate import check_sparse_arrays

WEIGHT_NAMES = ("weight", "weights", "W", "coef_", "coef")
BIAS_NAMES = ("bias", "b", "intercept_", "intercept")
LABEL_NAMES = ("labels", "label_names", "classes_", "classes", "names")
MOST_BYTES = 1 << 34
SHORTEST, LONGEST = 1e-200, 1e200  # rows; products of them with inputs must stay in range
TORCH_FILES = (".pt", ".pth", ".bin", ".ckpt")  # pickles, which could run code
LONG = 2000  # columns from which on a sparse matrix stays one

LayerLike: TypeAlias = object
"""Whatever `read_layer` can read weights from; what it cannot is refused in one sentence."""
BiasLike: TypeAlias = object
"""One number per label as an array, a tensor or a list; None (or False) for none."""


def read_layer(
    W: LayerLike, bias: BiasLike = None, keep_sparse: bool = False
) -> tuple[np.ndarray | sp.csr_array, np.ndarray | None]:
    """Return weights (n_labels, d) and bias (n_labels,) or None, as float64.

    `W` is an array, a sparse matrix, a torch tensor or `nn.Linear`, anything with `output_weights()` (which returns
    weights and bias), `weight` (an array or a function that returns one) or `coef_`, a one-vs-rest model, or the path
    of an .npz, .npy or .safetensors file. A bias that comes with it is used unless `bias` is given; where it is -inf,
    the label never comes out. With `keep_sparse` a sparse matrix of more than 2,000 columns is returned as CSR.

    >>> import numpy as np
    >>> class Linear: weight, bias = np.eye(2, dtype=np.float32), np.array([0, 1])
    >>> read_layer(Linear())
    (array([[1., 0.], [0., 1.]]), array([0., 1.]))
    """
    values, own_bias = _weights_and_bias(W)
    if sp.issparse(values):
        check_sparse_arrays(values, "W")  # before scipy converts it
    stays_sparse = keep_sparse and sp.issparse(values) and values.shape[-1] > LONG
    weights = _canonical_csr(values) if stays_sparse else _numbers(values, "W")
    _check_weights(weights)
    return weights, _read_bias(own_bias if bias is None else bias, *weights.shape)


def read_circle(W: LayerLike) -> LabelCircle | None:
    """Return the circle along which the first columns of a layer are waves, exactly; None for any other layer."""
    circle = W.label_circle() if hasattr(W, "label_circle") else getattr(W, "circle", None)
    return circle if isinstance(circle, LabelCircle) else None


def _weights_and_bias(W: LayerLike) -> tuple[Any, Any]:
    """Return the weights and the bias that a layer, a model or a file holds, as they are."""
    if isinstance(W, str | Path):
        return layer_from_file(Path(W))
    if isinstance(W, LinearLayer):
        return _silence_by_bias(W.W, W.bias)
    if hasattr(W, "output_weights"):
        return _silence_by_bias(*W.output_weights())
    if hasattr(W, "weight") and not isinstance(W, np.ndarray):
        return W.weight() if callable(W.weight) else W.weight, getattr(W, "bias", None)
    if hasattr(W, "coef_"):
        return W.coef_, getattr(W, "intercept_", None)
    if hasattr(W, "estimators_") and all(hasattr(e, "coef_") for e in W.estimators_):
        weights = np.concatenate([np.atleast_2d(e.coef_) for e in W.estimators_])
        return weights, np.concatenate([np.ravel(e.intercept_) for e in W.estimators_])
    _refuse_whole_model(W)
    return W, None


def _refuse_whole_model(W: Any) -> None:
    """Refuse a model or its state_dict in place of the last layer, and name the layer that may be meant."""
    kind = f"{'an' if type(W).__name__[0] in 'AEIOU' else 'a'} {type(W).__name__}"
    if isinstance(W, Mapping):
        tables = [str(name) for name, value in W.items() if getattr(value, "ndim", 0) == 2]
        such = f", such as state[{tables[-1]!r}]," if tables else ""
        raise DataError(f"W must be one layer; got {kind}: pass the weights of the last one{such} and its bias=.")
    if hasattr(W, "named_modules"):
        layers = [name for name, part in W.named_modules() if name and _is_layer(part)]
        such = f", such as model{_access(layers[-1])}" if layers else ""
        raise DataError(f"W must be one linear layer; got {kind}: pass the last linear layer{such}.")
    if hasattr(W, "model_"):
        raise DataError(
            f"W must be one linear layer; got {kind}: pass its model_, or use longtail.pipeline.audit_model."
        )


def _is_layer(part: Any) -> bool:
    """Say whether a torch module has an output layer's weights."""
    return hasattr(part, "output_weights") or getattr(getattr(part, "weight", None), "ndim", 0) == 2


def _access(name: str) -> str:
    """Return how Python reaches a part of a torch module: `.head[0]` for "head.0"."""
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in name.split("."))


def _check_weights(weights: np.ndarray | sp.csr_array) -> None:
    """Refuse weights that are no finite table of numbers in range."""
    if weights.ndim != 2:
        raise DataError(f"W must have 2 dimensions, one row per label; got {weights.ndim}.")
    n, d = weights.shape
    if n == 0 or d == 0:
        raise DataError(f"W must have at least one label and one dimension; got shape {n} x {d}.")
    if not sp.issparse(weights):
        _check_finite(weights, "W")
    elif not np.isfinite(weights.data).all():
        raise DataError("W must be finite; got a number that is not.")
    _check_size(weights)


def _read_bias(bias: BiasLike, n_labels: int, width: int) -> np.ndarray | None:
    """Return one number per label, or None where all are 0."""
    if bias is None or isinstance(bias, bool):  # some layers keep the flag they were made with
        return None
    offsets = _numbers(bias, "bias").ravel()
    if offsets.size == 1 and n_labels > 1:
        offsets = np.repeat(offsets, n_labels)  # one intercept for all, as scikit-learn keeps it without an intercept
    if offsets.shape != (n_labels,):
        raise DataError(
            f"bias must have one number per label, {n_labels}; got {offsets.size}."
            + transposed_hint(offsets.size, n_labels, width)
        )
    _check_finite(offsets, "bias")
    return offsets if offsets.any() else None


def transposed_hint(n_labels: int, rows: int, columns: int) -> str:
    """Return what to do where there are as many labels as the weights have columns, and not rows; else nothing.

    >>> transposed_hint(300, 12, 300), transposed_hint(13, 12, 300)
    (' The weights may be transposed: they must have one row per label, as W.T has.', '')
    """
    if n_labels != columns or n_labels == rows:
        return ""
    return " The weights may be transposed: they must have one row per label, as W.T has."


def _check_size(weights: np.ndarray | sp.csr_array) -> None:
    """Refuse rows so long or so short that audits would leave the range of 64-bit floats."""
    size = abs(weights).max(axis=1)
    size = size.toarray().ravel() if sp.issparse(size) else np.asarray(size)
    for worst in (size.max(initial=1.0), size[size > 0].min(initial=1.0)):
        if not SHORTEST <= worst <= LONGEST:
            allowed = f"from {SHORTEST:g} to {LONGEST:g}"
            raise DataError(f"the largest weight of a row of W must be 0 or {allowed} in size; got {worst:g}.")


def _silence_by_bias(
    W: np.ndarray | sp.csr_array, bias: np.ndarray | None
) -> tuple[np.ndarray | sp.csr_array, np.ndarray | None]:
    """Return a layer whose labels with the bias -inf, which never come out, are constant: weights 0 and bias -1."""
    if bias is None:
        return W, None
    silent = np.isneginf(np.asarray(bias, dtype=np.float64))
    if not silent.any():
        return W, bias
    keep = np.where(silent, 0.0, 1.0)
    W = sp.csr_array(sp.diags_array(keep) @ W) if sp.issparse(W) else np.where(silent[:, None], 0.0, W)
    return W, np.where(silent, -1.0, bias)


def _canonical_csr(W: sp.sparray) -> sp.csr_array:
    """Return a CSR copy in 64-bit floats, each entry stored once and none of them 0."""
    out = sp.csr_array(W, dtype=np.float64, copy=True)
    out.sum_duplicates()
    out.eliminate_zeros()
    return out


def _numbers(value: Any, name: str) -> np.ndarray:
    """Return an array, a sparse matrix, a torch tensor or nested lists as a dense float64 array."""
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
    """Refuse NaN and infinity, naming the first."""
    wrong = np.argwhere(~np.isfinite(array))
    if wrong.size:
        where = ", ".join(f"{word} {at}" for word, at in zip(("row", "column"), wrong[0].tolist(), strict=False))
        raise DataError(f"{name} must be finite; got {array[tuple(wrong[0])]} in {where}.")


def arrays_in(path: Path, limits: Limits = DEFAULT_LIMITS) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz, .npy or .safetensors file; pickled objects, which could run code, are refused."""
    if not path.exists():
        raise DataError(f"{path} does not exist.")
    if not path.is_file():
        raise DataError(f"{path} is no file; weights are read from an .npz, .npy or .safetensors file.")
    if path.suffix == ".safetensors":
        try:
            return map_arrays(path)
        except ModelError as error:
            raise DataError(str(error)) from error
    if path.suffix not in (".npz", ".npy"):
        pickled = path.suffix in TORCH_FILES
        how = f"safetensors.torch.save_file(model.state_dict(), '{path.stem}.safetensors')"
        hint = f" Save it from torch with {how}." if pickled else ""
        raise DataError(f"{path} must be an .npz, .npy or .safetensors file.{hint}")
    try:
        return {path.stem: read_npy_array(path, limits)} if path.suffix == ".npy" else read_npz_arrays(path, limits)
    except DataError as error:
        if "damaged" not in str(error):
            raise
        raise DataError(f"{path} is not a readable {path.suffix} file.") from error


def layer_from_file(
    path: Path, array: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[np.ndarray | sp.csr_array, np.ndarray | None]:
    """Return weights and bias, or None, of a file; `array` names the weights where the file has more than one table."""
    arrays = arrays_in(path, limits)
    if array is None and {"format", "shape", "data"} <= set(arrays):  # written by scipy.sparse.save_npz
        return scipy_matrix(path, arrays, limits), None
    tables = [name for name, a in arrays.items() if a.ndim == 2]
    _refuse_dft_arrays(path, array, arrays)
    named = [n for n in tables if n.rsplit(".", 1)[-1] in WEIGHT_NAMES]
    choice = [array] if array in tables else [] if array is not None else named if named else tables
    if len(choice) != 1:
        have = f"it has {sorted(tables)}" if tables else "it has none"
        wanted = f"called {array!r}" if array is not None else "named 'weight'"
        raise DataError(
            f"{path} must hold one array of weights with 2 dimensions, {wanted}; {have}.{near(array, tables)}"
        )
    prefix = choice[0].rpartition(".")[0]
    vectors = [
        n
        for n, a in arrays.items()
        if a.ndim == 1 and n.rsplit(".", 1)[-1] in BIAS_NAMES and n.rpartition(".")[0] == prefix
    ]
    return arrays[choice[0]], arrays[vectors[0]] if vectors else None


def _refuse_dft_arrays(path: Path, array: str | None, arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse the learned arrays of a DFT layer: its scores come from waves that no file holds."""
    for name, gains in arrays.items():
        prefix, _, last = name.rpartition(".")
        start = f"{prefix}." if prefix else ""
        projection = arrays.get(f"{start}projection.weight")
        if last != "gains" or projection is None or gains.shape != projection.shape[:1]:
            continue
        if array is None or array in (f"{start}projection.weight", f"{start}slack"):
            layer = f"the DFT layer {prefix!r}" if prefix else "a DFT layer"
            raise DataError(
                f"{path} holds {layer}, whose waves are in no file, so its arrays alone are not the layer: load them "
                "into the model in Python and give the layer to lt.audit.argmaxable."
            )


def names_in_file(path: Path, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...] | None:
    """Return the label names that an .npz file holds beside its weights, as an array of strings; None without."""
    if path.suffix != ".npz":
        return None
    names = next((a for name, a in arrays_in(path, limits).items() if name in LABEL_NAMES and a.ndim == 1), None)
    return tuple(map(str, names.tolist())) if names is not None and names.dtype.kind == "U" else None
