"""Any readable file to a row store, block by block: memory does not grow with the rows, only with the label names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.row_store.pieces import ArrayWriter
from longtail.data.row_store.write_store import StoreWriter
from longtail.validate import make_csr

ENTRIES_AT_ONCE = 1 << 22
Progress = Callable[[int], None]  # (rows done)


def fill_store(store: StoreWriter, blocks: Iterator[Dataset], progress: Progress | None = None) -> None:
    """Write blocks of rows into a store, as `iter_texts` yields them.

    Labels of blocks that name their own are numbered in the sorted order of all names, as `read` numbers them; where
    the store has names already, blocks have the labels of that list.

    Parameters
    ----------
    store : StoreWriter
        The store, inside its `with` block.
    blocks : iterator of Dataset
        The rows; every block may have labels of its own.
    progress : callable or None, default=None
        Called with the number of rows that are done.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.data import StoreWriter, open_store
    >>> folder = Path(tempfile.mkdtemp()) / "rows.store"
    >>> with StoreWriter(folder) as store:
    ...     fill_store(store, iter([Dataset.from_lists(["red", "blue"], [["b"], ["a", "b"]])]))
    >>> open_store(folder).dataset().label_names == ("a", "b")
    True
    """
    named = _NamedLabels(store)
    done = 0
    try:
        for block in blocks:
            if block.X is not None:
                store.add_rows(sp.csr_array(block.X))
            for field in ("texts", "ids"):
                strings: Any = getattr(block, field)
                if strings is not None:
                    store.add_strings(field, strings)
            if block.label_names is None or store.label_names is not None:
                store.add_labels(block.Y)
            else:
                named.add(block)
            done += block.n_rows
            if progress is not None:
                progress(done)
        named.finish()
    finally:
        named.close()


class _NamedLabels:
    """Labels by name: numbered as they come and kept in a draft on disk, and numbered in sorted order at the end."""

    def __init__(self, store: StoreWriter) -> None:
        self.store = store
        self.numbers: dict[str, int] = {}
        self.drafts: tuple[ArrayWriter, ...] = ()

    def add(self, block: Dataset) -> None:
        """Take the labels of a block of rows."""
        if not self.drafts:
            types: dict[str, type[np.generic]] = {
                "draft.counts": np.int64,
                "draft.labels": np.int32,
                "draft.weights": np.float32,
            }
            self.drafts = tuple(self.store.draft(name, dtype) for name, dtype in types.items())
        names = block.label_names or ()
        used = np.unique(block.Y.indices)
        number = np.zeros(len(names), dtype=np.int32)
        for i in used.tolist():
            number[i] = self.numbers.setdefault(names[i], len(self.numbers))
        for draft, values in zip(
            self.drafts, (np.diff(block.Y.indptr), number[block.Y.indices], block.Y.data), strict=True
        ):
            draft.add(values)

    def finish(self) -> None:
        """Write the labels of all rows under their final numbers."""
        if not self.drafts:
            return
        names = sorted(self.numbers)
        final = np.empty(len(names), dtype=np.int32)
        for number, name in enumerate(names):
            final[self.numbers.pop(name)] = number
        self.store.label_names, self.store.n_labels = names, len(names)
        counts, labels, weights = (draft.mapped() for draft in self.drafts)
        first = 0
        for low, high in _cut(counts):
            ends = np.concatenate([[0], np.cumsum(counts[low:high])])
            at = slice(first, first + int(ends[-1]))
            Y = make_csr(ends, final[labels[at]], np.array(weights[at]), len(names))
            Y.has_sorted_indices = False
            Y.sort_indices()
            self.store.add_labels(Y)
            first = at.stop
        del counts, labels, weights
        for draft in self.drafts:
            draft.remove()

    def close(self) -> None:
        """Let go of open files."""
        for draft in self.drafts:
            draft.close()


def _cut(counts: np.ndarray) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks of a few million labels at most, if a row has not more."""
    low = 0
    while low < counts.size:
        size = np.cumsum(counts[low : low + ENTRIES_AT_ONCE])
        high = low + max(1, int(np.searchsorted(size, ENTRIES_AT_ONCE, side="right")))
        yield low, min(high, counts.size)
        low = high
