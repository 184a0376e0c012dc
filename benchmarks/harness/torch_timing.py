"""Time of training steps in torch, on a GPU or a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

STEPS, WARM = 60, 10  # steps that are timed, after so many that are not


def device() -> torch.device:
    """Return the GPU, or the CPU where there is none."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait(forget_peak: bool = False) -> None:
    """Wait until the GPU has done everything; if asked, start counting its peak of memory anew."""
    if device().type == "cuda":
        torch.cuda.synchronize()
        if forget_peak:
            torch.cuda.reset_peak_memory_stats()


def timed_steps(step: Callable[[], None], batch: int) -> dict[str, float]:
    """Run steps to warm up, then those that are timed; return the rates."""
    for _ in range(WARM):
        step()
    wait(forget_peak=True)
    started = time.perf_counter()
    for _ in range(STEPS):
        step()
    wait()
    return rates(time.perf_counter() - started, batch)


def rates(seconds: float, batch: int) -> dict[str, float]:
    """Return rows per second, milliseconds a step and the peak of GPU memory, of steps that took so long."""
    memory = torch.cuda.max_memory_allocated() / 2**30 if device().type == "cuda" else 0.0
    return {"rows_per_s": STEPS * batch / seconds, "ms_per_step": 1e3 * seconds / STEPS, "gpu_gib": memory}
