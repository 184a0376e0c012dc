"""The interface of all engines: arrays are shared, work is mapped over tasks, results are gathered.

What a task computes depends on the shared arrays, the settings and the task alone. So the results are the same on any
engine, for any number of machines, and a task that was lost with its machine is simply repeated.
"""

from __future__ import annotations

import contextlib
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Self, TypeAlias, TypeVar

import numpy as np

from longtail.engine.checkpoint import Checkpoint
from longtail.validate import Json

Prepared = TypeVar("Prepared")
Arrays: TypeAlias = "dict[str, np.ndarray]"
"""Arrays by name: all that is shared, and all that a task returns."""


@dataclass(frozen=True)
class Work(Generic[Prepared]):
    """What is done with every task, as two functions of a module, which another process finds by their names.

    Attributes
    ----------
    prepare : callable
        `prepare(arrays, settings)` makes what all tasks need, once in every process; arrays may be read-only.
    run : callable
        `run(prepared, task)` does one task and returns its result as arrays by name.
    """

    prepare: Callable[[Arrays, Json], Prepared]
    run: Callable[[Prepared, Any], Arrays]

    @property
    def name(self) -> str:
        """The module and the two functions, for checkpoints."""
        return f"{self.run.__module__}:{self.prepare.__qualname__}:{self.run.__qualname__}"


@dataclass
class Shared:
    """Arrays that every task can read; `handle` is what an engine calls them by."""

    arrays: Arrays
    handle: Any = None

    @cached_property
    def digest(self) -> str:
        """A digest of names, types, shapes and bytes."""
        out = hashlib.blake2b(digest_size=20)
        for name, array in sorted(self.arrays.items()):
            out.update(f"{name} {array.dtype.str} {array.shape};".encode())
            out.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return out.hexdigest()


@dataclass
class Run:
    """One work over many tasks, as an engine gets it.

    Attributes
    ----------
    work : Work
    shared : sequence of Shared
        Their arrays together are given to `work.prepare`.
    settings : dict
        JSON-able, given to `work.prepare` too.
    tasks : sequence
        One for every call of `work.run`: numbers, words, lists and dictionaries of them, arrays.
    order : list of int
        Numbers of the tasks that are still to be done, in the order to begin them.
    keep : callable
        `keep(number, result)`, to be called once per task from any thread.
    told : callable
        `told(number)`, to be called once per task from the thread that began the run.
    stop : callable or None
        To be called when the run is broken off, to end running tasks early.
    """

    work: Work
    shared: Sequence[Shared]
    settings: Json
    tasks: Sequence[Any]
    order: list[int]
    keep: Callable[[int, Arrays], None]
    told: Callable[[int], None]
    stop: Callable[[], None] | None = None
    arrays: Arrays = field(init=False)

    def __post_init__(self) -> None:
        self.arrays = {name: array for one in self.shared for name, array in one.arrays.items()}


class Engine(ABC):
    """Where blocks of work run.

    Attributes
    ----------
    in_process : bool
        Whether tasks run in this process, and read its memory.
    checkpoint : Checkpoint or None
        Where the results of finished tasks are kept.
    """

    in_process: bool = False
    checkpoint: Checkpoint | None = None

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many tasks run at once."""

    def share(self, arrays: Arrays) -> Shared:
        """Let all tasks read these arrays; nothing may change them until the last task is done."""
        return Shared(arrays)

    @abstractmethod
    def _do(self, run: Run) -> None:
        """Do the tasks of a run that are still to be done."""

    def map(
        self,
        work: Work,
        shared: Sequence[Shared],
        settings: Json,
        tasks: Sequence[Any],
        *,
        costs: Sequence[float] | np.ndarray | None = None,
        told: Callable[[int], None] | None = None,
        stop: Callable[[], None] | None = None,
    ) -> list[Arrays]:
        """Return the results of all tasks, in their order; with `costs`, those that cost most are begun first.

        `told(number)` is called as tasks are finished. Where the engine has a checkpoint, tasks whose results it holds
        are not done again.

        >>> import numpy as np
        >>> from longtail.engine import LocalEngine, Work
        >>> squares = Work(lambda arrays, settings: arrays["x"], lambda x, task: {"y": x[task : task + 1] ** 2})
        >>> engine = LocalEngine(n_jobs=2)
        >>> [int(out["y"][0]) for out in engine.map(squares, [engine.share({"x": np.arange(4)})], {}, [3, 1])]
        [9, 1]
        """
        out: dict[int, Arrays] = {}
        order = list(range(len(tasks)))
        if costs is not None:
            order.sort(key=lambda i: -costs[i])
        tell = (lambda i: None) if told is None else told
        keep = out.__setitem__
        if self.checkpoint is not None:
            known = self.checkpoint
            keys = known.keys(work.name, [one.digest for one in shared], settings, tasks)
            for i in order:
                result = known.find(keys[i])
                if result is not None:
                    out[i] = result
                    tell(i)
            order = [i for i in order if i not in out]

            def keep(i: int, result: Arrays) -> None:
                known.add(keys[i], result)
                out[i] = result

        if order:
            self._do(Run(work, shared, settings, tasks, order, keep, tell, stop))
        return [out[i] for i in range(len(tasks))]

    def close(self) -> None:  # noqa: B027  threads have nothing to let go of
        """Let go of what the engine holds; it cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_IN_USE: ContextVar[Engine | None] = ContextVar("engine_in_use", default=None)


def in_use() -> Engine | None:
    """Return the engine of the innermost `running_on`; None outside, where work runs on threads."""
    return _IN_USE.get()


@contextlib.contextmanager
def running_on(engine: Engine | None) -> Iterator[None]:
    """Let all work within run on an engine, however deep; None changes nothing.

    >>> from longtail.engine import LocalEngine, in_use, running_on
    >>> with running_on(LocalEngine(n_jobs=1)):
    ...     in_use().workers
    1
    >>> in_use() is None
    True
    """
    before = _IN_USE.set(_IN_USE.get() if engine is None else engine)
    try:
        yield
    finally:
        _IN_USE.reset(before)
