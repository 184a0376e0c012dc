"""How many threads torch uses, for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from longtail.validate import resolve_jobs


@contextlib.contextmanager
def torch_threads(n_jobs: int | None) -> Iterator[None]:
    """Let torch use so many threads, but no more than there are cores; None leaves it its own number.

    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if n_jobs is not None:
        torch.set_num_threads(min(resolve_jobs(n_jobs), resolve_jobs(None)))  # thousands would crash it
    try:
        yield
    finally:
        torch.set_num_threads(before)
