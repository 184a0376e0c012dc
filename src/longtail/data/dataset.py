"""The Dataset: rows (texts, features or both), their labels, and the names of the labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp

from longtail.data.shown import dataset_html
from longtail.errors import DataError, warn_of_data
from longtail.facts import DatasetFacts
from longtail.storage import MappedStrings, Part
from longtail.validate import MatrixLike, as_labels, as_rows, count_ids, make_csr

STRINGS_AT_ONCE = 1 << 14
MANY_LABELS, SPREAD = 1_000_000, 8  # labels by number, so many and so many times those in use, are renumbered


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with their labels; checked when it is made, and never changed after.

    At least one of `texts` and `X` must be given. Rows without labels are kept.

    Parameters
    ----------
    Y : matrix of shape (n_rows, n_labels)
        The labels, not zero where a row has a label; values are weights, 1 as a rule. Kept as CSR float32.
    X : matrix of shape (n_rows, n_features) or None, default=None
        The features, sparse or dense; kept as CSR or dense float32.
    texts : sequence of str or None, default=None
        The text of every row.
    ids : sequence of str or None, default=None
        The id of every row.
    label_names : sequence of str or None, default=None
        The name of every label, each once; labels without names are called by their number.
    label_texts : sequence of str or None, default=None
        A text about every label.
    groups : matrix of shape (n_rows, n_groups) or None, default=None
        Not zero where a row is in a group.
    group_names : sequence of str or None, default=None
        The name of every group, each once.
    name : str, default=""
        The name of the data, shown in reports.
    made_by : Part or None, default=None
        The saved features that made X of the texts, of data from a row store.

    Attributes
    ----------
    n_rows, n_labels, n_features : int
        The sizes; `n_features` is 0 without X.

    Examples
    --------
    >>> data = Dataset.from_lists(["a red apple", "a blue car"], [["fruit"], ["car", "blue"]])
    >>> data.n_rows, data.n_labels, data.label_names
    (2, 3, ('blue', 'car', 'fruit'))
    """

    Y: sp.csr_array  # (n_rows, n_labels) float32
    X: sp.csr_array | np.ndarray | None = None  # (n_rows, n_features) float32
    texts: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    label_texts: tuple[str, ...] | None = None
    groups: sp.csr_array | None = None  # (n_rows, n_groups) 0/1
    group_names: tuple[str, ...] | None = None
    name: str = ""
    made_by: Part | None = None

    @classmethod
    def checked_before(cls, **values: Any) -> Self:
        """Return a Dataset whose matrices are canonical and whose strings fit, as the caller has made sure of."""
        data = object.__new__(cls)
        for field in fields(cls):
            object.__setattr__(data, field.name, values.get(field.name, field.default))
        return data

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "Y", as_labels(self.Y, "Y"))
        if self.X is not None:
            put(self, "X", as_rows(self.X, "X"))
        if self.groups is not None:
            put(self, "groups", as_labels(self.groups, "groups"))
        for field in ("texts", "ids", "label_names", "label_texts", "group_names"):
            put(self, field, _as_strings(field, getattr(self, field)))
        if self.texts is None and self.X is None:
            raise DataError("a Dataset needs texts or X; got neither.")
        n_rows, n_labels = self.Y.shape
        for field, size in (("texts", n_rows), ("ids", n_rows), ("label_names", n_labels), ("label_texts", n_labels)):
            value = getattr(self, field)
            if value is not None and len(value) != size:
                of = "row" if size == n_rows and field in ("texts", "ids") else "label"
                raise DataError(f"{field} must have one entry per {of} ({size}); got {len(value)}.")
        for field in ("X", "groups"):
            value = getattr(self, field)
            if value is not None and value.shape[0] != n_rows:
                raise DataError(f"{field} must have as many rows as Y ({n_rows}); got {value.shape[0]}.")
        if self.group_names is not None:
            n_groups = 0 if self.groups is None else self.groups.shape[1]
            if len(self.group_names) != n_groups:
                raise DataError(f"group_names must have one entry per group ({n_groups}); got {len(self.group_names)}.")
        for field in ("label_names", "group_names"):
            _check_unique(field, getattr(self, field))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.Y.shape[0])

    @property
    def n_labels(self) -> int:
        """The number of labels, also of those that no row has."""
        return int(self.Y.shape[1])

    @property
    def n_features(self) -> int:
        """The number of features; 0 without X."""
        return 0 if self.X is None else int(self.X.shape[1])

    @property
    def made_of_texts(self) -> bool:
        """Whether X was made of the texts that stand beside it, and says nothing that they do not."""
        return self.made_by is not None and self.texts is not None

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        kind = " + ".join(k for k, v in (("texts", self.texts), ("X", self.X)) if v is not None)
        return f"Dataset({self.name or 'unnamed'}: {self.n_rows} rows of {kind}, {self.n_labels} labels)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the sizes of the data, its most frequent labels and its first rows."""
        return dataset_html(self)

    def names(self) -> tuple[str, ...]:
        """Return the name of every label; labels without names are called by their number."""
        return self.label_names or tuple(str(i) for i in range(self.n_labels))

    def labels_of(self, row: int) -> tuple[str, ...]:
        """Return the names of the labels of one row.

        >>> Dataset.from_lists(["a red apple"], [["red", "fruit"]]).labels_of(0)
        ('fruit', 'red')
        """
        if not -self.n_rows <= row < self.n_rows:
            raise DataError(f"row must be from 0 to {self.n_rows - 1}; got {row}.")
        row %= self.n_rows
        labels = self.Y.indices[self.Y.indptr[row] : self.Y.indptr[row + 1]]
        return tuple(str(i) if self.label_names is None else self.label_names[i] for i in labels)

    def take(self, rows: slice | Sequence[int] | np.ndarray) -> Dataset:
        """Return some of the rows; labels keep their numbers.

        Parameters
        ----------
        rows : slice, array of int or mask
            The rows to take, in this order.

        Returns
        -------
        data : Dataset
        """
        index = self._row_numbers(rows)

        def strings(values: Sequence[str] | None) -> tuple[str, ...] | None:
            return None if values is None else tuple(values[i] for i in index)

        return replace(
            self,
            Y=self.Y[index],
            X=None if self.X is None else self.X[index],
            texts=strings(self.texts),
            ids=strings(self.ids),
            groups=None if self.groups is None else self.groups[index],
        )

    def _row_numbers(self, rows: slice | Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the numbers of rows given as a slice, as numbers or as a mask; others than there are are refused."""
        if not isinstance(rows, slice):
            rows = np.asarray(rows) if len(rows) else np.empty(0, dtype=np.int64)
            if rows.dtype == bool and rows.shape != (self.n_rows,):
                raise DataError(f"rows must have one entry per row ({self.n_rows}) as a mask; got {rows.size}.")
            if rows.dtype.kind not in "iub" or rows.ndim != 1:
                raise DataError(f"rows must be a list of row numbers or a mask; got dtype {rows.dtype}.")
            wrong = np.flatnonzero((rows < -self.n_rows) | (rows >= self.n_rows))  # of a mask, none
            if wrong.size:
                raise DataError(f"rows must be from 0 to {self.n_rows - 1}; got {rows[wrong[0]]}.")
        return np.arange(self.n_rows)[rows]

    def compact_labels(self) -> Dataset:
        """Return the rows with the labels in use only, named by their numbers, where the largest number is far higher.

        Numbers of products are ordinary labels. What follows takes memory for every label, so that memory should
        follow those in use: above a million labels without names, of which less than an eighth is in use, the others
        are left out. Any other Dataset is returned as it is.

        Examples
        --------
        >>> Y = sp.csr_array(([1.0], ([0], [70_000_000])), shape=(1, 2**31 - 1))
        >>> data = Dataset(Y=Y, texts=["a red apple"]).compact_labels()
        >>> data.n_labels, data.label_names
        (1, ('70000000',))
        """
        used = None if self.label_names is not None or self.label_texts is not None else spread_labels(self.Y)
        if used is None:
            return self
        return replace(self, Y=take_labels(self.Y, used), label_names=tuple(map(str, used.tolist())))

    def align(self, label_names: Sequence[str]) -> tuple[Dataset, int]:
        """Renumber the labels to another list of names, such as a model's.

        Parameters
        ----------
        label_names : sequence of str
            The new list of labels.

        Returns
        -------
        data : Dataset
            The same rows with `label_names` as labels.
        dropped : int
            How many labels of rows were dropped because the list does not have them.

        Examples
        --------
        >>> data, dropped = Dataset.from_lists(["a red apple"], [["red", "fruit"]]).align(["car", "red"])
        >>> data.labels_of(0), dropped
        (('red',), 1)
        """
        where = {name: i for i, name in enumerate(label_names)}
        used, codes = np.unique(self.Y.indices, return_inverse=True)
        old = [str(i) if self.label_names is None else self.label_names[i] for i in used.tolist()]
        new = np.array([where.get(name, -1) for name in old], dtype=np.int64)
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.Y.indptr))
        columns = new[codes]
        keep = columns >= 0
        Y = sp.csr_array((self.Y.data[keep], (rows[keep], columns[keep])), shape=(self.n_rows, len(label_names)))
        texts = None
        if self.label_texts is not None:
            text_of = dict(zip(self.names(), self.label_texts, strict=True))
            texts = tuple(text_of.get(name, "") for name in label_names)
        out = replace(self, Y=Y, label_names=tuple(label_names), label_texts=texts)
        return out, int((~keep).sum())

    def digest(self) -> str:
        """Return a SHA-256 digest of the content, the same on any machine."""
        h = hashlib.sha256()
        for matrix in (self.Y, None if self.made_of_texts else self.X, self.groups):
            if matrix is None:
                h.update(b"\0none")
            elif isinstance(matrix, np.ndarray):
                h.update(repr(matrix.shape).encode())
                h.update(matrix.tobytes())
            else:
                h.update(repr(matrix.shape).encode())
                for part in (matrix.indptr, matrix.indices, matrix.data):
                    h.update(np.ascontiguousarray(part).data)
        for strings in (self.texts, self.label_names, self.label_texts):
            _digest_strings(h, strings)
        return h.hexdigest()

    def summary(self) -> DatasetFacts:
        """Return sizes, labels per row, rows per label and more as a JSON-able dict."""
        per_row, per_label = np.diff(self.Y.indptr), rows_per_label(self.Y)
        facts: DatasetFacts = {
            "name": self.name,
            "rows": self.n_rows,
            "labels": self.n_labels,
            "labels_used": per_label.size,
            "labels_per_row": float(per_row.mean()) if self.n_rows else 0.0,
            "rows_without_labels": int((per_row == 0).sum()),
            "rows_per_label": self.Y.nnz / self.n_labels if self.n_labels else 0.0,
            "labels_seen_once": int((per_label == 1).sum()),
            "has_texts": self.texts is not None,
            "has_label_texts": self.label_texts is not None,
        }
        if self.X is not None and not self.made_of_texts:
            nnz = self.X.size if isinstance(self.X, np.ndarray) else self.X.nnz
            facts["features"] = self.n_features
            facts["features_per_row"] = nnz / max(self.n_rows, 1)
        if self.groups is not None:
            facts["groups"] = int(self.groups.shape[1])
        return facts

    @classmethod
    def from_lists(
        cls,
        texts: Sequence[str],
        labels: Sequence[Sequence[str]],
        *,
        label_names: Sequence[str] | None = None,
        X: MatrixLike | None = None,
        ids: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
        groups: MatrixLike | None = None,
        group_names: Sequence[str] | None = None,
        name: str = "",
    ) -> Dataset:
        """Make a Dataset from texts and lists of label names.

        Parameters
        ----------
        texts : sequence of str
            The text of every row.
        labels : sequence of sequences of str
            The label names of every row.
        label_names : sequence of str or None, default=None
            All labels in the order of their numbers; None takes those of the rows in sorted order.
        X, ids, label_texts, groups, group_names, name
            As in `Dataset`.

        Returns
        -------
        data : Dataset
        """
        if isinstance(labels, str) or any(isinstance(row, str) for row in labels):
            raise DataError("labels must be a list of lists of names, one list per text; got a string.")
        if len(texts) != len(labels):
            raise DataError(f"texts and labels must have as many rows; got {len(texts)} and {len(labels)}.")
        names = tuple(label_names) if label_names is not None else tuple(sorted({n for row in labels for n in row}))
        Y = labels_to_matrix(labels, names)
        warn_of_spaces(names)
        return cls(
            Y=Y,
            X=X,
            texts=tuple(texts),
            ids=_as_strings("ids", ids),
            label_names=names,
            label_texts=_as_strings("label_texts", label_texts),
            groups=groups,
            group_names=_as_strings("group_names", group_names),
            name=name,
        )


def labels_to_matrix(labels: Sequence[Sequence[str]], names: Sequence[str]) -> sp.csr_array:
    """Return lists of label names as a matrix of ones; a name not in `names`, or an empty one, is refused.

    >>> labels_to_matrix([["red"], ["car", "red"]], ["car", "red"]).toarray().tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    where = {name: i for i, name in enumerate(names)}
    empty = where.get("")
    indptr = np.zeros(len(labels) + 1, dtype=np.int64)
    indices: list[int] = []
    for row, row_labels in enumerate(labels):
        try:
            of_row = sorted({where[name] for name in row_labels})
        except KeyError as error:
            raise DataError(f"row {row} has the label {error.args[0]!r}, which is not in label_names.") from None
        if empty is not None and empty in of_row:
            raise DataError(
                f"labels must not be empty strings; got '' at position {row} (a text without labels has an empty list)."
            )
        indices += of_row
        indptr[row + 1] = len(indices)
    data = np.ones(len(indices), dtype=np.float32)
    return sp.csr_array((data, np.array(indices, dtype=np.int32), indptr), shape=(len(labels), len(names)))


def warn_of_spaces(names: Iterable[str], source: str = "") -> None:
    """Warn of two labels that differ only by spaces around them: they are two, and were mostly meant as one."""
    spaced = [name for name in names if name != name.strip()]
    if not spaced:
        return
    plain: dict[str, str] = {name.strip(): name for name in spaced}
    plain |= {name: name for name in names if name == name.strip() and name in plain}
    twice = next((name for name in spaced if plain[name.strip()] != name), None)
    if twice is not None:
        of = f"{source}: " if source else ""
        warn_of_data(
            f"{of}the labels {plain[twice.strip()]!r:.60} and {twice!r:.60} differ only by spaces around them."
        )


def rows_per_label(Y: sp.csr_array) -> np.ndarray:
    """Return the number of rows of every label that has any, in the order of the labels; memory follows these labels.

    >>> rows_per_label(sp.csr_array(np.array([[1, 0, 1], [1, 0, 0]]))).tolist()
    [2, 1]
    """
    if Y.shape[1] > MANY_LABELS:
        return np.unique(Y.indices, return_counts=True)[1]
    counts = count_ids(Y.indices, Y.shape[1])
    return counts[counts > 0]


def spread_labels(Y: sp.csr_array) -> np.ndarray | None:
    """Return the labels in use, if there are many others and these are far more; else None."""
    if Y.shape[1] <= MANY_LABELS:
        return None
    used = np.unique(Y.indices)
    return used if used.size * SPREAD < Y.shape[1] else None


def take_labels(Y: sp.csr_array, used: np.ndarray) -> sp.csr_array:
    """Return the columns of the labels in use, given in their order."""
    return make_csr(Y.indptr, np.searchsorted(used, Y.indices), Y.data, used.size)


def inverse_propensities(counts: np.ndarray, n_rows: int, A: float, B: float) -> np.ndarray:
    """Return how much more a rare label should count than its rows, `1/p` of Jain et al. (2016).

    `1/p = 1 + C (N_l + B)^-A` with `C = (ln N - 1)(B + 1)^A`, where `N` is `n_rows`, the number of training rows, and
    `N_l` in `counts` the number of those with label l. With fewer than three rows `ln N - 1` is negative and the model
    has no meaning: all are 1.

    >>> inverse_propensities(np.array([1, 1000]), 10_000, A=0.55, B=1.5).round(2).tolist()
    [9.21, 1.3]
    """
    C = max(np.log(max(n_rows, 1)) - 1.0, 0.0) * (B + 1.0) ** A
    # 1 / p = 1 + C · exp(-A · ln(N_l + B))
    return 1.0 + C * (counts + B) ** -A


def _as_strings(field: str, values: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the values of a field as a tuple; a single string and anything that is no string are refused."""
    if values is None:
        return None
    if isinstance(values, str):
        raise DataError(f"{field} must be a list of strings; got one string.")
    if isinstance(values, MappedStrings):
        return cast("tuple[str, ...]", values)  # which it is equal to
    out = tuple(values)
    if set(map(type, out)) <= {str}:
        return out
    for at, value in enumerate(out):
        if not isinstance(value, str):
            raise DataError(f"{field} must hold strings; got {type(value).__name__} at position {at}.")
    return out


def _digest_strings(digest: hashlib._Hash, strings: Sequence[str] | None) -> None:
    """Add strings to a digest, a zero between them."""
    if strings is None:
        digest.update(b"\0none")
        return
    for low in range(0, len(strings), STRINGS_AT_ONCE):
        joined = "\0".join(strings[low : low + STRINGS_AT_ONCE])
        digest.update(("\0" * (low > 0) + joined).encode("utf-8", "surrogatepass"))


def _check_unique(field: str, values: tuple[str, ...] | None) -> None:
    """Refuse a name that comes twice."""
    if values is None or isinstance(values, MappedStrings) or len(set(values)) == len(values):
        return
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise DataError(f"{field} must be unique; got {value!r} twice.")
        seen.add(value)
