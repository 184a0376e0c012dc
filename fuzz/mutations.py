"""Changes to bytes, lines, words, JSON values and arrays, drawn from a generator."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from fuzz.values import BYTES, NUMBER_WORDS, integer, json_value, string

TOKENS = re.compile(rb"[0-9]+|[A-Za-z_]+|\s+|[^0-9A-Za-z_\s]")
DTYPES = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
MOST_BYTES = 200_000  # of a mutated file, so that cases stay quick


def change_bytes(rng: Random, raw: bytes) -> bytes:
    """Return bytes with a few flipped, inserted, removed, doubled or moved, or cut off."""
    out = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(7)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif kind == 1 and out:
            out[at % len(out)] = rng.randrange(256)
        elif kind == 2:
            out[at:at] = rng.choice(BYTES)
        elif kind == 3:
            del out[at : at + rng.choice((1, 2, 4, 20))]
        elif kind == 4:
            end = at + rng.choice((1, 4, 30))
            out[at:at] = out[at:end] * rng.choice((1, 2, 50))
        elif kind == 5:
            end = at + rng.choice((4, 8, 40))
            piece = out[at:end]
            del out[at:end]
            to = rng.randrange(len(out) + 1)
            out[to:to] = piece
        elif rng.random() < 0.3:
            del out[at:]
    return bytes(out[:MOST_BYTES])


def change_lines(rng: Random, raw: bytes) -> bytes:
    """Return text with lines doubled, removed, reordered, joined, emptied, or with other line ends."""
    lines = raw.split(b"\n")
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(lines)) if lines else 0
        kind = rng.randrange(9)
        if kind == 0 and lines:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 1 and lines:
            del lines[at]
        elif kind == 2:
            rng.shuffle(lines)
        elif kind == 3 and len(lines) > 1:
            joint = rng.choice((b"", b" ", b",", b"\r", b"\x00", b"\xe2\x80\xa8"))
            lines[at : at + 2] = [joint.join(lines[at : at + 2])]
        elif kind == 4:
            lines.insert(at, rng.choice((b"", b" ", b"\t", b"#", b"\r", b"{}", b"[]", b"null", b"0 0 0")))
        elif kind == 5:
            lines = [line + b"\r" for line in lines]
        elif kind == 6 and lines:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        elif kind == 7:
            lines = lines * 2
        elif lines:
            half = rng.randrange(len(lines[at]) + 1)
            lines[at : at + 1] = [lines[at][:half], lines[at][half:]]
    raw = b"\n".join(lines)
    return (raw.rstrip(b"\n") if rng.random() < 0.1 else raw)[:MOST_BYTES]


def change_tokens(rng: Random, raw: bytes) -> bytes:
    """Return text with some of its numbers, words and separators replaced by odd ones, doubled or removed."""
    tokens = TOKENS.findall(raw)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3, 8))):
        if not tokens:
            break
        at = rng.randrange(len(tokens))
        kind = rng.randrange(8)
        if kind == 0:
            tokens.insert(at, tokens[at])
        elif kind == 1:
            del tokens[at]
        elif kind == 2:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 3:
            tokens[at] = (tokens[at] * rng.choice((2, 30, 2000)))[:MOST_BYTES]
        elif tokens[at].isdigit():
            number = str(integer(rng, int(tokens[at][:9]))) if rng.random() < 0.5 else rng.choice(NUMBER_WORDS)
            tokens[at] = number.encode()
        elif kind < 6:
            tokens[at] = string(rng).encode("utf-8", rng.choice(("surrogatepass", "replace")))
        else:
            tokens[at] = rng.choice(BYTES)
    return b"".join(tokens)[:MOST_BYTES]


TEXT_CHANGES: dict[str, Callable[[Random, bytes], bytes]] = {
    "bytes": change_bytes,
    "lines": change_lines,
    "tokens": change_tokens,
}


def change_text(rng: Random, raw: bytes) -> tuple[str, bytes]:
    """Return the kind of the last change and the text after one to three changes."""
    kind = "none"
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kind = rng.choice(("bytes", "lines", "tokens", "tokens"))
        raw = TEXT_CHANGES[kind](rng, raw)
    return kind, raw


# --- JSON -------------------------------------------------------------------------------------------------------------


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to every value inside a JSON value."""
    out = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in items:
        out += paths(inside, (*at, key))
    return out


def change_json(rng: Random, value: Any, ways: list[tuple[Any, ...]] | None = None) -> Any:
    """Return a JSON value with one value inside replaced, removed, doubled under another name, or moved."""
    ways = paths(value) if ways is None else ways
    if not ways or rng.random() < 0.01:
        return json_value(rng, value)
    way = rng.choice(ways)
    out = holder = copy.copy(value)
    for key in way[:-1]:
        holder[key] = copy.copy(holder[key])
        holder = holder[key]
    last, kind = way[-1], rng.randrange(10)
    if kind == 0:
        del holder[last]
    elif kind == 1 and isinstance(holder, dict):
        holder[string(rng)] = holder[last]
    elif kind == 2 and isinstance(holder, dict):
        holder[string(rng)] = holder.pop(last)
    elif kind == 3 and isinstance(holder, list):
        holder.insert(last, holder[last])
    elif kind == 4 and isinstance(holder, list):
        holder += holder[:1] * rng.choice((1, 40, 1000))
    else:
        holder[last] = json_value(rng, holder[last])
    return out


def dump_json(rng: Random, value: Any) -> bytes:
    """Return the JSON text of a value, with or without escapes; half surrogates as bytes where they are not escaped."""
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


# --- arrays -----------------------------------------------------------------------------------------------------------


def change_array(rng: Random, array: np.ndarray) -> tuple[str, np.ndarray]:
    """Return the kind of the change and an array with another dtype, rank, length or other values."""
    kind = rng.choice(("dtype", "rank", "length", "values", "values", "values", "pointers", "order"))
    with np.errstate(all="ignore"):
        if kind == "dtype":
            return kind, array.astype(rng.choice(DTYPES)) if array.dtype.kind in "biuf" else array.astype("U")
        if kind == "rank":
            shapes: tuple[tuple[int, ...], ...] = ((-1,), (1, -1), (-1, 1), (1, 1, -1))
            return kind, array.ravel()[:1].reshape(()) if array.size and rng.random() < 0.2 else array.reshape(
                rng.choice(shapes)
            )
        if kind == "length":
            return kind, _other_length(rng, array)
        if kind == "order" and array.size:
            flat = array.ravel()
            return kind, rng.choice((flat[::-1], np.sort(flat), np.roll(flat, 1), flat[:1].repeat(flat.size))).reshape(
                array.shape
            )
        return kind, _other_values(rng, array, wrapped=kind == "pointers")


def _other_length(rng: Random, array: np.ndarray) -> np.ndarray:
    """Return an array cut, doubled, emptied or with one element more."""
    how = rng.randrange(5)
    if array.ndim == 0:
        return array.reshape(1).repeat(how)
    if how == 0:
        return array[:-1]
    if how == 1:
        return np.concatenate([array, array[-1:]])
    if how == 2:
        return array[:0]
    return np.concatenate([array, array]) if how == 3 else array[: rng.randrange(array.shape[0] + 1)]


def _other_values(rng: Random, array: np.ndarray, wrapped: bool) -> np.ndarray:
    """Return an array with one to three elements at the edges of its type, or a pair whose difference wraps around."""
    out = np.array(array)
    if not out.size or out.dtype.kind not in "biuf":
        return out
    flat = out.reshape(-1)
    at = rng.randrange(flat.size)
    if flat.dtype.kind in "iu":
        limits = np.iinfo(flat.dtype)
        if wrapped:
            flat[at : at + 2] = (limits.max, limits.min if limits.min == 0 else -2)[: flat[at : at + 2].size]
            return out
        for _ in range(rng.choice((1, 1, 3))):
            value = integer(rng, int(flat[at]))
            flat[at] = min(max(value, int(limits.min)), int(limits.max)) if rng.random() < 0.5 else value % 100
            at = rng.randrange(flat.size)
        return out
    values = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e300, -1e38, 1e-45, -1.0, 1.0, 3.0)
    if rng.random() < 0.1:
        flat[:] = rng.choice(values)
    flat[at] = rng.choice(values)
    return out
