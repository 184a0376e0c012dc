"""Requests that arrive together are scored together, with the results of each alone, and within limits."""

import asyncio
import threading
import time

import pytest

from longtail.errors import ModelError
from longtail.serve import How, Server, ServeSettings
from longtail.serve.problems import Busy

TEXTS = ["red apple", "old car", "green apple", "qqq", "fast red car"]


@pytest.fixture
def server(things):
    server = Server(ServeSettings({"things": things}, batch_rows=8, queue_rows=100, log_requests=False))
    yield server
    server.close()


def slowly(server, monkeypatch, seconds=0.05):
    """Let scoring take its time, and return the texts of every batch."""
    scored, suggest = [], type(server.models.get("things")).suggest

    def slow(self, texts, wishes):
        scored.append(list(texts))
        time.sleep(seconds)
        return suggest(self, texts, wishes)

    monkeypatch.setattr("longtail.serve.suggesting.ServedModel.suggest", slow)
    return scored


def test_together_and_alone_are_the_same(server, monkeypatch):
    hows = [How(k=2), How(k=3, deny=("red",)), How(k=1, threshold=0.5), How(k=5, allow=("red", "fruit")), How()]

    async def alone():
        return [await server.suggest("things", [text], how) for text, how in zip(TEXTS, hows, strict=True)]

    async def together():
        asked = [server.suggest("things", [text], how) for text, how in zip(TEXTS, hows, strict=True)]
        return await asyncio.gather(*asked)

    expected = asyncio.run(alone())
    scored = slowly(server, monkeypatch)
    assert asyncio.run(together()) == expected
    assert len(scored) < len(TEXTS)


def test_nobody_waits_for_others_and_who_comes_meanwhile_goes_together(server, monkeypatch):
    scored = slowly(server, monkeypatch)

    async def ask():
        first = asyncio.create_task(server.suggest("things", ["red apple"], How()))
        await asyncio.sleep(0.01)
        await asyncio.gather(first, *(server.suggest("things", [text], How()) for text in TEXTS))

    asyncio.run(ask())
    assert scored == [["red apple"], TEXTS]


def test_long_requests_let_short_ones_pass(server, monkeypatch):
    scored = slowly(server, monkeypatch, 0.02)
    order = []

    async def ask(name, texts):
        await server.suggest("things", texts, How())
        order.append(name)

    async def both():
        long = asyncio.create_task(ask("long", ["red apple"] * 60))
        await asyncio.sleep(0.01)
        await asyncio.gather(long, ask("short", ["old car"]))

    asyncio.run(both())
    assert order == ["short", "long"] and max(map(len, scored)) <= 8


def test_a_full_queue_asks_to_come_back(server, monkeypatch):
    slowly(server, monkeypatch)

    async def ask():
        return await asyncio.gather(
            *(server.suggest("things", ["red apple"] * 60, How()) for _ in range(3)), return_exceptions=True
        )

    got = asyncio.run(ask())
    busy = [error for error in got if isinstance(error, Busy)]
    assert len(busy) == 2 and busy[0].status == 503 and busy[0].headers["Retry-After"] == "1"
    assert server.batches.waiting_rows == 0


def test_an_answer_that_takes_too_long(client_of, things, monkeypatch):
    client = client_of(things, seconds=0.1)
    monkeypatch.setattr("longtail.serve.suggesting.ServedModel.suggest", lambda *args: time.sleep(0.5))
    got = client.post("/v1/longtail/models/things/suggest", json={"text": "a"})
    assert got.status_code == 503 and got.headers["Retry-After"] and "0.1 seconds" in got.json()["detail"]


def test_quick_batches_are_scored_on_the_loop_and_slow_ones_on_a_thread(server, monkeypatch):
    threads, suggest = [], type(server.models.get("things")).suggest
    pause = 0.0

    def noted(self, texts, wishes):
        threads.append(threading.current_thread())
        time.sleep(pause)
        return suggest(self, texts, wishes)

    monkeypatch.setattr("longtail.serve.suggesting.ServedModel.suggest", noted)

    async def ask(times):
        for _ in range(times):
            await server.suggest("things", ["red apple"], How())
        return threads[-1]

    assert asyncio.run(ask(1)) is not threading.main_thread()  # nothing is known of the model yet
    assert asyncio.run(ask(20)) is threading.main_thread()
    pause = 0.01
    assert asyncio.run(ask(20)) is not threading.main_thread()


def test_one_at_fault_does_not_fail_the_others(server, monkeypatch):
    suggest = type(server.models.get("things")).suggest

    def picky(self, texts, wishes):
        if "old car" in texts:
            raise ModelError("the scores of row 0 are not finite.")
        return suggest(self, texts, wishes)

    monkeypatch.setattr("longtail.serve.suggesting.ServedModel.suggest", picky)

    async def ask():
        return await asyncio.gather(*(server.suggest("things", [t], How()) for t in TEXTS), return_exceptions=True)

    got = asyncio.run(ask())
    assert [isinstance(one, ModelError) for one in got] == [text == "old car" for text in TEXTS]


def test_heavy_work_has_a_limit(server):
    async def ask():
        return await asyncio.gather(*(server.run(lambda: time.sleep(0.01)) for _ in range(40)), return_exceptions=True)

    got = asyncio.run(ask())
    assert sum(isinstance(one, Busy) for one in got) == 8
