"""Documents whose labels people chose in other programs, kept as reviewed rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from longtail.review import NewItem, ReviewStore


class ReviewedDocument(NamedTuple):
    """A text and the labels that someone gave it; without an id it is called by a digest of its text."""

    text: str
    labels: tuple[str, ...]
    id: str | None = None

    @property
    def name(self) -> str:
        """What the row is called in the review file."""
        return self.id or "text-" + hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def keep_reviewed(store: ReviewStore, documents: Iterable[ReviewedDocument], reviewer: str) -> None:
    """Write down that a person gave documents these labels and no others; all is on the disk when this returns.

    A row counts as reviewed by its last step only. What the same person said of it before is replaced.
    """
    for document in documents:
        id = document.name
        store.add_items([NewItem(document.text, (), id)])
        item, wanted = store.item(id), set(document.labels)
        said = {made.label: made.verdict != "reject" for made in store.decisions(id, reviewer) if made.label}
        suggested = {tag.label for tag in item.suggestions}
        shown = {*item.labels, *(tag.label for tag in item.suggestions if tag.assigned)}
        for label in sorted(wanted):
            if not said.get(label, False):
                store.decide(id, label, "accept" if label in suggested | set(item.labels) else "add", reviewer)
        for label in sorted((shown | {label for label, stands in said.items() if stands}) - wanted):
            if said.get(label, True):
                store.decide(id, label, "reject", reviewer)
        store.finish(id, reviewer)
