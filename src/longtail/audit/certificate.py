"""A certificate: what anyone can check without trusting the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.errors import DataError


@dataclass(frozen=True, eq=False)
class Certificate:
    """An input that gives the set, weights on labels that bound every ball (or prove that no input exists), or both.

    `mix` gives the input as a sum of the layer's own rows, x = mix @ W, which is short where rows are long. `threshold`
    says that the last entry of `x` is the threshold of a ranking, and that the weights hold for any.

    >>> Certificate(labels=np.array([0, 2]), weights=np.array([0.5, 0.5])).to_facts()
    {'labels': [0, 2], 'weights': [0.5, 0.5]}
    """

    x: np.ndarray | None = None
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None
    threshold: bool = False
    mix: np.ndarray | None = None

    def to_facts(self) -> dict[str, Any]:
        """Return a JSON-able dict; floats keep every digit."""
        out: dict[str, Any] = {}
        for name in ("x", "labels", "weights", "mix"):
            value = getattr(self, name)
            if value is not None:
                out[name] = value.tolist()
        if self.threshold:
            out["threshold"] = True
        return out

    def as_arrays(self) -> Certificate:
        """Return the same with arrays of the kinds they must be; what cannot be one is refused."""
        kinds = {"x": np.float64, "labels": np.int64, "weights": np.float64, "mix": np.float64}
        found: dict[str, np.ndarray | None] = {}
        for name, kind in kinds.items():
            value = getattr(self, name)
            array = None if value is None else np.asarray(value)
            wanted = "iu" if name == "labels" else "iuf"
            if array is not None and (array.ndim != 1 or (array.size and array.dtype.kind not in wanted)):
                raise DataError(f"the certificate's {name} must be a list of numbers; got {value!r}.")
            found[name] = None if array is None else array.astype(kind)
        return Certificate(**found, threshold=bool(self.threshold))

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Certificate:
        """Make the certificate from its facts.

        >>> Certificate.from_facts({"x": [1.0, 2.0]}).x
        array([1., 2.])
        """
        return cls(
            x=np.asarray(facts["x"], dtype=np.float64) if "x" in facts else None,
            labels=np.asarray(facts["labels"], dtype=np.int64) if "labels" in facts else None,
            weights=np.asarray(facts["weights"], dtype=np.float64) if "weights" in facts else None,
            threshold=bool(facts.get("threshold", False)),
            mix=np.asarray(facts["mix"], dtype=np.float64) if "mix" in facts else None,
        )
