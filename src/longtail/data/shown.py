"""Cards of data, for notebooks: sizes, the most frequent labels, the first rows, and predictions by label number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from longtail.notebook import Html, card, facts, fold, h, join, meter, shortened, table
from longtail.validate import count_ids

if TYPE_CHECKING:
    from longtail.data.dataset import Dataset
    from longtail.data.grouped import GroupedDataset
    from longtail.data.topk import TopK

ROWS_SHOWN, LABELS_OF_ROW, LETTERS_SHOWN = 5, 12, 160
FREQUENT_SHOWN = 8
FEW_ROWS = 10  # of a label that is rare
MOST_COUNTED = 50_000_000  # labels of rows; counting more would take long
PREDICTIONS_SHOWN = (10, 5)  # rows, and labels of each


def dataset_html(data: Dataset) -> str:
    """Return the sizes of a dataset, its most frequent labels and its first rows."""
    sizes: list[tuple[object, object]] = [
        ("rows", f"{data.n_rows:,}"),
        ("labels", f"{data.n_labels:,}"),
        ("labels per row", f"{data.Y.nnz / max(data.n_rows, 1):,.1f}"),
    ]
    sizes += [("features", f"{data.n_features:,}")] if data.X is not None else []
    frequent = _frequent(data) if 0 < data.Y.nnz <= MOST_COUNTED else []
    first = [fold("First rows", _first_rows(data))] if data.n_rows else []
    return card(f"Dataset {data.name}".strip(), facts(sizes), *frequent, *first)


def grouped_html(data: GroupedDataset) -> str:
    """Return the sizes of grouped data, and its first group: the labels of the group and its rows."""
    sizes: list[tuple[object, object]] = [
        ("rows", f"{data.n_rows:,}"),
        ("groups", f"{data.n_groups:,}"),
        ("labels", f"{data.n_labels:,}"),
        ("rows per group", f"{data.groups.nnz / max(data.n_groups, 1):,.1f}"),
        ("labels per group", f"{data.Y_groups.nnz / max(data.n_groups, 1):,.1f}"),
    ]
    first = [fold("First group", _first_group(data))] if data.n_groups else []
    return card(f"GroupedDataset {data.rows.name}".strip(), facts(sizes), *first)


def topk_html(top: TopK) -> str:
    """Return the best labels of the first rows, by number, with their scores."""
    few = top[: PREDICTIONS_SHOWN[0]].head(PREDICTIONS_SHOWN[1])
    rows = [
        [row, *(f"{label} ({score:.3g})" if label >= 0 else "" for label, score in zip(ids, scores, strict=True))]
        for row, (ids, scores) in enumerate(zip(few.ids.tolist(), few.scores.tolist(), strict=True))
    ]
    columns = ["row", *(f"label {i}" for i in range(1, few.k + 1))]
    note = f"{top.n_rows:,} rows, {top.k:,} labels each; label number (score)"
    return card("TopK", table(columns, rows, range(1, len(columns))), note=note)


def _frequent(data: Dataset) -> list[Html]:
    """Return the most frequent labels with their rows, and how many are rare."""
    counts = count_ids(data.Y.indices, data.n_labels)
    used = int((counts > 0).sum())
    most = [i for i in np.argsort(-counts, kind="stable")[:FREQUENT_SHOWN].tolist() if counts[i]]
    rows = [[_name(data, i), meter(counts[i] / counts[most[0]], f"{counts[i]:,}")] for i in most]
    few = int(((counts > 0) & (counts < FEW_ROWS)).sum())
    told = f"{few:,} of {used:,} labels in use have fewer than {FEW_ROWS} rows."
    return [fold("Most frequent labels", table(["label", "rows"], rows), h("p", told))]


def _first_rows(data: Dataset) -> Html:
    rows = range(min(data.n_rows, ROWS_SHOWN))
    labels = [_listed(data.labels_of(row)) for row in rows]
    if data.texts is None:
        return table(["row", "labels"], zip(rows, labels, strict=True))
    texts = [shortened(data.texts[row], LETTERS_SHOWN) for row in rows]
    return table(["text", "labels"], zip(texts, labels, strict=True))


def _first_group(data: GroupedDataset) -> Html:
    """Return the labels of the first group, and its first rows."""
    Y, rows = data.Y_groups, data.rows
    labels = _listed([_name(rows, i) for i in Y.indices[: Y.indptr[1]].tolist()])
    members = np.sort(data.groups[:, [0]].nonzero()[0])[:ROWS_SHOWN].tolist()
    told = [row if rows.texts is None else shortened(rows.texts[row], LETTERS_SHOWN) for row in members]
    name = "group 0" if rows.group_names is None else rows.group_names[0]
    return join([h("p", name, ": ", labels), table(["rows"], [[one] for one in told])])


def _name(data: Dataset, label: int) -> str:
    return str(label) if data.label_names is None else data.label_names[label]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - LABELS_OF_ROW
    return ", ".join(names[:LABELS_OF_ROW]) + (f" and {more} more" if more > 0 else "")
