"""Check groups of rows and labels of groups given as Python lists, mappings and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp

from longtail.data.formats.records import short_repr
from longtail.errors import DataError

GroupsOfRow: TypeAlias = "str | int | Iterable[str | int] | None"
LabelsOfGroup: TypeAlias = "Iterable[str] | Mapping[str, int] | None"


def grouped_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts of rows in groups; one string, and anything in the list that is not a string, is refused.

    >>> grouped_texts(word for word in ("an", "apple"))
    ('an', 'apple')
    """
    if _is_single(texts):
        raise DataError(f"texts must be a list of strings; got {short_repr(texts)}.")
    out = tuple(texts)
    for row, text in enumerate(out):
        if not isinstance(text, str):
            raise DataError(f"texts must hold strings; got {short_repr(text)} in row {row}.")
    return out


def as_groups(groups: Iterable[GroupsOfRow]) -> list[list[str]]:
    """Return the names of the groups of every row; whole numbers are names, and None means in no group.

    >>> as_groups(["page 1", 7, None, [7, "page 1"]])
    [['page 1'], ['7'], [], ['7', 'page 1']]
    """
    if _is_single(groups):
        raise DataError(
            f"groups must be a list with the group, or a list of the groups, of every text; got {short_repr(groups)}."
        )
    return [_names_of_row(row, value) for row, value in enumerate(groups)]


def _names_of_row(row: int, value: GroupsOfRow) -> list[str]:
    if value is None:
        return []
    parts = list(value) if isinstance(value, Iterable) and not _is_single(value) else [value]
    for part in parts:
        if not _is_name(part):
            raise DataError(
                f"groups must hold strings or whole numbers, lists of them, or None for no group; "
                f"got {short_repr(part)} in row {row}."
            )
    return [str(part) for part in parts]


def as_counts(group_labels: Mapping[Any, LabelsOfGroup]) -> dict[str, dict[str, int]]:
    """Return how often each group has each label, from lists of names (a name may come twice) or from counts.

    >>> as_counts({"page 1": ["fruit", "car", "fruit"], 2: {"car": 2}, 3: None})
    {'page 1': {'fruit': 2, 'car': 1}, '2': {'car': 2}, '3': {}}
    """
    if not isinstance(group_labels, Mapping):
        got = short_repr(group_labels)
        raise DataError(f"group_labels must be a mapping from the name of every group to its labels; got {got}.")
    out: dict[str, dict[str, int]] = {}
    for group, labels in group_labels.items():
        if not _is_name(group) or group == "":
            raise DataError(
                f"group_labels must have strings that are not empty, or whole numbers, as names of groups; "
                f"got {short_repr(group)}."
            )
        if str(group) in out:
            raise DataError(f"group_labels has the group {str(group)!r} twice, as a string and as a number.")
        out[str(group)] = _counts_of_group(group, labels)
    return out


def _counts_of_group(group: Any, labels: Any) -> dict[str, int]:
    if labels is not None and not isinstance(labels, Mapping) and _is_single(labels):
        found = "a string" if isinstance(labels, str) else short_repr(labels)
        raise DataError(f"the labels of group {str(group)!r} must be a list of names; got {found}.")
    pairs = labels.items() if isinstance(labels, Mapping) else ((label, 1) for label in labels or ())
    out: dict[str, int] = {}
    for label, count in pairs:
        if not isinstance(label, str) or not label:
            raise DataError(
                f"the labels of group {str(group)!r} must be strings that are not empty; got {short_repr(label)}."
            )
        if not _is_integer(count) or count < 0:
            raise DataError(
                f"the labels of group {str(group)!r} must have counts, whole numbers of 0 or more; "
                f"got {short_repr(count)} for {label!r}."
            )
        if count:
            out[str(label)] = out.get(str(label), 0) + int(count)
    return out


def count_matrix(
    counts: Mapping[str, Mapping[str, int]], label_names: Sequence[str] | None = None
) -> tuple[sp.csr_array, tuple[str, ...]]:
    """Return the counts (n_groups, n_labels) and the names of the labels, sorted unless they are given.

    >>> Y, names = count_matrix({"page 1": {"fruit": 2, "car": 1}, "page 2": {"fruit": 1}})
    >>> Y.toarray().tolist(), names
    ([[1.0, 2.0], [0.0, 1.0]], ('car', 'fruit'))
    """
    names = tuple(sorted({label for of in counts.values() for label in of}) if label_names is None else label_names)
    where = {name: i for i, name in enumerate(names)}
    for group, of in counts.items():
        for label in of:
            if label not in where:
                raise DataError(f"group {group!r}: the label {label!r} is not in the list of labels.")
    indptr = np.cumsum([0, *map(len, counts.values())])
    indices = np.array([where[label] for of in counts.values() for label in of], dtype=np.int32)
    data = np.array([count for of in counts.values() for count in of.values()], dtype=np.float32)
    return sp.csr_array((data, indices, indptr), shape=(len(counts), len(names))), names


def _is_single(value: object) -> bool:
    """Return whether a value is not a list of values."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_name(value: object) -> TypeGuard[str | int]:
    return isinstance(value, str) or _is_integer(value)
