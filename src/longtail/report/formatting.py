"""Numbers as people write them (percent, durations, sizes, ranges), and nested facts as named values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from longtail.report.plots.canvas import finite

PLAIN_NAMES = {"n_jobs": "threads", "random_state": "seed"}


def percent(value: object, digits: int = 2) -> str:
    """Return a share in percent, without the sign; a missing one is a dash.

    >>> percent(0.81234), percent(None)
    ('81.23', '–')
    """
    return f"{100 * value:.{digits}f}" if finite(value) else "–"


def percent_range(row: Mapping[str, object], digits: int = 1) -> str:
    """Return the interval of a metric, from its `low` and `high`, in percent; nothing if it has none.

    >>> percent_range({"value": 0.5, "low": 0.412, "high": 0.588})
    '41.2–58.8'
    """
    low, high = row.get("low"), row.get("high")
    return f"{percent(low, digits)}–{percent(high, digits)}" if finite(low) and finite(high) else ""


def points(value: object) -> str:
    """Return a difference of shares in percentage points, with its sign.

    >>> points(0.0123), points(None)
    ('+1.23', '–')
    """
    return f"{100 * value:+.2f}" if finite(value) else "–"


def points_range(row: Mapping[str, object]) -> str:
    """Return the interval of a difference in percentage points, or nothing."""
    low, high = row.get("low"), row.get("high")
    return f"{points(low)} to {points(high)}" if finite(low) and finite(high) else ""


def whole_percent(share: object) -> str:
    """Return a share in whole percent, with the percent sign.

    >>> whole_percent(0.814)
    '81%'
    """
    return f"{100 * share:.0f}%" if finite(share) else "–"


def flat_rows(facts: Mapping[str, Any] | None, prefix: str = "") -> list[tuple[str, str]]:
    """Return nested facts as named values; lists are joined, and what has no value is left out.

    >>> flat_rows({"method": "tree", "params": {"overlap": 2}, "train_seconds": 75.0, "model_bytes": 2_500_000})
    [('method', 'tree'), ('overlap', '2'), ('train', '1 min 15 s'), ('model size', '2.5 MB')]
    """
    out: list[tuple[str, str]] = []
    for key, value in (facts or {}).items():
        name = PLAIN_NAMES.get(str(key), str(key)).replace("_", " ")
        if key == "libraries" and isinstance(value, Mapping):
            out.append((prefix + name, ", ".join(f"{library} {version}" for library, version in value.items())))
        elif isinstance(value, Mapping) and set(value) == {"shape", "dtype"}:  # an array
            out.append((prefix + name, f"{' × '.join(f'{n:,}' for n in value['shape'])} {value['dtype']}"))
        elif isinstance(value, Mapping):  # parameters stand under their own names, anything else says where it is from
            out += flat_rows(value, prefix if key in ("params", "parameters") else f"{prefix}{name}, ")
        elif value is not None and value != "" and value != []:
            plain = re.sub(r"\bbytes$", "size", re.sub(r"^seconds$", "time", re.sub(r" seconds$", "", name)))
            out.append((prefix + plain, fact_text(str(key), value)))
    return out


def fact_text(key: str, value: Any) -> str:
    """Return the value of one fact as text; the value of a key that ends in `seconds` or `bytes` gets a unit.

    >>> fact_text("rows", 12000), fact_text("seconds", 0.25), fact_text("share", 0.123456), fact_text("fits", True)
    ('12,000', '0.25 s', '0.1235', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping) and "label" in value:  # a record about a label
        return str(value.get("name") or value["label"])
    if isinstance(value, list | tuple):
        return ", ".join(fact_text("", item) for item in value[:12]) + (", …" if len(value) > 12 else "")
    if finite(value) and key.endswith("seconds"):
        return seconds_text(value)
    if finite(value) and key.endswith("bytes"):
        return bytes_text(value)
    if isinstance(value, int):
        return str(value) if key in ("seed", "random_state", "version") else f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 10_000 else count(value) or str(value)


def seconds_text(value: float) -> str:
    """Return a number of seconds as people say it.

    >>> seconds_text(0.0123), seconds_text(0.0998), seconds_text(9.5), seconds_text(9.96), seconds_text(3720)
    ('12 ms', '0.1 s', '9.5 s', '10 s', '1 h 2 min')
    """
    if value < 0.0995:
        return f"{1000 * value:.2g} ms"
    if value < 60:
        return f"{value:.2g} s" if value < 9.95 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def bytes_text(value: float, form: str = ".3g") -> str:
    """Return a number of bytes as people say it.

    >>> bytes_text(2_500_000), bytes_text(12)
    ('2.5 MB', '12 bytes')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= unit:
            return f"{value / unit:{form}} {name}"
    return f"{value:.0f} bytes"


def count(value: object) -> str | None:
    """Return a whole number with separators; None if it is missing."""
    return f"{value:,.0f}" if finite(value) else None


def decimal(value: object) -> str | None:
    """Return a mean with one decimal; None if it is missing."""
    return f"{value:,.1f}" if finite(value) else None


def number_range(low: object, high: object) -> str:
    """Return a range of counts.

    >>> number_range(4, 7), number_range(1, 1), number_range(0, 0)
    ('4–7', '1', 'none')
    """
    if not finite(low) or not finite(high):
        return "–"
    if high == 0:
        return "none"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def file_size(n_bytes: int) -> str:
    """Return the size of a file, with one decimal.

    >>> file_size(2_500_000), file_size(12)
    ('2.5 MB', '12 bytes')
    """
    return bytes_text(n_bytes, ".1f")


def duration(seconds: float) -> str:
    """Return an estimated time, rounded as an estimate should be.

    >>> duration(4.26), duration(95), duration(9000)
    ('4.3 s', '95 s', '2.5 hours')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> plural(1, "row"), plural(2500, "row")
    ('1 row', '2,500 rows')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
