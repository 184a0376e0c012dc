"""A load generator: connections that each send the next request as soon as the last one is answered.

    python benchmarks/serve/generator.py HOST PORT REQUESTS CONNECTIONS SECONDS [--times]

REQUESTS is a file of whole HTTP requests, a JSON list of texts. It runs in a process of its own, and prints one JSON
object: answers by status, seconds, and latencies in milliseconds; with --times that of every request.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

PATIENCE = 120.0  # seconds that last answers are waited for


class Caller:
    """One connection: sends a request, reads the answer to its end, sends the next one."""

    def __init__(self, address: tuple[str, int], requests: list[bytes], at: int) -> None:
        self.requests, self.at = requests, at
        self.socket = socket.create_connection(address, timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.needed = -1
        self.status = 0
        self.sent = 0.0

    def send(self) -> None:
        """Send the next request."""
        self.buffer, self.needed = b"", -1
        self.sent = time.perf_counter()
        self.socket.sendall(self.requests[self.at % len(self.requests)])
        self.at += 1

    def receive(self) -> bool:
        """Read what has come, and say whether the answer is whole; raises ConnectionError where it ends before."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError
        self.buffer = self.buffer + data if self.buffer else data
        if self.needed < 0:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return False
            head = self.buffer[:end].lower()
            self.status = int(head[9:12])
            self.needed = end + 4 + int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        return len(self.buffer) >= self.needed


def generate(host: str, port: int, requests: list[bytes], connections: int, seconds: float) -> dict[str, Any]:
    """Return what so many connections find in so many seconds.

    There is nothing around the sockets but one call that waits for all of them: the servers share the machine with it.
    """
    milliseconds: list[float] = []
    statuses: Counter[int] = Counter()
    waiting, callers = select.epoll(), dict[int, Caller]()

    def connect(at: int) -> None:
        caller = Caller((host, port), requests, at)
        callers[caller.socket.fileno()] = caller
        waiting.register(caller.socket.fileno(), select.EPOLLIN)
        caller.send()

    def leave(number: int) -> Caller:
        caller = callers.pop(number)
        waiting.unregister(number)
        caller.socket.close()
        return caller

    began = time.perf_counter()
    for number in range(connections):
        connect(number * len(requests) // connections)
    while callers and time.perf_counter() < began + seconds + PATIENCE:
        for number, _ in waiting.poll(1.0):
            caller = callers[number]
            try:
                whole = caller.receive()
                if whole:
                    now = time.perf_counter()
                    milliseconds.append(1000 * (now - caller.sent))
                    statuses[caller.status] += 1
                    if now < began + seconds:
                        caller.send()
                    else:
                        leave(number)
            except OSError:  # closed by the server: once more
                at = leave(number).at
                if time.perf_counter() < began + seconds:
                    connect(at)
    spent = time.perf_counter() - began
    times = np.array(milliseconds or [0.0])
    return {
        "requests": len(milliseconds),
        "seconds": round(spent, 3),
        "per_second": round(len(milliseconds) / spent, 1),
        "p50_ms": round(float(np.percentile(times, 50)), 3),
        "p99_ms": round(float(np.percentile(times, 99)), 3),
        "worst_ms": round(float(times.max()), 3),
        "milliseconds": [round(time, 3) for time in milliseconds],
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
    }


def main() -> None:
    host, port, file, connections, seconds = sys.argv[1:6]
    requests = [text.encode("latin-1") for text in json.loads(Path(file).read_text("utf-8"))]
    found = generate(host, int(port), requests, int(connections), float(seconds))
    if "--times" not in sys.argv:
        del found["milliseconds"]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
