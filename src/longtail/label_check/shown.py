"""Cards of checks of labels, for notebooks: how many of each kind, and the most suspect of each in folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtail.facts import SuspectFacts
from longtail.notebook import Html, card, facts, fold, shortened, table

LISTED, LETTERS = 10, 80
KINDS = {
    "wrong": "labels that look wrong",
    "missing": "labels that look missing",
    "duplicates": "same texts with different labels",
    "unlearned": "labels that no model learns",
    "synonyms": "labels that may mean the same",
}


class ShownCheck(dict[str, Any]):
    """Facts from `check_labels`: a dictionary that a notebook shows as tables."""

    def _repr_html_(self) -> str:
        """Return the number of each kind, and the first of each."""
        counts = self.get("counts") or {}
        sizes = [(name, f"{counts.get(kind, 0):,}") for kind, name in KINDS.items()]
        note = f"{self.get('rows', 0):,} rows, {self.get('labels', 0):,} labels; these are suspicions"
        return card("Check of labels", facts(sizes), *self._folds(), note=note)

    def _folds(self) -> list[Html]:
        duplicates = [
            [one["kind"], _names(one["differing"]), shortened(one["text"] or "", LETTERS)]
            for one in self._first("duplicates")
        ]
        unlearned = [[one["label"], f"{one['rows']:,}", one["reason"]] for one in self._first("unlearned")]
        synonyms = [
            [*one["labels"], f"{one['cosine']:.2f}", f"{one['together']:,}", one["reason"]]
            for one in self._first("synonyms")
        ]
        suspects = ["row", "label", "probability", "usual", "text"]
        tables = {
            "wrong": table(suspects, _suspects(self._first("wrong")), (2, 3)),
            "missing": table(suspects, _suspects(self._first("missing")), (2, 3)),
            "duplicates": table(["kind", "labels only some have", "text"], duplicates),
            "unlearned": table(["label", "rows", "why"], unlearned, (1,)),
            "synonyms": table(["label", "and", "cosine", "together", "why"], synonyms, (2, 3)),
        }
        return [fold(f"The first {KINDS[kind]}", found) for kind, found in tables.items() if self._first(kind)]

    def _first(self, kind: str) -> Sequence[Any]:
        return (self.get(kind) or [])[:LISTED]


def _suspects(found: Sequence[SuspectFacts]) -> list[list[object]]:
    return [
        [
            one["id"] or one["row"],
            one["label"],
            f"{one['probability']:.2f}",
            f"{one['usual']:.2f}",
            shortened(one["text"] or "", LETTERS),
        ]
        for one in found
    ]


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
