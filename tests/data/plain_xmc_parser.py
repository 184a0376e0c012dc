"""The plain twin of the parser of XMC text, with Python's own `split` and `float`."""

from __future__ import annotations

import re

import numpy as np

from longtail.data.formats.xmc_parser import (
    BAD_FEATURE,
    BAD_LABEL,
    BAD_VALUE,
    FEATURE_RANGE,
    LABEL_RANGE,
    NOT_FINITE,
    OK,
)

NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
NOT_A_NUMBER = re.compile(rb"[+-]?(?:nan|inf)", re.IGNORECASE)
DIGITS = re.compile(rb"[0-9]+\Z")


def parse_lines_plain(
    text: np.ndarray,
    n_features: int,
    n_labels: int,
    x_indptr: np.ndarray,
    x_indices: np.ndarray,
    x_data: np.ndarray,
    y_indptr: np.ndarray,
    y_indices: np.ndarray,
    odd: np.ndarray,
) -> tuple[int, int, int, int]:
    """Fill the arrays as `parse_lines` does; nothing is odd here, since every value goes through `float`."""
    n_x, n_y, base = 0, 0, 0
    for row, line in enumerate(text.tobytes().split(b"\n")[:-1]):
        for token in re.finditer(rb"[^ \t\r]+", line):
            found, start = token.group(), token.start()
            head, colon, tail = found.partition(b":")
            if colon and DIGITS.match(head):
                if int(head) >= n_features:
                    return FEATURE_RANGE, row, base + start, 0
                if NOT_A_NUMBER.match(tail):
                    return NOT_FINITE, row, base + start, 0
                if not NUMBER.match(tail):
                    return BAD_VALUE, row, base + start, 0
                with np.errstate(over="ignore"):
                    value = np.float32(float(tail))
                if not np.isfinite(value):
                    return NOT_FINITE, row, base + start, 0
                x_indices[n_x], x_data[n_x] = int(head), value
                n_x += 1
            elif start > 0:
                return BAD_FEATURE, row, base + start, 0
            else:
                for label in found.split(b","):
                    if not DIGITS.match(label):
                        return BAD_LABEL, row, base + start, 0
                    if int(label) >= n_labels:
                        return LABEL_RANGE, row, base + start, 0
                    y_indices[n_y] = int(label)
                    n_y += 1
                    start += len(label) + 1
        x_indptr[row + 1], y_indptr[row + 1] = n_x, n_y
        base += len(line) + 1
    return OK, len(x_indptr) - 1, base, 0
