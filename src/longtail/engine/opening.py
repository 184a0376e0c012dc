"""Engines by their names, for the command line."""

from __future__ import annotations

from pathlib import Path

from longtail.engine.checkpoint import Checkpoint
from longtail.engine.engine import Engine
from longtail.engine.local import LocalEngine
from longtail.engine.ray_engine import RayEngine
from longtail.errors import ParameterError
from longtail.validate import check_choice

ENGINES = ("threads", "ray")


def open_engine(
    name: str = "threads",
    *,
    address: str | None = None,
    checkpoint: str | Path | None = None,
    n_jobs: int | None = None,
) -> Engine:
    """Return the engine of a name: "threads" or "ray".

    `address` is that of a Ray cluster (see `RayEngine`), `checkpoint` a folder that keeps the results of finished
    tasks, `n_jobs` the threads, or the cores of a cluster begun now.

    >>> open_engine(n_jobs=2).workers
    2
    """
    check_choice("engine", name, ENGINES)
    if name == "threads" and address is not None:
        raise ParameterError(name="address", problem="is that of a Ray cluster; it needs the engine 'ray'.")
    kept = None if checkpoint is None else Checkpoint(checkpoint)
    if name == "threads":
        return LocalEngine(n_jobs, checkpoint=kept)
    return RayEngine(address, n_jobs=n_jobs, checkpoint=kept)
