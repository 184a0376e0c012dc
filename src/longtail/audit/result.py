"""The result of an audit: verdicts, radii and certificates of all label sets, as an object and as facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.certificate import IMPOSSIBLE, REACHABLE, ROBUST, UNDECIDED, VERDICTS, Certificate
from longtail.audit.certificate_search import SetAudit
from longtail.audit.label_sets import LabelSets
from longtail.audit.shown import audit_html
from longtail.errors import DataError
from longtail.facts import LabelSetFacts, SetsFacts

FORMAT = "audit.v1"
SETS_SHOWN = 8  # of each kind, in a notebook


@dataclass(frozen=True, eq=False)
class Audit:
    """Verdicts, radii and certificates of distinct label sets.

    Attributes
    ----------
    kind : {"label sets", "classes", "top sets"}
        The question.
    n_labels, width : int
        Rows of the weights, and their columns.
    has_bias : bool
        Whether the layer has a bias.
    box, eps : float
        Inputs are between -box and box; "eps-argmaxable" sets have a ball of radius `eps`.
    members : list of ndarray
        Label numbers of every set, small sets first.
    set_of_row : ndarray of shape (n_rows,)
        Number of the set of every row.
    counts : ndarray of shape (n_sets,)
        Rows that have each set.
    verdicts : ndarray of str of shape (n_sets,)
        "eps-argmaxable": a ball of radius `eps` lies in its region: every input in the ball gives exactly this set;
        "argmaxable": an input gives it, but no ball of radius `eps` was found; "not argmaxable": no input gives it;
        "undecided": neither could be proved with 64-bit floats.
    radius, radius_at_most : ndarray of shape (n_sets,)
        Radius of the ball that was found, 0 if none, and a proved upper bound.
    how : list of str
        The method that decided each set.
    certificates : list of Certificate
        One per set, for `check_certificate`.
    """

    kind: str
    n_labels: int
    width: int
    has_bias: bool
    box: float
    eps: float
    members: list[np.ndarray] = field(repr=False)
    set_of_row: np.ndarray = field(repr=False)
    counts: np.ndarray = field(repr=False)
    verdicts: np.ndarray = field(repr=False)
    radius: np.ndarray = field(repr=False)
    radius_at_most: np.ndarray = field(repr=False)
    how: list[str] = field(repr=False)
    certificates: list[Certificate] = field(repr=False)

    @classmethod
    def collect(cls, layer: AuditedLayer, sets: LabelSets, audits: Sequence[SetAudit], kind: str, eps: float) -> Audit:
        """Put the audits of all sets of a layer together."""
        return cls(
            kind=kind,
            n_labels=layer.n_labels,
            width=layer.W.shape[1] - layer.threshold,
            has_bias=layer.bias is not None,
            box=layer.box,
            eps=eps,
            members=sets.members,
            set_of_row=sets.set_of_row,
            counts=sets.counts,
            verdicts=np.array([audit.verdict for audit in audits]),
            radius=np.array([audit.radius for audit in audits]),
            radius_at_most=np.array([audit.radius_at_most for audit in audits]),
            how=[audit.how for audit in audits],
            certificates=[audit.certificate for audit in audits],
        )

    def __len__(self) -> int:
        """Return the number of distinct sets."""
        return len(self.members)

    @property
    def reachable(self) -> np.ndarray:
        """Whether an input is proved for each set: bool (n_sets,)."""
        return (self.verdicts == ROBUST) | (self.verdicts == REACHABLE)

    @property
    def impossible(self) -> np.ndarray:
        """Whether each set is proved to be out of reach: bool (n_sets,)."""
        return self.verdicts == IMPOSSIBLE

    def n_sets(self, verdict: str) -> int:
        """Return how many distinct sets have a verdict."""
        return int(np.count_nonzero(self.verdicts == verdict))

    def hardest(self, k: int = 10) -> np.ndarray:
        """Return the numbers of the k reachable sets with the smallest radius, smallest first."""
        sets = np.flatnonzero(self.reachable)
        return sets[np.argsort(self.radius[sets], kind="stable")[:k]]

    def facts(self, names: Sequence[str] | None = None, most: int = 10) -> SetsFacts:
        """Return JSON-able facts: counts, radii, and up to `most` sets of each interesting kind, by name if given."""
        if names is not None and len(names) != self.n_labels:
            raise DataError(f"names must have one name per label, {self.n_labels}; got {len(names)}.")
        reached = self.radius[self.reachable]
        quantiles = {str(q): float(np.quantile(reached, q)) for q in (0.0, 0.01, 0.1, 0.5, 0.9)} if reached.size else {}
        ways = {way: self.how.count(way) for way in sorted(set(self.how))}
        return {
            "format": FORMAT,
            "kind": self.kind,
            "n_labels": self.n_labels,
            "width": self.width,
            "bias": self.has_bias,
            "box": self.box,
            "eps": self.eps,
            "n_rows": int(self.set_of_row.size),
            "n_sets": len(self),
            "sets": {verdict: self.n_sets(verdict) for verdict in VERDICTS},
            "rows": {verdict: int(self.counts[self.verdicts == verdict].sum()) for verdict in VERDICTS},
            "radius_quantiles": quantiles,
            "radius_over_box_quantiles": {q: value / self.box for q, value in quantiles.items()},
            "decided_by": ways,
            "impossible": [self.set_facts(int(i), names) for i in self._most_common(IMPOSSIBLE)[:most]],
            "undecided": [self.set_facts(int(i), names) for i in self._most_common(UNDECIDED)[:most]],
            "hardest": [self.set_facts(int(i), names) for i in self.hardest(most)],
        }

    def set_facts(self, i: int, names: Sequence[str] | None = None, certificate: bool = False) -> LabelSetFacts:
        """Return the facts of set number i."""
        ids = self.members[i].tolist()
        high = float(self.radius_at_most[i])
        out: LabelSetFacts = {
            "set": i,
            "labels": [names[j] for j in ids] if names is not None else ids,
            "rows": int(self.counts[i]),
            "verdict": str(self.verdicts[i]),
            "radius": float(self.radius[i]),
            "radius_over_box": float(self.radius[i]) / self.box,
            "radius_at_most": high if np.isfinite(high) else None,
            "decided_by": self.how[i],
        }
        if certificate:
            out["certificate"] = self.certificates[i].to_facts()
        return out

    def _most_common(self, verdict: str) -> np.ndarray:
        """Return the numbers of the sets with a verdict, those of most rows first."""
        sets = np.flatnonzero(self.verdicts == verdict)
        return sets[np.argsort(-self.counts[sets], kind="stable")]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the verdicts, the impossible sets of most rows, and the hardest possible."""
        return audit_html(self.facts(most=SETS_SHOWN))

    def __repr__(self) -> str:
        parts = ", ".join(f"{self.n_sets(v)} {v}" for v in VERDICTS if self.n_sets(v))
        return f"Audit({len(self)} {self.kind} of {self.n_labels} labels in {self.width} dimensions: {parts})"
