"""The server behind all protocols: models, tokens, settings, and the work that requests ask for."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from longtail.errors import LongtailError
from longtail.review import ReviewStore
from longtail.serve.heap import give_back
from longtail.serve.metrics import Metrics
from longtail.serve.micro_batches import MicroBatches
from longtail.serve.model_shelf import ModelShelf
from longtail.serve.problems import Busy, Problem
from longtail.serve.run_folder import RunFolder
from longtail.serve.sessions import Sessions
from longtail.serve.settings import ServeSettings
from longtail.serve.suggesting import How, ServedModel, Suggested
from longtail.serve.tokens import Tokens

LOG = logging.getLogger("longtail.serve")
T = TypeVar("T")
HEAVY_THREADS = 2
TRIM_SECONDS = 20.0
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
        self.tokens: Tokens | None = None if settings.tokens is None else Tokens(settings.tokens)
        self.folder: RunFolder = RunFolder(settings.run_folder)
        self.sessions: Sessions = Sessions(self.tokens, self.folder)
        self.metrics: Metrics = Metrics(())
        copies = self.folder.path / "models" if settings.copy_models else None
        try:
            self.models: ModelShelf = ModelShelf(settings, self._swapped, copies)
            self.reviews: ReviewStore | None = (
                None if settings.reviews is None else ReviewStore(settings.reviews, create=True)
            )
        except BaseException:
            self.folder.close()
            raise
        self.batches: MicroBatches = MicroBatches(
            settings.batch_rows, settings.batch_characters, settings.queue_rows, settings.seconds, self._scored
        )
        self._heavy = ThreadPoolExecutor(HEAVY_THREADS, "heavy")
        self._quick = ThreadPoolExecutor(1, "quick")
        self._heavy_waiting = 0
        self._stopped = threading.Event()
        self._at_end: list[Callable[[], None]] = []
        self._watcher: threading.Thread | None = None
        self._asked, self._looked = self.folder.asked_to_look(), time.monotonic()

    def use_metrics(self, routes: Sequence[str], slot: int = 0) -> None:
        """Count requests by these routes, together with the other processes."""
        shared = None if self.settings.workers == 1 else self.folder.path / "metrics"
        self.metrics = Metrics(routes, shared, slot, self.settings.workers)
        self.metrics.gauge("longtail_models", "Models that are served.", lambda: len(list(self.models)))
        self.metrics.gauge(
            "longtail_texts_waiting", "Texts of this process that wait to be scored.", lambda: self.batches.waiting_rows
        )

    def _swapped(self, served: ServedModel) -> None:
        self.metrics.add("longtail_model_swaps_total")

    def _scored(self, rows: int, unknown: int, seconds: float) -> None:
        """Count a micro-batch."""
        self.metrics.add("longtail_batches_total")
        self.metrics.add("longtail_texts_total", rows)
        if unknown:
            self.metrics.add("longtail_texts_without_known_words_total", unknown)
        self.metrics.observe("longtail_batch_rows", rows)
        self.metrics.observe("longtail_batch_seconds", seconds)

    async def suggest(self, model: str, texts: list[str], how: How) -> Suggested:
        """Return labels of texts; texts of requests that arrive together are scored together."""
        served = self.models.get(model)
        if len(texts) * min(how.k, served.tagger.n_labels_) > self.settings.most_tags:
            most = self.settings.most_tags
            raise Problem(
                413, f"{len(texts)} texts with {how.k} labels each are too many for one answer, of {most} labels."
            )
        wish = served.wish(how)
        rows = await self.batches.suggest(served, texts, wish)
        return Suggested(served.digest, [tags for tags, _ in rows], [known for _, known in rows])

    async def run(self, work: Callable[[], T], *, seconds: float | None = None, quick: bool = False) -> T:
        """Return what heavy work returns, done on a thread of its own; raises Busy where too much is waiting.

        `quick` work, which takes milliseconds, has a thread that nothing slow can block.
        """
        if self._heavy_waiting >= HEAVY_WAITING:
            raise Busy(f"{self._heavy_waiting} pieces of work are waiting; try again soon.")
        limit = self.settings.seconds if seconds is None else seconds
        loop = asyncio.get_running_loop()
        self._heavy_waiting += 1
        task = loop.run_in_executor(self._quick if quick else self._heavy, work)
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

    def guideline(self, label: str) -> str | None:
        """Return what reviewers have agreed on for a label; None where there is no such thing."""
        found = None if self.reviews is None else self.reviews.guideline(label)
        return None if found is None else found.text

    def ask_all_to_look(self) -> None:
        """Let every process look at the folders of models soon."""
        self.folder.ask_to_look()

    def at_end(self, work: Callable[[], None]) -> None:
        """Let something be done when the server ends, before its threads do."""
        self._at_end.append(work)

    def start(self) -> None:
        """Begin to watch the folders of models and the file of tokens."""
        gc.collect()
        gc.freeze()  # what is loaded stays: collecting garbage need not look at it again and again
        self._watcher = threading.Thread(target=self._watch, name="watcher", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        trimmed = time.monotonic()
        while not self._stopped.wait(min(1.0, self.settings.watch_seconds)):
            if time.monotonic() - trimmed >= TRIM_SECONDS:
                give_back()
                trimmed = time.monotonic()
            if self.tokens is not None:
                try:
                    self.tokens.refresh()
                except LongtailError as error:
                    LOG.warning("the file of tokens is not as it should be: %s", error)
            asked = self.folder.asked_to_look()
            if asked > self._asked or time.monotonic() - self._looked >= self.settings.watch_seconds:
                self._asked, self._looked = asked, time.monotonic()
                try:
                    self.models.check()
                except Exception:
                    LOG.exception("looking at the folders of models failed")

    def close(self) -> None:
        """Stop watching, and end the threads when they have finished what they do."""
        self._stopped.set()
        for work in self._at_end:
            work()
        if self._watcher is not None:
            self._watcher.join()
        self.batches.close()
        self._heavy.shutdown(wait=True, cancel_futures=True)
        self._quick.shutdown(wait=True, cancel_futures=True)
        self.folder.close()
