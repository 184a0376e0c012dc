"""Files of certificates, with the layer they are about: all that another program needs to check them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.certificate import KINDS, Certificate, Kind
from longtail.audit.proof import Proof, prove
from longtail.audit.read_weights import arrays_in
from longtail.audit.result import Audit
from longtail.data import replacing
from longtail.errors import DataError, ParameterError
from longtail.model import LabelCircle, LinearLayer
from longtail.validate import MatrixLike

FORMAT = "certificates.v1"


@dataclass(frozen=True, eq=False)
class Certificates:
    """Label sets with their verdicts and certificates, and the layer they are about."""

    W: np.ndarray | sp.csr_array
    bias: np.ndarray | None
    box: float
    names: tuple[str, ...] | None
    members: list[np.ndarray]
    verdicts: list[str]
    certificates: list[Certificate]
    circle: LabelCircle | None = None

    def check(self) -> list[Proof]:
        """Prove every certificate again, from the weights alone."""
        threshold = any(certificate.threshold for certificate in self.certificates)
        weights = LinearLayer(self.W, self.bias, circle=self.circle)
        layer = AuditedLayer.read(weights, None, self.box, threshold=threshold)
        return [prove(layer, m, c) for m, c in zip(self.members, self.certificates, strict=True)]


def save_certificates(
    path: str | Path,
    audit: Audit,
    W: MatrixLike,
    bias: np.ndarray | Sequence[float] | None = None,
    names: Sequence[str] | None = None,
    circle: LabelCircle | None = None,
) -> Path:
    """Write sets, verdicts and certificates of an audit, and the layer, to an .npz file of plain arrays.

    Lists of different lengths lie one after the other: those of set i are `set.values[set.ends[i - 1]:set.ends[i]]`,
    and likewise `x`, `mix`, `labels`, `weights` and `roots` of its certificate, empty where it has none. `circle` is
    that of a DFT layer: `circle.size`, `circle.k` and `circle.positions`.

    >>> import tempfile
    >>> from longtail.audit import argmaxable
    >>> W = np.array([[1.0, 0], [0, 1], [-1, -1]])
    >>> file = Path(tempfile.mkdtemp()) / "certificates.npz"
    >>> saved = save_certificates(file, argmaxable(W, [[1, 1, 0], [1, 1, 1]]), W, names=["a", "b", "c"])
    >>> [proof.reachable for proof in load_certificates(saved).check()]
    [True, False]
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ParameterError(name="certificates", allowed="written to an .npz file", got=path.name)
    most = max((int(m.max()) for m in audit.members if len(m)), default=-1) + 1
    n = W.shape[0] if hasattr(W, "shape") else len(W)
    if n < most:
        raise ParameterError(
            name="W", problem=f"must have a row for every label of the audit, at least {most}; got {n}."
        )
    if names is not None and (len(names) != n or len(set(names)) != n or not all(isinstance(m, str) for m in names)):
        raise ParameterError(
            name="names", problem=f"must be {n} different strings, one per label; got {len(names)} names."
        )
    arrays = _audit_arrays(audit) | _weight_arrays(W)
    if bias is not None:
        arrays["bias"] = np.asarray(bias)
    if circle is not None:
        arrays |= {f"circle.{part}": np.array(getattr(circle, part)) for part in ("size", "k", "positions")}
    if names is not None:
        arrays["label_names"] = np.asarray(list(names), dtype=np.str_)
    try:
        with replacing(path) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
    except DataError as error:
        raise ParameterError(f"the certificates cannot be written: {error}") from error
    return path


def _audit_arrays(audit: Audit) -> dict[str, np.ndarray]:
    """Return the sets, verdicts and certificates of an audit as named arrays."""
    arrays = {
        "format": np.array(FORMAT),
        "kind": np.array(audit.kind),
        "box": np.array(audit.box),
        "eps": np.array(audit.eps),
        "verdict": np.asarray(audit.verdicts, dtype=np.str_),
        "radius": audit.radius,
        "radius_at_most": audit.radius_at_most,
        "rows": audit.counts,
        "threshold": np.array([certificate.threshold for certificate in audit.certificates]),
    }
    arrays |= _joined("set", audit.members, np.int64)
    for name, kind in KINDS.items():
        parts = [getattr(certificate, name) for certificate in audit.certificates]
        arrays |= _joined(name, [np.empty(0) if part is None else part for part in parts], kind)
    return arrays


def _weight_arrays(W: MatrixLike) -> dict[str, np.ndarray]:
    """Return the weights as named arrays: one, or those of a CSR matrix."""
    if not sp.issparse(W):
        return {"weight": np.asarray(W)}
    W = sp.csr_array(W)
    arrays = {"weight.data": W.data, "weight.indices": W.indices, "weight.indptr": W.indptr}
    return arrays | {"weight.shape": np.array(W.shape)}


def load_certificates(path: str | Path) -> Certificates:
    """Read what `save_certificates` wrote; nothing in the file is believed before `check`."""
    path = Path(path)
    arrays = arrays_in(path)
    if str(arrays.get("format", "")) != FORMAT:
        raise DataError(f"{path} holds no certificates: its 'format' is not '{FORMAT}'.")
    try:
        _check_ranks(arrays)
        W = arrays["weight"] if "weight" in arrays else _sparse_weights(arrays)
        lists = {name: _split(arrays, name) for name in ("set", *KINDS) if name != "roots" or "roots.ends" in arrays}
        n = len(lists["set"])
        lists.setdefault("roots", [np.empty(0)] * n)  # files of before have none
        certificates = [
            Certificate(
                **{name: lists[name][i] if lists[name][i].size else None for name in KINDS},
                threshold=bool(arrays["threshold"][i]),
            ).as_arrays()
            for i in range(n)
        ]
        names = tuple(arrays["label_names"].tolist()) if "label_names" in arrays else None
        verdicts, members = arrays["verdict"].tolist(), [ids.astype(np.int64) for ids in lists["set"]]
        inside = all(0 <= ids.min() <= ids.max() < W.shape[0] for ids in members if ids.size)
        if len(verdicts) != n or not inside:
            raise ValueError("sets")
        about = (W, arrays.get("bias"), float(arrays["box"]), names)
        return Certificates(*about, members, verdicts, certificates, _circle(arrays, W.shape[0]))
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged: its arrays do not fit each other.") from error


def _check_ranks(arrays: dict[str, np.ndarray]) -> None:
    """Refuse lists that are tables: 2**62 rows without columns are no bytes in a file, and many as a list."""
    lists = {"verdict", "label_names", "threshold", "weight.shape"}
    for name, array in arrays.items():
        if (name in lists or name.endswith((".values", ".ends"))) and array.ndim != 1:
            raise ValueError(name)


def _circle(arrays: dict[str, np.ndarray], n_labels: int) -> LabelCircle | None:
    """Return the circle of a DFT layer; None where the file has none."""
    if "circle.size" not in arrays:
        return None
    size, k, positions = (arrays[f"circle.{part}"] for part in ("size", "k", "positions"))
    kind = np.int64 if positions.dtype.kind in "iu" else np.float64
    circle = LabelCircle(int(size), int(k), positions.astype(kind))
    inside = positions.shape == (n_labels,) and bool(((positions >= 0) & (positions < circle.size)).all())
    if not inside or circle.k < 1 or np.unique(positions).size < n_labels:
        raise ValueError("circle")
    return circle


def _sparse_weights(arrays: dict[str, np.ndarray]) -> sp.csr_array:
    """Return the CSR matrix that `_weight_arrays` took apart."""
    parts = tuple(arrays[f"weight.{part}"] for part in ("data", "indices", "indptr"))
    W = sp.csr_array(parts, shape=tuple(arrays["weight.shape"].tolist()))
    W.check_format(full_check=True)
    return W


def _joined(name: str, lists: Sequence[np.ndarray], kind: Kind) -> dict[str, np.ndarray]:
    """Return arrays of different lengths as one, and where each ends."""
    ends = np.cumsum([part.size for part in lists], dtype=np.int64)
    flat = np.concatenate([np.empty(0, kind), *lists]).astype(kind)
    return {f"{name}.values": flat, f"{name}.ends": ends}


def _split(arrays: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """Return the arrays that `_joined` put together."""
    return np.split(arrays[f"{name}.values"], arrays[f"{name}.ends"][:-1])
