"""Parse the text format of the XMC repository: bytes in, CSR arrays out.

A line is `label,label feature:value feature:value ...`; without labels it starts with a space or with the first
feature. Spaces, tabs and carriage returns separate. Ids are decimal numbers; values are decimal or exponent notation.

A value must come out as Python's `float(token)` rounded to float32. The mantissa m (18 digits at most) and the
decimal exponent e are gathered as integers. Where m <= 2**53 and |e| <= 22, both m and 10**|e| are exact doubles and
one division or product is correctly rounded. Elsewhere the product is off by less than 2**-51 of itself; if moving it
by 2**-50 either way gives the same float32, that is the answer. What remains (one token in a million, numbers near
the limits of float32) is left to Python's `float`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from longtail.kernels import njit

OK, BAD_LABEL, BAD_FEATURE, BAD_VALUE, FEATURE_RANGE, LABEL_RANGE, NOT_FINITE = range(7)

NEWLINE, COMMA, COLON = 10, 44, 58
ID_CAP = 10**12  # far above any int32 id; keeps a run of digits from overflowing
TEN_TO = np.array([float(f"1e{e}") for e in range(61)])  # exact up to 1e22
MOST_POWER = 10**12  # more than a text has digits, so that no run of zeros can make up for it
EXACT_MANTISSA, EXACT_EXPONENT, MAX_EXPONENT = 2**53, 22, 60
WOBBLE = 2.0**-50
LOW, HIGH = 1.2e-38, 3.4e38  # inside the normal numbers of float32


class ParsedRows(NamedTuple):
    """Parsed lines as the arrays of two CSR matrices; ids stand in the order of the text."""

    x_indptr: np.ndarray  # int64 (n_rows + 1,)
    x_indices: np.ndarray  # int32
    x_data: np.ndarray  # float32
    y_indptr: np.ndarray  # int64 (n_rows + 1,)
    y_indices: np.ndarray  # int32


class ParseProblem(NamedTuple):
    """The first thing in the text that cannot be parsed."""

    code: int  # BAD_LABEL ... NOT_FINITE
    row: int  # line of the text, from 0
    byte: int  # where the token starts


def parse_rows(
    text: bytes, n_features: int, n_labels: int, kernel: Callable[..., tuple[int, int, int, int]] | None = None
) -> tuple[ParsedRows, ParseProblem | None]:
    """Parse whole lines, each ending in a newline; ids must be below `n_features` and `n_labels`.

    Returns the rows and the first problem, or None; with a problem, the rows before it. `kernel` takes the place of
    `parse_lines`, to test it against a slow twin.

    >>> rows, problem = parse_rows(b"3,5 0:1.5 7:2\\n 1:.5e1\\n", n_features=8, n_labels=6)
    >>> rows.y_indices.tolist(), rows.x_indptr.tolist(), rows.x_data.tolist()
    ([3, 5], [0, 2, 3], [1.5, 2.0, 5.0])
    >>> parse_rows(b"3 0:1\\n3 9:1\\n", n_features=8, n_labels=6)[1]
    ParseProblem(code=4, row=1, byte=8)
    """
    buffer = np.frombuffer(text, dtype=np.uint8)
    n_rows, n_values, n_ids = count_tokens(buffer)
    rows = ParsedRows(
        np.zeros(n_rows + 1, dtype=np.int64),
        np.empty(n_values, dtype=np.int32),
        np.empty(n_values, dtype=np.float32),
        np.zeros(n_rows + 1, dtype=np.int64),
        np.empty(n_ids, dtype=np.int32),
    )
    odd = np.empty((n_values, 2), dtype=np.int64)  # pages are only touched when used
    code, row, byte, n_odd = (kernel or parse_lines)(buffer, n_features, n_labels, *rows, odd)
    problem = ParseProblem(code, row, byte) if code != OK else None
    for at, start in odd[:n_odd].tolist():
        token = _token(text, start)
        with np.errstate(over="ignore"):
            value = np.float32(float(token.rpartition(b":")[2]))
        if not np.isfinite(value):
            row = int(np.searchsorted(rows.x_indptr[: row + 1], at, side="right")) - 1
            problem = ParseProblem(NOT_FINITE, row, start)
            break
        rows.x_data[at] = value
    n_rows = problem.row if problem else n_rows
    n_values, n_ids = int(rows.x_indptr[n_rows]), int(rows.y_indptr[n_rows])
    return ParsedRows(
        rows.x_indptr[: n_rows + 1],
        rows.x_indices[:n_values],
        rows.x_data[:n_values],
        rows.y_indptr[: n_rows + 1],
        rows.y_indices[:n_ids],
    ), problem


def _token(text: bytes, start: int) -> bytes:
    return re.compile(rb"[^ \t\r\n]*").match(text, start).group()  # type: ignore[union-attr]


@njit(nogil=True, cache=True)
def count_tokens(text: np.ndarray) -> tuple[int, int, int]:  # pragma: no cover - compiled
    """Return the number of lines and upper bounds for the numbers of features and of labels."""
    lines, colons, commas = 0, 0, 0
    for byte in text:
        lines += byte == NEWLINE
        colons += byte == COLON
        commas += byte == COMMA
    return lines, colons, commas + lines


@njit(nogil=True, cache=True)
def _digit(byte: np.uint8) -> np.int64:  # pragma: no cover - compiled
    return np.int64(byte) - 48  # signed: numba makes a float of an unsigned and a signed number


@njit(nogil=True, cache=True)
def _parse_value(text: np.ndarray, at: int) -> tuple[int, float, int]:  # pragma: no cover - compiled
    """Return where the number ends, the number, and 0 (done), 1 (ask Python), 2 (malformed) or 3 (nan, inf)."""
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    mantissa, exponent, kept, digits = 0, 0, 0, 0
    after_point = 0
    while True:
        digit = _digit(text[at])
        if digit < 0 or digit > 9:
            if digit == -2 and after_point == 0:  # the point
                after_point = 1
                at += 1
                continue
            break
        digits += 1
        if kept < 18:
            mantissa = mantissa * 10 + digit
            kept += mantissa != 0
            exponent -= after_point
        else:
            exponent += 1 - after_point
        at += 1
    if digits == 0:
        return at, 0.0, 3 if after_point == 0 and _is_word(text, at) else 2
    if text[at] == 101 or text[at] == 69:
        at += 1
        below = text[at] == 45
        if below or text[at] == 43:
            at += 1
        power = 0
        digits = 0
        while 48 <= text[at] <= 57:
            power = min(power * 10 + _digit(text[at]), MOST_POWER)
            digits += 1
            at += 1
        if digits == 0:
            return at, 0.0, 2
        exponent += -power if below else power
    if mantissa == 0:
        return at, -0.0 if negative else 0.0, 0
    value = float(-mantissa if negative else mantissa)
    if exponent < -MAX_EXPONENT or exponent > MAX_EXPONENT:
        return at, 0.0, 1
    value = value / TEN_TO[-exponent] if exponent < 0 else value * TEN_TO[exponent]
    if kept < 18 and mantissa <= EXACT_MANTISSA and -EXACT_EXPONENT <= exponent <= EXACT_EXPONENT:
        return at, value, 0 if LOW < abs(value) < HIGH else 1
    if LOW < abs(value) < HIGH and np.float32(value * (1 - WOBBLE)) == np.float32(value * (1 + WOBBLE)):
        return at, value, 0
    return at, 0.0, 1


@njit(nogil=True, cache=True)
def _is_word(text: np.ndarray, at: int) -> bool:  # pragma: no cover - compiled
    """Return whether nan, inf or infinity stands here, in any case of letters."""
    for word in ("nan", "inf"):  # the text ends in a newline, so reading stops in time
        same = 0
        while same < 3 and (text[at + same] | 32) == ord(word[same]):
            same += 1
        if same == 3:
            return True
    return False


@njit(nogil=True, cache=True)
def parse_lines(  # long on purpose: with the ids parsed by a function of their own, parsing took 40 % more time
    text: np.ndarray,  # IN   whole lines, uint8                    (n_bytes,)
    n_features: int,
    n_labels: int,
    x_indptr: np.ndarray,  # OUT  int64                             (n_rows + 1,)
    x_indices: np.ndarray,  # OUT  int32                            (number of colons,)
    x_data: np.ndarray,  # OUT  float32                             (number of colons,)
    y_indptr: np.ndarray,  # OUT  int64                             (n_rows + 1,)
    y_indices: np.ndarray,  # OUT  int32                            (number of commas and lines,)
    odd: np.ndarray,  # OUT  values left to Python: position in x_data, byte of the token (number of colons, 2)
) -> tuple[int, int, int, int]:  # pragma: no cover - compiled
    """Fill the arrays; return the code of the first problem (0: none), its row and byte, and how many are odd."""
    at, row, n_x, n_y, n_odd, n_bytes = 0, 0, 0, 0, 0, text.size
    first = True  # at the first token of a line: labels, or already a feature
    while at < n_bytes:
        byte = text[at]
        if byte == NEWLINE:
            row += 1
            x_indptr[row] = n_x
            y_indptr[row] = n_y
            first = True
            at += 1
            continue
        if byte == 32 or byte == 9 or byte == 13:
            first = False
            at += 1
            continue
        start = at
        number = 0
        while 48 <= text[at] <= 57:
            number = min(number * 10 + _digit(text[at]), ID_CAP)
            at += 1
        if text[at] == COLON and at > start:
            if number >= n_features:
                return FEATURE_RANGE, row, start, n_odd
            at, value, state = _parse_value(text, at + 1)
            if state == 3:
                return NOT_FINITE, row, start, n_odd
            byte = text[at]
            if state == 2 or not (byte == 32 or byte == NEWLINE or byte == 13 or byte == 9):
                return BAD_VALUE, row, start, n_odd
            if state == 1:
                odd[n_odd, 0] = n_x
                odd[n_odd, 1] = start
                n_odd += 1
            x_indices[n_x] = number
            x_data[n_x] = value
            n_x += 1
            first = False
            continue
        if not first:
            return BAD_FEATURE, row, start, n_odd
        while True:  # labels: `number` ends at `at`
            byte = text[at]
            ended = byte == 32 or byte == NEWLINE or byte == 13 or byte == 9
            if at == start or not (ended or byte == COMMA):
                return BAD_LABEL, row, start, n_odd
            if number >= n_labels:
                return LABEL_RANGE, row, start, n_odd
            y_indices[n_y] = number
            n_y += 1
            if ended:
                break
            at += 1
            start = at
            number = 0
            while 48 <= text[at] <= 57:
                number = min(number * 10 + _digit(text[at]), ID_CAP)
                at += 1
        first = False
    return OK, row, at, n_odd
