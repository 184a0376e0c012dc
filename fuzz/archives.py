"""Numpy archives written by hand, so that every field of the zip file and of the array headers can be wrong."""

from __future__ import annotations

import struct
import zlib
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fuzz.mutations import change_array, change_bytes
from fuzz.values import INTEGERS, string

DESCRIPTIONS = ("<f8", ">f4", "<i8", ">i8", "<u8", "|O", "|V8", "<c16", "<M8[s]", "|S3", "<U2", "f4,i4", "<f16", "|b1")
METHODS = (0, 8, 1, 9, 12, 14, 99)
FLAGS = (0, 1, 8, 64, 2048)


class Member(NamedTuple):
    """A file of an archive as it will be written; what is None is as it must be."""

    name: str
    raw: bytes
    flags: int = 0
    method: int = 0
    claimed: int | None = None  # size after unpacking
    crc: int | None = None


def npy_bytes(array: np.ndarray, descr: Any = None, shape: Any = None, fortran: Any = False) -> bytes:
    """Return an array as a .npy file, with another dtype or shape in its header where they are given."""
    if descr is None:
        descr = array.dtype.str
    if shape is None:
        shape = array.shape
    head = f"{{'descr': {descr!r}, 'fortran_order': {fortran!r}, 'shape': {shape!r}, }}".encode("utf-8", "replace")
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + array.tobytes()


def zip_bytes(members: list[Member]) -> bytes:
    """Return an archive of members."""
    out, entries = bytearray(), bytearray()
    for m in members:
        raw = zlib.compress(m.raw, 1)[2:-4] if m.method == 8 else m.raw
        crc = zlib.crc32(m.raw) if m.crc is None else m.crc
        size = (len(m.raw) if m.claimed is None else m.claimed) & 0xFFFFFFFF
        name = m.name.encode("utf-8", "replace")
        fields = struct.pack("<HHHHHIIIHH", 20, m.flags, m.method, 0, 33, crc, len(raw), size, len(name), 0)
        entries += b"PK\x01\x02\x14\x00" + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + name
        out += b"PK\x03\x04" + fields + name + raw
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(entries), len(out), 0)
    return bytes(out + entries + b"PK\x05\x06" + end)


def archive(rng: Random, arrays: dict[str, np.ndarray]) -> tuple[str, bytes]:
    """Return the kind of change and an archive of arrays: values, names, headers, the container or bytes changed."""
    change = "none" if rng.random() < 0.03 else rng.choice(("arrays", "arrays", "names", "header", "zip", "bytes"))
    arrays = dict(arrays)
    if change == "arrays":
        for _ in range(rng.choice((1, 1, 2, 3))):
            name = rng.choice(list(arrays))
            change, arrays[name] = change_array(rng, arrays[name])
    elif change == "names":
        _change_names(rng, arrays)
    method = rng.choice((0, 0, 8))
    members = [Member(f"{name}.npy", npy_bytes(array), method=method) for name, array in arrays.items()]
    if change == "header" and members:
        at = rng.randrange(len(members))
        members[at] = members[at]._replace(raw=_odd_header(rng, list(arrays.values())[at]))
    elif change == "zip" and members:
        at = rng.randrange(len(members))
        members[at] = _odd_member(rng, members[at])
        if rng.random() < 0.2:
            members.append(members[at])
    raw = zip_bytes(members)
    return change, change_bytes(rng, raw) if change == "bytes" else raw


def _change_names(rng: Random, arrays: dict[str, np.ndarray]) -> None:
    """Remove, rename, exchange or add an array."""
    name, kind = rng.choice(list(arrays)), rng.randrange(4)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[rng.choice((string(rng), "X", "Y", "data", "format", "../x"))] = arrays.pop(name)
    elif kind == 2:
        other = rng.choice(list(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    else:
        arrays[rng.choice((string(rng), "X", "Y", "groups", "format", "texts.bytes"))] = arrays[name]


def _odd_header(rng: Random, array: np.ndarray) -> bytes:
    """Return a .npy file whose header says something else than its bytes."""
    kind = rng.randrange(5)
    if kind == 0:
        return npy_bytes(array, descr=rng.choice(DESCRIPTIONS))
    if kind == 1:
        size = rng.choice(INTEGERS)
        return npy_bytes(array, shape=rng.choice(((size,), (size, size), (0, size), (size, 0), (), [1], size, "x")))
    if kind == 2:
        return npy_bytes(array, fortran=rng.choice((True, 1, "x", None)))
    raw = npy_bytes(array)
    if kind == 3:
        return rng.choice(
            (b"", b"\x93NUMPY", raw[:20], b"\x80\x04N.", raw[:6] + b"\x03\x00" + raw[8:], raw * 2, b"text")
        )
    return change_bytes(rng, raw[:128]) + raw[128:]


def _odd_member(rng: Random, member: Member) -> Member:
    """Return a member of an archive with a wrong field."""
    kind = rng.randrange(5)
    if kind == 0:
        return member._replace(flags=rng.choice(FLAGS))
    if kind == 1:
        return member._replace(method=rng.choice(METHODS))
    if kind == 2:
        return member._replace(claimed=rng.choice((0, 1, 2**31, 2**32 - 1)))
    if kind == 3:
        return member._replace(crc=0)
    return member._replace(name=rng.choice((string(rng), "X", "X.txt", "../X.npy", "/X.npy", ".npy", "X.npy/")))
