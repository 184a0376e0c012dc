"""The settings of the experts that follow from the parameters of a `Hybrid`, the data and the device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from longtail.encoder import UNIVERSAL_ENCODER
from longtail.errors import Keyword, MissingExtraError, ParameterError
from longtail.hybrid.combine import EXPERTS
from longtail.prime import Prime, encoder_shape
from longtail.text import BeginningFeatures, TfidfFeatures
from longtail.training import require_transformers

ENCODED = ("prototypes", "classifier", "neighbours")  # experts that read the encoder's vectors
PRESET = "prime-lite"
PASSES = 2_000_000  # texts in all epochs together, of large data
EPOCHS = (4, 12)  # fewest and most that follow from it
LR, LR_WIDTH = 5e-4, 384  # learning rate of an encoder of this width; it falls as the width grows
MANY_ROWS = 100_000
BATCHES = (512, 1600)  # texts of a batch, of fewer and of many rows
FEWEST_IN_BATCH, FEWEST_BATCHES = 32, 20
CLASSIFIER_PASSES = {"cpu": 1_000_000, "cuda": 20_000_000}
CLASSIFIER_EPOCHS = (3, 20)


def check_experts(given: Any) -> tuple[str, ...]:
    """Return the experts to use, in their order; at least one, and none that there is not.

    >>> check_experts(["tree", "prototypes"])
    ('prototypes', 'tree')
    """
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    for name in names:
        if name not in EXPERTS:
            raise ParameterError(name="experts", allowed=f"some of {', '.join(EXPERTS)}", got=name)
    if not names:
        raise ParameterError(name="experts", allowed=f"some of {', '.join(EXPERTS)}", got=names)
    return tuple(name for name in EXPERTS if name in names)


def needs_encoder(experts: tuple[str, ...]) -> bool:
    """Say whether any expert reads the vectors of an encoder."""
    return any(name in ENCODED for name in experts)


def encoder_device(device: Any) -> str:
    """Return the kind of device that an encoder is trained on; torch, which that needs, may be missing."""
    try:
        require_transformers("The encoder of a hybrid")
    except MissingExtraError as error:
        words, other = Keyword("experts", ("tree", "names")), Keyword("encoder", UNIVERSAL_ENCODER)
        error.restate(
            "{sentence}. With {words} or {other} none is needed.", sentence=str(error), words=words, other=other
        )
        raise
    return str(Prime(device=device).torch_device().type)


def default_epochs(n_rows: int, device: str, minutes: float | None) -> int:
    """Return the epochs of a training: on a CPU none, where no time is given, and the encoder stays as it is.

    >>> default_epochs(45_000, "cuda", None), default_epochs(308_000, "cuda", None), default_epochs(45_000, "cpu", None)
    (12, 6, 0)
    """
    if device == "cpu" and minutes is None:
        return 0
    return max(EPOCHS[0], min(EPOCHS[1], PASSES // max(n_rows, 1)))


def default_batch(n_rows: int) -> int:
    """Return the texts of a batch.

    >>> default_batch(1000), default_batch(45_000), default_batch(308_000)
    (50, 512, 1600)
    """
    return min(BATCHES[n_rows >= MANY_ROWS], max(FEWEST_IN_BATCH, n_rows // FEWEST_BATCHES))


def default_lr(encoder: Any) -> float:
    """Return the learning rate for an encoder; one whose width is not known gets that of the default encoder."""
    shape = encoder_shape(encoder)
    return LR if shape is None else LR * LR_WIDTH / shape["width"]


def classifier_epochs(n_rows: int, device: str) -> int:
    """Return the passes over the texts in which the vectors of labels are trained.

    >>> classifier_epochs(45_000, "cpu"), classifier_epochs(308_000, "cpu"), classifier_epochs(308_000, "cuda")
    (20, 3, 20)
    """
    return max(CLASSIFIER_EPOCHS[0], min(CLASSIFIER_EPOCHS[1], CLASSIFIER_PASSES[device] // max(n_rows, 1)))


def prime_params(params: dict[str, Any], n_rows: int, device: str) -> dict[str, Any]:
    """Return the parameters of the `Prime` inside, from those of the hybrid."""
    same = (
        "encoder",
        "max_length",
        "minutes",
        "long_texts",
        "mixed_precision",
        "encoder_precision",
        "runtime",
        "checkpoint",
        "checkpoint_minutes",
        "device",
        "random_state",
        "n_jobs",
    )
    out = {name: params[name] for name in same}
    epochs, batch, lr = params["epochs"], params["batch_size"], params["lr"]
    out["preset"] = PRESET
    out["epochs"] = default_epochs(n_rows, device, params["minutes"]) if epochs is None else epochs
    out["batch_size"] = default_batch(n_rows) if batch is None else batch
    out["lr"] = default_lr(params["encoder"]) if lr is None else lr
    return out


def frozen_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the `FrozenEncoder` inside, from those of the hybrid."""
    return {"encoder": str(params["encoder"]), "random_state": params["random_state"]}


def tree_words(params: dict[str, Any]) -> TfidfFeatures | BeginningFeatures:
    """Return what reads texts for the tree, not fitted: words, and pairs of short texts or of long ones' beginnings.

    >>> tree_words({"language": None, "beginning": 20, "n_jobs": None}).beginning
    20
    """
    language, beginning, n_jobs = params["language"], params["beginning"], params["n_jobs"]
    analyzer = "word" if language is None else f"snowball:{language}"
    words = TfidfFeatures(analyzer=analyzer, n_jobs=n_jobs)
    return BeginningFeatures(words, beginning=beginning, n_jobs=n_jobs) if beginning else words
