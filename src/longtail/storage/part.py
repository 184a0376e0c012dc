"""Parts: what one object saves of itself, as a kind, JSON-able parameters and plain arrays.

Parts nest by name: a tagger has the parts `features`, `model` and `calibration`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from longtail.errors import ModelError
from longtail.validate import Json

NUMBERS = ("float32", "float64")
LARGEST_ID = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class Part:
    """A saved object: its kind, its parameters and its arrays.

    Parameters
    ----------
    kind : str
        The name and version of the format, such as "tfidf.v1".
    params : dict
        JSON-able parameters.
    arrays : dict of str to ndarray
        Plain arrays by name.
    checked : bool, default=False
        Whether it has been found to follow the schema of its kind.

    Examples
    --------
    >>> Part("tfidf.v1", {"ngrams": [1, 1]}, {"idf": np.ones(3)}).array("idf").size
    3
    """

    kind: str
    params: Json = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    checked: bool = field(default=False, compare=False)

    def array(self, name: str) -> np.ndarray:
        """Return one array; a missing one is a damaged model."""
        try:
            return self.arrays[name]
        except KeyError:
            raise ModelError(f"the model's part '{self.kind}' lacks the array '{name}'.") from None

    def under(self, prefix: str) -> dict[str, np.ndarray]:
        """Return the arrays whose names begin with a prefix, without the prefix: those of a part inside this one.

        >>> Part("a.v1", arrays={"b.x": np.arange(2), "c": np.arange(3)}).under("b.")
        {'x': array([0, 1])}
        """
        return {name.removeprefix(prefix): array for name, array in self.arrays.items() if name.startswith(prefix)}

    def inner(self, prefix: str, kind: str, params: Json | None = None) -> Part:
        """Return a part inside this one: the arrays under a prefix, and its parameters."""
        return Part(kind, {} if params is None else params, self.under(prefix), self.checked)


def pack_csr(name: str, M: sp.csr_array) -> dict[str, np.ndarray]:
    """Return the arrays of a sparse matrix under `name.indptr`, `.indices`, `.data` and `.shape`."""
    return {
        f"{name}.indptr": np.asarray(M.indptr, dtype=np.int64),
        f"{name}.indices": np.asarray(M.indices, dtype=np.int32),
        f"{name}.data": np.asarray(M.data),
        f"{name}.shape": np.asarray(M.shape, dtype=np.int64),
    }


def is_indptr(pointers: np.ndarray, end: int) -> bool:
    """Say whether pointers rise from 0 to `end` and never fall; compared in pairs, since a difference can wrap around.

    >>> is_indptr(np.array([0, 2, 2, 5]), 5), is_indptr(np.array([0, 2**63 - 1, -2, 5]), 5)
    (True, False)
    """
    sound = pointers.ndim == 1 and pointers.dtype.kind in "iu" and pointers.size > 0
    return bool(sound and pointers[0] == 0 and pointers[-1] == end and not (pointers[1:] < pointers[:-1]).any())


def unpack_csr(name: str, part: Part) -> sp.csr_array:
    """Return the sparse matrix saved under `name`, on the memory-mapped arrays; inconsistent ones are refused."""
    indptr, indices, data, shape = (part.array(f"{name}.{p}") for p in ("indptr", "indices", "data", "shape"))
    if part.checked:
        return _csr(data, indices, indptr, shape)
    types = [array.dtype.name for array in (indptr, indices, shape)] == ["int64", "int32", "int64"]
    if (
        not types
        or data.dtype.name not in NUMBERS
        or shape.shape != (2,)
        or not indptr.ndim == indices.ndim == data.ndim == 1
    ):
        raise ModelError(f"the sparse matrix '{name}' of the model's part '{part.kind}' has arrays of the wrong kind.")
    rows, columns = (int(v) for v in shape)
    fits = (
        indptr.size == rows + 1
        and 0 <= columns <= LARGEST_ID + 1
        and indices.size == data.size
        and is_indptr(indptr, indices.size)
        and (indices.size == 0 or (int(indices.min()) >= 0 and int(indices.max()) < columns))
    )
    if not fits:
        raise ModelError(f"the sparse matrix '{name}' of the model's part '{part.kind}' is inconsistent.")
    return _csr(data, indices, indptr, shape)


def _csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: np.ndarray) -> sp.csr_array:
    """Return the sparse matrix on these arrays; scipy's own constructor would copy and convert."""
    M = sp.csr_array((int(shape[0]), int(shape[1])), dtype=data.dtype)
    M.data, M.indices, M.indptr = data, indices, indptr
    return M


def pack_strings(name: str, strings: Sequence[str]) -> dict[str, np.ndarray]:
    """Return strings as one UTF-8 byte array and its offsets: `name.bytes`, `name.offsets`."""
    encoded = [s.encode("utf-8", "surrogatepass") for s in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    return {f"{name}.bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}.offsets": offsets}


def unpack_strings(name: str, part: Part) -> list[str]:
    """Return the strings saved under `name`."""
    stored, ends = part.array(f"{name}.bytes"), part.array(f"{name}.offsets")
    if stored.dtype != np.uint8 or stored.ndim != 1 or not is_indptr(ends, stored.size):
        raise ModelError(f"the strings '{name}' of the part '{part.kind}' are inconsistent.")
    raw, offsets = stored.tobytes(), ends.tolist()
    try:
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(offsets)]
    except UnicodeDecodeError:
        raise ModelError(f"the strings '{name}' of the part '{part.kind}' are not UTF-8.") from None
