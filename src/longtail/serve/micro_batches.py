"""Micro-batches: requests that arrive while a batch is being scored are scored together in the next one."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from longtail.serve.problems import Busy
from longtail.serve.suggesting import ServedModel, SuggestedTag, Wish

LOOP_SECONDS = 0.002  # that a batch may take on the loop, on which everybody waits
Row = tuple[list[SuggestedTag], bool]  # the labels of a text, and whether a word of it is known


@dataclass(eq=False)
class Asked:
    """The texts of one request on their way through batches."""

    served: ServedModel
    texts: Sequence[str]
    wish: Wish
    future: asyncio.Future[list[Row]]
    until: float  # when the answer must be ready, by the clock of the loop
    clock: asyncio.TimerHandle | None = None  # runs where it has to wait for the thread
    rows: list[Row] = field(default_factory=list)
    begun: int = 0  # texts that are, or were, part of a batch


@dataclass(eq=False)
class Piece:
    """Some texts of one request, within one batch."""

    asked: Asked
    texts: Sequence[str]
    rows: list[Row] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def seconds(self) -> float:
        """How long it will take, as far as is known."""
        return self.asked.served.pace.seconds(self.texts)


class MicroBatches:
    """Scores texts; nobody waits for others to come, and those who come meanwhile go together.

    A batch that takes no longer than handing it over is scored on the loop itself, as soon as all who have come with
    it have asked; any other on a thread. Long requests take part in one batch after the other, and let short ones
    pass in between.
    """

    batch_characters: int
    batch_rows: int
    queue_rows: int

    def __init__(
        self,
        batch_rows: int,
        batch_characters: int,
        queue_rows: int,
        seconds: float,
        on_scored: Callable[[int, int, float], None] | None = None,
    ) -> None:
        self.batch_rows, self.batch_characters, self.queue_rows = batch_rows, batch_characters, queue_rows
        self.seconds = seconds  # for an answer
        self.waiting_rows: int = 0
        self._on_scored = on_scored
        self._queue: deque[Asked] = deque()
        self._thread = ThreadPoolExecutor(1, "scoring")
        self._scoring = False  # a batch is being scored, or about to be

    async def suggest(self, served: ServedModel, texts: Sequence[str], wish: Wish) -> list[Row]:
        """Return the labels of texts; raises Busy where too many are waiting, or the time is over."""
        if not texts:
            return []
        if self.waiting_rows and self.waiting_rows + len(texts) > self.queue_rows:
            raise Busy(f"{self.waiting_rows} texts are waiting, and at most {self.queue_rows} may; try again soon.")
        loop = asyncio.get_running_loop()
        asked = Asked(served, texts, wish, loop.create_future(), loop.time() + self.seconds)
        self._queue.append(asked)
        self.waiting_rows += len(texts)
        if self._scoring:
            self._limit(asked)
        else:
            self._scoring = True
            loop.call_soon(self._score, loop)
        try:
            return await asked.future
        finally:
            if asked.clock is not None:
                asked.clock.cancel()
            self.waiting_rows -= len(texts)

    def _limit(self, asked: Asked) -> None:
        """Let the time of a request run that waits for the thread."""
        if asked.clock is None:
            asked.clock = asked.future.get_loop().call_at(asked.until, too_late, asked, self.seconds)

    def _score(self, loop: asyncio.AbstractEventLoop) -> None:
        """Score the next batch; without one, the next request begins anew."""
        pieces = self._next_batch()
        if not pieces:
            self._scoring = False
            return
        began = time.perf_counter()
        if sum(piece.seconds for piece in pieces) <= LOOP_SECONDS:
            score_pieces(pieces)
            self._scored(loop, pieces, began)
            return
        for piece in pieces:
            self._limit(piece.asked)
        for asked in self._queue:
            self._limit(asked)
        done = loop.run_in_executor(self._thread, score_pieces, pieces)
        done.add_done_callback(lambda _: self._scored(loop, pieces, began))

    def _scored(self, loop: asyncio.AbstractEventLoop, pieces: list[Piece], began: float) -> None:
        """Hand out the labels of a batch, and go on with the next one."""
        if self._on_scored is not None:
            rows = [known for piece in pieces for _, known in piece.rows]
            self._on_scored(len(rows), rows.count(False), time.perf_counter() - began)
        self._deliver(pieces)
        if self._queue:
            loop.call_soon(self._score, loop)
        else:
            self._scoring = False

    def _next_batch(self) -> list[Piece]:
        """Return the next texts of those who wait, in turn."""
        pieces: list[Piece] = []
        rows, characters = self.batch_rows, self.batch_characters
        again: list[Asked] = []
        while self._queue and rows > 0 and characters > 0:
            asked = self._queue.popleft()
            if asked.future.done():  # the caller has gone
                continue
            start = asked.begun
            end = start
            while end < len(asked.texts) and rows > 0 and (characters > 0 or end == start):
                characters -= len(asked.texts[end])
                rows -= 1
                end += 1
            asked.begun = end
            pieces.append(Piece(asked, asked.texts[start:end]))
            if end < len(asked.texts):
                again.append(asked)
        self._queue.extend(again)
        return pieces

    def _deliver(self, pieces: list[Piece]) -> None:
        """Hand the labels of a batch to those who asked."""
        for piece in pieces:
            asked = piece.asked
            if asked.future.done():
                continue
            if piece.error is not None:
                asked.future.set_exception(piece.error)
                continue
            asked.rows += piece.rows
            if len(asked.rows) == len(asked.texts):
                asked.future.set_result(asked.rows)

    def close(self) -> None:
        """End the thread when it has finished what it does."""
        self._thread.shutdown(wait=True)


def too_late(asked: Asked, seconds: float) -> None:
    """Refuse a request whose answer is not ready in time."""
    if not asked.future.done():
        asked.future.set_exception(Busy(f"the answer was not ready within {seconds:g} seconds; try again later."))


def score_pieces(pieces: Sequence[Piece]) -> None:
    """Score a batch: together what asks the same model for the same labels."""
    groups: dict[tuple[object, ...], list[Piece]] = {}
    for piece in pieces:
        wish = piece.asked.wish
        groups.setdefault((id(piece.asked.served), wish.depth, wish.allow, wish.deny), []).append(piece)
    for group in groups.values():
        try:
            _score_together(group)
        except Exception as error:
            if len(group) == 1:
                group[0].error = error
                continue
            for piece in group:  # one of them is at fault, and the others are not
                try:
                    _score_together([piece])
                except Exception as own:
                    piece.error = own


def _score_together(pieces: Sequence[Piece]) -> None:
    texts = [text for piece in pieces for text in piece.texts]
    wishes = [piece.asked.wish for piece in pieces for _ in piece.texts]
    served, began = pieces[0].asked.served, time.perf_counter()
    rows = served.suggest(texts, wishes)
    served.pace.learn(texts, time.perf_counter() - began)
    at = 0
    for piece in pieces:
        piece.rows = rows[at : at + len(piece.texts)]
        at += len(piece.texts)
