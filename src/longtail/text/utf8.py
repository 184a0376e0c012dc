"""Code points from and to UTF-8 bytes; the twins are Python's own `decode` and `encode`.

Lone surrogates are read and written as Python's "surrogatepass" does.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

CODE_POINTS = 0x110000
BASIC_PLANE = 0x10000  # code points that are written in at most three bytes
FOUR_BYTES = 0xF0  # the least byte that begins a longer one


@njit(nogil=True, cache=True)
def read_code_point(text: np.ndarray, at: int, end: int) -> tuple[int, int]:
    """Return the non-ASCII code point at `at` and where the next one starts; damaged bytes give U+FFFD."""
    b = np.int64(text[at])
    if b >= 0xF0 and at + 4 <= end:
        code = (b & 7) << 18 | (text[at + 1] & 63) << 12 | (text[at + 2] & 63) << 6 | (text[at + 3] & 63)
        return (code if code < CODE_POINTS else 0xFFFD), at + 4
    if 0xE0 <= b < 0xF0 and at + 3 <= end:
        return (b & 15) << 12 | (text[at + 1] & 63) << 6 | (text[at + 2] & 63), at + 3
    if 0xC0 <= b < 0xE0 and at + 2 <= end:
        return (b & 31) << 6 | (text[at + 1] & 63), at + 2
    return 0xFFFD, at + 1


@njit(nogil=True, cache=True)
def write_code_point(code: int, out: np.ndarray, at: int) -> int:
    """Write a code point as UTF-8 at `out[at:]` and return where it ends."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
        out[at + 1] = 0x80 | (code & 63)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | code >> 12
        out[at + 1] = 0x80 | (code >> 6 & 63)
        out[at + 2] = 0x80 | (code & 63)
        return at + 3
    out[at] = 0xF0 | code >> 18
    out[at + 1] = 0x80 | (code >> 12 & 63)
    out[at + 2] = 0x80 | (code >> 6 & 63)
    out[at + 3] = 0x80 | (code & 63)
    return at + 4
