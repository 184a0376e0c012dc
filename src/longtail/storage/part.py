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

    Examples
    --------
    >>> Part("tfidf.v1", {"ngrams": [1, 1]}, {"idf": np.ones(3)}).array("idf").size
    3
    """

    kind: str
    params: Json = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

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


def pack_csr(name: str, M: sp.csr_array) -> dict[str, np.ndarray]:
    """Return the arrays of a sparse matrix under `name.indptr`, `.indices`, `.data` and `.shape`."""
    return {
        f"{name}.indptr": np.asarray(M.indptr, dtype=np.int64),
        f"{name}.indices": np.asarray(M.indices, dtype=np.int32),
        f"{name}.data": np.asarray(M.data),
        f"{name}.shape": np.asarray(M.shape, dtype=np.int64),
    }


def unpack_csr(name: str, part: Part) -> sp.csr_array:
    """Return the sparse matrix saved under `name`, on the memory-mapped arrays; inconsistent ones are refused."""
    indptr, indices, data, shape = (part.array(f"{name}.{p}") for p in ("indptr", "indices", "data", "shape"))
    rows, columns = (int(v) for v in shape)
    fits = (
        indptr.shape == (rows + 1,)
        and indices.shape == data.shape
        and int(indptr[0]) == 0
        and int(indptr[-1]) == indices.size
        and bool(np.all(np.diff(indptr) >= 0))
        and (indices.size == 0 or (int(indices.min()) >= 0 and int(indices.max()) < columns))
    )
    if not fits:
        raise ModelError(f"the sparse matrix '{name}' of the model's part '{part.kind}' is inconsistent.")
    M = sp.csr_array((rows, columns), dtype=data.dtype)
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
    sound = stored.dtype == np.uint8 and stored.ndim == ends.ndim == 1 and ends.dtype.kind in "iu" and ends.size > 0
    if not sound or ends[0] != 0 or ends[-1] != stored.size or bool((ends[1:] < ends[:-1]).any()):
        raise ModelError(f"the strings '{name}' of the part '{part.kind}' are inconsistent.")
    raw, offsets = stored.tobytes(), ends.tolist()
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(offsets)]
