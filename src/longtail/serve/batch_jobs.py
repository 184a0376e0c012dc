"""Batches: files of rows that are given labels in the background, in a private folder that goes with the server."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import logging
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from longtail.data import Dataset, Limits, iter_objects, iter_texts, plain_cell, table_rows
from longtail.errors import LongtailError, one_line
from longtail.facts import ReadingFacts
from longtail.serve.problems import Busy, Problem, json_bytes
from longtail.serve.server import Server
from longtail.serve.suggesting import ID_COLUMN, TEXT_COLUMN, How, Suggested

LOG = logging.getLogger("longtail.serve")
ID = re.compile(r"[0-9a-f]{32}")
FORMATS = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/json": "jsonl",
}
PACKED = {  # what such files begin with, what they are, and what helps
    b"\x1f\x8b": ("a packed file (gzip)", "unpack it before it is sent"),
    b"\xfd7zXZ\x00": ("a packed file (xz)", "unpack it before it is sent"),
    b"BZh91AY&SY": ("a packed file (bzip2)", "unpack it before it is sent"),
    b"(\xb5/\xfd": ("a packed file (zstd)", "unpack it before it is sent"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet's own format", "unpack it, or save it as CSV"),
}
BLOCK = 256  # rows
KEPT = 3600.0  # seconds that a finished batch stays
COLUMNS = ("id", "place", "label", "score", "probability", "name", "assigned")  # as `longtail predict`, and one more


@dataclass(frozen=True)
class Job:
    """A batch: what is asked for, and how far it is."""

    id: str
    model: str
    owner: str
    state: str  # running, done, failed
    created_at: str
    process: int
    rows: int | None = None
    done: int = 0
    error: str | None = None

    def facts(self) -> dict[str, object]:
        """Return what its owner sees."""
        return {name: value for name, value in asdict(self).items() if name not in ("owner", "process")}


class BatchJobs:
    """The batches of a server; all its processes see them, since they stand in files."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.folder: Path = server.folder.path / "batches"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._files = ThreadPoolExecutor(2, "batches")
        self._lock = threading.Lock()

    async def begin(
        self,
        model: str,
        how: How,
        kind: str,
        body: AsyncIterator[bytes],
        owner: str,
        text_columns: Sequence[str] = (),
        id_column: str | None = None,
    ) -> Job:
        """Take an upload and begin to work on it; columns that are not named are those the model remembers."""
        self.server.models.get(model).wish(how)
        self._make_room(owner)
        job = Job(secrets.token_hex(16), model, owner, "running", now(), os.getpid())
        folder = self.folder / job.id
        folder.mkdir(mode=0o700)
        upload = folder / f"rows.{kind}"
        loop = asyncio.get_running_loop()
        try:
            self._store(job)  # it counts from now on
            with upload.open("wb") as file:
                async for chunk in body:
                    await loop.run_in_executor(self._files, file.write, chunk)
            await loop.run_in_executor(self._files, refuse_packed, upload)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        task = asyncio.create_task(self._work(job, upload, kind, how, text_columns, id_column))
        self._tasks[job.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(job.id, None))
        task.add_done_callback(lambda _: loop.call_later(KEPT, shutil.rmtree, folder, True))
        return job

    def get(self, id: str, caller: str, *, admin: bool = False) -> Job:
        """Return a batch of a caller; that of another is not there."""
        job = self._read(id) if ID.fullmatch(id) else None
        if job is None or (job.owner != caller and not admin):
            raise Problem(404, f"there is no batch {id!r:.80}.")
        return job

    def listed(self, caller: str, *, admin: bool = False) -> list[Job]:
        """Return the batches of a caller, the newest first."""
        found = [self._read(path.name) for path in self.folder.iterdir()]
        own = [job for job in found if job is not None and (admin or job.owner == caller)]
        return sorted(own, key=lambda job: job.created_at, reverse=True)

    def result(self, job: Job, format: str) -> Path:
        """Return the file of a result."""
        if job.state != "done":
            raise Problem(409, f"the batch is {job.state}; there is a result when it is done.")
        return self.folder / job.id / f"result.{format}"

    def remove(self, job: Job) -> None:
        """Stop a batch and remove what is there of it."""
        task = self._tasks.pop(job.id, None)
        if task is not None:
            task.cancel()
        shutil.rmtree(self.folder / job.id, ignore_errors=True)

    def close(self) -> None:
        """Stop all batches."""
        for task in list(self._tasks.values()):
            task.cancel()
        self._files.shutdown(wait=True, cancel_futures=True)

    def _make_room(self, owner: str) -> None:
        """Remove finished batches that are too many, those of the owner first; refuse one more than may be running."""
        most = self.server.settings.jobs
        share = most if self.server.tokens is None else (most + 1) // 2  # of one of several callers
        with self._lock:
            jobs = [job for job in (self._read(path.name) for path in self.folder.iterdir()) if job is not None]
            running = [job for job in jobs if job.state == "running"]
            own = sum(job.owner == owner for job in running)
            if len(running) >= most or own >= share:
                if own >= share and own < len(running):
                    raise Busy(f"{own} batches of yours are running; try again when one is done.", 10)
                raise Busy(f"{len(running)} batches are running; try again when one is done.", 10)
            finished = [job for job in jobs if job.state != "running"]
            finished.sort(key=lambda job: (job.owner != owner, job.created_at))
            for job in finished[: max(0, len(jobs) - most + 1)]:
                shutil.rmtree(self.folder / job.id, ignore_errors=True)

    def _store(self, job: Job) -> None:
        """Write how far a batch is, in one step; raises OSError where its folder was removed."""
        file = self.folder / job.id / "state.json"
        temporary = file.with_suffix(".tmp")
        temporary.write_bytes(json_bytes(asdict(job)))
        temporary.replace(file)

    def _read(self, id: str) -> Job | None:
        file = self.folder / id / "state.json"
        try:
            job = Job(**json.loads(file.read_bytes()))
            age = time.time() - file.stat().st_mtime
        except (OSError, ValueError, TypeError):
            return None
        if job.state == "running" and not lives(job.process):
            return replace(job, state="failed", error="the process that worked on it has ended.")
        if job.state != "running" and age > KEPT:
            shutil.rmtree(file.parent, ignore_errors=True)
            return None
        return job

    async def _work(
        self, job: Job, upload: Path, kind: str, how: How, text_columns: Sequence[str], id_column: str | None
    ) -> None:
        """Give labels to all rows of an upload, block by block."""
        loop = asyncio.get_running_loop()
        settings, folder = self.server.settings, upload.parent
        limits = Limits(text_characters=settings.text_characters, line_bytes=16 * settings.text_characters + 10_000)
        try:
            remembered = self.server.models.get(job.model).reading
            choose = partial(how_to_read, upload, kind, remembered, text_columns, id_column, limits)
            reading = await loop.run_in_executor(self._files, choose)
            blocks = iter_texts(upload, BLOCK, kind, limits=limits, **reading)
            with (folder / "result.jsonl").open("wb") as lines, (folder / "result.csv").open("wb") as table:
                table.write(b"\xef\xbb\xbf" + csv_lines([COLUMNS]))
                while (block := await loop.run_in_executor(self._files, next, blocks, None)) is not None:
                    found = await self._suggest(job.model, list(block.texts or ()), how)
                    await loop.run_in_executor(self._files, write_block, block, job.done, found, lines, table)
                    if lines.tell() + table.tell() > settings.result_bytes:
                        told = f"the result has more than {settings.result_bytes} bytes"
                        raise Problem(413, f"{told}; ask for fewer labels, or send fewer rows at once.")
                    job = replace(job, done=job.done + block.n_rows)
                    self._store(job)
            self._store(replace(job, state="done", rows=job.done))
        except asyncio.CancelledError:
            raise
        except FileNotFoundError:
            pass  # it was removed meanwhile
        except (LongtailError, Problem, OSError, MemoryError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error).replace(f"{upload}", "the upload")
            self._fail(job, words or type(error).__name__)
        except Exception:
            LOG.exception("the batch %s failed", job.id)
            self._fail(job, "the server failed on this batch; its log has the reason.")
        finally:
            upload.unlink(missing_ok=True)

    def _fail(self, job: Job, sentence: str) -> None:
        for format in ("jsonl", "csv"):
            (self.folder / job.id / f"result.{format}").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._store(replace(job, state="failed", error=one_line(sentence)))

    async def _suggest(self, model: str, texts: list[str], how: How) -> Suggested:
        """Return labels of texts; where others are waiting already, after them."""
        while True:
            try:
                return await self.server.suggest(model, texts, how)
            except Busy:
                await asyncio.sleep(0.5)


def refuse_packed(upload: Path) -> None:
    """Refuse an upload that is packed, whose bytes would be taken for letters."""
    with upload.open("rb") as file:
        head = file.read(max(map(len, PACKED)))
    for mark, (what, remedy) in PACKED.items():
        if head.startswith(mark):
            raise Problem(415, f"the upload is {what}, not CSV or JSON lines; {remedy}.")


def how_to_read(
    upload: Path,
    kind: str,
    remembered: ReadingFacts,
    text_columns: Sequence[str],
    id_column: str | None,
    limits: Limits,
) -> dict[str, Any]:
    """Return which columns of an upload are read: those named, else those the model learned from, where it has them."""
    texts, usual = list(text_columns) or remembered.get("text_column", [TEXT_COLUMN]), [TEXT_COLUMN, ID_COLUMN]
    ids = [id_column] if id_column else [remembered.get("id_column", ID_COLUMN), ID_COLUMN]
    delimiter, names = remembered.get("delimiter") if kind == "csv" else None, set[str]()
    if delimiter is not None:
        names = first_names(upload, kind, limits, delimiter)
    if not names.issuperset(texts):
        delimiter, names = None, first_names(upload, kind, limits, ",", [*texts, *ids, *usual])
    if not text_columns and not names.issuperset(texts) and TEXT_COLUMN in names:
        texts = [TEXT_COLUMN]
    id = next((column for column in ids if column in names), id_column or ID_COLUMN)
    return {"text_column": texts, "id_column": id, "delimiter": delimiter}


def first_names(upload: Path, kind: str, limits: Limits, delimiter: str, columns: Sequence[str] = ()) -> set[str]:
    """Return the names of the columns of an upload; those of its first lines where every line has its own."""
    if kind == "jsonl":
        return set[str]().union(*next(iter_objects(upload, limits=limits), ((), []))[1])
    rows = table_rows(upload, delimiter, limits, columns=columns)
    return {cell.strip() for cell in next((row for _, row in rows if row[:1] != ["sep="]), [])}


def write_block(block: Dataset, first: int, found: Suggested, lines: IO[bytes], table: IO[bytes]) -> None:
    """Write the labels of some rows, for programs and for people with a spreadsheet."""
    ids = block.ids or tuple(str(first + at) for at in range(block.n_rows))
    cells: list[tuple[object, ...]] = []
    for id, tags in zip(ids, found.rows, strict=True):
        lines.write(json_bytes({"id": id, "tags": [tag._asdict() for tag in tags]}) + b"\n")
        for place, tag in enumerate(tags, 1):
            chance = "" if tag.probability is None else round(tag.probability, 6)
            cells.append((id, place, tag.label, round(tag.score, 6), chance, tag.name, int(tag.assigned)))
        if not tags:
            cells.append((id, "", "", "", "", "", ""))
    table.write(csv_lines(cells))


def csv_lines(rows: Sequence[Sequence[object]]) -> bytes:
    """Return lines of CSV of which no cell is taken for a formula.

    >>> csv_lines([("=1+1", 2)])
    b"'=1+1,2\\r\\n"
    """
    out = io.StringIO()
    csv.writer(out).writerows([plain_cell(cell) for cell in row] for row in rows)
    return out.getvalue().encode("utf-8", "backslashreplace")


def lives(process: int) -> bool:
    """Say whether a process is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def now() -> str:
    """Return the time as it stands in answers."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
