"""Rows of text: JSONL, CSV, TSV, fastText, one text per line; plain and packed, named by suffix or guessed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from fuzz.case import Case, Target
from fuzz.mutations import TEXT_CHANGES, change_json, change_text, dump_json
from fuzz.targets.reading import draw_options, packed, read_and_check, warm_up
from fuzz.values import string

WORDS = ("red", "apple", "car", "fast", "blue", "old", "house", "é", "x1")
NAMES = ("fruit", "vehicle", "colour", "7", "été", "a b")
COLUMNS = ("text", "labels", "id", "group")
DRAWN: dict[str, tuple[Any, ...]] = {
    "labels_required": (False,),
    "text_column": ("text", ["text", "id"], "title", "labels"),
    "labels_column": ("labels", "", "text", "id"),
    "group_column": ("group", ""),
    "id_column": ("id", ""),
    "label_separator": (";", "|", ",", "__"),
    "label_names": (list(NAMES), [], ["fruit"]),
    "labels_file": ("labels.jsonl",),
}
QUOTING: tuple[Any, ...] = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)
LABELS = b"".join(b'{"id": "%s", "text": "about"}\n' % name.encode() for name in NAMES)


def draw_record(rng: Random, has_id: bool = True, has_group: bool = True) -> dict[str, Any]:
    """Return a sound row as a JSON object."""
    record: dict[str, Any] = {"text": " ".join(rng.choices(WORDS, k=rng.randint(0, 6)))}
    record["labels"] = rng.sample(NAMES, rng.randint(0, 3)) if rng.random() < 0.9 else rng.choice(NAMES)
    if has_id:
        record["id"] = str(rng.randint(0, 99))
    if has_group:
        record["group"] = rng.choice(("g1", "g2", ["g1", "g2"], 3))
    return record


def jsonl(rng: Random) -> tuple[str, bytes]:
    """Return JSONL: records with changed fields, changed text, or both."""
    has_id, has_group = rng.random() < 0.5, rng.random() < 0.2
    records: list[Any] = [draw_record(rng, has_id, has_group) for _ in range(rng.randint(1, 5))]
    change = "none" if rng.random() < 0.03 else rng.choice(("fields", "fields", "text", "both"))
    if change in ("fields", "both"):
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(len(records))
            records[at] = change_json(rng, records[at])
    raw = b"".join(dump_json(rng, record) + b"\n" for record in records)
    if change in ("text", "both"):
        kind, raw = change_text(rng, raw)
        change = kind if change == "text" else "both"
    return change, raw


def table(rng: Random, delimiter: str) -> tuple[str, bytes]:
    """Return CSV or TSV: cells, the header, quotes or the text changed."""
    columns = list(COLUMNS[: rng.choice((2, 2, 3, 4))])
    rows = [[_cell(rng, column) for column in columns] for _ in range(rng.randint(1, 5))]
    change = "none" if rng.random() < 0.03 else rng.choice(("cells", "cells", "header", "text", "text"))
    if change == "cells":
        for _ in range(rng.choice((1, 1, 3))):
            rows[rng.randrange(len(rows))][rng.randrange(len(columns))] = _no_surrogates(string(rng))
    elif change == "header":
        at = rng.randrange(len(columns))
        columns[at] = rng.choice((*COLUMNS, _no_surrogates(string(rng))))
        rng.shuffle(columns)
    text = io.StringIO()
    quoting, ends = rng.choice(QUOTING), rng.choice(("\n", "\r\n"))
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=ends)
    writer.writerows([columns, *rows])
    raw = text.getvalue().encode()
    return change_text(rng, raw) if change == "text" else (change, raw)


def fasttext(rng: Random) -> tuple[str, bytes]:
    """Return fastText lines, labels before, after or in the text."""
    lines = []
    for _ in range(rng.randint(1, 6)):
        words = rng.choices(WORDS, k=rng.randint(0, 5))
        labels = [f"__label__{name.replace(' ', '_')}" for name in rng.sample(NAMES, rng.randint(0, 3))]
        at = rng.choice((0, 0, 0, len(words)))
        lines.append(" ".join([*words[:at], *labels, *words[at:]]))
    raw = "\n".join([*lines, ""]).encode()
    return ("none", raw) if rng.random() < 0.03 else change_text(rng, raw)


def plain_lines(rng: Random) -> tuple[str, bytes]:
    """Return one text per line."""
    raw = "\n".join([" ".join(rng.choices(WORDS, k=rng.randint(0, 6))) for _ in range(rng.randint(1, 6))]).encode()
    change = rng.choice(tuple(TEXT_CHANGES))
    return change, TEXT_CHANGES[change](rng, raw)


def _cell(rng: Random, column: str) -> str:
    value = draw_record(rng).get(column, "")
    return ";".join(map(str, value)) if isinstance(value, list) else str(value)


def _no_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def make(rng: Random, name: str, suffix: str) -> Case:
    """Return a case of one format; its name may leave the format to be guessed."""
    change, raw = FORMATS[name](rng)
    file = rng.choice(("rows", "rows.txt", "rows.json")) if rng.random() < 0.05 else f"rows{suffix}"
    file, raw, change = packed(rng, file, raw, change)
    copy = rng.choice(("copy.npz", f"copy{suffix}")) if name != "lines" else "copy.npz"
    options = draw_options(rng, DRAWN, again=copy)
    if name == "lines":
        options["labels_required"] = False
    files = {file: raw}
    if "labels_file" in options:
        labels = LABELS if rng.random() < 0.7 else change_text(rng, LABELS)[1]
        files["labels.jsonl"] = labels
        options.pop("label_names", None)
    if options.get("way") == "rows":
        options = {"way": "rows"}
    return Case(change, files, file, options)


FORMATS: dict[str, Callable[[Random], tuple[str, bytes]]] = {
    "jsonl": jsonl,
    "csv": partial(table, delimiter=","),
    "tsv": partial(table, delimiter="\t"),
    "fasttext": fasttext,
    "lines": plain_lines,
}
SUFFIXES = {"jsonl": ".jsonl", "csv": ".csv", "tsv": ".tsv", "fasttext": ".ft", "lines": ".text"}
TURNS = {"jsonl": 300, "csv": 200, "tsv": 60, "fasttext": 150, "lines": 30}


def targets() -> list[Target]:
    """Return the targets of rows of text."""
    return [
        Target(name, "readers", partial(make, name=name, suffix=SUFFIXES[name]), read_and_check, warm_up, TURNS[name])
        for name in FORMATS
    ]
