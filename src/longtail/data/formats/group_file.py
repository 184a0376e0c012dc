"""Read groups files: one record per group with its name and its labels; a label that stands twice counts twice.

| format        | a record                                                                                          |
|---------------|---------------------------------------------------------------------------------------------------|
| JSONL         | `{"group": "page 7", "labels": ["a", "a", "b"]}`                                                    |
| CSV, TSV      | columns `group` and `labels`, labels as `a;a;b`                                                     |
| Parquet       | columns `group` and `labels`, labels as lists or as `a;a;b`                                         |
| npz           | an array `Y` (n_groups, n_labels) of counts, or a matrix saved by scipy; groups are called by number |

The name may also stand under `id` or `name`. A group without labels is kept: that none of its rows has any label is
worth knowing. A name that comes twice is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import scipy.sparse as sp

from longtail.data.formats.guess_format import guess_format
from longtail.data.formats.io import as_text_is_written, check_separator
from longtail.data.formats.records import Batch, Columns, NameMatrix, checked
from longtail.data.formats.registry import REGISTRY, Format, GroupCounts, Options
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError
from longtail.validate import check_choice

GROUP_FORMATS = tuple(name for name, known in REGISTRY.items() if known.has_columns or known.read_group_counts)
OTHER_KEYS = ("id", "name")


class GroupLabels(NamedTuple):
    """The groups by name, how often each has each label, and the names of the labels."""

    names: tuple[str, ...]
    Y: sp.csr_array  # (n_groups, n_labels) counts
    label_names: tuple[str, ...] | None


def read_groups(
    path: str | Path,
    format: str | None = None,
    *,
    label_names: Sequence[str] | None = None,
    group_column: str = "group",
    labels_column: str = "labels",
    label_separator: str = ";",
    delimiter: str | None = None,
    encoding: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> GroupLabels:
    """Read a groups file.

    Parameters
    ----------
    path : str or Path
        The groups file.
    format : str or None, default=None
        A name in `GROUP_FORMATS`; None guesses it.
    label_names : sequence of str or None, default=None
        The names of the labels in the order of their numbers; a label that is not among them is refused by its line.
    group_column, labels_column : str, default="group", "labels"
        The columns of the names of the groups and of their labels.
    label_separator : str, default=";"
        What separates the names in a string of labels.
    delimiter, encoding : str or None, default=None
        How CSV, TSV and JSONL are written, as in `read`; None finds it out.
    limits : Limits
        The most that the file may hold.

    Returns
    -------
    groups : GroupLabels

    Examples
    --------

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pages.csv"
    >>> _ = file.write_text("group,labels\\npage 1,art;art;law\\npage 2,law\\n")
    >>> groups = read_groups(file)
    >>> groups.names, groups.label_names, groups.Y.toarray().tolist()
    (('page 1', 'page 2'), ('art', 'law'), [[2.0, 1.0], [0.0, 1.0]])
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path} does not exist.")
    chosen = guess_format(path, limits)[0] if format is None else check_choice("format", format, list(GROUP_FORMATS))
    if chosen not in GROUP_FORMATS:
        raise DataError(f"{path} has the format '{chosen}'; labels of groups come as {', '.join(GROUP_FORMATS)}.")
    format_ = REGISTRY[chosen]
    if format_.read_group_counts is not None:
        groups = _from_counts(path, format_.read_group_counts(path, limits), label_names)
    else:
        columns = Columns((), labels_column, group_column, "", check_separator(label_separator))
        written = as_text_is_written(chosen, delimiter, encoding)
        options = Options(columns, limits=limits, delimiter=written[0], encoding=written[1])
        groups = _from_records(path, format_, options, label_names)
    if groups.Y.shape[0] == 0:
        raise DataError(f"{path} has no groups.")
    if groups.Y.nnz == 0:
        raise DataError(f"{path}: no group has a label.")
    return groups


def _from_counts(path: Path, counts: GroupCounts, label_names: Sequence[str] | None) -> GroupLabels:
    """Return the groups of a matrix of counts; a list of labels must fit it."""
    Y, names, own = counts
    if label_names is not None:
        if own is not None and tuple(own) != tuple(label_names):
            raise DataError(f"{path} has label names that differ from the list of labels.")
        if len(label_names) != Y.shape[1]:
            raise DataError(f"{path} has {Y.shape[1]} labels; the list of labels has {len(label_names)}.")
        own = tuple(label_names)
    if names is not None and len(names) != Y.shape[0]:
        raise DataError(f"{path} has {Y.shape[0]} groups and {len(names)} names of groups.")
    return GroupLabels(names or tuple(str(i) for i in range(Y.shape[0])), Y, own)


def _from_records(path: Path, format: Format, options: Options, label_names: Sequence[str] | None) -> GroupLabels:
    unit, limits, columns = format.unit, options.limits, options.columns

    def where(line: int) -> str:
        return f"{path} {unit} {line}"

    labels = NameMatrix(where, label_names, "label", limits)
    names: list[str] = []
    seen: dict[str, int] = {}
    for batch in checked(where, _group_batches(path, format, options), limits):
        for line, name in zip(batch.lines, batch.ids or (), strict=True):
            name = name.strip() if format.splits_strings else name  # as names of groups are read in rows
            if not name:
                raise DataError(f"{path} {unit} {line}: the name of the group is empty.")
            if name in seen:
                raise DataError(
                    f"{path} {unit} {line}: the group {name!r} stands in {unit} {seen[name]} already; "
                    "a group has one record with all its labels."
                )
            seen[name] = line
            names.append(name)
        labels.add(batch.lines, batch.labels)
    if names and not labels.used:
        raise DataError(f"{path} has no labels: no group has '{columns.labels}'.")
    Y, all_names = labels.matrix(count=True)
    return GroupLabels(tuple(names), Y, all_names)


def _group_batches(path: Path, format: Format, options: Options) -> Iterator[Batch]:
    """Yield the records, with the names of the groups as ids, from the first key that the file has."""
    columns = options.columns
    keys = tuple(dict.fromkeys((columns.id, *OTHER_KEYS)))
    for key in keys:
        named = False
        options = replace(options, columns=Columns((), columns.labels, key, "", columns.separator))
        for batch in format.batches(path, options) if format.batches is not None else ():
            if not batch.texts:
                continue
            if batch.ids is None and not named:
                break
            if batch.ids is None:
                raise DataError(f"{path} {format.unit} {batch.lines[0]} has no '{key}', though other groups have one.")
            named = True
            yield batch
        if named:
            return
    listed = "' or '".join(keys)
    raise DataError(f"{path} has no names of groups: no record has '{listed}'.")
