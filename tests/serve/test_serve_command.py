"""The command itself: worker processes, signals, slow connections, and what it says."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes share a socket as Unix has it")


class Running:
    """A running server."""

    def __init__(self, *args):
        command = [sys.executable, "-m", "longtail", "serve", *map(str, args), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = []
        while not (self.said and self.said[-1].startswith("The page is at")):
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.said.append(line.strip())
        self.address = self.said[-1].split()[4].rstrip("/")
        self.port = int(self.address.rpartition(":")[2])

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as got:
            return got.read().decode()

    def suggest(self):
        return json.loads(self.ask("/v1/longtail/models/things/suggest", {"text": "red apple"}))

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err


def children(process):
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads processes from /proc")
def test_workers_are_restarted_and_end_together(things, tmp_path):
    server = Running(things, "--workers", 2, "--log", tmp_path / "log")
    assert server.said[0] == "things: tree, 3 labels"
    first = children(server.process.pid)
    assert len(first) == 2 and server.suggest()["results"][0]["tags"][0]["label"] == "fruit"
    os.kill(first[0], signal.SIGKILL)
    for _ in range(10):  # the other one answers meanwhile
        try:
            assert server.suggest()["model"] == "things"
        except (ConnectionError, urllib.error.URLError):  # what the dead one had accepted
            continue
    until = time.monotonic() + 20
    while "longtail_workers_started_total 3" not in server.ask("/metrics") and time.monotonic() < until:
        time.sleep(0.1)
    assert "longtail_workers_started_total 3" in server.ask("/metrics")
    again = children(server.process.pid)
    code, err = server.end()
    assert code == 0 and "Traceback" not in err and not any(Path(f"/proc/{pid}").exists() for pid in again)
    assert len((tmp_path / "log").read_text().splitlines()) > 5


STREAM = "POST /v1/longtail/models/things/suggest-stream HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n"


def test_what_was_begun_is_finished_and_slow_connections_are_closed(things):
    server = Running(things, "--no-log")
    body = b'{"id": 1, "text": "red apple"}\n'
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    with server.connect() as slow, server.connect() as stream:
        slow.sendall(b"GET /health HT")  # a head that never ends
        stream.sendall(STREAM.format("Transfer-Encoding: chunked").encode() + chunk)
        got = b""
        while b"fruit" not in got:
            got += stream.recv(1000)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        stream.sendall(chunk + b"0\r\n\r\n")
        got = b""
        while piece := stream.recv(1000):
            got += piece
        assert b"fruit" in got and got.endswith(b"0\r\n\r\n"), "a stream that was begun is answered to its end"
        assert slow.recv(1000) == b""
    _, err = server.process.communicate(timeout=30)
    assert server.process.returncode == 0 and err == ""


def test_a_second_signal_ends_it_at_once(things):
    server = Running(things, "--no-log")
    with server.connect() as stream:
        stream.sendall(STREAM.format("Content-Length: 9").encode())
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert server.process.poll() is None
        began = time.monotonic()
        assert server.end()[0] == 143 and time.monotonic() - began < 5


def test_what_cannot_be_served_is_told_in_one_sentence(things, tmp_path, run):
    assert "does not exist" in run("serve", tmp_path / "nothing", code=4)
    assert "can be reached from other machines" in run("serve", things, "--host", "0.0.0.0", code=2)
    assert "two models are called 'things'" in run("serve", things, things, code=2)
    assert "use --tokens with a file of tokens, or use --open" in run("serve", things, "--host", "0.0.0.0", code=2)
    told = run("serve", things, "--host", "256.1.1.1", "--open", code=2)
    assert "--host '256.1.1.1' cannot be listened at" in told and "8383" not in told
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"--port {port} at '127.0.0.1' cannot be" in run("serve", things, "--port", port, code=2)
    assert "is not a file of tokens" in run("serve", things, "--tokens", __file__, code=2)
    assert "does not exist" in run("serve", tmp_path / "nothing", "--workers", 2, code=4)


def test_what_cannot_be_meant_is_refused_before_anything_starts(things, tmp_path, run):
    log, refused = tmp_path / "nowhere" / "log", {"code": 2}
    assert f"--log {log} cannot be written: the folder {log.parent} does not" in run(
        "serve", things, "--log", log, **refused
    )
    for workers in (1, 2):
        told = run("serve", things, "--log", tmp_path, "--workers", workers, **refused)
        assert f"--log {tmp_path} cannot be written: Is a directory." in told
    assert "--max-body must be an integer >= 1; got 0." in run("serve", things, "--max-body", 0, **refused)
    assert "--max-upload must be an integer >= 1; got -1." in run("serve", things, "--max-upload", -1, **refused)
    for name in ("http://x.y/", "x.y:80", "", "a b"):
        told = run("serve", things, "--name", name, **refused)
        assert (
            "--name must be the name of a host such as 'tags.example.org', without http:// and without a port; "
            f"got {name!r}." in told
        )
    told = run("serve", things, "--open", "--tokens", tmp_path / "tokens", **refused)
    assert "--open cannot be used with --tokens: it lets anyone in without a token" in told
    told = run("serve", things, "--open", "--reviews", tmp_path / "reviews.db", **refused)
    assert "--open cannot be used with --reviews: it lets anyone ask for suggestions and nobody review" in told
    assert list(tmp_path.iterdir()) == []


def test_settings_take_folders_as_text(things, tmp_path):
    from longtail.serve import ServeSettings

    settings = ServeSettings({"things": str(things)}, log=str(tmp_path / "log"), hosts=("tags.example.org", "::1"))
    assert settings.models == {"things": things} and settings.log == tmp_path / "log"


def test_connections_that_ask_for_nothing_or_too_much_are_closed(things, monkeypatch):
    import asyncio

    import uvicorn

    from longtail.serve import ServeSettings, connections, create_app

    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(connections, "DRAINED_BYTES", 1 << 20)
    app = create_app(ServeSettings({"things": things}, log_requests=False, body_bytes=1000))
    kinds = [connections.PlainConnection]
    if connections.importlib.util.find_spec("httptools"):
        kinds.append(connections.fast_connection())

    async def talk(port, raw, again=b"", times=0):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(raw)
        got = b""
        try:
            for _ in range(times):
                writer.write(again)
                await writer.drain()
                await asyncio.sleep(0)
            got = await asyncio.wait_for(reader.read(), 10)
        except ConnectionError:
            got += b"cut"
        writer.close()
        return got

    async def serve(kind):
        own = type("Own", (kind,), {"most": 4, "send_seconds": 0.3})
        config = uvicorn.Config(app, http=own, ws="none", log_config=None, access_log=False, lifespan="off", port=0)
        config.h11_max_incomplete_event_size = connections.LARGEST_HEAD
        server = uvicorn.Server(config)
        server.capture_signals = lambda: contextlib.nullcontext()
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        assert await talk(port, b"") == b"", "silence"
        assert await talk(port, b"GET / HT") == b"", "half a head"
        huge = await talk(port, b"GET / HTTP/1.1\r\nHost: a\r\nX: ", b"a" * 10_000, 20)
        assert huge == b"cut" or huge.startswith((b"HTTP/1.1 4", b""))
        drained = await talk(
            port,
            b"POST /v1/longtail/models/things/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n"
            b"Content-Type: application/json\r\n\r\n",
            b" " * 100_000,
            50,
        )
        assert drained.startswith(b"HTTP/1.1 413") or drained == b"cut"
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        assert (await talk(port, b"")).startswith(b"HTTP/1.1 503"), "one too many"
        for _, writer in idle:
            writer.close()
        server.should_exit = True
        await task

    for kind in kinds:
        asyncio.run(serve(kind))
