"""Training on shuffled rows with AdamW: what the networks of `bottleneck` and `groups` have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longtail.kernels import blocks
from longtail.training.checkpoint import Checkpoint, Epoch, Validation
from longtail.training.loop import train
from longtail.training.settings import RowTraining
from longtail.training.torch_runtime import mixed_precision

# The loss is a mean over all labels, most of which a row does not have: gradients are tiny, and Adam's usual 1e-8
# beside them would act as a smaller step for rare labels.
ADAM_EPS = 1e-12
NOT_PART_OF_IDENTITY = ("epochs", "patience", "checkpoint", "checkpoint_minutes")


def train_on_rows(
    model: nn.Module,
    batch_loss: Callable[[Tensor], Tensor],
    n_rows: int,
    how: RowTraining,
    *,
    validate: Callable[[], float | Validation] | None = None,
    identity: object = None,
    on_step: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> list[dict[str, Any]]:
    """Train a model in place on batches of row numbers and return one record per epoch.

    Parameters
    ----------
    model : nn.Module
        The network to train.
    batch_loss : callable (Tensor) -> Tensor
        From row numbers (int64, on the CPU) to the mean loss over these rows.
    n_rows : int
        Number of rows.
    how : RowTraining
        Epochs, batches, optimiser, checkpoints.
    validate : callable () -> float or Validation, default=None
        A loss on held-out rows, or loss and precision; see `longtail.training.train`.
    identity : JSON, default=None
        Tells this training from others in the same checkpoint folder, such as a digest of the data.
    on_step, on_epoch : callable, default=None
        See `longtail.training.train`.

    Returns
    -------
    list of dict
        Per epoch its number (`epoch`), `loss`, `valid_loss`, `valid_precision` where it decides, and whether it was the
        `best` so far.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> X, y = torch.randn(64, 3), torch.randn(64, 1)
    >>> model = nn.Linear(3, 1)
    >>> loss = lambda rows: nn.functional.mse_loss(model(X[rows]), y[rows])
    >>> history = train_on_rows(model, loss, 64, RowTraining(epochs=3))
    >>> [record["epoch"] for record in history], history[2]["loss"] < history[0]["loss"]
    ([1, 2, 3], True)
    """
    checkpoint = None
    if how.checkpoint is not None:
        device = next(model.parameters()).device
        settings = {name: value for name, value in asdict(how).items() if name not in NOT_PART_OF_IDENTITY}
        checkpoint = Checkpoint(
            how.checkpoint, [identity, settings, n_rows, device.type], model, how.checkpoint_minutes
        )
    step_rows = how.batch_size * how.accumulate
    state = train(
        model,
        adam_optimizers(model, how),
        -(-n_rows // how.batch_size),
        lambda epoch: shuffled_batches(n_rows, how.batch_size, how.seed, epoch),
        batch_loss,
        how,
        step_weight=lambda step: min(step_rows, n_rows - step * step_rows),
        validate=validate,
        checkpoint=checkpoint,
        on_step=on_step,
        on_epoch=on_epoch,
    )
    if checkpoint is not None:
        checkpoint.remove()
    return [epoch_record(record) for record in state.history]


def epoch_record(record: Epoch) -> dict[str, Any]:
    """Return an epoch as estimators keep it: without its time, and with a precision only where there is one."""
    facts = asdict(record)
    del facts["seconds"]
    if record.valid_precision is None:
        del facts["valid_precision"]
    return facts


def shuffled_batches(n_rows: int, batch_size: int, seed: int, epoch: int) -> Iterator[Tensor]:
    """Yield the row numbers of an epoch in random order, batch by batch; they follow from seed and epoch alone."""
    order = torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(n_rows))
    yield from order.split(batch_size)


def adam_optimizers(model: nn.Module, how: RowTraining) -> list[torch.optim.Optimizer]:
    """Return AdamW, and SparseAdam for layers with `sparse=True`: it moves only the weights that a batch has used."""
    sparse = [layer.weight for layer in model.modules() if getattr(layer, "sparse", False)]
    rest = [p for p in model.parameters() if p.requires_grad and not any(p is other for other in sparse)]
    out: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=how.lr, weight_decay=how.weight_decay, eps=ADAM_EPS, fused=True)
    ]
    return [*out, torch.optim.SparseAdam(sparse, lr=how.lr, eps=ADAM_EPS)] if sparse else out


def mean_loss_over(
    batch_loss: Callable[[Tensor], Tensor], n_rows: int, how: RowTraining, device: torch.device
) -> Callable[[], float]:
    """Return a function that computes the mean loss over rows 0 to n_rows - 1, for `validate`."""

    def mean_loss() -> float:
        with mixed_precision(device, how.mixed):
            parts = (torch.arange(at.start, at.stop) for at in blocks(n_rows, how.batch_size))
            return sum(float(batch_loss(part)) * len(part) for part in parts) / n_rows

    return mean_loss
