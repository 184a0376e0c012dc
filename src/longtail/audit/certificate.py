"""Verdicts about label sets, and the certificates that prove them: anyone can check one without trusting the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from longtail.errors import DataError
from longtail.validate import Json

ROBUST = "eps-argmaxable"
REACHABLE = "argmaxable"
IMPOSSIBLE = "not argmaxable"
UNDECIDED = "undecided"
VERDICTS = (ROBUST, REACHABLE, IMPOSSIBLE, UNDECIDED)
Kind: TypeAlias = type[np.float64] | type[np.int64]
KINDS: dict[str, Kind] = {
    "x": np.float64,
    "mix": np.float64,
    "labels": np.int64,
    "weights": np.float64,
    "roots": np.float64,
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """A witness, weights on labels that bound the radius (or prove that no input exists), or both.

    Parameters
    ----------
    x : ndarray of shape (d,), default=None
        An input that produces the label set; with `threshold` its last entry is the threshold.
    labels, weights : ndarray of shape (m,), default=None
        Weights >= 0 on some labels. The weighted sum of their margins bounds the radius; where it cannot be above 0, no
        input produces the set.
    threshold : bool, default=False
        Whether the certificate is about a ranking, in which scores are compared with a free threshold.
    mix : ndarray of shape (n_labels,), default=None
        The input as a sum of the layer's own rows, x = mix @ W, which is shorter than x where rows are long.
    roots : ndarray of shape (2r,), default=None
        Positions on the circle of a DFT layer at which a wave of r frequencies changes its sign, ascending: on one side
        of each stand labels of the set. Proves the set where r is at most the layer's k.

    >>> Certificate(labels=np.array([0, 2]), weights=np.array([0.5, 0.5])).to_facts()
    {'labels': [0, 2], 'weights': [0.5, 0.5]}
    """

    x: np.ndarray | None = None
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None
    threshold: bool = False
    mix: np.ndarray | None = None
    roots: np.ndarray | None = None

    def to_facts(self) -> Json:
        """Return a JSON-able dict; floats keep every digit."""
        arrays = {name: getattr(self, name) for name in ("x", "labels", "weights", "mix", "roots")}
        out: Json = {name: array.tolist() for name, array in arrays.items() if array is not None}
        if self.threshold:
            out["threshold"] = True
        return out

    @classmethod
    def from_facts(cls, facts: Json) -> Certificate:
        """Make the certificate from its facts.

        >>> Certificate.from_facts({"x": [1.0, 2.0]}).x
        array([1., 2.])
        """
        arrays = {name: np.asarray(facts[name], dtype=kind) for name, kind in KINDS.items() if name in facts}
        return cls(**arrays, threshold=bool(facts.get("threshold", False)))

    def as_arrays(self) -> Certificate:
        """Return the same certificate with arrays of the right types; what cannot be converted is refused."""
        arrays: dict[str, np.ndarray | None] = {}
        for name, kind in KINDS.items():
            value = getattr(self, name)
            array = None if value is None else np.asarray(value)
            allowed = "iu" if name == "labels" else "iuf"
            if array is not None and (array.ndim != 1 or (array.size and array.dtype.kind not in allowed)):
                raise DataError(f"the certificate's {name} must be a list of numbers; got {value!r}.")
            arrays[name] = None if array is None else array.astype(kind)
        return Certificate(**arrays, threshold=bool(self.threshold))


class KnownProofs:
    """Impossible combinations of labels proved so far: a label set that agrees with one of them is impossible too."""

    def __init__(self) -> None:
        self._by_smallest_label: dict[int, list[tuple[frozenset[int], frozenset[int], Certificate]]] = {}

    def add(self, members: np.ndarray, certificate: Certificate) -> None:
        """Remember the labels, on or off, whose combination proves a set impossible."""
        if certificate.labels is None or certificate.weights is None:
            return
        used = frozenset(certificate.labels[certificate.weights > 0].tolist())
        on = used & frozenset(members.tolist())
        key = min(on) if on else -1
        known = self._by_smallest_label.setdefault(key, [])
        if not any(on == other_on and used - on == other_off for other_on, other_off, _ in known):
            known.append((on, used - on, certificate))

    def find(self, members: np.ndarray) -> Certificate | None:
        """Return a certificate that fits a set, or None."""
        ids = frozenset(members.tolist())
        for key in (-1, *members.tolist()):
            for on, off, certificate in self._by_smallest_label.get(key, ()):
                if on <= ids and not off & ids:
                    return certificate
        return None
