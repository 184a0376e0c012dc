"""Torch's devices, threads, precision and random numbers; torch itself is imported only when it is used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from longtail.errors import MissingExtraError, ModelError, ParameterError
from longtail.validate import resolve_jobs

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Network = TypeVar("Network", bound="nn.Module")
WORTH_THREADS = 50_000_000  # multiplications in a batch, below which a second thread costs more than it brings

GPU_MEMORY_SPENT = "the GPU has too little memory left for this; use a smaller encoder or batch, or device='cpu'."


def import_torch(needed_by: str = "BottleneckClassifier") -> Any:
    """Return torch, or say in one sentence how to install it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(needed_by, "torch", "torch") from error
    return torch


def require_transformers(needed_by: str = "Prime") -> None:
    """Say in one sentence how to install torch and transformers, where they are missing."""
    for package in ("torch", "transformers"):
        try:
            __import__(package)
        except ImportError as error:
            raise MissingExtraError(needed_by, package, "torch") from error


def pick_device(device: Any) -> torch.device:
    """Return the torch device of a name; None for a GPU if there is one, else the CPU."""
    torch = import_torch()
    if device is None:
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        told = "{name} must be {optional}the name of a torch device such as 'cpu'; got {got!r}."
        raise ParameterError(told, name="device", optional="None or ", got=device) from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ParameterError(name="device", problem=f"must be one that is there; got {device!r}, and there is no GPU.")
    if chosen.type not in ("cpu", "cuda"):
        raise ParameterError(name="device", allowed="None, 'cpu' or 'cuda' (with a number, 'cuda:1')", got=device)
    return chosen


def to_device(array: np.ndarray, device: torch.device | str) -> Tensor:
    """Return an array as a tensor on a device, without waiting for the work that a GPU has queued."""
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if torch.device(device).type != "cuda":
        return tensor.to(device)
    # a copy from ordinary memory would wait for the GPU, and the next step could not be prepared while it works
    return tensor.pin_memory().to(device, non_blocking=True)


def on_device(network: Network, device: Any) -> Network:
    """Return a network on the device of a name (see `pick_device`), moved there if it is elsewhere."""
    wanted, now = pick_device(device), next(p.device for p in network.parameters())
    there = now.type == wanted.type and wanted.index in (None, now.index)
    return network if there else network.to(wanted)


@contextlib.contextmanager
def torch_threads(n_jobs: int | None) -> Iterator[None]:
    """Limit torch to `n_jobs` threads, and to the number of cores; None leaves it its own number."""
    import torch

    before = torch.get_num_threads()
    if n_jobs is not None:
        torch.set_num_threads(min(resolve_jobs(n_jobs), resolve_jobs(None)))  # thousands would crash it
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def threads_for(n_jobs: int | None, network: nn.Module, rows_at_once: int) -> Iterator[None]:
    """Limit torch to `n_jobs` threads, and to one thread where batches are too small for more to help."""
    if n_jobs is not None:
        resolve_jobs(n_jobs)  # refused also where batches are small
    little = rows_at_once * sum(p.numel() for p in network.parameters()) < WORTH_THREADS
    with torch_threads(1 if little else n_jobs):
        yield


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Draw torch's random numbers from a seed; afterwards its generators are as they were before."""
    import torch

    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def gpu_memory_errors() -> Iterator[None]:
    """Say in one sentence that the memory of a GPU is spent."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise ModelError(GPU_MEMORY_SPENT) from error


def get_random_state(device: torch.device) -> tuple[Tensor, ...]:
    """Return the state of torch's random numbers: of the CPU and, on a GPU, of that too."""
    import torch

    states = (torch.get_rng_state(),)
    return (*states, torch.cuda.get_rng_state(device)) if device.type == "cuda" else states


def set_random_state(states: tuple[Tensor, ...], device: torch.device) -> None:
    """Go back to a state that `get_random_state` has returned for the same device."""
    import torch

    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)


def computes_bfloat16(device: torch.device) -> bool:
    """Say whether a device multiplies numbers of 16 bits faster than float32: a GPU, or a CPU made for it."""
    import torch

    if device.type != "cpu":
        return device.type == "cuda"
    asked = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(ask is not None and ask() for ask in asked)


def mixed_precision(device: torch.device, mixed: bool, on_cpu: bool = False) -> AbstractContextManager[Any]:
    """Return a context in which a GPU, and with `on_cpu` a CPU made for it, computes in bfloat16 where that is safe."""
    import torch

    wanted = mixed and (on_cpu or device.type == "cuda") and computes_bfloat16(device)
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted)
