"""Long runs that go on after a kill: what must be the same, what a left-over is told about, where a run continues."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail._version import __version__
from longtail.cli.options import BUNDLED
from longtail.cli.output import note
from longtail.errors import DataError, ParameterError

if TYPE_CHECKING:
    from longtail.data import Done, PartialFile

ENDS = 1 << 16  # bytes at the beginning and at the end of a file by which it is known again
WHOLE = ("MODEL", "--allow", "--deny", "--vocabulary")  # of which only a digest is known


def is_resumable(data: str, output: Path | None) -> bool:
    """Return whether a run can be continued: what it reads can be read again, what it writes is a file."""
    if output is None or (output.exists() and not output.is_file()):
        return False
    return data.startswith(BUNDLED) or (data != "-" and (Path(data).is_file() or Path(data).is_dir()))


def check_resume(data: str, output: Path | None, optimise: str | None) -> None:
    """Refuse --resume where there can be nothing to continue."""
    if output is None or (output.exists() and not output.is_file()):
        raise ParameterError(f"--resume needs --output with the name of a file; got {output or 'stdout'}.")
    if optimise is not None:
        raise ParameterError("--resume cannot be used with --optimise, which writes nothing before all rows are read.")
    if data == "-" or (Path(data).exists() and not is_resumable(data, output)):
        what = "stdin" if data == "-" else data
        raise ParameterError(f"--resume needs DATA that can be read again, such as a file; got {what}.")


def digest(value: object) -> str:
    """Return a fingerprint of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(path: Path) -> str:
    """Return a fingerprint of a whole file."""
    out = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            out.update(block)
    return out.hexdigest()


def data_facts(data: str) -> dict[str, Any]:
    """Return what tells DATA apart from other data and from itself after a change, without reading all of it."""
    if data.startswith(BUNDLED):
        return {"name": data}
    path = Path(data)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    facts = [file.stat() for file in files]
    out: dict[str, Any] = {"size": sum(fact.st_size for fact in facts)}
    if path.is_dir():
        listed = [[str(f.relative_to(path)), s.st_size, s.st_mtime_ns] for f, s in zip(files, facts, strict=True)]
        return {**out, "content": digest(listed)}
    with path.open("rb") as file:
        ends = file.read(ENDS)
        file.seek(max(out["size"] - ENDS, 0))
        ends += file.read(ENDS)
    return {**out, "modified": facts[0].st_mtime_ns, "content": hashlib.sha256(ends).hexdigest()}


def command_facts(model: Path, data: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that the output of a command depends on; the options by their names."""
    from longtail.storage import read_manifest

    return {"longtail": __version__, "MODEL": digest(read_manifest(model)), "DATA": data_facts(data), **options}


def difference(old: Mapping[str, Any], new: Mapping[str, Any], data: str) -> str | None:
    """Return in words the first fact by which two runs differ; None where they are the same.

    >>> difference({"DATA": {}, "-k": 3}, {"DATA": {}, "-k": 5}, "rows.csv")
    '-k was 3 and is 5'
    """
    before, now = old.get("DATA"), new["DATA"]
    if old.get("MODEL") != new.get("MODEL"):
        return "MODEL is another one"
    if before != now:
        sizes = [facts.get("size") if isinstance(facts, dict) else None for facts in (before, now)]
        if sizes[0] == sizes[1] or not all(type(size) is int for size in sizes):
            return f"{data} is another file than the one it was made from, or was changed since"
        return (
            f"{data} is another file than the one it was made from, or was changed since "
            f"({sizes[1]:,} bytes; it had {sizes[0]:,})"
        )
    for name in sorted({*old, *new} - {"DATA"}):
        was, is_now = old.get(name), new.get(name)
        if was != is_now and (name in WHOLE and None not in (was, is_now)):
            return f"what {name} gives is another"
        if was != is_now:
            shown = [
                "not given" if value is None or value is False else "given" if name in WHOLE or value is True else value
                for value in (was, is_now)
            ]
            return f"{name} was {shown[0]} and is {shown[1]}"
    return None


def begin(output: Path, facts: dict[str, Any], data: str, *, resume: bool) -> Done | None:
    """Return how far an earlier run of the same command came, with --resume; None to begin at the first row.

    Without it a left-over is refused, since it would be lost.
    """
    from longtail.data import left_over

    left = left_over(output)
    if left is None:
        if resume:
            note(f"There is nothing to resume for {output}; it is begun at the first row.")
        return None
    if left.facts is None:
        raise DataError(
            f"{left.partial} has no record beside it that says what it belongs to; delete it to begin anew."
        )
    if not left.done.rows:
        return None
    differs = difference(left.facts, facts, data)
    rows = f"{left.done.rows:,} rows"
    if resume and differs is not None:
        raise ParameterError(
            f"--resume does not fit {left.partial}, which holds {rows}: {differs}. Delete it to begin anew."
        )
    if resume:
        return left.done
    if differs is None:
        raise DataError(
            f"{left.partial} holds {rows} of the same command, which did not end; "
            "use --resume to go on, or delete it to begin anew."
        )
    raise DataError(
        f"{left.partial} holds {rows} of another command, which did not end ({differs}); "
        "use --resume with all that it was given to go on, or delete it to begin anew."
    )


@contextlib.contextmanager
def telling_what_is_kept(file: PartialFile) -> Iterator[None]:
    """Say what is kept where the block does not end well."""
    from longtail.data import partial_names

    try:
        yield
    except BaseException:
        if file.kept:
            kept = partial_names(file.named)[0]
            note(f"{kept} keeps {file.recorded.rows:,} rows; the same command with --resume goes on.")
        raise
