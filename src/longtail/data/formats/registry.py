"""The file formats by name: how each is recognised, and which functions read and write it.

To add a format, write `formats/<name>.py` and add one entry to `REGISTRY`. Reading, writing, guessing the format of a
file, groups files, `longtail convert` and the list of formats all work from the entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.formats import annif, csv_table, fasttext, jsonl, libsvm, npz, parquet, raw_folder, split_folder, xmc
from longtail.data.formats.files import UTF_8
from longtail.data.formats.records import Batch, Columns
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.data.row_store.manifest import MANIFEST
from longtail.data.row_store.open_store import open_store
from longtail.data.row_store.write_store import write_store


@dataclass(frozen=True)
class Options:
    """The options of `read`; each format takes what concerns it."""

    columns: Columns = field(default_factory=Columns)
    label_names: Sequence[str] | None = None
    label_texts: Sequence[str] | None = None
    group_names: Sequence[str] | None = None
    zero_based: bool | str = "auto"
    n_features: int | None = None
    n_labels: int | None = None
    part: str = "train"
    split: int = 0
    name: str = ""
    labels_required: bool = True
    limits: Limits = DEFAULT_LIMITS
    delimiter: str | None = None  # of tables; None guesses it
    encoding: str | None = None  # None guesses it in tables, and is UTF-8 in other text
    skip: int = 0  # blocks at the beginning to leave out, of a format that `skips_blocks`


GroupCounts: TypeAlias = tuple[sp.csr_array, tuple[str, ...] | None, tuple[str, ...] | None]
"""Counts (n_groups, n_labels), and the names of groups and of labels or None."""


class FolderLayout(NamedTuple):
    """How a folder is recognised: the file it must hold, as named in an error, and the test for it."""

    sign: str
    matches: Callable[[Path], bool]


@dataclass(frozen=True)
class Format:
    """One file format: what it is, how it is recognised, and its functions.

    A format of rows of text gives `batches`; one of features gives `read` and, if it can be read block by block,
    `matrices`. A format that cannot be written has no `write`.
    """

    description: str
    suffixes: tuple[str, ...] = ()  # names of files in this format
    write_suffixes: tuple[str, ...] = ()  # further names to write it under; a file to read may be something else
    first_line: re.Pattern[bytes] | None = None  # what the first line begins with
    folder: FolderLayout | None = None  # the folder it may be instead of a file
    batches: Callable[[Path, Options], Iterator[Batch]] | None = None  # rows of text, block by block
    read: Callable[[Path, Options], Dataset] | None = None  # the whole file or folder
    matrices: Callable[[Path, Options], Iterator[tuple[sp.csr_array, sp.csr_array]]] | None = None  # X, Y by blocks
    write: Callable[[Dataset, Path, Columns], None] | None = None
    read_group_counts: Callable[[Path, Limits], GroupCounts] | None = None  # a groups file as a matrix of counts
    keeps: tuple[str, ...] = ()  # the fields of a Dataset that survive writing
    joins_lines: bool = False  # line breaks in texts are written as spaces
    keeps_weights: bool = False  # label weights survive writing without a column of their own
    has_encoding: bool = False  # text that may be in another encoding than UTF-8
    skips_blocks: bool = False  # blocks of lines can be left out without looking into them
    has_delimiter: bool = False  # a table whose cells may be separated otherwise
    has_columns: bool = False  # records with named fields: they can hold label weights, and labels of groups
    splits_strings: bool = False  # a string is split into names at the separator, spaces around them dropped
    unit: str = "line"  # what errors count


TEXT_FIELDS = ("texts", "ids", "label_names", "groups", "group_names")
ALL_FIELDS = ("X", "texts", "ids", "label_names", "label_texts", "groups", "group_names")


def _table_batches(path: Path, options: Options, delimiter: str) -> Iterator[Batch]:
    """Yield the rows of a table as the options say."""
    given: dict[str, str | None] = {"given": options.delimiter, "encoding": options.encoding}
    return csv_table.table_batches(path, options.columns, delimiter, options.limits, **given)


REGISTRY: dict[str, Format] = {
    "jsonl": Format(
        "one JSON object per line: text, labels (a list), id, group",
        (".jsonl", ".ndjson"),
        write_suffixes=(".json",),
        first_line=re.compile(rb"\s*\{"),
        batches=lambda path, o: jsonl.jsonl_batches(path, o.columns, o.limits, o.encoding or UTF_8, o.skip),
        write=jsonl.write_jsonl,
        has_encoding=True,
        skips_blocks=True,
        keeps=TEXT_FIELDS,
        has_columns=True,
    ),
    "csv": Format(
        "columns separated by commas, semicolons or tabs, with a header: text, labels (a;b), id, group",
        (".csv",),
        batches=lambda path, o: _table_batches(path, o, ","),
        has_encoding=True,
        has_delimiter=True,
        write=partial(csv_table.write_table, delimiter=","),
        keeps=TEXT_FIELDS,
        has_columns=True,
        splits_strings=True,
    ),
    "tsv": Format(
        "the same, separated by tabs",
        (".tsv", ".tab"),
        batches=lambda path, o: _table_batches(path, o, "\t"),
        has_encoding=True,
        has_delimiter=True,
        write=partial(csv_table.write_table, delimiter="\t"),
        keeps=TEXT_FIELDS,
        has_columns=True,
        splits_strings=True,
    ),
    "parquet": Format(
        "Parquet columns: text, labels (lists or a;b), id, group; needs pyarrow",
        (".parquet", ".pq"),
        batches=lambda path, o: parquet.parquet_batches(path, o.columns, o.limits),
        write=parquet.write_parquet,
        keeps=TEXT_FIELDS,
        has_columns=True,
        splits_strings=True,
        unit="row",
    ),
    "fasttext": Format(
        "__label__x __label__y text",
        (".ft", ".fasttext"),
        first_line=re.compile(rb"__label__"),
        batches=lambda path, o: fasttext.fasttext_batches(path, o.limits, o.encoding or UTF_8, o.skip),
        has_encoding=True,
        skips_blocks=True,
        write=lambda data, path, columns: fasttext.write_fasttext(data, path),
        joins_lines=True,
        keeps=("texts", "label_names"),
    ),
    "lines": Format(
        "one text per line, without labels",
        (".text",),
        batches=lambda path, o: fasttext.line_batches(path, o.limits, o.encoding or UTF_8, o.skip),
        has_encoding=True,
        skips_blocks=True,
    ),
    "xmc": Format(
        "XMC repository text: a header 'rows features labels', then label,label feature:value …",
        (".xmc",),
        write_suffixes=(".txt",),
        first_line=re.compile(rb"\s*[0-9]+[ \t]+[0-9]+[ \t]+[0-9]+\s*\Z"),
        read=lambda path, o: xmc.read_xmc(path, o.name, o.limits),
        matrices=lambda path, o: xmc.xmc_matrices(path, o.limits),
        write=lambda data, path, columns: xmc.write_xmc(data, path),
        keeps=("X",),
    ),
    "libsvm": Format(
        "libsvm text with several labels per row, without a header",
        (".svm", ".libsvm", ".svmlight"),
        first_line=re.compile(rb"(?:[0-9]+(?:,[0-9]+)*)?[ \t]+[0-9]+:[0-9.+-]|[0-9]+:[0-9.+-]"),
        read=lambda path, o: libsvm.read_libsvm(path, o.zero_based, o.n_features, o.n_labels, o.name, o.limits),
        matrices=lambda path, o: libsvm.libsvm_matrices(path, o.zero_based, o.n_features, o.limits),
        write=lambda data, path, columns: libsvm.write_libsvm(data, path),
        keeps=("X",),
    ),
    "npz": Format(
        "numpy archive with X and Y (all else too), or X.npz beside Y.npz",
        (".npz",),
        folder=FolderLayout("X.npz", lambda folder: (folder / "X.npz").is_file()),
        read=lambda path, o: npz.read_npz(path, o.name, o.labels_required, o.limits, o.columns.ignored),
        write=lambda data, path, columns: npz.write_npz(data, path),
        read_group_counts=npz.read_npz_counts,
        keeps=ALL_FIELDS,
        keeps_weights=True,
    ),
    "store": Format(
        "row store: a folder of arrays that are mapped into memory, for data larger than memory",
        write_suffixes=(".store",),
        folder=FolderLayout(MANIFEST, lambda folder: (folder / MANIFEST).is_file()),
        read=lambda path, o: open_store(path, limits=o.limits).dataset(),
        write=lambda data, path, columns: write_store(data, path),
        keeps=("X", "texts", "ids", "label_names", "label_texts"),
        keeps_weights=True,
        unit="row",
    ),
    "annif": Format(
        "Annif's TSV without a header: text, a tab, <uri> <uri>",
        batches=lambda path, o: annif.tsv_batches(path, o.limits, o.encoding or UTF_8, o.skip),
        has_encoding=True,
        skips_blocks=True,
        write=lambda data, path, columns: annif.write_tsv(data, path),
        joins_lines=True,
        keeps=("texts", "label_names"),
    ),
    "annif-folder": Format(
        "Annif's folder of documents: a.txt with subjects in a.tsv or a.key",
        folder=FolderLayout("*.txt beside *.tsv or *.key", annif.is_annif_folder),
        batches=lambda path, o: annif.folder_batches(
            path, o.limits, o.encoding or UTF_8, o.columns.ignored, labelled=bool(o.columns.labels)
        ),
        has_encoding=True,
        write=lambda data, path, columns: annif.write_folder(data, path),
        keeps=("texts", "ids", "label_names", "label_texts"),
        unit="document",
    ),
    "xmc-splits": Format(
        "folder with an XMC text file and *_trn_split.txt, *_tst_split.txt (part=, split=)",
        folder=FolderLayout("*_trn_split.txt", split_folder.is_split_folder),
        read=lambda path, o: split_folder.read_split_folder(path, o.split, o.limits)[o.part == "test"],
    ),
    "xmc-raw": Format(
        "folder with trn.json, tst.json and lbl.json, as .json or .json.gz (part=)",
        folder=FolderLayout("trn.json", raw_folder.is_raw_folder),
        read=lambda path, o: raw_folder.read_raw_folder(path, o.part, limits=o.limits, ignored=o.columns.ignored),
    ),
}

FORMATS: dict[str, str] = {name: format_.description for name, format_ in REGISTRY.items()}
# those that can hold a column of label weights
FORMATS_WITH_WEIGHTS = tuple(name for name, format_ in REGISTRY.items() if format_.has_columns)
