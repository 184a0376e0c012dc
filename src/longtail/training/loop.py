"""The training loop: shuffled batches, early stopping, checkpoints that resume to the same weights.

The loop knows nothing of the data. It is given a function that turns row numbers into a loss, and calls it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longtail.errors import ModelError
from longtail.training.checkpoint import Checkpoint, Position, State, copy_weights

# The loss is a mean over all labels, most of which a row does not have: gradients are tiny, and Adam's usual 1e-8
# beside them would act as a smaller step for rare labels.
ADAM_EPS = 1e-12
NOT_PART_OF_IDENTITY = ("epochs", "patience", "checkpoint", "checkpoint_minutes")


@dataclass(frozen=True)
class Training:
    """How to train.

    epochs : at most this many passes over the rows.
    batch_size : rows whose loss is computed at once; `accumulate` such batches make one step of the optimiser.
    lr, weight_decay : of AdamW.
    patience : stop after this many epochs without a better validation loss.
    mixed : on a GPU, compute in bfloat16 where that is safe; weights stay float32.
    seed : of the order of rows and of dropout.
    checkpoint : folder for a checkpoint every `checkpoint_minutes`; None for none.
    """

    epochs: int = 50
    batch_size: int = 128
    lr: float = 1e-3
    weight_decay: float = 0.0
    patience: int = 5
    accumulate: int = 1
    mixed: bool = True
    seed: int = 0
    checkpoint: str | Path | None = None
    checkpoint_minutes: float = 10.0


@dataclass(frozen=True)
class Epoch:
    """What one epoch brought: mean loss on the training rows, loss on the validation rows, whether it is the best."""

    epoch: int
    loss: float
    valid_loss: float | None
    best: bool
    seconds: float


def train(
    model: nn.Module,
    batch_loss: Callable[[Tensor], Tensor],  # row numbers, int64 on the CPU -> mean loss over these rows
    n_rows: int,
    how: Training,
    *,
    valid_loss: Callable[[], float] | None = None,
    identity: Any = None,
    on_batch: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> list[dict[str, Any]]:
    """Train a model in place and return one record per epoch.

    With `valid_loss`, training stops when it has not fallen for `patience` epochs, and the model gets the weights of
    its best epoch; without, it runs all epochs and keeps the last weights. `identity` is JSON that tells this training
    from others in the same checkpoint folder, such as a digest of the data. `on_batch(done, total)` counts steps;
    `on_epoch` gets each `Epoch`. An interrupted training leaves its last checkpoint and goes on from there when it is
    called again; on a CPU it ends with the same weights, to the last bit.

    >>> _ = torch.manual_seed(0)
    >>> X, y = torch.randn(64, 3), torch.randn(64, 1)
    >>> model = nn.Linear(3, 1)
    >>> history = train(model, lambda rows: nn.functional.mse_loss(model(X[rows]), y[rows]), 64, Training(epochs=3))
    >>> [record["epoch"] for record in history], history[2]["loss"] < history[0]["loss"]
    ([1, 2, 3], True)
    """
    device = next(model.parameters()).device
    state = State(model, _optimizers(model, how), Position(), None, torch.zeros((), device=device))
    checkpoint = None
    if how.checkpoint is not None:
        settings = {name: value for name, value in asdict(how).items() if name not in NOT_PART_OF_IDENTITY}
        checkpoint = Checkpoint(how.checkpoint, [identity, settings, n_rows, device.type], model)
    rows_per_step = how.batch_size * how.accumulate
    n_steps = -(-n_rows // rows_per_step)
    written = time.monotonic()

    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(how.seed)
        if checkpoint is not None:
            checkpoint.restore(state)
        while state.at.epoch < how.epochs and state.at.worse < how.patience:
            started = time.monotonic()
            # from the seed and the epoch alone: a resumed epoch has the same order
            order = np.random.default_rng([how.seed, state.at.epoch]).permutation(n_rows)
            model.train()
            for step in range(state.at.step, n_steps):
                rows = torch.from_numpy(order[step * rows_per_step : (step + 1) * rows_per_step])
                state.loss_sum += _step(state.optimizers, batch_loss, rows, how, device) * len(rows)
                state.at.step = step + 1
                if on_batch is not None:
                    on_batch(state.at.epoch * n_steps + step + 1, how.epochs * n_steps)
                if checkpoint is not None and time.monotonic() - written >= 60 * how.checkpoint_minutes:
                    checkpoint.save(state)
                    written = time.monotonic()
            record = _end_epoch(state, n_rows, valid_loss, how, device, time.monotonic() - started)
            if on_epoch is not None:
                on_epoch(record)
    if state.best is not None:
        model.load_state_dict(state.best)
    model.eval()
    if checkpoint is not None:
        checkpoint.remove()
    return state.at.history


def _optimizers(model: nn.Module, how: Training) -> list[torch.optim.Optimizer]:
    """Return AdamW, and SparseAdam for the weights of layers that say `sparse`: it moves only what a batch has met."""
    sparse = [layer.weight for layer in model.modules() if getattr(layer, "sparse", False)]
    rest = [p for p in model.parameters() if p.requires_grad and not any(p is other for other in sparse)]
    out: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=how.lr, weight_decay=how.weight_decay, eps=ADAM_EPS, fused=True)
    ]
    return [*out, torch.optim.SparseAdam(sparse, lr=how.lr, eps=ADAM_EPS)] if sparse else out


def _step(
    optimizers: list[torch.optim.Optimizer],
    batch_loss: Callable[[Tensor], Tensor],
    rows: Tensor,
    how: Training,
    device: torch.device,
) -> Tensor:
    """Change the weights once and return the mean loss over the rows."""
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    total = torch.zeros((), device=device)
    for part in torch.split(rows, how.batch_size):
        with _precision(how, device):
            loss = batch_loss(part).float() * (len(part) / len(rows))
        loss.backward()
        total += loss.detach()
    for optimizer in optimizers:
        optimizer.step()
    return total


def _end_epoch(
    state: State,
    n_rows: int,
    valid_loss: Callable[[], float] | None,
    how: Training,
    device: torch.device,
    seconds: float,
) -> Epoch:
    """Judge the epoch, keep its weights if they are the best so far, and move on to the next."""
    at = state.at
    loss, judged = float(state.loss_sum) / n_rows, None
    if valid_loss is not None:
        state.model.eval()
        with torch.no_grad(), _precision(how, device):
            judged = float(valid_loss())
    if not math.isfinite(loss) or (judged is not None and not math.isfinite(judged)):
        raise ModelError(f"training diverged: the loss is not finite in epoch {at.epoch + 1}; use a smaller lr.")
    best = judged is not None and (at.best_loss is None or judged < at.best_loss)
    if best:
        at.best_loss, at.worse, state.best = judged, 0, copy_weights(state.model)
    elif judged is not None:
        at.worse += 1
    record = Epoch(at.epoch + 1, loss, judged, best, seconds)
    at.history.append({name: value for name, value in asdict(record).items() if name != "seconds"})
    at.epoch, at.step = at.epoch + 1, 0
    state.loss_sum = torch.zeros((), device=device)
    return record


def _precision(how: Training, device: torch.device) -> Any:
    return torch.autocast(device.type, torch.bfloat16, enabled=how.mixed and device.type == "cuda")
