"""The training loop of all networks: epochs, batches, steps, validation, checkpoints.

The loop knows neither data nor method. A method gives it batches and a function from a batch to its loss; everything
else that differs between methods is an optional argument.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor, nn

from longtail.errors import ModelError
from longtail.training.checkpoint import Checkpoint, Epoch, TrainingState, Validation, copy_weights
from longtail.training.process_group import ALONE, ProcessGroup
from longtail.training.settings import Training
from longtail.training.torch_runtime import (
    GPU_MEMORY_SPENT,
    get_random_state,
    mixed_precision,
    seeded,
    set_random_state,
)

Batch = TypeVar("Batch")


def train(
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    n_batches: int,
    epoch_batches: Callable[[int], Iterable[Batch]],
    batch_loss: Callable[[Batch], Tensor],
    how: Training,
    *,
    begin_epoch: Callable[[int], None] | None = None,
    learning_rate: Callable[[int, int], float] | None = None,
    step_weight: Callable[[int], float] | None = None,
    validate: Callable[[], float | Validation] | None = None,
    extra: Mapping[str, Tensor] | None = None,
    processes: ProcessGroup = ALONE,
    checkpoint: Checkpoint | None = None,
    out_of_memory: Callable[[], bool] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> TrainingState:
    """Train a model in place and return the state at the end, with a record of every epoch.

    Interrupted and called again with the same checkpoint, it goes on from there; on a CPU it ends with the same
    weights, to the last bit.

    Parameters
    ----------
    model : nn.Module
        The network to train.
    optimizers : sequence of torch.optim.Optimizer
        Optimisers of its weights; all of them make a step together.
    n_batches : int
        Batches of an epoch.
    epoch_batches : callable (epoch) -> iterable of batches
        The batches of an epoch, counted from 0; the same ones whenever the same epoch is asked for.
    batch_loss : callable (batch) -> Tensor
        The loss of a batch, a number with a gradient. It runs in mixed precision if `how` says so.
    how : Training
        Epochs, patience, accumulation, precision, seed.
    begin_epoch : callable (epoch) -> None, default=None
        Called before an epoch, but not before the rest of an interrupted one.
    learning_rate : callable (step, n_steps) -> float, default=None
        Learning rate of every step of the training; None leaves that of the optimisers.
    step_weight : callable (step) -> float, default=None
        Weight of each step of an epoch in the mean loss that is recorded; None weights all steps alike.
    validate : callable () -> float or Validation, default=None
        A loss on held-out rows, called after every epoch. Training stops after `how.patience` epochs without a lower
        one, and the model gets the weights of its best epoch. Where it returns a precision too, the highest precision
        decides instead. None trains all epochs and keeps the last weights.
    extra : mapping of str to Tensor, default=None
        Further tensors that training changes in place; they are saved in checkpoints beside the weights.
    processes : ProcessGroup, default=ALONE
        The processes that share the batches; gradients and losses are averaged over them.
    checkpoint : Checkpoint, default=None
        Where the state is saved from time to time, by the first process. The caller removes it.
    out_of_memory : callable () -> bool, default=None
        Called where the GPU had too little memory for a step: it makes the next attempt need less and takes back what
        `batch_loss` has changed beside gradients, and the step begins again. False where nothing smaller is possible.
    on_step : callable (done, n_steps) -> None, default=None
        Called after every step.
    on_epoch : callable (Epoch) -> None, default=None
        Called after every epoch.

    Returns
    -------
    TrainingState
        Its `history` holds one `Epoch` per epoch.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> X, y = torch.randn(64, 3), torch.randn(64, 1)
    >>> model = nn.Linear(3, 1)
    >>> loss = lambda rows: nn.functional.mse_loss(model(X[rows]), y[rows])
    >>> adam = torch.optim.Adam(model.parameters(), lr=0.1)
    >>> state = train(model, [adam], 4, lambda epoch: torch.randperm(64).split(16), loss, Training(epochs=3))
    >>> [record.epoch for record in state.history], state.history[2].loss < state.history[0].loss
    ([1, 2, 3], True)
    """
    device = next(model.parameters()).device
    state = TrainingState(model, list(optimizers), dict(extra or {}), loss_sum=torch.zeros((), device=device))
    n_steps = -(-n_batches // how.accumulate)  # of an epoch
    weights = [1.0 if step_weight is None else step_weight(step) for step in range(n_steps)]

    with seeded(how.seed, device):
        if checkpoint is not None:
            checkpoint.restore(state)
        while state.epoch < how.epochs and state.epochs_since_best < how.patience:
            started = time.monotonic()
            if state.step == 0 and begin_epoch is not None:
                begin_epoch(state.epoch)
            batches = islice(epoch_batches(state.epoch), state.step * how.accumulate, None)
            model.train()

            for step in range(state.step, n_steps):
                if learning_rate is not None:
                    _set_lr(optimizers, learning_rate(state.epoch * n_steps + step, how.epochs * n_steps))
                n_together = min(how.accumulate, n_batches - step * how.accumulate)
                together = islice(batches, n_together)
                _add_gradients(state, together, n_together, weights[step], batch_loss, how, processes, out_of_memory)
                processes.average_gradients(model.parameters())
                for optimizer in optimizers:
                    optimizer.step()
                state.step = step + 1
                if on_step is not None:
                    on_step(state.epoch * n_steps + step + 1, how.epochs * n_steps)
                if checkpoint is not None and processes.is_first:
                    checkpoint.save_if_due(state)

            mean_loss = float(state.loss_sum) / sum(weights)
            valid_loss, precision, floor = _validate(state, mean_loss, validate)
            to_beat = valid_loss if precision is None else -precision
            best = to_beat is not None and (state.best_loss is None or to_beat < state.best_loss)
            if best:
                state.best_loss, state.best, state.epochs_since_best = to_beat, copy_weights(model), 0
            elif to_beat is not None and (precision is None or -(state.best_loss or 0.0) > floor):
                state.epochs_since_best += 1
            state.epoch, state.step = state.epoch + 1, 0
            state.loss_sum = torch.zeros((), device=device)
            seconds = time.monotonic() - started
            state.history.append(Epoch(state.epoch, mean_loss, valid_loss, best, seconds, precision))
            if on_epoch is not None:
                on_epoch(state.history[-1])

    if state.best is not None:
        model.load_state_dict(state.best)
    model.eval()
    return state


def _add_gradients(
    state: TrainingState,
    batches: Iterable[Batch],
    n_batches: int,
    weight: float,
    batch_loss: Callable[[Batch], Tensor],
    how: Training,
    processes: ProcessGroup = ALONE,
    out_of_memory: Callable[[], bool] | None = None,
) -> None:
    """Give the weights the mean gradient of the batches of one step, and add their loss to the state's sum."""
    if out_of_memory is None:
        _backward(state, batches, n_batches, weight, batch_loss, how, processes)
        return
    device, rest = state.loss_sum.device, iter(batches)
    seen: list[Batch] = []
    random, loss_sum = get_random_state(device), state.loss_sum.clone()

    def again() -> Iterator[Batch]:
        yield from list(seen)
        for batch in rest:
            seen.append(batch)
            yield batch

    while not _fits(lambda: _backward(state, again(), n_batches, weight, batch_loss, how, processes)):
        if not out_of_memory():
            raise ModelError(GPU_MEMORY_SPENT)
        state.loss_sum.copy_(loss_sum)
        set_random_state(random, device)


def _backward(
    state: TrainingState,
    batches: Iterable[Batch],
    n_batches: int,
    weight: float,
    batch_loss: Callable[[Batch], Tensor],
    how: Training,
    processes: ProcessGroup,
) -> None:
    """Make the gradients of the batches of one step from nothing."""
    device = state.loss_sum.device
    for optimizer in state.optimizers:
        optimizer.zero_grad(set_to_none=True)
    for batch in batches:
        with mixed_precision(device, how.mixed, how.MIXED_ON_CPU):
            loss = batch_loss(batch).float()
        (loss / n_batches).backward()
        state.loss_sum += weight * (processes.mean(loss.detach()) / n_batches)


def _fits(attempt: Callable[[], None]) -> bool:
    """Say whether the GPU had enough memory for an attempt; what a failed one held is free afterwards."""
    try:
        attempt()
    except torch.cuda.OutOfMemoryError:
        pass  # the tensors of its frames are free when the exception is
    else:
        return True
    torch.cuda.empty_cache()
    return False


def warmup_and_decay(lr: float, warmup: int) -> Callable[[int, int], float]:
    """Return a learning rate that rises to `lr` over the first steps and then falls to 0 on a straight line.

    The warm-up is at most a tenth of all steps.

    >>> rate = warmup_and_decay(1.0, warmup=1)
    >>> [rate(step, 10) for step in (0, 1, 4, 9)]
    [0.5, 1.0, 0.6666666666666666, 0.1111111111111111]
    """

    def rate(step: int, n_steps: int) -> float:
        rising = min(warmup, n_steps // 10)
        share = (step + 1) / (rising + 1) if step < rising else (n_steps - step) / max(1, n_steps - rising)
        return lr * share

    return rate


def _set_lr(optimizers: Sequence[torch.optim.Optimizer], lr: float) -> None:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = lr


def _validate(
    state: TrainingState, mean_loss: float, validate: Callable[[], float | Validation] | None
) -> tuple[float | None, float | None, float]:
    """Return loss, precision and its floor on held-out rows, as far as there are any; refuse one that diverged."""
    weights_finite = all(bool(p.isfinite().all()) for p in state.model.parameters())
    valid_loss, precision, floor = None, None, 0.0
    if validate is not None and weights_finite:
        state.model.eval()
        with torch.no_grad():
            judged = validate()
        valid_loss, precision, floor = judged if isinstance(judged, Validation) else (float(judged), None, 0.0)
    if not (weights_finite and math.isfinite(mean_loss) and (valid_loss is None or math.isfinite(valid_loss))):
        what = "weights are" if math.isfinite(mean_loss) and not weights_finite else "loss is"
        raise ModelError(f"training diverged: the {what} not finite in epoch {state.epoch + 1}; use a smaller lr.")
    return valid_loss, precision, floor
