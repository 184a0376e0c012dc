"""Files of other programs: Annif's corpora, tables as spreadsheets write them, predictions, partial files of ours."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.case import Case, Target, Wrong
from fuzz.mutations import change_bytes, change_json, change_text, dump_json
from fuzz.targets.reading import check_dataset, draw_options, packed, read_and_check
from fuzz.targets.records import NAMES, WORDS
from fuzz.values import string

URIS = ("http://a/1", "http://a/2", "u:3", "x", "http://ü/4")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "windows-1252", "cp850", "iso-8859-15", "utf-32", "shift_jis")
ODD_ENCODINGS = ("", "x", "rot13", "zlib", "idna", "punycode", "utf-7", "undefined", "hex", "raw_unicode_escape", "é")
DELIMITERS = (",", ";", "\t", "|", "#", "~")
IDS = ("r1", "r2", "r3")

# --- Annif's corpora --------------------------------------------------------------------------------------------------


def make_annif(rng: Random) -> Case:
    """Return a TSV without a header, with changed lines, cells or bytes."""
    lines = [f"{_words(rng)}\t{_subjects(rng)}" for _ in range(rng.randint(1, 5))]
    raw = "\n".join([*lines, ""]).encode()
    change, raw = ("none", raw) if rng.random() < 0.03 else change_text(rng, raw)
    name, raw, change = packed(rng, "rows.tsv", raw, change)
    options = draw_options(rng, {"labels_required": (False,), "encoding": ENCODINGS}, again="copy.npz")
    options = {"way": "rows"} if options.get("way") == "rows" else options
    return Case(change, {name: raw}, name, {**options, "format": "annif"} if rng.random() < 0.8 else options)


def make_annif_folder(rng: Random) -> Case:
    """Return a folder of documents with changed texts, subjects or names of files."""
    files: dict[str, bytes] = {}
    for number in range(rng.randint(1, 4)):
        files[f"d{number}.txt"] = _words(rng).encode()
        if rng.random() < 0.5:
            lines = [f"<{rng.choice(URIS)}>\t{rng.choice(NAMES)}" for _ in range(rng.randint(0, 3))]
            files[f"d{number}.tsv"] = "\n".join(lines).encode()
        else:
            files[f"d{number}.key"] = "\n".join(rng.sample(NAMES, rng.randint(0, 3))).encode()
    change, name = "none", rng.choice(list(files))
    if rng.random() > 0.03:
        change, files[name] = change_text(rng, files[name])
    if rng.random() < 0.05:
        change = "files"
        files[rng.choice((".txt", "d0.txt.gz", "d0.TXT", "a b.txt", "d1.tsv", "é.txt"))] = files.pop(name)
    options = draw_options(rng, {"encoding": ENCODINGS, "labels_required": (False,)}, again="copy.npz")
    options = {"way": "rows"} if options.get("way") == "rows" else options
    more = {"format": "annif-folder"} if rng.random() < 0.8 else {}
    return Case(change, {f"docs/{name}": raw for name, raw in files.items()}, "docs", {**options, **more})


def _words(rng: Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(0, 6)))


def _subjects(rng: Random) -> str:
    return " ".join(f"<{uri}>" for uri in rng.sample(URIS, rng.randint(0, 3)))


# --- tables as spreadsheets write them --------------------------------------------------------------------------------


def make_table(rng: Random) -> Case:
    """Return a table in any encoding, with any delimiter, which are named, named wrongly or left to be found."""
    delimiter, encoding = rng.choice(DELIMITERS), rng.choice(ENCODINGS)
    rows = [[_words(rng), ";".join(rng.sample(NAMES, rng.randint(0, 3))), str(i)] for i in range(rng.randint(1, 5))]
    if rng.random() < 0.3:
        rows[0][rng.randrange(3)] = string(rng)
    text = io.StringIO()
    if rng.random() < 0.1:
        text.write(f"sep={delimiter}\r\n")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=rng.choice(("\n", "\r\n", "\r")))
    writer.writerows([["text", "labels", rng.choice(("id", "Nr", "group", "text"))], *rows])
    raw, change = text.getvalue().encode(encoding, "replace"), "none"
    if rng.random() < 0.7:
        change, raw = change_text(rng, raw) if rng.random() < 0.6 else ("bytes", change_bytes(rng, raw))
    options: dict[str, Any] = draw_options(rng, {"labels_required": (False,), "label_separator": ("space", "|", " ")})
    if rng.random() < 0.5:
        options["encoding"] = encoding if rng.random() < 0.7 else rng.choice((*ENCODINGS, *ODD_ENCODINGS))
    if rng.random() < 0.5:
        options["delimiter"] = (
            delimiter if rng.random() < 0.7 else rng.choice((*DELIMITERS, "tab", "", '"', "ab", "\0"))
        )
    name, raw, change = packed(rng, rng.choice(("rows.csv", "rows.tsv")), raw, change)
    return Case(change, {name: raw}, name, options)


def run_table(case: Case, folder: Path) -> None:
    """Read a table as a whole, or row by row in two parts."""
    from longtail.data import ReadingPosition, iter_texts

    options = dict(case.options)
    if options.pop("way", "read") != "rows":
        read_and_check(Case(case.change, case.files, case.main, options), folder)
        return
    given = {name: options[name] for name in ("delimiter", "encoding") if name in options}
    position, after, whole = ReadingPosition(), [], []
    for data in iter_texts(folder / case.main, 2, **given, position=position):
        check_dataset(data)
        whole.append(data.texts)
        after.append((position.block, position.batch))
    if after:
        start = ReadingPosition(*after[0])
        if [data.texts for data in iter_texts(folder / case.main, 2, **given, position=start)] != whole[1:]:
            raise Wrong("reading on from the second batch gives other rows")


# --- predictions ------------------------------------------------------------------------------------------------------


def make_predictions(rng: Random) -> Case:
    """Return the predictions of a program: JSONL, CSV, TSV or a TREC run."""
    form = rng.choice(("jsonl", "jsonl", "csv", "tsv", "trec"))
    tags = [(row, name, rng.choice((0.5, 1, -2))) for row in IDS for name in rng.sample(NAMES[:4], rng.randint(0, 3))]
    change = "text"
    if form == "jsonl":
        objects: list[Any] = [
            {"id": row, "labels": [{"label": name, "score": score} for at, name, score in tags if at == row]}
            for row in IDS
        ]
        if rng.random() < 0.6:
            change, at = "fields", rng.randrange(len(objects))
            objects[at] = change_json(rng, objects[at])
        raw = b"".join(dump_json(rng, record) + b"\n" for record in objects)
    elif form == "trec":
        raw = "".join(f"{row} Q0 {name.replace(' ', '_')} 1 {score} run\n" for row, name, score in tags).encode()
    else:
        between = rng.choice((",", ";", "\t"))
        lines = ["id,label,score", *(f"{row},{name},{score}" for row, name, score in tags), ""]
        raw = "\n".join(lines).replace(",", between).encode(rng.choice(("utf-8", "utf-16", "cp1252")))
    if change == "text":
        change, raw = ("none", raw) if rng.random() < 0.05 else change_text(rng, raw)
    name, raw, change = packed(rng, f"tags.{form}", raw, change)
    return Case(change, {name: raw}, name, {"k": rng.choice((1, 2, 5))})


def run_predictions(case: Case, folder: Path) -> None:
    """Read predictions; labels must be in range, once per row, and in the order of their scores."""
    from longtail.data import read_predictions

    k = case.options["k"]
    top, names = read_predictions(folder / case.main, IDS, k)
    if top.ids.shape != (len(IDS), k) or len(set(names)) != len(names) or top.ids.max(initial=-1) >= len(names):
        raise Wrong(f"{top.ids.tolist()} of {len(names)} labels")
    for ids, scores in zip(top.ids, top.scores, strict=True):
        there = ids[ids >= 0].tolist()
        if len(set(there)) != len(there) or (np.diff(scores[ids >= 0]) > 0).any():
            raise Wrong(f"labels {there} come twice or out of order")


# --- partial files ----------------------------------------------------------------------------------------------------

DONE = b'{"id": "1"}\n{"id": "2"}\n'
REST = b'{"id": "3"}\n'


def make_partial(rng: Random) -> Case:
    """Return a partial file with its record, one of them changed."""
    from longtail.data import Done

    done = Done(2, len(DONE), 0, 2, hashlib.sha256(DONE).hexdigest())
    record: Any = {"facts": {"-k": 3, "DATA": {"size": 7}}, "done": asdict(done)}
    partial_file, change = DONE + b'{"id', rng.choice(("none", "record", "record", "text", "partial"))
    if change == "record":
        record = change_json(rng, record)
    told = json.dumps(record).encode() if change != "record" else dump_json(rng, record)
    if change == "text":
        change, told = change_text(rng, told)
    elif change == "partial":
        partial_file = change_bytes(rng, partial_file)
    return Case(change, {"out/tags.jsonl.partial": partial_file, "out/tags.jsonl.partial.json": told}, "out")


def run_partial(case: Case, folder: Path) -> None:
    """Go on with what is left over: either it is refused, or what was recorded stands first in the result."""
    from longtail.cli.resume import difference
    from longtail.data import PartialFile, ReadingPosition, left_over

    work = folder.parent / "work"
    for name, raw in case.files.items():
        (work / Path(name).name).write_bytes(raw)
    target = work / "tags.jsonl"
    try:
        left = left_over(target)
        if left is None or left.facts is None:
            return
        difference(left.facts, {"-k": 3, "DATA": {"size": 7}}, "rows.jsonl")
        with PartialFile(target, left.facts, left.done) as file:
            file.write(REST)
            file.end_batch(left.done.rows + 1, ReadingPosition(left.done.block, left.done.batch + 1))
        kept = case.files["out/tags.jsonl.partial"][: left.done.bytes]
        if target.read_bytes() != kept + REST:
            raise Wrong("the file is not what was kept and what was written")
    finally:
        for file_ in work.glob("tags.jsonl*"):
            file_.unlink()


def warm_up(folder: Path, make: Any, run: Any) -> None:
    """Read some files, so that everything is loaded."""
    from longtail.errors import LongtailError

    rng = Random(3)
    (folder / "work").mkdir()
    for number in range(20):
        at = folder / str(number)
        at.mkdir()
        case = make(rng)
        case.write(at)
        try:
            run(case, at)
        except LongtailError:
            continue


def targets() -> list[Target]:
    """Return the targets of files of other programs, and of partial files."""
    parts = (
        ("annif", "readers", make_annif, read_and_check, 100),
        ("annif-folder", "readers", make_annif_folder, read_and_check, 60),
        ("tables", "readers", make_table, run_table, 200),
        ("predictions", "sides", make_predictions, run_predictions, 100),
        ("partial", "sides", make_partial, run_partial, 50),
    )
    return [
        Target(name, group, make, run, partial(warm_up, make=make, run=run), turns)
        for name, group, make, run, turns in parts
    ]
