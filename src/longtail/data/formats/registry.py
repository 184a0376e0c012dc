"""The formats by name: what they are called, how they are told apart, and which functions read and write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.formats import csv_table as table
from longtail.data.formats import fasttext, jsonl, libsvm, npz, parquet, xmc
from longtail.data.formats import raw_folder as rawfolder
from longtail.data.formats import split_folder as splitfolder
from longtail.data.formats.records import Batch, Columns


@dataclass(frozen=True)
class Options:
    """How a file is to be read; each format takes what concerns it."""

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


@dataclass(frozen=True)
class Format:
    """One file format; `batches` for rows of text, `read` for matrices and folders, `matrices` for X and Y by parts."""

    description: str
    suffixes: tuple[str, ...] = ()
    batches: Callable[[Path, Options], Iterator[Batch]] | None = None
    read: Callable[[Path, Options], Dataset] | None = None
    matrices: Callable[[Path, Options], Iterator[tuple[sp.csr_array, sp.csr_array]]] | None = None
    write: Callable[[Dataset, Path, Columns], None] | None = None
    keeps: tuple[str, ...] = ()  # the fields of a Dataset that survive writing
    unit: str = "line"


TEXT_FIELDS = ("texts", "ids", "label_names", "groups", "group_names")
ALL_FIELDS = ("X", "texts", "ids", "label_names", "label_texts", "groups", "group_names")


def _table(delimiter: str) -> dict[str, Any]:
    return {
        "batches": lambda path, o: table.table_batches(path, o.columns, delimiter),
        "write": lambda data, path, columns: table.write_table(data, path, columns, delimiter),
        "keeps": TEXT_FIELDS,
    }


def _split_part(path: Path, options: Options) -> Dataset:
    train, test = splitfolder.read_split_folder(path, options.split)
    return test if options.part == "test" else train


REGISTRY: dict[str, Format] = {
    "jsonl": Format(
        "one JSON object per line: text, labels (a list), id, group",
        (".jsonl", ".ndjson", ".json"),
        batches=lambda path, o: jsonl.jsonl_batches(path, o.columns),
        write=jsonl.write_jsonl,
        keeps=TEXT_FIELDS,
    ),
    "csv": Format("comma-separated columns with a header: text, labels (a;b), id, group", (".csv",), **_table(",")),
    "tsv": Format("the same, separated by tabs", (".tsv", ".tab"), **_table("\t")),
    "parquet": Format(
        "Parquet columns: text, labels (lists or a;b), id, group; needs pyarrow",
        (".parquet", ".pq"),
        batches=lambda path, o: parquet.parquet_batches(path, o.columns),
        write=parquet.write_parquet,
        keeps=TEXT_FIELDS,
        unit="row",
    ),
    "fasttext": Format(
        "__label__x __label__y text",
        (".ft", ".fasttext"),
        batches=lambda path, o: fasttext.fasttext_batches(path),
        write=lambda data, path, columns: fasttext.write_fasttext(data, path),
        keeps=("texts", "label_names"),
    ),
    "lines": Format(
        "one text per line, without labels", (".text",), batches=lambda path, o: fasttext.line_batches(path)
    ),
    "xmc": Format(
        "XMC repository text: a header 'rows features labels', then label,label feature:value …",
        (".xmc",),
        read=lambda path, o: xmc.read_xmc(path, o.name),
        matrices=lambda path, o: xmc.xmc_matrices(path),
        write=lambda data, path, columns: xmc.write_xmc(data, path),
        keeps=("X",),
    ),
    "libsvm": Format(
        "libsvm text with several labels per row, without a header",
        (".svm", ".libsvm", ".svmlight"),
        read=lambda path, o: libsvm.read_libsvm(path, o.zero_based, o.n_features, o.n_labels, o.name),
        matrices=lambda path, o: libsvm.libsvm_matrices(path, o.zero_based, o.n_features),
        write=lambda data, path, columns: libsvm.write_libsvm(data, path),
        keeps=("X",),
    ),
    "npz": Format(
        "numpy archive with X and Y (all else too), or X.npz beside Y.npz",
        (".npz",),
        read=lambda path, o: npz.read_npz(path, o.name, o.labels_required),
        write=lambda data, path, columns: npz.write_npz(data, path),
        keeps=ALL_FIELDS,
    ),
    "xmc-splits": Format(
        "folder with an XMC text file and *_trn_split.txt, *_tst_split.txt (part=, split=)", read=_split_part
    ),
    "xmc-raw": Format(
        "folder with trn.json, tst.json and lbl.json, as .json or .json.gz (part=)",
        read=lambda path, o: rawfolder.read_raw_folder(path, o.part),
    ),
}

FORMATS: dict[str, str] = {name: found.description for name, found in REGISTRY.items()}
