"""The server behind all protocols: models, tokens, settings, and the work that requests ask for."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from longtail.review import ReviewStore
from longtail.serve.micro_batches import MicroBatches
from longtail.serve.model_shelf import ModelShelf
from longtail.serve.problems import Busy
from longtail.serve.settings import ServeSettings
from longtail.serve.suggesting import How, Suggested
from longtail.serve.tokens import Tokens

LOG = logging.getLogger("longtail.serve")
T = TypeVar("T")
HEAVY_THREADS = 2
HEAVY_WAITING = 32  # pieces of heavy work that may wait or run


class Server:
    """One process of a server: its models, its tokens, and the threads on which work is done.

    Parameters
    ----------
    settings : ServeSettings
        What is served, to whom, and within which limits.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.tokens = None if settings.tokens is None else Tokens(settings.tokens)
        self.models = ModelShelf(settings)
        self.reviews = None if settings.reviews is None else ReviewStore(settings.reviews, create=True)
        self.batches = MicroBatches(settings.batch_rows, settings.batch_characters, settings.queue_rows)
        self._heavy = ThreadPoolExecutor(HEAVY_THREADS, "heavy")
        self._heavy_waiting = 0
        self._stopped = threading.Event()
        self._watcher: threading.Thread | None = None

    async def suggest(self, model: str, texts: list[str], how: How) -> Suggested:
        """Return labels of texts; texts of requests that arrive together are scored together."""
        served = self.models.get(model)
        wish = served.wish(how)
        try:
            async with asyncio.timeout(self.settings.seconds):
                rows = await self.batches.suggest(served, texts, wish)
        except TimeoutError:
            raise Busy(f"the answer was not ready within {self.settings.seconds:g} seconds; try again later.") from None
        return Suggested(served.digest, [tags for tags, _ in rows], [known for _, known in rows])

    async def run(self, work: Callable[[], T], *, seconds: float | None = None) -> T:
        """Return what heavy work returns, done on a thread of its own; raises Busy where too much is waiting."""
        if self._heavy_waiting >= HEAVY_WAITING:
            raise Busy(f"{self._heavy_waiting} pieces of work are waiting; try again soon.")
        limit = self.settings.seconds if seconds is None else seconds
        loop = asyncio.get_running_loop()
        self._heavy_waiting += 1
        task = loop.run_in_executor(self._heavy, work)
        task.add_done_callback(self._heavy_done)
        try:
            async with asyncio.timeout(limit):
                return await asyncio.shield(task)
        except TimeoutError:
            raise Busy(f"the answer was not ready within {limit:g} seconds; try again later.") from None

    def _heavy_done(self, task: asyncio.Future[T]) -> None:
        self._heavy_waiting -= 1
        if not task.cancelled():
            task.exception()  # looked at, so that nobody is told of it twice

    def start(self) -> None:
        """Begin to watch the folders of models and the file of tokens."""
        self._watcher = threading.Thread(target=self._watch, name="watcher", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while not self._stopped.wait(self.settings.watch_seconds):
            try:
                if self.tokens is not None:
                    self.tokens.refresh()
                self.models.check()
            except Exception:
                LOG.exception("looking at the folders of models failed")

    def close(self) -> None:
        """Stop watching, and end the threads when they have finished what they do."""
        self._stopped.set()
        if self._watcher is not None:
            self._watcher.join()
        self.batches.close()
        self._heavy.shutdown(wait=True, cancel_futures=True)
