"""Parquet: columns of every type under the names that are read, doubled and missing ones, and changed bytes."""

from __future__ import annotations

import datetime
import decimal
import io
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fuzz.case import Case, Target
from fuzz.mutations import change_bytes
from fuzz.targets import reading
from fuzz.targets.reading import draw_options, read_and_check

NAMES = ("text", "labels", "id", "group", "weights", "other")


@cache
def columns() -> tuple[Any, ...]:
    """Return columns of two rows, of many types."""
    import pyarrow as pa

    day, number = datetime.date(2020, 1, 2), decimal.Decimal("1.5")
    return (
        pa.array(["a red apple", "a blue car"]),
        pa.array([["fruit", "red"], ["car"]]),
        pa.array(["fruit;red", "car"]),
        pa.array([1, 2]),
        pa.array([1.5, float("nan")]),
        pa.array([None, None]),
        pa.array([None, "x"]),
        pa.array([True, False]),
        pa.array([day, day]),
        pa.array([2**62, 5], pa.timestamp("ns")),
        pa.array([2**62, -(2**62)], pa.timestamp("s")),
        pa.array([2**31 - 1, -(2**31)], pa.date32()),
        pa.array([2**60, 1], pa.duration("s")),
        pa.array([0, 86_400_000], pa.date64()),
        pa.array([number, number]),
        pa.array([b"\xff\xfe", b"ok"]),
        pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe", b"ok"]).buffers()),  # bytes that are not UTF-8
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([[["deep"]], [[]]]),
        pa.array([[None, "x"], None], pa.list_(pa.string())),
        pa.array([[1, 2], [3]]),
        pa.array([[1.5], []]),
        pa.array(["p", "q"]).dictionary_encode(),
        pa.array([[("k", "v")], []], pa.map_(pa.string(), pa.string())),
        pa.array([12, 13], pa.time64("ns")),
        pa.array([0, 255], pa.uint8()),
        pa.array([2**63, 2**64 - 1], pa.uint64()),
        pa.array(["\x1b[31m", "a\x00b"]),
    )


def make(rng: Random) -> Case:
    """Return a Parquet file with columns of other types or names, or with changed bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    known = columns()
    names = ["text", "labels", *rng.sample(NAMES[2:], rng.randint(0, 2))]
    arrays = [known[0], known[1], *rng.choices(known, k=len(names) - 2)]
    change = "none" if rng.random() < 0.03 else rng.choice(("types", "types", "names", "bytes", "bytes"))
    if change == "types":
        arrays[rng.randrange(2)] = rng.choice(known)
    elif change == "names":
        names[rng.randrange(len(names))] = rng.choice(NAMES)
    buffer = io.BytesIO()
    packing = rng.choice(("none", "snappy", "zstd"))
    try:
        pq.write_table(pa.Table.from_arrays(arrays, names=names), buffer, compression=packing, store_schema=False)
    except pa.ArrowException:
        return make(rng)
    raw = buffer.getvalue()
    if change == "bytes":
        raw = change_bytes(rng, raw) if rng.random() < 0.5 else _change_footer(rng, raw)
    options = draw_options(rng, {"labels_required": (False,), "text_column": (["text", "id"],)}, again="copy.parquet")
    return Case(change, {"rows.parquet": raw}, "rows.parquet", {"way": "rows"} if "way" in options else options)


def _change_footer(rng: Random, raw: bytes) -> bytes:
    """Return a file with changed bytes in its description of the columns."""
    length = int.from_bytes(raw[-8:-4], "little")
    start = len(raw) - 8 - length
    foot = change_bytes(rng, raw[start:-8])
    size = len(foot) if rng.random() < 0.8 else rng.choice((0, 2**31 - 1, 2**32 - 1))
    return raw[:start] + foot + size.to_bytes(4, "little") + raw[-4:]


def warm_up(folder: Path) -> None:
    """Read sound files."""
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    reading.warm_up(folder)
    rng = Random(0)
    for _ in range(20):
        case = make(rng)
        if case.change == "none":
            case.write(folder)
            read_and_check(case, folder)


def targets() -> list[Target]:
    """Return the target."""
    return [Target("parquet", "readers", make, read_and_check, warm_up, 30, 64 << 20, ("pyarrow",))]
