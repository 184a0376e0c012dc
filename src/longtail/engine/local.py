"""The default engine: threads of this process, which read the arrays where they are."""

from __future__ import annotations

from longtail.engine.checkpoint import Checkpoint
from longtail.engine.engine import Engine, Run, in_use
from longtail.kernels import run_tasks
from longtail.validate import resolve_jobs


class LocalEngine(Engine):
    """Runs tasks on threads of this process.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None for all cores.
    checkpoint : Checkpoint or None, default=None
        Where the results of finished tasks are kept.
    """

    in_process = True

    def __init__(self, n_jobs: int | None = None, *, checkpoint: Checkpoint | None = None) -> None:
        self._workers, self.checkpoint = resolve_jobs(n_jobs), checkpoint

    @property
    def workers(self) -> int:
        return self._workers

    def _do(self, run: Run) -> None:
        prepared = run.work.prepare(run.arrays, run.settings)

        def one(i: int) -> None:
            run.keep(i, run.work.run(prepared, run.tasks[i]))

        run_tasks(one, run.order, self._workers, lambda done, _: run.told(run.order[done - 1]), run.stop)


def engine_for(n_jobs: int) -> Engine:
    """Return the engine in use, or else one of `n_jobs` threads."""
    engine = in_use()
    return LocalEngine(n_jobs) if engine is None else engine
