"""A load generator: connections that each send the next request as soon as the last one is answered.

    python benchmarks/serve/generator.py HOST PORT REQUESTS CONNECTIONS SECONDS [--times]

REQUESTS is a file of whole HTTP requests, a JSON list of texts. It runs in a process of its own, and prints one JSON
object: answers by status, seconds, and latencies in milliseconds; with --times that of every request.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np


class Caller(asyncio.Protocol):
    """One connection: sends a request, reads the answer to its end, sends the next one."""

    def __init__(self, requests: list[bytes], at: int, until: float, found: Found) -> None:
        self.requests, self.at, self.until, self.found = requests, at, until, found
        self.ended = asyncio.get_running_loop().create_future()
        self.buffer = bytearray()
        self.needed = -1
        self.sent = 0.0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        """Send the next request, or end when the time is over."""
        if self.transport is None:
            return
        if time.perf_counter() >= self.until:
            self.transport.close()
            return
        self.sent = time.perf_counter()
        self.transport.write(self.requests[self.at % len(self.requests)])
        self.at += 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.needed < 0:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[:end]).lower()
            self.status = int(head[9:12])
            length = head.partition(b"content-length:")[2]
            self.needed = end + 4 + int(length.split(b"\r\n", 1)[0])
        if len(self.buffer) >= self.needed:
            self.found.milliseconds.append(1000 * (time.perf_counter() - self.sent))
            self.found.statuses[self.status] += 1
            self.found.bytes += self.needed
            self.buffer.clear()
            self.needed = -1
            self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class Found:
    """What was measured."""

    def __init__(self) -> None:
        self.milliseconds: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.bytes = 0


async def generate(host: str, port: int, requests: list[bytes], connections: int, seconds: float) -> dict[str, Any]:
    """Return what so many connections find in so many seconds."""
    found, loop = Found(), asyncio.get_running_loop()
    began = time.perf_counter()

    async def connect(number: int) -> Caller:
        at = number * len(requests) // connections
        _, caller = await loop.create_connection(lambda: Caller(requests, at, began + seconds, found), host, port)
        return caller

    callers = [await connect(number) for number in range(connections)]
    while time.perf_counter() < began + seconds:
        await asyncio.sleep(0.1)
        for number, caller in enumerate(callers):
            if caller.ended.done() and time.perf_counter() < began + seconds:  # closed by the server: once more
                callers[number] = await connect(number)
    await asyncio.wait([caller.ended for caller in callers], timeout=120)
    spent = time.perf_counter() - began
    times = np.array(found.milliseconds or [0.0])
    return {
        "requests": len(found.milliseconds),
        "seconds": round(spent, 3),
        "per_second": round(len(found.milliseconds) / spent, 1),
        "p50_ms": round(float(np.percentile(times, 50)), 3),
        "p99_ms": round(float(np.percentile(times, 99)), 3),
        "worst_ms": round(float(times.max()), 3),
        "milliseconds": [round(time, 3) for time in found.milliseconds],
        "statuses": {str(status): count for status, count in sorted(found.statuses.items())},
    }


def main() -> None:
    host, port, file, connections, seconds = sys.argv[1:6]
    requests = [text.encode("latin-1") for text in json.loads(Path(file).read_text("utf-8"))]
    found = asyncio.run(generate(host, int(port), requests, int(connections), float(seconds)))
    if "--times" not in sys.argv:
        del found["milliseconds"]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
