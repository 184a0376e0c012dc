"""Accuracy in percent, and means over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import scipy.sparse as sp

from longtail.data import TopK
from longtail.metrics import precision_at_k

KS = (1, 3, 5)


def precisions(Y: sp.csr_array, top: TopK, ks: Iterable[int] = KS) -> dict[str, float]:
    """Return P@k in percent, by name: {"p@1": 83.5, ...}."""
    return {f"p@{k}": 100 * float(precision_at_k(Y, top, k=k)) for k in ks}


def spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation over seeds; None for a single one."""
    return statistics.stdev(values) if len(values) > 1 else None


def mean_of(runs: Iterable[Mapping[str, Any]], name: str) -> float | None:
    """Return the mean of one number over the runs that have it; None if none has."""
    values = [run[name] for run in runs if run.get(name) is not None]
    return statistics.mean(values) if values else None


def mean_and_sd(values: Sequence[float], digits: int = 4) -> dict[str, float | None]:
    """Return the rounded mean and standard deviation over seeds."""
    sd = spread(values)
    return {"mean": round(statistics.mean(values), digits), "sd": None if sd is None else round(sd, digits)}


def rounded(facts: Mapping[str, float], digits: int = 4) -> dict[str, float]:
    """Return the numbers as floats, rounded."""
    return {name: round(float(value), digits) for name, value in facts.items()}
