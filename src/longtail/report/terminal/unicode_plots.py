"""Plots made of characters: bars, dots with intervals and small curves for the terminal.

Every function takes `ascii`: a pipe or an old terminal gets `#`, `-` and `o` instead of block characters.

>>> bar(0.5, 8), bar(0.5, 8, ascii=True)
('████    ', '####    ')
"""

from __future__ import annotations

import math
from collections.abc import Sequence

EIGHTHS = " ▏▎▍▌▋▊▉█"
HEIGHTS = "▁▂▃▄▅▆▇█"
ASCII_HEIGHTS = "_.-~=+*#"


def bar(share: float, width: int, *, ascii: bool = False) -> str:
    """Return a bar that fills a share of the width, to an eighth of a letter.

    >>> bar(0.3, 8)
    '██▍     '
    """
    share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    if ascii:
        return ("#" * round(share * width)).ljust(width)
    full, part = divmod(round(share * width * 8), 8)
    return (EIGHTHS[8] * full + (EIGHTHS[part] if part else "")).ljust(width)


def marked_bar(share: float, mark: float, width: int, *, ascii: bool = False) -> str:
    """Return a bar with a second value marked in it.

    >>> marked_bar(0.5, 0.75, 8)
    '████  │ '
    """
    out = list(bar(share, width, ascii=ascii))
    out[min(max(int(mark * width), 0), width - 1)] = "|" if ascii else "│"
    return "".join(out)


def interval(low: float, value: float, high: float, width: int, *, ascii: bool = False) -> str:
    """Return a dot with its interval; all three are shares of the width.

    >>> interval(0.25, 0.5, 0.75, 9)
    '  ──●──  '
    """
    out = [" "] * width
    start, at, end = (min(max(round(v * (width - 1)), 0), width - 1) for v in (low, value, high))
    for i in range(start, end + 1):
        out[i] = "-" if ascii else "─"
    out[at] = "o" if ascii else "●"
    return "".join(out)


def around_zero(low: float, value: float, high: float, reach: float, width: int, *, ascii: bool = False) -> str:
    """Return a difference with its interval on a line whose middle is zero and whose ends are ±reach.

    >>> around_zero(0.1, 0.5, 0.9, 1.0, 11)
    '     │──●──'
    >>> around_zero(-0.2, 0.0, 0.2, 1.0, 11)
    '    ─●─    '
    """
    start, at, end = ((v / reach + 1) / 2 if reach else 0.5 for v in (low, value, high))
    out = list(interval(start, at, end, width, ascii=ascii))
    if out[width // 2] in " -─" and (out[width // 2] == " " or low > 0 or high < 0):
        out[width // 2] = "|" if ascii else "│"
    return "".join(out)


def sparkline(values: Sequence[float], *, ascii: bool = False) -> str:
    """Return one letter per value, as high as the value is large.

    >>> sparkline([8, 4, 2, 1])
    '█▄▂▁'
    """
    marks = ASCII_HEIGHTS if ascii else HEIGHTS
    known = [v for v in values if math.isfinite(v)]
    if not known:
        return ""
    low, high = min(known), max(known)
    span = (high - low) or 1.0
    return "".join(marks[round((v - low) / span * 7)] if math.isfinite(v) else " " for v in values)


def tail_sparkline(points: Sequence[Sequence[float]], width: int, *, ascii: bool = False) -> str:
    """Return the long tail of (rank, count) pairs as a sparkline, both axes by powers.

    >>> tail_sparkline([(1, 1000), (10, 100), (100, 10), (1000, 1)], 8)
    '█▇▆▅▄▃▂▁'
    """
    logs = sorted((math.log(p[0]), math.log(p[1])) for p in points if p[0] >= 1 and p[1] >= 1)
    if not logs:
        return ""
    last, values, at = logs[-1][0] or 1.0, [], 0
    for column in range(width):
        x = column / max(width - 1, 1) * last
        while at + 1 < len(logs) - 1 and logs[at + 1][0] < x:
            at += 1
        (x1, y1), (x2, y2) = logs[at], logs[min(at + 1, len(logs) - 1)]
        values.append(y1 if x2 == x1 else y1 + (y2 - y1) * min(max((x - x1) / (x2 - x1), 0.0), 1.0))
    return sparkline(values, ascii=ascii)
