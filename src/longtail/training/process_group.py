"""Data-parallel training under torchrun: one process per GPU, each with its share of every batch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of one training; a single one unless `torchrun` started more.

    Parameters
    ----------
    rank : int, default=0
        Number of this process.
    world : int, default=1
        Number of processes.

    Examples
    --------
    >>> alone = ProcessGroup.start(torch.device("cpu"))
    >>> alone.world, alone.share(np.arange(3)).tolist()
    (1, [0, 1, 2])
    """

    rank: int = 0
    world: int = 1

    @classmethod
    def start(cls, device: torch.device) -> ProcessGroup:
        """Join the other processes, where there are any (WORLD_SIZE and RANK in the environment)."""
        world = int(os.environ.get("WORLD_SIZE", "1"))
        if world == 1 or not dist.is_available():
            return cls()
        if device.type == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        if not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        return cls(dist.get_rank(), world)

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes files."""
        return self.rank == 0

    def share(self, rows: np.ndarray) -> np.ndarray:
        """Return this process's rows of a batch; all of them where there are too few to share."""
        return np.array_split(rows, self.world)[self.rank] if rows.size >= 2 * self.world else rows

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give every process the mean of all gradients."""
        if self.world == 1:
            return
        for parameter in parameters:
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= self.world

    def mean(self, value: Tensor) -> Tensor:
        """Return the mean of a number over all processes."""
        if self.world > 1:
            value = value.clone()
            dist.all_reduce(value)
            value /= self.world
        return value

    def gather(self, values: Tensor) -> Tensor:
        """Return the rows of all processes, one after the other; they may differ in number."""
        if self.world == 1:
            return values
        count = torch.tensor([values.shape[0]], device=values.device)
        counts = [torch.zeros_like(count) for _ in range(self.world)]
        dist.all_gather(counts, count)
        largest = max(int(n) for n in counts)
        padded = values.new_zeros(largest, *values.shape[1:])
        padded[: values.shape[0]] = values
        gathered = [torch.empty_like(padded) for _ in range(self.world)]
        dist.all_gather(gathered, padded)
        return torch.cat([part[: int(n)] for part, n in zip(gathered, counts, strict=True)])


ALONE = ProcessGroup()
