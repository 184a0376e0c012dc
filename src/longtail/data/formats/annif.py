"""Annif's corpora: a TSV without a header, `text<TAB><uri> <uri>`, and folders with one document per file.

In a folder, the subjects of `a.txt` stand in `a.tsv` (lines `<uri><TAB>name`) or in `a.key` (lines of names); a
document with neither has none. The name of the file, without its suffix, is the id of the row.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from longtail.data.dataset import Dataset
from longtail.data.formats.files import UTF_8, replacing, split_lines, text_blocks
from longtail.data.formats.records import Batch, names_in_row, short_repr
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError, warn_of_data

FIRST_LINE = re.compile(rb"[^\t]*\t[ ]*<[^<>\s]+>(?:[ ]+<[^<>\s]+>)*[ \t]*\r?\Z")
SUBJECT = re.compile(r"<([^<>\s]+)>")
FILE_NAME = re.compile(r"[\w-][\w.-]{0,200}")
BREAKS = re.compile(r"[\t\r\n]+")
NAMES_OF_SUBJECTS = "names of subjects in .tsv files"
DOCUMENTS = 256  # read together


def tsv_batches(path: Path, limits: Limits = DEFAULT_LIMITS, encoding: str = UTF_8, skip: int = 0) -> Iterator[Batch]:
    """Yield the rows of a TSV without a header."""
    for first, text in text_blocks(path, limits=limits, encoding=encoding, skip=skip):
        numbers: list[int] = []
        texts: list[str] = []
        labels: list[list[str]] = []
        for number, line in enumerate(split_lines(text), first):
            if not line.strip():
                continue
            words, _, subjects = line.partition("\t")
            numbers.append(number)
            texts.append(words)
            labels.append(_subjects(f"{path} line {number}", subjects))
        yield Batch(numbers, texts, labels)


def _subjects(where: str, cell: str) -> list[str]:
    """Return the subjects of a document, `<uri> <uri>`."""
    names = SUBJECT.findall(cell)
    if SUBJECT.sub("", cell).strip():
        raise DataError(f"{where}: subjects must stand in angle brackets, such as <http://…>; got {short_repr(cell)}.")
    return names


def write_tsv(dataset: Dataset, path: str | Path) -> None:
    """Write one line per row; tabs and line breaks in texts become spaces."""
    if dataset.texts is None:
        raise DataError("the data has no texts, which an Annif corpus needs; write it as XMC text or npz.")
    names = dataset.names()
    _check_subjects(names)
    with replacing(Path(path)) as file:
        for row, text in enumerate(dataset.texts):
            subjects = " ".join(f"<{name}>" for name in names_in_row(dataset.Y, row, names))
            file.write(_encoded(f"{BREAKS.sub(' ', text)}\t{subjects}\n", row))


def is_annif_folder(folder: Path) -> bool:
    """Return whether a folder holds a text with its subjects beside it."""
    with os.scandir(folder) as entries:
        names = {entry.name for entry in entries}
    return any(name.endswith(".txt") and names & {f"{name[:-4]}.tsv", f"{name[:-4]}.key"} for name in names)


def folder_batches(
    path: Path,
    limits: Limits = DEFAULT_LIMITS,
    encoding: str = UTF_8,
    ignored: set[str] | None = None,
    *,
    labelled: bool = True,
) -> Iterator[Batch]:
    """Yield the documents of a folder in the order of their names; `ignored` receives what is not read.

    If subjects are wanted (`labelled`), a warning tells how many documents have no file of them.
    """
    if not path.is_dir():
        raise DataError(f"{path} is not a folder.")
    files = sorted(file for file in path.iterdir() if file.suffix == ".txt" and file.is_file())
    if not files:
        raise DataError(f"{path} has no documents: no file ends in .txt.")
    limits.check("rows", len(files), str(path))
    if ignored is not None and any(file.with_suffix(".tsv").is_file() for file in files):
        ignored.add(NAMES_OF_SUBJECTS)
    without = sum(1 for file in files if _beside(file) is None)
    if labelled and 0 < without < len(files):
        warn_of_data(
            "{path}: {without:,} of {documents:,} documents have no .tsv or .key file beside them, and so no labels.",
            path=path,
            without=without,
            documents=len(files),
        )
    for low in range(0, len(files), DOCUMENTS):
        part = files[low : low + DOCUMENTS]
        yield Batch(
            range(low + 1, low + 1 + len(part)),
            [_document(file, limits, encoding) for file in part],
            None if without == len(files) else [_subjects_beside(file, limits, encoding) for file in part],
            [file.stem for file in part],
        )


def _document(file: Path, limits: Limits, encoding: str) -> str:
    """Return the text of one file."""
    parts, length = [], 0
    for _, text in text_blocks(file, may_be_empty=True, limits=limits, encoding=encoding):
        length += len(text)
        limits.check("text_characters", length, str(file))
        parts.append(text)
    return "".join(parts).rstrip("\n")


def _subjects_beside(file: Path, limits: Limits, encoding: str) -> list[str]:
    """Return the subjects of a document, from the file beside it."""
    beside, out = _beside(file), list[str]()
    if beside is None:
        return out
    for first, text in text_blocks(beside, may_be_empty=True, limits=limits, encoding=encoding):
        for number, line in enumerate(split_lines(text), first):
            cell = line.partition("\t")[0].strip() if beside.suffix == ".tsv" else line.strip()
            if cell:
                out += _subjects(f"{beside} line {number}", cell) if beside.suffix == ".tsv" else [cell]
    return out


def _beside(file: Path) -> Path | None:
    """Return the file of a document's subjects; None where there is none."""
    return next((beside for suffix in (".tsv", ".key") if (beside := file.with_suffix(suffix)).is_file()), None)


def write_folder(dataset: Dataset, path: str | Path) -> None:
    """Write one text per row, with its subjects beside it, into a new folder; ids are the names of the files."""
    path = Path(path)
    if dataset.texts is None:
        raise DataError("the data has no texts, which an Annif corpus needs; write it as XMC text or npz.")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(f"{path} exists already; a folder of documents is written to a new one.")
    if not path.absolute().parent.is_dir():
        raise DataError(f"{path} cannot be written: the folder {path.parent} does not exist.")
    names, files = dataset.names(), _file_names(dataset)
    _check_subjects(names)
    said = dataset.label_texts or names
    new = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        for row, text in enumerate(dataset.texts):
            ids = dataset.Y.indices[dataset.Y.indptr[row] : dataset.Y.indptr[row + 1]].tolist()
            lines = "".join(f"<{names[i]}>\t{BREAKS.sub(' ', said[i])}\n" for i in ids)
            (new / f"{files[row]}.txt").write_bytes(_encoded(text + "\n", row))
            (new / f"{files[row]}.tsv").write_bytes(_encoded(lines, row))
        new.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _file_names(dataset: Dataset) -> list[str]:
    """Return a name for the file of every row: its id, or its number."""
    if dataset.ids is None:
        width = len(str(dataset.n_rows))
        return [str(row + 1).zfill(width) for row in range(dataset.n_rows)]
    seen: set[str] = set()
    for name in dataset.ids:
        if FILE_NAME.fullmatch(name) is None or name.lower() in seen:
            why = "it stands there twice" if name.lower() in seen else "only letters, digits, '.', '_' and '-' can"
            raise DataError(f"the id {short_repr(name)} cannot be the name of a file: {why}.")
        seen.add(name.lower())
    return list(dataset.ids)


def _check_subjects(names: tuple[str, ...]) -> None:
    for name in names:
        if SUBJECT.fullmatch(f"<{name}>") is None:
            raise DataError(f"the label {short_repr(name)} holds a space or an angle bracket, which a subject cannot.")


def _encoded(text: str, row: int) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"row {row} holds half of a surrogate pair, which UTF-8 does not have.") from error
