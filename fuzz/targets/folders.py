"""Folders of data: the raw layout (trn.json, tst.json, lbl.json) and the split layout of the XMC repository."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from fuzz.case import Case, Target
from fuzz.mutations import change_json, change_text, dump_json
from fuzz.targets.matrices import _lines
from fuzz.targets.reading import draw_options, packed, read_and_check, warm_up


def make_raw(rng: Random) -> Case:
    """Return a raw folder with changed records or text in one of its files, perhaps without one of them."""
    labels: list[Any] = [{"uid": f"L{i}", "title": f"label {i}"} for i in range(3)]
    rows: list[Any] = [
        {"uid": str(i), "title": "a title", "content": "words", "target_ind": rng.sample(range(3), rng.randint(0, 3))}
        for i in range(rng.randint(1, 4))
    ]
    for row in rows:
        if rng.random() < 0.4:
            row["target_rel"] = [rng.choice((1.0, 0.5, 2)) for _ in row["target_ind"]]
    change = "none" if rng.random() < 0.03 else rng.choice(("fields", "fields", "text", "files"))
    which = rng.choice((rows, rows, labels))
    if change == "fields":
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(which))
            which[at] = change_json(rng, which[at])
    files = {
        "trn.json": _json_lines(rng, rows),
        "tst.json": _json_lines(rng, rows),
        "lbl.json": _json_lines(rng, labels),
    }
    name = "lbl.json" if which is labels else "trn.json"
    if change == "text":
        change, files[name] = change_text(rng, files[name])
    elif change == "files":
        del files[name]
    for name in list(files):
        raw = files.pop(name)
        if rng.random() < 0.1:
            name, raw, change = packed(rng, name, raw, change)
        files[name] = raw
    drawn = {"part": ("train", "test"), "label_names": (["L0", "L1", "L2"],)}
    return Case(change, {f"raw/{name}": raw for name, raw in files.items()}, "raw", _whole(rng, drawn))


def _whole(rng: Random, drawn: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    options = draw_options(rng, drawn, again="copy.npz")
    options.pop("way", None)
    return options


def _json_lines(rng: Random, records: list[Any]) -> bytes:
    if rng.random() < 0.8:
        return b"".join(dump_json(rng, record) + b"\n" for record in records)
    return json.dumps(records).encode()


def make_splits(rng: Random) -> Case:
    """Return a split folder with changed text in one of its files, perhaps with one file too many."""
    lines = _lines(rng, 0)
    header = f"{len(lines)} 6 3"
    numbers = [rng.randint(1, len(lines)) for _ in range(3)]
    files = {
        "x_data.txt": "\n".join([header, *lines, ""]).encode(),
        "x_trn_split.txt": "".join(f"{n} {n}\n" for n in numbers).encode(),
        "x_tst_split.txt": "".join(f"{n} {n}\n" for n in numbers).encode(),
    }
    change, name = "none", rng.choice(list(files))
    if rng.random() > 0.03:
        change = rng.choice(("text", "text", "text", "files"))
    if change == "text":
        change, files[name] = change_text(rng, files[name])
    elif change == "files":
        files[rng.choice(("y_data.txt", "y_trn_split.txt", "notes.md", "x_trn_split.txt.gz"))] = files.pop(name)
    drawn: dict[str, tuple[Any, ...]] = {"part": ("train", "test"), "split": (0, 1, 2, -1, 2**40)}
    return Case(change, {f"splits/{name}": raw for name, raw in files.items()}, "splits", _whole(rng, drawn))


def targets() -> list[Target]:
    """Return the targets of folders."""
    return [
        Target("xmc-raw", "readers", make_raw, read_and_check, warm_up, 150),
        Target("xmc-splits", "readers", make_splits, read_and_check, warm_up, 30),
    ]
