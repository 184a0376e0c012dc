"""Metrics as facts that a notebook shows as a table; they are dictionaries in every other way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from longtail.notebook import Html, card, h, join, table


class ShownMetrics(dict[str, Any]):
    """Facts from `evaluate` or `evaluate_sets`: a notebook shows every metric with its interval."""

    def _repr_html_(self) -> str:
        """Return the metrics in percent: a row for each, a column for each k."""
        metrics = self.get("metrics") or {}
        ks = sorted({int(key.partition("@")[2]) for key in metrics if "@" in key})
        if not ks:
            return card("Metrics", table(["", "percent"], [[_name(key), _cell(metrics[key], key)] for key in metrics]))
        families = dict.fromkeys(key.partition("@")[0] for key in metrics)
        rows = [[_name(name), *(_cell(metrics.get(f"{name}@{k}") or {}) for k in ks)] for name in families]
        return card("Metrics", table(["percent", *(f"@{k}" for k in ks)], rows), note=_measured(self))


class ShownDifferences(dict[str, Any]):
    """Facts from `compare`: a notebook shows both values of every metric and their difference."""

    def _repr_html_(self) -> str:
        """Return the metrics in percent, those that differ by more than chance in bold."""
        rows = []
        for key, row in (self.get("metrics") or {}).items():
            low, high, p = row.get("low"), row.get("high"), row.get("p_value")
            known = low is not None and high is not None
            clear = known and (low > 0 or high < 0)
            difference = _percent(row.get("difference"), "+")
            interval = f"{_percent(low, '+')} to {_percent(high, '+')}" if known else ""
            told = h("b", difference) if clear else difference
            p_value = "" if p is None else f"{p:.4f}"
            both = [_percent(row.get(model)) for model in ("a", "b")]
            rows.append([_name(key), *both, told, h("small", interval), p_value])
        columns = ["percent", "a", "b", "b - a", "interval", "p-value"]
        note = f"{_measured(self)}; bold: the interval leaves 0 out"
        return card("Comparison", table(columns, rows, (1, 2, 3, 4, 5)), note=note)


def _measured(facts: Mapping[str, Any]) -> str:
    return f"{facts['rows']:,} rows" if "rows" in facts else ""


def _name(key: str) -> Html:
    return h("code", key)


def _cell(metric: Mapping[str, Any], key: str = "") -> Html:
    """Return a metric with its interval; a number of labels is no share."""
    low, high = metric.get("low"), metric.get("high")
    written = _number if key == "labels_per_row" else _percent
    interval = "" if low is None or high is None else f" {written(low)}–{written(high)}"
    return join([written(metric.get("value")), h("small", interval, class_="soft")])


def _percent(share: float | None, sign: str = "") -> str:
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:{sign}.1f}"


def _number(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.2f}"
