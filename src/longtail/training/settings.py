"""Settings of a training; without torch, so that estimators can check them before they load it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from longtail.validate import RandomState, check_integer, check_real, resolve_seed


@dataclass(frozen=True)
class Training:
    """Settings of the training loop, `longtail.training.train`.

    Parameters
    ----------
    epochs : int, default=50
        Passes over the rows, at most.
    patience : int, default=5
        Training stops after this many epochs without a better validation loss.
    accumulate : int, default=1
        Batches whose gradients make one step of the optimisers.
    mixed : bool, default=True
        On a GPU, compute in bfloat16 where that is safe; the weights stay float32.
        Where `MIXED_ON_CPU`, also on a CPU that is made for it.
    seed : int, default=0
        Seed of dropout and of everything else that torch draws.
    """

    epochs: int = 50
    patience: int = 5
    accumulate: int = 1
    mixed: bool = True
    seed: int = 0
    MIXED_ON_CPU: ClassVar[bool] = False


@dataclass(frozen=True)
class RowTraining(Training):
    """Settings of a training on shuffled rows with AdamW, `longtail.training.train_on_rows`.

    Parameters
    ----------
    batch_size : int, default=128
        Rows of a batch.
    lr : float, default=1e-3
        Learning rate.
    weight_decay : float, default=0.0
        Weight decay of AdamW.
    checkpoint : str or Path, default=None
        Folder of checkpoints; None for none.
    checkpoint_minutes : float, default=10.0
        Minutes between two checkpoints.
    """

    batch_size: int = 128
    lr: float = 1e-3
    weight_decay: float = 0.0
    checkpoint: str | Path | None = None
    checkpoint_minutes: float = 10.0


class NetworkEstimator(Protocol):
    """The parameters that estimators trained by `train_on_rows` share."""

    epochs: int
    batch_size: int
    lr: float
    weight_decay: float
    patience: int
    random_state: RandomState


def checked_training(model: NetworkEstimator, **more: Any) -> RowTraining:
    """Return the training settings of an estimator, checked; `more` are settings it does not have as parameters."""
    return RowTraining(
        epochs=check_integer("epochs", model.epochs, low=1),
        batch_size=check_integer("batch_size", model.batch_size, low=1),
        lr=check_real("lr", model.lr, low=0, open_low=True),
        weight_decay=check_real("weight_decay", model.weight_decay, low=0),
        patience=check_integer("patience", model.patience, low=1),
        seed=resolve_seed(model.random_state),
        **more,
    )
