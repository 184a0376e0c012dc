"""Head and body of an answer leave in one piece, much is not held back, and nothing is lost at the end."""

import asyncio

import pytest

pytest.importorskip("starlette")

from longtail.serve.connections import HELD_BYTES, JoinedWrites


class Recording:
    """A transport that notes what it is asked for."""

    def __init__(self):
        self.done = []

    def write(self, data):
        self.done.append(bytes(data))

    def close(self):
        self.done.append("close")

    def abort(self):
        self.done.append("abort")

    def is_closing(self):
        return "close" in self.done


def after(steps):
    """Return what the transport itself was asked for, in every step of the loop."""

    async def run():
        transport = Recording()
        joined = JoinedWrites(transport, asyncio.get_running_loop())
        seen = []
        for step in steps:
            step(joined)
            seen.append(list(transport.done))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return [*seen, transport.done]

    return asyncio.run(run())


def test_what_is_written_in_one_step_leaves_together():
    def answer(joined):
        joined.write(b"head ")
        joined.write(b"body")

    assert after([answer]) == [[], [b"head body"]]
    assert after([answer, answer])[-1] == [b"head body", b"head body"]


def test_much_is_not_held_back():
    large = b"a" * (HELD_BYTES + 1)
    assert after([lambda joined: joined.write(large)]) == [[large], [large]]


def test_an_end_sends_what_is_held_and_a_cut_does_not():
    def say(end):
        def step(joined):
            joined.write(b"last words")
            getattr(joined, end)()

        return step

    assert after([say("close")])[-1] == [b"last words", "close"]
    assert after([say("abort")])[-1] == ["abort"]
    assert after([say("flush"), lambda joined: joined.is_closing()])[-1] == [b"last words"]


def test_nothing_is_written_to_a_connection_that_has_gone():
    def answer_to_nobody(joined):
        joined.write(b"answer")
        joined._transport.close()  # the other side has gone

    assert after([answer_to_nobody])[-1] == ["close"]
