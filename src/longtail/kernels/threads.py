"""Running independent tasks on threads: results in order, interruptible, the same for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]  # (done, total)


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    n_jobs: int,
    progress: Progress | None = None,
    stop: Callable[[], None] | None = None,
) -> list[Result]:
    """Return `[function(t) for t in tasks]`, computed by `n_jobs` threads; kernels release the GIL.

    Ctrl-C stops after the tasks that are running; `stop` is called then, to end those early.

    >>> run_tasks(lambda x: x * x, [1, 2, 3], n_jobs=2)
    [1, 4, 9]
    """
    total = len(tasks)
    out: list[Result] = []
    for result in _results(function, tasks, min(n_jobs, total), stop):
        out.append(result)
        if progress is not None:
            progress(len(out), total)
    return out


def _results(
    function: Callable[[Task], Result], tasks: Sequence[Task], n_jobs: int, stop: Callable[[], None] | None
) -> Iterator[Result]:
    if n_jobs <= 1:
        yield from map(function, tasks)
        return
    pool = ThreadPoolExecutor(n_jobs)
    try:
        yield from pool.map(function, tasks)
    except BaseException:
        if stop is not None:
            stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def blocks(n: int, size: int) -> list[slice]:
    """Return consecutive slices of at most `size` that cover range(n).

    >>> blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(at, min(at + size, n)) for at in range(0, n, size)]
