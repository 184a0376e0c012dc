"""Connections: those that are too many, too slow to ask, or too slow to go, are closed."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from longtail.serve.problems import json_bytes

HEAD_SECONDS = 10.0  # in which the head of a request must have come
DRAINED_BYTES = 32 << 20  # of a body that was refused, that are read over so that the answer arrives
DRAIN_SECONDS = 10.0
CLOSING_SECONDS = 15.0  # in which the last answer must have been taken
LARGEST_HEAD = 48 << 10


def connection_class(connections: int) -> type[H11Protocol]:
    """Return the class of connections of which at most so many may be open."""

    class Connection(GuardedConnection):
        most = connections

    return Connection


class GuardedConnection(H11Protocol):
    """An HTTP/1.1 connection that ends when nothing comes of it."""

    most = 1024

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._drained = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of a request; one connection too many is told so and closed."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(too_many(self.most))
            self._close()
            return
        self._wait(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Take what has come, and go on waiting for what is missing."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.transport.is_closing():
            self._wait(CLOSING_SECONDS)
        elif self.cycle is None or self.cycle.response_complete:
            if self.conn.their_state is h11.SEND_BODY:  # the body of a request that was answered already
                self._drained += len(data)
                if self._drained > DRAINED_BYTES:
                    self._close()
            elif self._timer is None:
                self._wait(HEAD_SECONDS)
        else:
            self._stop_waiting()
            self._drained = 0

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        self._stop_waiting()
        super().on_response_complete()
        if self.transport.is_closing():
            self._wait(CLOSING_SECONDS)
        elif self.conn.their_state is h11.SEND_BODY:
            self._wait(DRAIN_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which no further request came."""
        super().timeout_keep_alive_handler()
        self._wait(CLOSING_SECONDS)

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._too_late)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        """Close the connection; one that does not take its last answer is cut."""
        self._timer = None
        if self.transport.is_closing():
            self.transport.abort()
        elif self.cycle is None or self.cycle.response_complete:
            self._close()

    def _close(self) -> None:
        self.transport.close()
        self._wait(CLOSING_SECONDS)


def too_many(most: int) -> bytes:
    """Return the answer to one connection too many."""
    detail = f"{most} connections are open, which is the limit; try again soon."
    facts = {"type": "about:blank", "title": "Service Unavailable", "status": 503, "detail": detail}
    body = json_bytes(facts)
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
