"""What an audit found, as an object and as facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longtail.audit.certificate import Certificate
from longtail.audit.search import Outcome
from longtail.audit.set_lists import LabelSets
from longtail.facts import IMPOSSIBLE, REACHABLE, ROBUST, UNDECIDED, VERDICTS, LabelSetFacts, SetsFacts

FORMAT = "audit.v1"


@dataclass(frozen=True, eq=False)
class Audit:
    """Verdicts, radii and certificates of distinct label sets.

    For set number i, small sets first: `members[i]` are its labels, `verdicts[i]` is one of

    - "eps-argmaxable": a ball of radius `eps` lies in its region: every input in the ball gives exactly this set;
    - "argmaxable": an input gives it, but no ball of radius `eps` was found;
    - "not argmaxable": no input gives it;
    - "undecided": neither could be proved with 64-bit floats,

    `radius[i]` is the radius of the ball that was found (0 if none), `radius_at_most[i]` a proved upper bound, and
    `certificates[i]` what `check_certificate` checks. `set_of_row` and `counts` lead from rows to sets.
    """

    kind: str  # what was asked: "label sets", "classes" or "top sets"
    n_labels: int
    width: int
    has_bias: bool
    box: float
    eps: float
    members: list[np.ndarray] = field(repr=False)
    set_of_row: np.ndarray = field(repr=False)
    counts: np.ndarray = field(repr=False)
    verdicts: np.ndarray = field(repr=False)  # of str
    radius: np.ndarray = field(repr=False)
    radius_at_most: np.ndarray = field(repr=False)
    how: list[str] = field(repr=False)
    certificates: list[Certificate] = field(repr=False)

    @classmethod
    def make(cls, sets: LabelSets, outcomes: Sequence[Outcome], **about: Any) -> Audit:
        """Collect the outcomes of all sets."""
        return cls(
            members=sets.members,
            set_of_row=sets.set_of_row,
            counts=sets.counts,
            verdicts=np.array([o.verdict for o in outcomes]),
            radius=np.array([o.radius for o in outcomes]),
            radius_at_most=np.array([o.radius_at_most for o in outcomes]),
            how=[o.how for o in outcomes],
            certificates=[o.certificate for o in outcomes],
            **about,
        )

    def __len__(self) -> int:
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
        found = np.flatnonzero(self.reachable)
        return found[np.argsort(self.radius[found], kind="stable")[:k]]

    def facts(self, names: Sequence[str] | None = None, most: int = 10) -> SetsFacts:
        """Return JSON-able facts: counts, radii, and up to `most` sets of each interesting kind, by name if given."""
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
        found = np.flatnonzero(self.verdicts == verdict)
        return found[np.argsort(-self.counts[found], kind="stable")]

    def __repr__(self) -> str:
        parts = ", ".join(f"{self.n_sets(v)} {v}" for v in VERDICTS if self.n_sets(v))
        return f"Audit({len(self)} {self.kind} of {self.n_labels} labels in {self.width} dimensions: {parts})"
