"""Parameters: one sentence for a bad value, with what is allowed, what came and the nearest name."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from longtail.errors import ParameterError, near

INT64_MAX = 2**63 - 1
MOST_THREADS = 1024


def check_integer(name: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """Return `value` as an int within [low, high]; without `high`, one that compiled code can hold.

    >>> check_integer("k", 0, low=1)
    Traceback (most recent call last):
    ...
    longtail.errors.ParameterError: k must be an integer >= 1; got 0.
    """
    ok = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    if ok and high is None and value > INT64_MAX:
        high = INT64_MAX
    if not ok or (low is not None and value < low) or (high is not None and value > high):
        raise ParameterError(name=name, allowed=f"an integer{_range(low, high)}", got=value)
    return int(value)


def check_real(
    name: str,
    value: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    open_low: bool = False,
) -> float:
    """Return `value` as a finite float within [low, high]; `open_low` leaves `low` itself out."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_) and _finite(value)
    if ok and low is not None:
        ok = value > low if open_low else value >= low
    if ok and high is not None:
        ok = value <= high
    if not ok:
        raise ParameterError(name=name, allowed=f"a number{_range(low, high, open_low)}", got=value)
    return float(value)


def _finite(value: Any) -> bool:
    """Say whether a number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return `value` if it is one of the allowed names.

    >>> check_choice("loss", "logistc", ["hinge", "logistic"])
    Traceback (most recent call last):
    ...
    longtail.errors.ParameterError: loss must be one of ['hinge', 'logistic']; got 'logistc'. Did you mean 'logistic'?
    """
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(name=name, allowed=f"one of {list(allowed)}", got=value, hint=near(value, allowed))
    return value


def check_label_numbers(name: str, labels: Any, n_labels: int) -> np.ndarray:
    """Return a list of label numbers as int64, each from 0 to n_labels - 1; it may be empty.

    >>> check_label_numbers("labels", [2, 0], 3).tolist()
    [2, 0]
    >>> check_label_numbers("labels", [0, 3], 3)
    Traceback (most recent call last):
    ...
    longtail.errors.ParameterError: labels must hold label numbers from 0 to 2; got 3.
    """

    def refused(got: Any) -> ParameterError:
        return ParameterError(name=name, problem=f"must hold label numbers from 0 to {n_labels - 1}; got {got!r}.")

    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "iu":
        outside = labels[(labels < 0) | (labels >= n_labels)]
        if outside.size:
            raise refused(int(outside[0]))
        return labels.astype(np.int64)
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        allowed = f"a list of label numbers from 0 to {n_labels - 1}"
        raise ParameterError(name=name, allowed=allowed, got=labels)
    values = list(labels)
    for value in values:
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
        if not whole or not 0 <= value < n_labels:
            raise refused(value)
    return np.array(values, dtype=np.int64)


def check_widths(name: str, value: Any) -> tuple[int, ...]:
    """Return the widths of layers, given as one whole number of at least 1 or as a list of them.

    >>> check_widths("hidden", 256), check_widths("hidden", [512, 256])
    ((256,), (512, 256))
    """
    sizes = tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,)
    whole = all(isinstance(size, int | np.integer) and not isinstance(size, bool) for size in sizes)
    if not whole or min(sizes, default=1) < 1:
        raise ParameterError(name=name, allowed="a whole number >= 1 or a list of them", got=value)
    return tuple(map(int, sizes))


def check_flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(name=name, allowed="True or False", got=value)
    return bool(value)


def resolve_jobs(n_jobs: Any) -> int:
    """Return the number of threads: None means all cores, -1 all cores, -2 all but one.

    The result never changes with the number of threads; only the time does. More than 1,024 are never started.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if n_jobs is None:
        return cores
    n_jobs = check_integer("n_jobs", n_jobs)
    if n_jobs == 0:
        raise ParameterError(name="n_jobs", allowed="an integer other than 0", optional=", or None", got=0)
    return min(n_jobs, MOST_THREADS) if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def resolve_seed(random_state: Any) -> int:
    """Return a seed below 2**31 from None (0), an integer or a numpy generator.

    None means 0, not the clock: a user who sets nothing gets the same model twice.
    """
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return check_integer("random_state", random_state, low=0, high=2**31 - 1)


def _range(low: float | None, high: float | None, open_low: bool = False) -> str:
    """Return the allowed range in words, with a space before them; nothing where there is no limit."""

    def shown(value: float) -> str:
        return str(value) if isinstance(value, int) else f"{value:g}"

    if low is not None and high is not None:
        words = ("above", "and at most") if open_low else ("between", "and")
        return f" {words[0]} {shown(low)} {words[1]} {shown(high)}"
    if low is not None:
        return f" {'>' if open_low else '>='} {shown(low)}"
    return f" <= {shown(high)}" if high is not None else ""
