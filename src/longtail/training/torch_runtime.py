"""torch, where a model needs it: whether it is there, which device, how many threads. Imported only when used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from longtail.errors import MissingExtraError, ParameterError
from longtail.validate import check_integer, check_real, resolve_seed

if TYPE_CHECKING:
    from torch import nn

    from longtail.training.loop import Training

WORTH_THREADS = 50_000_000  # multiplications in a batch, below which a second thread costs more than it brings


def import_torch(needed_by: str = "BottleneckClassifier") -> Any:
    """Return torch, or say in one sentence how to install it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(needed_by, "torch", "torch") from error
    return torch


def import_nn() -> None:
    """Say in one sentence how to install torch and transformers, where they are missing."""
    for package in ("torch", "transformers"):
        try:
            __import__(package)
        except ImportError as error:
            raise MissingExtraError("Prime", package, "torch") from error


def pick_device(device: Any) -> Any:
    """Return the torch device of a name; None for a GPU if there is one, else the CPU."""
    torch = import_torch()
    if device is None:
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        told = "{name} must be {optional}the name of a torch device such as 'cpu'; got {got!r}."
        raise ParameterError(told, name="device", optional="None or ", got=device) from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ParameterError(name="device", problem=f"must be one that is there; got {device!r}, and there is no GPU.")
    if found.type not in ("cpu", "cuda"):
        raise ParameterError(name="device", allowed="None, 'cpu' or 'cuda' (with a number, 'cuda:1')", got=device)
    return found


@contextlib.contextmanager
def threads_for(n_jobs: Any, network: nn.Module, rows_at_once: int) -> Iterator[None]:
    """Let torch use so many threads, one where there is little to do; None leaves it its own number."""
    import_torch()
    from longtail.training.thread_limit import torch_threads

    little = rows_at_once * sum(p.numel() for p in network.parameters()) < WORTH_THREADS
    with torch_threads(1 if little else n_jobs):
        yield


def checked_training(model: Any, **more: Any) -> Training:
    """Return how a network is trained, from the parameters that its estimators share."""
    from longtail.training.loop import Training

    return Training(
        epochs=check_integer("epochs", model.epochs, low=1),
        batch_size=check_integer("batch_size", model.batch_size, low=1),
        lr=check_real("lr", model.lr, low=0, open_low=True),
        weight_decay=check_real("weight_decay", model.weight_decay, low=0),
        patience=check_integer("patience", model.patience, low=1),
        seed=resolve_seed(model.random_state),
        **more,
    )
