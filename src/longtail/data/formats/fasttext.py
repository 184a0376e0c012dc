"""Read and write fastText files, `__label__x __label__y the text`; read plain files with one text per line.

In a fastText file every word that starts with `__label__` is a label, wherever it stands, and empty lines are skipped.
In a plain file every line is a text, the empty ones too, so that predictions stand in the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from longtail.data.dataset import Dataset
from longtail.data.formats.files import UTF_8, replacing, split_lines, text_blocks
from longtail.data.formats.records import Batch, names_in_row
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError

PREFIX = "__label__"
LABELS = re.compile(rf"\s*(?:{PREFIX}\S*(?:\s+|\Z))+")  # all labels at the start of a line, at once


def fasttext_batches(
    path: Path, limits: Limits = DEFAULT_LIMITS, encoding: str = UTF_8, skip: int = 0
) -> Iterator[Batch]:
    """Yield the rows of a fastText file."""
    for first, text in text_blocks(path, limits=limits, encoding=encoding, skip=skip):
        numbers: list[int] = []
        texts: list[str] = []
        labels: list[list[str]] = []
        for number, line in enumerate(split_lines(text), first):
            if not line or line.isspace():
                continue
            names, words = _split_labels(line)
            if "" in names:
                raise DataError(f"{path} line {number} has a '{PREFIX}' without a name.")
            numbers.append(number)
            texts.append(words)
            labels.append(names)
        yield Batch(numbers, texts, labels)


def line_batches(path: Path, limits: Limits = DEFAULT_LIMITS, encoding: str = UTF_8, skip: int = 0) -> Iterator[Batch]:
    """Yield the lines of a plain file as texts without labels."""
    for first, text in text_blocks(path, limits=limits, encoding=encoding, skip=skip):
        lines = split_lines(text)
        yield Batch(range(first, first + len(lines)), lines)


def write_fasttext(dataset: Dataset, path: str | Path) -> None:
    """Write one line per row; line breaks in texts become spaces, and names with spaces are refused."""
    if dataset.texts is None:
        raise DataError("the data has no texts, which fastText files need; write it as XMC text or npz.")
    names = dataset.names()
    for name in names:
        if not name or name.split() != [name]:
            raise DataError(f"the label {name!r} is empty or holds a space, which fastText files cannot keep.")
    with replacing(Path(path)) as file:
        for row, text in enumerate(dataset.texts):
            if any(word.startswith(PREFIX) for word in text.split()):
                raise DataError(f"the text of row {row} has a word that starts with '{PREFIX}', which marks labels.")
            labels = [PREFIX + name for name in names_in_row(dataset.Y, row, names)]
            line = " ".join([*labels, *text.splitlines()]) + "\n"
            if line.isspace():
                raise DataError(f"row {row} has neither words nor labels, which fastText files cannot keep.")
            try:
                file.write(line.encode())
            except UnicodeEncodeError as error:
                raise DataError(
                    f"the text of row {row} holds half of a surrogate pair, which UTF-8 does not have; "
                    "write it as JSONL."
                ) from error


def _split_labels(line: str) -> tuple[list[str], str]:
    head = LABELS.match(line)
    names = [word.removeprefix(PREFIX) for word in head.group().split()] if head else []
    rest = line[head.end() :].strip() if head else line.strip()
    if PREFIX in rest:  # labels after the text has begun
        words = rest.split()
        late = [word for word in words if word.startswith(PREFIX)]
        if late:
            names += [word.removeprefix(PREFIX) for word in late]
            rest = " ".join(word for word in words if not word.startswith(PREFIX))
    return names, rest
