"""The documents of the last training, kept beside the model so that `annif train --cached` can use them again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from longtail.errors import DataError

FORMAT = "annif-longtail.documents.v1"


class Documents(NamedTuple):
    """Texts as the model reads them, and the URIs of the subjects of each."""

    texts: list[str]
    labels: list[list[str]]


def write_documents(file: Path, reader: str, documents: Iterable[tuple[str, list[str]]]) -> Documents:
    """Write documents, one a line, and return them; the file is there as a whole or not at all.

    `reader` says how texts were cut into words: documents cut otherwise must not be used again.
    """
    out = Documents([], [])
    handle, temporary = tempfile.mkstemp(prefix=f"tmp-{file.name}", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as lines:
            lines.write(json.dumps({"format": FORMAT, "reader": reader}) + "\n")
            for text, labels in documents:
                lines.write(json.dumps([text, labels], ensure_ascii=False) + "\n")
                out.texts.append(text)
                out.labels.append(labels)
            lines.flush()
            os.fsync(lines.fileno())
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return out


def read_documents(file: Path, reader: str) -> Documents:
    """Return the documents of a file, if their texts were cut into words in the same way."""
    out = Documents([], [])
    with file.open(encoding="utf-8") as lines:
        try:
            first = json.loads(next(lines, "null"))
            if not isinstance(first, dict) or first.get("format") != FORMAT:
                raise ValueError("no header")
            if first.get("reader") != reader:
                was = first.get("reader")
                raise DataError(f"{file} was made with the analyzer {was!r}, and it is {reader!r} now: train anew.")
            for line in lines:
                text, labels = json.loads(line)
                out.texts.append(text)
                out.labels.append(labels)
        except (ValueError, TypeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{file} is damaged, or of another version: train anew.") from error
    return out
