"""Row stores with changed arrays or manifests; mostly with digests that fit, so that what is in them is looked at."""

from __future__ import annotations

import hashlib
import json
import tempfile
from functools import cache
from pathlib import Path
from random import Random

from fuzz.case import Case, Target
from fuzz.mutations import change_bytes, change_json, dump_json
from fuzz.targets.reading import read_and_check
from longtail.data import Dataset, write

MANIFEST = "store.json"


@cache
def sound_store() -> dict[str, bytes]:
    """Return the files of a small row store."""
    texts, labels = ["a red apple", "a blue car", "red"], [["fruit", "red"], ["car"], []]
    with tempfile.TemporaryDirectory() as folder:
        data = Dataset.from_lists(texts, labels, X=[[1.0, 0, 2], [0, 1, 0], [0, 0, 3]], ids=["1", "2", "3"])
        write(data, Path(folder) / "rows.store")
        return {file.name: file.read_bytes() for file in sorted((Path(folder) / "rows.store").iterdir())}


def make_store(rng: Random) -> Case:
    """Return a store with one changed file."""
    files = dict(sound_store())
    manifest = json.loads(files[MANIFEST])
    change, name = "none", rng.choice(list(files))
    if name == MANIFEST:
        change, manifest = "json", change_json(rng, manifest)
        files[MANIFEST] = dump_json(rng, manifest)
    elif rng.random() > 0.03:
        change, files[name] = "bytes", change_bytes(rng, files[name])
        if rng.random() < 0.8:
            entry = {"bytes": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}
            manifest["files"][name] = entry
            files[MANIFEST] = json.dumps(manifest).encode()
    return Case(change, {f"rows.store/{file}": raw for file, raw in files.items()}, "rows.store", {})


def warm_up(folder: Path) -> None:
    """Read a sound store, which compiles what checks it."""
    for name, raw in sound_store().items():
        file = folder / "rows.store" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(raw)
    read_and_check(Case("none", {}, "rows.store", {}), folder)


def targets() -> list[Target]:
    """Return the target of this module."""
    return [Target("store", "readers", make_store, read_and_check, warm_up, 60)]
