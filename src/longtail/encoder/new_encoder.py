"""Sizes of a new encoder and their limits, checked before anything is built; without torch."""

from __future__ import annotations

from typing import Any

from longtail.errors import ParameterError, near
from longtail.validate import check_integer, check_real

NEW_ENCODER: dict[str, Any] = {"width": 128, "layers": 2, "heads": 4, "vocabulary": 20_000, "dropout": 0.1}
LONGEST_NEW = 8192  # tokens; attention over more takes memory that grows with their square
SHORTEST = 3  # a token between start and end
LIMITS = {"width": 8192, "layers": 96, "heads": 8192, "vocabulary": 10_000_000}
MOST_DROPOUT = 0.9


def check_new_encoder(given: dict[Any, Any], max_length: Any = None) -> dict[str, Any]:
    """Return the sizes of a new encoder: what was given, else the defaults; one sentence for what cannot be.

    >>> check_new_encoder({"width": 32, "heads": 2})
    {'width': 32, 'layers': 2, 'heads': 2, 'vocabulary': 20000, 'dropout': 0.1}
    >>> check_new_encoder({"width": 15, "heads": 2})
    Traceback (most recent call last):
    ...
    longtail.errors.ParameterError: width of a new encoder must be a multiple of its heads (2); got 15.
    """
    for name in given:
        if name not in NEW_ENCODER:
            allowed = list(NEW_ENCODER)
            raise ParameterError(f"encoder as a dict must hold only {allowed}; got {name!r}.{near(name, allowed)}")
    chosen = {**NEW_ENCODER, **given}
    out: dict[str, Any] = {
        name: check_integer(f"{name} of a new encoder", chosen[name], low=1, high=high) for name, high in LIMITS.items()
    }
    out["dropout"] = check_real("dropout of a new encoder", chosen["dropout"], low=0, high=MOST_DROPOUT)
    if out["width"] % out["heads"]:
        raise ParameterError(
            f"width of a new encoder must be a multiple of its heads ({out['heads']}); got {out['width']}."
        )
    if max_length is not None and check_integer("max_length", max_length, low=SHORTEST) > LONGEST_NEW:
        raise ParameterError(name="max_length", allowed=f"at most {LONGEST_NEW} for a new encoder", got=max_length)
    return out
