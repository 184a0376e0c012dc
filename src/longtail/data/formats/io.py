"""Read any known file into a Dataset, write one, or walk through a file in constant memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset, warn_of_spaces
from longtail.data.formats.files import Stream, check_encoding, plain_name
from longtail.data.formats.guess_format import guess_format, guess_target
from longtail.data.formats.label_list import read_labels, write_labels
from longtail.data.formats.partial_file import ReadingPosition
from longtail.data.formats.records import (
    DEFAULT_ID,
    Batch,
    Columns,
    NameMatrix,
    checked,
    collect,
    listed_names,
    rebatch,
    short_repr,
)
from longtail.data.formats.registry import ALL_FIELDS, REGISTRY, Format, Options
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError, DataWarning, Keyword, ParameterError, warn_of_data
from longtail.validate import Json, check_choice, check_integer

PARTS = ("train", "test")
SEPARATORS = (";", ",", "|", " / ", "#", "$", "\n", " ")  # that people put between labels
FEW = 0.02  # of the rows with two labels and more, where a separator was missed: it stands in names by chance
LINE_BREAKS = frozenset("\n\r\t\v\f\x1c\x1d\x1e\x85\u2028\u2029")
TAB = {"tab": "\t", "\\t": "\t"}  # as people write it
WHITE_SPACE = {**TAB, "space": " ", "newline": "\n", "\\n": "\n"}


def read(
    path: str | Path,
    format: str | None = None,
    *,
    labels_file: str | Path | None = None,
    label_names: Sequence[str] | None = None,
    labels_required: bool = True,
    text_column: str | Sequence[str] = "text",
    labels_column: str = "labels",
    id_column: str = "id",
    group_column: str = "group",
    label_separator: str = ";",
    split_groups: bool = True,
    group_names: Sequence[str] | None = None,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
    n_labels: int | None = None,
    part: str = "train",
    split: int = 0,
    name: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    ignored_columns: set[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Dataset:
    """Read a file or a folder into a Dataset.

    Parameters
    ----------
    path : str or Path
        A file, also compressed (.gz, .xz, .bz2), or a folder.
    format : str or None, default=None
        A name in `FORMATS`; None guesses it from the file's name, else from its first line.
    labels_file : str, Path or None, default=None
        A list of labels (see `read_labels`) that fixes which labels there are, their numbers and their texts.
    label_names : sequence of str or None, default=None
        The names of the labels in the order of their numbers. Without this and `labels_file`, the labels of text
        formats are numbered in the sorted order of their names.
    labels_required : bool, default=True
        Refuse a file that has no labels at all.
    text_column : str or sequence of str, default="text"
        The column of the texts; several columns are joined by a space.
    labels_column, id_column, group_column : str, default="labels", "id", "group"
        The columns of labels, ids and groups. A column of ids that is not called "id" must be there.
    label_separator : str, default=";"
        What separates the names in a string of labels or groups; in JSONL a string is one name.
    split_groups : bool, default=True
        Whether a string of groups is split at `label_separator`; else it is one name.
    group_names : sequence of str or None, default=None
        The names of the groups in the order of their numbers; None numbers them in sorted order.
    zero_based : bool or "auto", default="auto"
        Whether the feature ids of libsvm text start at 0; "auto" means that they do if the id 0 occurs.
    n_features, n_labels : int or None, default=None
        The number of features and of labels of libsvm text; None takes the largest id.
    part : {"train", "test"}, default="train"
        The rows of a folder to read.
    split : int, default=0
        The column of the split files of a folder.
    name : str or None, default=None
        The name of the data; None takes the file's name.
    delimiter : str or None, default=None
        What separates the cells of CSV and TSV; None finds out by the header.
    encoding : str or None, default=None
        The encoding of a text file, such as "windows-1252". None is UTF-8; CSV and TSV may also be UTF-16 with a byte
        order mark, and Windows-1252, of which a warning tells.
    ignored_columns : set of str or None, default=None
        Receives the names of the columns, or keys, that the file has and that were not read.
    limits : Limits, default=Limits()
        The most that the file may hold.

    Returns
    -------
    data : Dataset

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = file.write_text("text,labels\\na red apple,fruit;red\\na blue car,car\\n")
    >>> read(file)
    Dataset(rows: 2 rows of texts, 3 labels)
    """
    path = Path(path)
    check_choice("part", part, PARTS)
    columns = _columns(text_column, labels_column, id_column, group_column, label_separator)
    columns = replace(columns, ignored=ignored_columns, splits_groups=split_groups)
    listed = None if labels_file is None else read_labels(labels_file, limits)
    names = tuple(label_names) if label_names is not None else listed.names if listed else None
    n_labels = len(names) if n_labels is None and names is not None else n_labels
    texts = None if listed is None or names is None else listed.texts_of(names)
    format_, how, guessed = _choose(path, format, limits)
    name = _stem(path) if name is None else name
    options = Options(
        columns,
        names,
        texts,
        group_names,
        zero_based,
        n_features,
        n_labels,
        part,
        split,
        name,
        labels_required,
        limits,
        *as_text_is_written(guessed, delimiter, encoding),
    )
    try:
        if format_.read:
            data = _read_matrix(path, format_, options)
        else:
            data = read_texts(path, format_, options, labels_required)
    except DataError as error:
        if how != "first line":
            raise
        raise _with_guess(error, guessed) from error
    if data.n_rows == 0:
        raise DataError(f"{path} has no rows.")
    return data


def write(
    dataset: Dataset,
    path: str | Path,
    format: str | None = None,
    *,
    labels_file: str | Path | None = None,
    label_separator: str = ";",
    weights_column: str | None = None,
) -> Json:
    """Write a Dataset to a file, all or nothing.

    Parameters
    ----------
    dataset : Dataset
        The data to write.
    path : str or Path
        The file to write; a suffix .gz, .xz or .bz2 compresses it.
    format : str or None, default=None
        A name in `FORMATS`; None goes by the file's name.
    labels_file : str, Path or None, default=None
        Where to write the list of labels, as JSONL.
    label_separator : str, default=";"
        What to put between the names of labels and groups in CSV and TSV.
    weights_column : str or None, default=None
        A column for the weights of the labels (JSONL, CSV, TSV, Parquet); without it labels with weights other than 1
        can be written to npz only.

    Returns
    -------
    facts : dict
        `file`, `format`, `rows`, `labels`, `bytes`, and what the format cannot hold: `left_out`, fields;
        `labels_without_rows`, how many labels are not written since no row has them; `texts_changed`, how many texts
        have line breaks or tabs that became spaces.

    Examples
    --------
    >>> import tempfile
    >>> data = Dataset.from_lists(["a red apple"], [["fruit", "red"]])
    >>> facts = write(data, Path(tempfile.mkdtemp()) / "rows.jsonl")
    >>> facts["format"], facts["rows"], facts["left_out"]
    ('jsonl', 1, [])
    """
    path = Path(path)
    writable = [name for name, format_ in REGISTRY.items() if format_.write]
    chosen = guess_target(path) if format is None else check_choice("format", format, writable)
    target = REGISTRY[chosen]
    weighed = weights_column is not None and target.has_columns
    if not target.keeps_weights and not weighed and dataset.Y.nnz and not np.all(dataset.Y.data == 1):
        raise DataError(f"Y holds label weights other than 1, which the format '{chosen}' cannot keep; use 'npz'.")
    if target.write is None:
        raise ParameterError(name="format", allowed=f"one of {writable}", got=chosen)
    columns = Columns(separator=check_separator(label_separator), weights=(weights_column or "") if weighed else "")
    target.write(dataset, path, columns)
    keeps = {*target.keeps, *(("label_names", "label_texts") if labels_file is not None else ())}
    if labels_file is not None:
        write_labels(dataset, labels_file)
    left_out = [field for field in ALL_FIELDS if getattr(dataset, field) is not None and field not in keeps]
    size = sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size
    facts = {"format": chosen, "rows": dataset.n_rows, "labels": dataset.n_labels, "bytes": size}
    if "X" not in target.keeps and labels_file is None:
        facts["labels_without_rows"] = int(dataset.n_labels - np.unique(dataset.Y.indices).size)
    if target.joins_lines:
        facts["texts_changed"] = sum(1 for text in dataset.texts or () if not LINE_BREAKS.isdisjoint(text))
    return {"file": str(path), "labels_without_rows": 0, "texts_changed": 0, **facts, "left_out": left_out}


def iter_texts(
    path: str | Path | Stream,
    batch_rows: int = 1000,
    format: str | None = None,
    *,
    text_column: str | Sequence[str] = "text",
    id_column: str = "id",
    labels_column: str | None = None,
    label_separator: str = ";",
    label_names: Sequence[str] | None = None,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    position: ReadingPosition | None = None,
) -> Iterator[Dataset]:
    """Yield a file as small Datasets, in constant memory.

    Rows of text come with their ids and, if `labels_column` is given, with the labels that they have; without it
    `n_labels` is 0. Every Dataset names and numbers its own labels. Rows of XMC text and libsvm come with X and Y.
    Other formats are refused (see `is_streamed`).

    Parameters
    ----------
    path : str, Path or Stream
        The file, or an open stream in a text format that is named; a libsvm file is read twice unless `zero_based` and
        `n_features` are given.
    batch_rows : int, default=1000
        The most rows of one Dataset.
    format, text_column, id_column, label_separator, zero_based, n_features, delimiter, encoding, limits
        As in `read`; there is no limit for rows here.
    labels_column : str or None, default=None
        The column of the labels; None leaves labels out.
    label_names : sequence of str or None, default=None
        The names of the labels in the order of their numbers; another label is refused. None takes those of each block.
    position : ReadingPosition or None, default=None
        Where to begin, after a run that was broken off with the same arguments; it is moved on with every Dataset.

    Yields
    ------
    data : Dataset

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "new.txt"
    >>> _ = file.write_text("first text\\nsecond text\\nthird text\\n")
    >>> [batch.texts for batch in iter_texts(file, batch_rows=2)]
    [('first text', 'second text'), ('third text',)]
    """
    if isinstance(path, Stream):
        if format is None:
            raise ParameterError(name="format", problem="must be given for a stream.")
        path = cast(Path, path)  # formats only open it and name it
    else:
        path = Path(path)
    batch_rows = check_integer("batch_rows", batch_rows, low=1)
    columns = _columns(text_column, labels_column or "", id_column, "", label_separator)
    limits = replace(limits, unpacked_bytes=limits.bytes_to_unpack(streamed=True))
    format_, how, guessed = _choose(path, format, limits)
    if format_.batches is None and format_.matrices is None:
        able = [name for name, f in REGISTRY.items() if f.batches or f.matrices]
        raise DataError(f"{path} has the format '{guessed}', which cannot be read row by row; use one of {able}.")
    delimiter, encoding = as_text_is_written(guessed, delimiter, encoding)
    options = Options(
        columns,
        None if label_names is None else tuple(label_names),
        zero_based=zero_based,
        n_features=n_features,
        name=_stem(path),
        limits=limits,
        delimiter=delimiter,
        encoding=encoding,
        skip=position.block if position is not None and format_.skips_blocks else 0,
    )
    return _walk(path, batch_rows, format_, options, how, guessed, position or ReadingPosition())


def is_streamed(path: str | Path, format: str | None = None) -> bool:
    """Return whether `iter_texts` can read a file row by row; npz and folders can only be read as a whole.

    >>> import tempfile
    >>> is_streamed(tempfile.mkdtemp(), "npz")
    False
    """
    format_ = _choose(Path(path), format)[0]
    return format_.batches is not None or format_.matrices is not None


def _walk(
    path: Path, rows: int, format_: Format, options: Options, how: str, guessed: str, position: ReadingPosition
) -> Iterator[Dataset]:
    try:
        for block in _blocks(path, rows, format_, options, position.block):
            for data in islice(block, position.batch, None):
                position.batch += 1
                yield data
            position.block, position.batch = position.block + 1, 0
    except DataError as error:
        if how != "first line":
            raise
        raise _with_guess(error, guessed) from error


def _named_columns(path: Path, Y: sp.csr_array, options: Options) -> tuple[sp.csr_array, tuple[str, ...] | None]:
    """Return a block of labels by number with a column for every label of the list, where there is one."""
    if options.label_names is None:
        return Y, None
    names = tuple(options.label_names)
    if Y.shape[1] > len(names):
        raise DataError(f"{path} has {Y.shape[1]} labels; the list of labels has {len(names)}.")
    return sp.csr_array((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], len(names))), names


def _blocks(path: Path, rows: int, format_: Format, options: Options, first: int) -> Iterator[Iterator[Dataset]]:
    """Yield the blocks of a file from the first that is wanted, each as Datasets with a number of rows at most."""
    if format_.matrices is not None:
        for X, Y in islice(format_.matrices(path, options), first, None):
            yield _matrix_parts(X, *_named_columns(path, Y, options), rows, options.name)
        return

    def where(at: int) -> str:
        return f"{path} {format_.unit} {at}"

    batches = format_.batches(path, options) if format_.batches else iter(())
    batches = islice(batches, 0 if format_.skips_blocks else first, None)
    for batch in checked(where, batches, options.limits):
        yield (_as_dataset(part, where, options) for part in rebatch([batch], rows))


def _matrix_parts(
    X: sp.csr_array, Y: sp.csr_array, names: tuple[str, ...] | None, rows: int, name: str
) -> Iterator[Dataset]:
    """Yield a block of features and labels as Datasets with a number of rows at most."""
    for low in range(0, X.shape[0], rows):
        yield Dataset(X=X[low : low + rows], Y=Y[low : low + rows], label_names=names, name=name)


def _as_dataset(batch: Batch, where: Callable[[int], str], options: Options) -> Dataset:
    """Return texts and ids of a batch as a Dataset, with its labels where a column of labels is wanted."""
    Y, names = sp.csr_array((len(batch.texts), 0), dtype=np.float32), None
    if options.columns.labels and batch.labels is not None:
        matrix = NameMatrix(where, options.label_names, "label", options.limits)
        matrix.add(batch.lines, batch.labels)
        Y, names = matrix.matrix()
    ids = None if batch.ids is None else tuple(batch.ids)
    return Dataset(Y=Y, texts=tuple(batch.texts), ids=ids, label_names=names, name=options.name)


def read_texts(path: Path, format_: Format, options: Options, labels_required: bool) -> Dataset:
    """Read a file of rows of text, with everything that is told about its labels."""
    if format_.batches is None:
        raise DataError(f"{path} cannot be read as rows of text.")
    seen = _RowsSeen(path, options.limits)
    batches = seen.watch(format_.batches(path, options))
    data = collect(
        lambda at: f"{path} {format_.unit} {at}",
        batches,
        options.label_names,
        options.group_names,
        label_texts=options.label_texts,
        name=options.name,
        limits=options.limits,
    )
    if labels_required and data.n_rows and not seen.any:
        raise _without_labels(path, format_, options)
    warn_of_spaces(data.label_names or (), str(path))
    if format_.has_columns:
        _warn_of_joined_labels(path, data, format_)
    return data


def _without_labels(path: Path, format_: Format, options: Options) -> DataError:
    """Return the error for rows that have no column of labels; it lists the columns that were not read."""
    if format_.folder is not None:
        return DataError(f"{path} has no labels: no {format_.unit} has any.")
    sentence = "{path} has no labels: no row has '{column}'"
    column, names = options.columns.labels, set[str]()
    if format_.has_columns and format_.batches and path.is_file():  # a pipe can be read once only
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # which the first reading gave
            next(format_.batches(path, replace(options, columns=replace(options.columns, ignored=names))), None)
    if not names:
        return DataError(f"{sentence}.", path=path, column=column)
    return DataError(
        f"{sentence}; columns that were not read: {{names}} ({{advice}} if one of them holds the labels).",
        path=path,
        column=column,
        names=listed_names(sorted(names)),
        advice=Keyword("labels_column", verb="pass"),
    )


def _warn_of_joined_labels(path: Path, data: Dataset, format_: Format) -> None:
    """Warn where nearly every row has one label at most and most labels look like several: another separator."""
    counts = np.diff(data.Y.indptr)
    if data.label_names is None or not counts.any() or (counts > 1).mean() > FEW:
        return
    names = [data.label_names[i] for i in np.unique(data.Y.indices).tolist()]
    for separator in SEPARATORS:
        joined = [name for name in names if separator in name.strip()]
        if separator == " ":  # which stands in names too, and in no id
            joined = [name for name in joined if all(":" in part for part in name.split())]
        parts = [part.strip() for name in joined for part in name.split(separator)]
        if len(joined) >= 2 and 2 * len(joined) >= len(names) and len(set(parts)) < len(parts):
            called = {" ": "space", "\n": "newline"}.get(separator, separator)
            remedy = Keyword("label_separator", called, verb="pass") if format_.splits_strings else "write a list"
            warn_of_data(
                "{path}: {no_row} has more than one label, and most labels hold {separator!r}, such as {example}; "
                "{remedy} if it stands between labels.",
                path=path,
                no_row="no row" if counts.max() == 1 else "hardly a row",
                separator=separator,
                example=short_repr(joined[0]),
                remedy=remedy,
            )
            return


class _RowsSeen:
    """Counts the rows of the batches that pass, and notes whether any has labels."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path, self.limits, self.rows, self.any = path, limits, 0, False

    def watch(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            self.rows += len(batch.texts)
            self.limits.check("rows", self.rows, str(self.path))
            self.any = self.any or batch.labels is not None
            yield batch


def _read_matrix(path: Path, format_: Format, options: Options) -> Dataset:
    if format_.read is None:
        raise DataError(f"{path} cannot be read as matrices.")
    data = format_.read(path, options)
    names = options.label_names
    if names is None:
        return data
    if data.label_names is not None:
        data, dropped = data.align(names)
        if dropped:
            raise DataError(f"{path} has {dropped} labels of rows that are not in the list of labels.")
    elif len(names) != data.n_labels:
        raise DataError(f"{path} has {data.n_labels} labels; the list of labels has {len(names)}.")
    texts = data.label_texts if options.label_texts is None else tuple(options.label_texts)
    return replace(data, label_names=tuple(names), label_texts=texts)


def _choose(path: Path | Stream, format: str | None, limits: Limits = DEFAULT_LIMITS) -> tuple[Format, str, str]:
    if not isinstance(path, Stream) and not os.path.exists(path):  # noqa: PTH110 - which raises no error for a path that the system does not take
        raise DataError(f"{path} does not exist.")
    if format is not None:
        return REGISTRY[check_choice("format", format, list(REGISTRY))], "", format
    guessed, how = guess_format(cast(Path, path), limits)
    return REGISTRY[guessed], how, guessed


def _with_guess(error: DataError, guessed: str) -> DataError:
    """Add what was guessed to a complaint; not needed where the file's name says it already."""
    told = " (read as '{guessed}', guessed from its first line; {remedy} to change that)"
    return error.extended(told, guessed=guessed, remedy=Keyword("format", verb="pass"))


def _columns(text: str | Sequence[str], labels: str, id: str, group: str, separator: str) -> Columns:
    names = [text] if isinstance(text, str) else list(text or ())
    if not names or not all(isinstance(part, str) and part for part in names):
        shown = names[0] if len(names) == 1 else text
        raise ParameterError(name="text_column", allowed="a name or a list of names", got=shown)
    return Columns(text, labels, id, group, check_separator(separator), needs_id=id not in ("", DEFAULT_ID))


def as_text_is_written(format: str, delimiter: str | None, encoding: str | None) -> tuple[str | None, str | None]:
    """Return delimiter and encoding, checked; a format that has none is none to give one for."""
    format_ = REGISTRY[format]
    for name, value, able in (
        ("delimiter", delimiter, format_.has_delimiter),
        ("encoding", encoding, format_.has_encoding),
    ):
        if value is not None and not able:
            raise ParameterError(name=name, problem=f"cannot be used with the format '{format}'; got {value!r}.")
    delimiter = TAB.get(delimiter, delimiter) if isinstance(delimiter, str) else delimiter
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n\0 '):
        raise ParameterError(name="delimiter", allowed="one character, such as ';', or 'tab'", got=delimiter)
    return delimiter, check_encoding(encoding)


def check_separator(value: str) -> str:
    """Return what separates the names of labels; white space may be called by its name.

    >>> check_separator("newline")
    '\\n'
    """
    value = WHITE_SPACE.get(value, value) if isinstance(value, str) else value
    if not isinstance(value, str) or not value or (value.isspace() and value not in WHITE_SPACE.values()):
        raise ParameterError(
            name="label_separator", allowed="a string such as ';' or '|', or 'space', 'tab' or 'newline'", got=value
        )
    return value


def _stem(path: Path) -> str:
    return Path(plain_name(path)).stem
