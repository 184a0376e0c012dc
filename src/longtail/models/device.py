"""torch, where a model needs it: whether it is there, which device, how many threads. Imported only when used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from longtail.errors import MissingExtraError, ParameterError
from longtail.validate import resolve_jobs

if TYPE_CHECKING:
    from torch import nn

WORTH_THREADS = 50_000_000  # multiplications in a batch, below which a second thread costs more than it brings


def import_torch() -> Any:
    """Return torch, or say in one sentence how to install it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("BottleneckClassifier", "torch", "torch") from error
    return torch


def pick_device(device: Any) -> Any:
    """Return the torch device of a name; None for a GPU if there is one, else the CPU."""
    torch = import_torch()
    if device is None:
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        allowed = "None or the name of a torch device such as 'cpu'"
        raise ParameterError(f"device must be {allowed}; got {device!r}.") from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ParameterError(f"device must be one that is there; got {device!r}, and there is no GPU.")
    if found.type not in ("cpu", "cuda"):
        raise ParameterError(f"device must be None, 'cpu' or 'cuda' (with a number, 'cuda:1'); got {device!r}.")
    return found


@contextlib.contextmanager
def torch_threads(n_jobs: Any, network: nn.Module, rows_at_once: int) -> Iterator[None]:
    """Let torch use so many threads, one where there is little to do; None leaves it its own number."""
    torch = import_torch()
    before = torch.get_num_threads()
    wanted = before if n_jobs is None else min(resolve_jobs(n_jobs), resolve_jobs(None))  # thousands would crash it
    little = rows_at_once * sum(p.numel() for p in network.parameters()) < WORTH_THREADS
    torch.set_num_threads(1 if little else wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
