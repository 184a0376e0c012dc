"""Rows whose labels are known only for groups of them: a page's tags, but not which paragraph each belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.formats.group_file import GroupLabels, read_groups
from longtail.data.formats.guess_format import guess_format
from longtail.data.formats.io import read
from longtail.data.formats.label_list import read_labels
from longtail.data.formats.records import NameMatrix
from longtail.data.group_lists import GroupsOfRow, LabelsOfGroup, as_counts, as_groups, count_matrix, grouped_texts
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.data.shown import grouped_html
from longtail.errors import DataError, ParameterError
from longtail.validate import MatrixLike, as_labels, make_csr


@dataclass(frozen=True, eq=False)
class GroupedDataset:
    """Rows in groups, and how often each group has each label; checked when it is made.

    Parameters
    ----------
    rows : Dataset
        Rows with `groups`, with texts or features, and with the names of the labels; labels of its own are dropped. A
        row may be in no group, in one or in several.
    Y_groups : matrix of shape (n_groups, n_labels)
        How often each group has each label; kept as CSR float32.

    Attributes
    ----------
    groups : csr_array of shape (n_rows, n_groups)
        The groups of the rows.
    n_rows, n_groups, n_labels : int
        The sizes.

    Examples
    --------
    >>> data = GroupedDataset.from_lists(
    ...     ["a red apple", "a blue car", "a green apple"],
    ...     ["page 1", "page 1", "page 2"],
    ...     {"page 1": ["fruit", "car"], "page 2": ["fruit"]},
    ... )
    >>> data.n_rows, data.n_groups, data.rows.label_names
    (3, 2, ('car', 'fruit'))
    """

    rows: Dataset
    Y_groups: sp.csr_array  # (n_groups, n_labels) counts

    def __post_init__(self) -> None:
        Y = as_labels(self.Y_groups, "Y_groups")
        if self.rows.groups is None:
            raise DataError("the rows of a GroupedDataset need groups; got none.")
        if self.rows.groups.shape[1] != Y.shape[0]:
            raise DataError(
                f"groups must have one column per row of Y_groups, one for each group; "
                f"got {self.rows.groups.shape[1]} columns and {Y.shape[0]} rows."
            )
        odd = Y.data[Y.data != np.rint(Y.data)]
        if odd.size:
            raise DataError(f"Y_groups must hold counts, whole numbers of 0 or more; got {odd[0]:g}.")
        for field in ("label_names", "label_texts"):
            named = getattr(self.rows, field)
            if named is not None and len(named) != Y.shape[1]:
                raise DataError(f"{field} must have one entry per label ({Y.shape[1]}); got {len(named)}.")
        empty = make_csr(np.zeros(self.rows.n_rows + 1), np.empty(0), np.empty(0, dtype=np.float32), Y.shape[1])
        object.__setattr__(self, "Y_groups", Y)
        object.__setattr__(self, "rows", replace(self.rows, Y=empty))

    @property
    def groups(self) -> sp.csr_array:
        """The groups of the rows, CSR (n_rows, n_groups)."""
        return self.rows.groups

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.rows.n_rows

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self.Y_groups.shape[0])

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return int(self.Y_groups.shape[1])

    def __repr__(self) -> str:
        name = self.rows.name or "unnamed"
        return f"GroupedDataset({name}: {self.n_rows} rows in {self.n_groups} groups, {self.n_labels} labels)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the sizes, and the first group."""
        return grouped_html(self)

    @classmethod
    def from_lists(
        cls,
        texts: Iterable[str],
        groups: Iterable[GroupsOfRow],
        group_labels: Mapping[Any, LabelsOfGroup],
        *,
        label_names: Sequence[str] | None = None,
        X: MatrixLike | None = None,
        ids: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
        name: str = "",
    ) -> GroupedDataset:
        """Make a GroupedDataset from texts, their groups, and the labels of the groups.

        Parameters
        ----------
        texts : iterable of str
            The text of every row.
        groups : iterable of str, int, lists of them, or None
            The group, or the groups, of every row; None for no group.
        group_labels : mapping from group to labels
            The labels of a group: a list of names, where a name may come twice, or a mapping from names to counts;
            None for no labels.
        label_names : sequence of str or None, default=None
            All labels in the order of their numbers; None takes those of the groups in sorted order.
        X, ids, label_texts, name
            As in `Dataset`.

        Returns
        -------
        data : GroupedDataset
        """
        texts, members, counts = grouped_texts(texts), as_groups(groups), as_counts(group_labels)
        if len(texts) != len(members):
            raise DataError(f"texts and groups must be lists of the same length; got {len(texts)} and {len(members)}.")
        group_names = tuple(counts)
        of_rows = NameMatrix(lambda row: f"row {row}", group_names, "group")
        of_rows.add(range(len(texts)), members)
        Y, labels = count_matrix(counts, label_names)
        rows = Dataset(
            Y=sp.csr_array((len(texts), len(labels)), dtype=np.float32),
            texts=texts,
            groups=of_rows.matrix()[0],
            group_names=group_names,
            label_names=labels,
            X=X,
            ids=None if ids is None else tuple(ids),
            label_texts=None if label_texts is None else tuple(label_texts),
            name=name,
        )
        return cls(rows, Y)


def read_grouped(
    path: str | Path,
    groups_path: str | Path,
    format: str | None = None,
    *,
    labels_file: str | Path | None = None,
    group_column: str = "group",
    labels_column: str = "labels",
    label_separator: str = ";",
    limits: Limits = DEFAULT_LIMITS,
    **reading: Any,
) -> GroupedDataset:
    """Read rows with their groups, and a groups file with the labels of each group.

    A row without a group is kept; a group that the groups file does not have is refused by its line.

    Parameters
    ----------
    path : str or Path
        The rows, in any format that holds groups (see `read`).
    groups_path : str or Path
        The groups file: one record per group with its name and its labels (JSONL, CSV, TSV, Parquet, npz).
    format : str or None, default=None
        The format of the rows; None guesses it.
    labels_file : str, Path or None, default=None
        A list of labels that fixes their numbers and texts.
    group_column, labels_column : str, default="group", "labels"
        The columns of the groups, in both files, and of the labels, in the groups file.
    label_separator : str, default=";"
        What separates the names in a string.
    limits : Limits, default=Limits()
        The most that each file may hold.
    **reading
        Further options of `read`.

    Returns
    -------
    data : GroupedDataset

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "rows.csv").write_text("text,group\\na red apple,p1\\na blue car,p1\\na green apple,p2\\n")
    >>> _ = (folder / "pages.csv").write_text("group,labels\\np1,fruit;car\\np2,fruit\\n")
    >>> read_grouped(folder / "rows.csv", folder / "pages.csv")
    GroupedDataset(rows: 3 rows in 2 groups, 2 labels)
    """
    for option, column in (("group_column", group_column), ("labels_column", labels_column)):
        if not isinstance(column, str) or not column:
            raise ParameterError(name=option, allowed="the name of a column", got=column)
    listed = None if labels_file is None else read_labels(labels_file, limits)
    of_groups = read_groups(
        groups_path,
        label_names=None if listed is None else listed.names,
        group_column=group_column,
        labels_column=labels_column,
        label_separator=label_separator,
        limits=limits,
        **_as_written(path, groups_path, format, reading, limits),
    )
    rows = read(
        path,
        format,
        labels_required=False,
        labels_column="",  # labels of rows are what is not known
        group_column=group_column,
        label_separator=label_separator,
        group_names=of_groups.names,
        limits=limits,
        **reading,
    )
    if rows.groups is None and rows.texts is None:
        raise DataError(f"{path} has no groups; features come with their groups in an npz file with X and groups.")
    if rows.groups is None:
        raise DataError(f"{path} has no groups: no row has '{group_column}'.")
    if rows.groups.nnz == 0:
        raise DataError(f"{path}: no row is in a group.")
    texts = None if listed is None else listed.texts
    groups = rows.groups
    if rows.group_names != of_groups.names:
        groups = _renumber_groups(rows.groups, rows.group_names, of_groups, path, groups_path)
    rows = replace(
        rows,
        Y=sp.csr_array((rows.n_rows, of_groups.Y.shape[1]), dtype=np.float32),
        groups=groups,
        group_names=of_groups.names,
        label_names=of_groups.label_names,
        label_texts=texts,
    )
    return GroupedDataset(rows, of_groups.Y)


def _as_written(
    path: str | Path, groups_path: str | Path, format: str | None, reading: Mapping[str, Any], limits: Limits
) -> dict[str, Any]:
    """Return delimiter and encoding for a groups file: those of the rows where it has their format, else found out."""
    if not Path(path).exists() or not Path(groups_path).exists():
        return {}
    same = (format or guess_format(Path(path), limits)[0]) == guess_format(Path(groups_path), limits)[0]
    return {name: reading.get(name) for name in ("delimiter", "encoding")} if same else {}


def _renumber_groups(
    groups: sp.csr_array, names: Sequence[str] | None, of_groups: GroupLabels, path: str | Path, groups_path: str | Path
) -> sp.csr_array:
    """Return the groups of rows that came as a matrix, numbered as in the groups file."""
    if names is None and groups.shape[1] != len(of_groups.names):
        raise DataError(
            f"{path} and {groups_path} must have as many groups; got {groups.shape[1]} and {len(of_groups.names)}."
        )
    own = names or tuple(str(i) for i in range(groups.shape[1]))
    where = {name: i for i, name in enumerate(of_groups.names)}
    for used in np.unique(groups.indices):
        if own[used] not in where:
            raise DataError(f"{path}: the group {own[used]!r} is not in {groups_path}.")
    new = np.array([where.get(name, 0) for name in own], dtype=np.int32)
    return sp.csr_array(
        (groups.data, new[groups.indices], groups.indptr), shape=(groups.shape[0], len(of_groups.names))
    )
