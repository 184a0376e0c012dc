"""Past findings, kept as small JSON files that tell what they are about, and run again by the tests.

`corpus/NAME.json` has `target`, `note` (one line), `expect` ("read", "refused" or "") and either `files`, with `main`
and `options` as a case has them, or `edits` of a sound model folder. A file is `{"text": ...}`, perhaps with `times`
to repeat it, or `{"base64": ...}`. An edit is one of

    ["array", PART, NAME, DTYPE, SHAPE, VALUES]     an array replaced or added; VALUES null: those it has
    ["values", PART, NAME, {INDEX: VALUE}]          some values of an array
    ["drop", PART, NAME]                            an array removed
    ["set", [KEY, ...], VALUE], ["del", [KEY, ...]] a value of the manifest
    ["labels", [RECORD, ...]]                       the records of labels
    ["files", VALUE]                                what the manifest says of every file
"""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.case import Case, Listed, Target
from fuzz.targets import all_targets
from fuzz.targets.model_files import ModelFiles

FOLDER = Path(__file__).parent / "corpus"


def sources(name: str | None = None) -> list[Listed]:
    """Return the past findings of every target that can run here, or one of them by name."""
    by_target: dict[str, list[tuple[str, Case]]] = {}
    for file in sorted(FOLDER.glob("*.json")):
        if name is None or file.stem == name:
            entry = json.loads(file.read_text("utf-8"))
            if entry["target"] in all_targets():
                by_target.setdefault(entry["target"], []).append((file.stem, as_case(entry)))
    return [Listed(all_targets()[target], cases) for target, cases in by_target.items()]


def as_case(entry: dict[str, Any]) -> Case:
    """Return the case that an entry describes."""
    if "edits" in entry:
        files, main = edited(entry["target"].removeprefix("model-"), entry["edits"]), "."
    else:
        files, main = {name: _file_bytes(said) for name, said in entry["files"].items()}, entry["main"]
    return Case("corpus", files, main, entry.get("options", {}), entry.get("expect", ""))


def edited(model: str, edits: list[Any]) -> dict[str, bytes]:
    """Return the files of a sound model folder after some edits."""
    from fuzz.targets.models import sound

    kept = sound(model)
    out = ModelFiles(copy.deepcopy(kept.manifest), {p: dict(a) for p, a in kept.arrays.items()}, kept.labels)
    for kind, *rest in edits:
        if kind == "array":
            part, name, dtype, shape, values = rest
            given = out.arrays[part][name] if values is None else values
            out.arrays[part][name] = np.array(given).astype(dtype).reshape(shape)
        elif kind == "values":
            part, name, values = rest
            changed = np.array(out.arrays[part][name])
            for index, value in values.items():
                changed.reshape(-1)[int(index)] = value
            out.arrays[part][name] = changed
        elif kind == "drop":
            del out.arrays[rest[0]][rest[1]]
        elif kind == "labels":
            out.labels = rest[0]
        elif kind != "files":
            _edit_manifest(out.manifest, kind, *rest)
    files = out.files()
    for kind, *rest in edits:
        if kind == "files":
            manifest = json.loads(files["manifest.json"])
            manifest["files"] = dict.fromkeys(manifest["files"], rest[0])
            files["manifest.json"] = json.dumps(manifest).encode()
    return files


def _edit_manifest(manifest: Any, kind: str, way: list[Any], value: Any = None) -> None:
    """Set or remove a value of the manifest."""
    for key in way[:-1]:
        manifest = manifest[key]
    if kind == "del":
        del manifest[way[-1]]
    else:
        manifest[way[-1]] = value


def _file_bytes(said: dict[str, Any]) -> bytes:
    """Return the bytes of a file as an entry has it."""
    if "base64" in said:
        return base64.b64decode(said["base64"])
    return said["text"].encode("utf-8", "surrogatepass") * said.get("times", 1)


def save(name: str, target: Target, case: Case, note: str, expect: str) -> Path:
    """Keep a case as a past finding."""
    files = {}
    for file, raw in case.files.items():
        try:
            files[file] = {"text": raw.decode("utf-8")}
        except UnicodeDecodeError:
            files[file] = {"base64": base64.b64encode(raw).decode()}
    entry = {"target": target.name, "note": note, "expect": expect, "main": case.main}
    out = FOLDER / f"{name}.json"
    out.write_text(json.dumps({**entry, "options": dict(case.options), "files": files}, indent=1) + "\n", "utf-8")
    return out
