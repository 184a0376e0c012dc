"""The presets of `Prime`, and the settings that follow from a preset, the data and the user's own values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longtail.errors import ParameterError
from longtail.validate import check_choice, check_flag, check_integer, check_real

SAMPLINGS = ("propensity", "uniform")
PROTOTYPES = ("network", "sum", "text")
CENTROID_RULES = ("momentum", "mean")
REGULARISERS = ("hinge", "linear")
CENTROIDS = ("neighbours", "text", "none")  # of labels that are added by their texts
INDEXES = ("exact", "hnsw", "ivf")
PRECISIONS = ("float32", "float16", "int8")
ROWS_PER_BATCH_AT_LEAST = 32
BATCHES_AT_LEAST = 20  # of an epoch, where the data is small
PRIVATE = 1000

PRIME_LITE: dict[str, Any] = {
    "prototype": "network",
    "centroids": True,
    "free": True,
    "margin": (0.1, 0.3),
    "n_negatives": 100,
    "n_positives": 1,
    "sampling": "propensity",
    "loss_weights": (1.0, 1.0, 0.1),
    "batch_size": 1600,
    "lr": 2e-4,
}
NGAME: dict[str, Any] = {
    "prototype": "text",
    "centroids": False,
    "free": False,
    "margin": (0.3, 0.3),
    "n_negatives": 10,
    "n_positives": 1,
    "sampling": "uniform",
    "loss_weights": (0.0, 0.0, 0.0),
    "batch_size": 1600,
    "lr": 2e-4,
}
PRESETS: dict[str, dict[str, Any]] = {
    "prime": {**PRIME_LITE, "n_positives": 2, "batch_size": 3200, "lr": 3e-4},
    "prime-lite": PRIME_LITE,
    "dexa": {**NGAME, "prototype": "sum", "free": True},
    "ngame": NGAME,
}


@dataclass(frozen=True)
class PrimeSettings:
    """A preset with the user's own values in it, checked."""

    prototype: str
    centroids: bool
    n_free: int
    n_private: int
    margin: tuple[float, float]
    n_negatives: int
    n_positives: int
    sampling: str
    loss_weights: tuple[float, float, float]  # query to label text, label text to query, regulariser
    centroid_rule: str
    inverted_zone: bool
    regulariser: str
    batch_size: int
    lr: float


def resolve_settings(given: dict[str, Any], n_rows: int, n_labels: int) -> PrimeSettings:
    """Return the settings of a training: what was given, else the preset's.

    >>> settings = resolve_settings({"preset": "prime-lite", "lr": 1e-3}, n_rows=10_000, n_labels=5_000)
    >>> settings.lr, settings.n_positives, settings.batch_size, settings.n_free, settings.n_private
    (0.001, 1, 500, 2048, 250)
    """
    preset = PRESETS[check_choice("preset", given["preset"], tuple(PRESETS))]
    chosen = {name: given[name] if given.get(name) is not None else value for name, value in preset.items()}
    size = min(preset["batch_size"], max(ROWS_PER_BATCH_AT_LEAST, n_rows // BATCHES_AT_LEAST))
    n_free, n_private = given.get("n_free"), given.get("n_private")
    free = bool(preset["free"]) if n_free is None else check_integer("n_free", n_free, low=0) > 0
    prototype = check_choice("prototype", chosen["prototype"], PROTOTYPES)
    if given.get("epochs") == 0 and (n_free is None or prototype != "network"):
        free, n_free = False, 0  # nothing would train them: averages of like labels blur, and others are random
    return PrimeSettings(
        prototype=prototype,
        centroids=check_flag("centroids", chosen["centroids"]),
        n_free=int(n_free) if n_free is not None else (_half_of(n_labels) if free else 0),
        n_private=_private(n_private, n_labels) if free else 0,
        margin=_margin(chosen["margin"]),
        n_negatives=check_integer("n_negatives", chosen["n_negatives"], low=1),
        n_positives=check_integer("n_positives", chosen["n_positives"], low=1),
        sampling=check_choice("sampling", chosen["sampling"], SAMPLINGS),
        loss_weights=_weights(chosen["loss_weights"]),
        centroid_rule=check_choice("centroid_rule", given.get("centroid_rule", "momentum"), CENTROID_RULES),
        inverted_zone=check_flag("inverted_zone", given.get("inverted_zone", False)),
        regulariser=check_choice("regulariser", given.get("regulariser", "hinge"), REGULARISERS),
        batch_size=check_integer("batch_size", size if given.get("batch_size") is None else given["batch_size"], low=2),
        lr=check_real("lr", chosen["lr"], low=0, open_low=True),
    )


def _half_of(n_labels: int) -> int:
    """Return a free vector for every second label, about: the largest power of two up to that, as published."""
    return 1 << max(0, (n_labels // 2).bit_length() - 1)


def _private(given: Any, n_labels: int) -> int:
    return min(PRIVATE, n_labels // 20) if given is None else check_integer("n_private", given, low=0)


def _margin(given: Any) -> tuple[float, float]:
    if isinstance(given, int | float) and not isinstance(given, bool):
        given = (given, given)
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ParameterError(name="margin", allowed="a number or a pair (low, high)", got=given)
    low, high = (check_real("margin", value, low=0) for value in given)
    if low > high:
        raise ParameterError(name="margin", allowed="a pair (low, high) with low <= high", got=given)
    return low, high


def _weights(given: Any) -> tuple[float, float, float]:
    if not isinstance(given, tuple | list) or len(given) != 3:
        raise ParameterError(
            name="loss_weights",
            allowed="three numbers (query to label text, label text to query, regulariser)",
            got=given,
        )
    first, second, third = (check_real("loss_weights", value, low=0) for value in given)
    return first, second, third
