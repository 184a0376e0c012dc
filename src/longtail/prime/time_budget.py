"""How many epochs of a training fit into some minutes: a few steps are timed and taken back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import torch

WARM_UP = {"cuda": 3, "cpu": 1}  # steps before those that are timed
TIMED = 20  # steps, at most
TIMED_TOGETHER = 5  # steps of several processes, which must all make as many
SHARE = 0.05  # of the minutes that may go into timing steps


class BudgetFacts(TypedDict):
    """What was planned for the minutes that were given, and what it took."""

    minutes: float  # given
    minutes_used: float
    epochs: int  # planned: as many as fit
    epochs_asked: int  # at most
    more_minutes: float  # that all these would have taken


class Enough(Exception):
    """Raised by a step that need not be followed by another."""


@dataclass
class TimeBudget:
    """The minutes of a training, from the moment that it is made.

    Parameters
    ----------
    minutes : float
        How long everything may take.
    device : torch.device
        Where the training runs.
    after : float, default=0.0
        Seconds of them that are needed when the training is done.
    each : float, default=0.0
        Seconds that an epoch takes beside its steps.
    alone : bool, default=True
        Whether this process trains by itself.
    """

    minutes: float
    device: torch.device
    after: float = 0.0
    each: float = 0.0
    alone: bool = True

    def __post_init__(self) -> None:
        self.started: float = time.perf_counter()
        self.planned = self.asked = 0  # epochs
        self.epoch_seconds: float = 0.0  # that an epoch took
        self._marks: list[float] = []

    def passed(self) -> float:
        """Return the seconds since the beginning; work that a GPU has queued is waited for."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter() - self.started

    def time_step(self, done: int, total: int) -> None:
        """Note that a step is done; raise `Enough` when the steps so far tell how long one takes."""
        self._marks.append(self.passed())
        spent, n_timed = self._marks[-1] - self._marks[0], len(self._marks) - 1 - WARM_UP[self.device.type]
        late = self.alone and spent > SHARE * 60 * self.minutes
        if late or done == total or n_timed >= (TIMED if self.alone else TIMED_TOGETHER):
            raise Enough

    def time_steps(self, run: Callable[[Callable[[int, int], None]], object]) -> float:
        """Return the seconds of a step; `run` makes some, and calls what it is given after each."""
        self._marks = [self.passed()]
        with contextlib.suppress(Enough):
            run(self.time_step)
        first = min(WARM_UP[self.device.type], len(self._marks) - 2)
        return (self._marks[-1] - self._marks[first]) / (len(self._marks) - 1 - first)

    def plan(self, n_steps: int, step_seconds: float, epochs: int) -> float:
        """Return how many epochs of `n_steps` fit, between 1 and `epochs`; a broken number, to be rounded down."""
        left = 60 * self.minutes - self.passed() - self.after
        return min(max(left / (n_steps * step_seconds + self.each), 1.0), float(epochs))

    def facts(self) -> BudgetFacts:
        """Return what was planned and what it has taken up to now."""
        return {
            "minutes": float(self.minutes),
            "minutes_used": self.passed() / 60,
            "epochs": self.planned,
            "epochs_asked": self.asked,
            "more_minutes": (self.asked - self.planned) * self.epoch_seconds / 60,
        }
