"""Connections: those that are too many, too slow to ask, or too slow to go, are closed."""

from __future__ import annotations

import asyncio
import importlib.util
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from longtail.serve.problems import json_bytes

if TYPE_CHECKING:
    Base = H11Protocol
else:
    Base = object

HEAD_SECONDS = 10.0  # in which the head of a request must have come
DRAINED_BYTES = 32 << 20  # of a body that was refused, that are read over so that the answer arrives
DRAIN_SECONDS = 10.0
CLOSING_SECONDS = 15.0  # in which the last answer must have been taken
LARGEST_HEAD = 48 << 10
HELD_BYTES = 64 << 10  # of an answer


class JoinedWrites:
    """A transport that sends what is written in one step in one piece: the head of an answer and its body.

    Each piece alone would wake the other side, which can do nothing with a head.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        """Return what the transport itself has of this name."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Hold data until the step ends, or there is much of it."""
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send what is held, unless the other side has gone."""
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self._size = 0
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """Send what is held, and close the connection."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._held.clear()
        self._transport.abort()


class Patient(Base):
    """An HTTP/1.1 connection that ends when nothing comes of it; a parser of HTTP is the class beside it."""

    most = 1024
    send_seconds: float = 60.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None  # runs while the other side takes nothing
        self._drained = 0

    def is_reading_body(self) -> bool:
        """Say whether the head of a request has come, and its body not yet."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of a request; one connection too many is told so and closed."""
        self._joined = JoinedWrites(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._joined))
        if len(self.connections) > self.most:
            transport.write(refusal(503, f"{self.most} connections are open, which is the limit; try again soon."))
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
            if self.is_reading_body():  # of a request that was answered already
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
        self._joined.flush()
        super().on_response_complete()
        if self.transport.is_closing():
            self._wait(CLOSING_SECONDS)
        elif self.is_reading_body() and self.cycle.response_complete:
            self._wait(DRAIN_SECONDS)

    def pause_writing(self) -> None:
        """Wait for the other side to take what was sent, and cut the connection if it does not."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on sending."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
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


class PlainConnection(Patient, H11Protocol):
    """A connection whose requests are read by h11, which is Python."""

    def is_reading_body(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY


def connection_class(connections: int, send_seconds: float = 60.0) -> type[asyncio.Protocol]:
    """Return the class of connections of which at most so many may be open; httptools reads them if it is there."""
    base: Any = PlainConnection if importlib.util.find_spec("httptools") is None else fast_connection()
    return type("Connection", (base,), {"most": connections, "send_seconds": send_seconds})


def fast_connection() -> type[asyncio.Protocol]:
    """Return the class of connections whose requests are read by httptools, which is C and has no limits of its own."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class FastConnection(Patient, HttpToolsProtocol):  # type: ignore[misc]
        reading = ""  # what part of a request is being read: "head", "body" or none
        head_bytes = trailer_bytes = 0

        def is_reading_body(self) -> bool:
            return self.reading == "body"

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.head_bytes = self.head_bytes + len(data) if self.reading == "head" else 0
            if self.head_bytes > LARGEST_HEAD and not self.transport.is_closing():
                self.transport.write(refusal(431, f"the head of a request has more than {LARGEST_HEAD} bytes."))
                self._close()

        def on_message_begin(self) -> None:
            self.reading = "head"
            super().on_message_begin()

        def on_header(self, name: bytes, value: bytes) -> None:
            if self.reading == "head":
                super().on_header(name, value)
                return
            self.trailer_bytes += len(name) + len(value)  # after a body: nobody reads them
            if self.trailer_bytes > LARGEST_HEAD and not self.transport.is_closing():
                self._close()

        def on_headers_complete(self) -> None:
            self.reading = "body"
            self.trailer_bytes = 0
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self.reading = ""
            super().on_message_complete()

    return FastConnection


def refusal(status: int, detail: str) -> bytes:
    """Return an answer that is written before there is a request, after which the connection is closed."""
    phrase = HTTPStatus(status).phrase
    body = json_bytes({"type": "about:blank", "title": phrase, "status": status, "detail": detail})
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
