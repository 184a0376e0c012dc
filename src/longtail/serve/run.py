"""Run a server: the listening socket, worker processes, and an end that finishes what was begun."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from longtail.errors import DataWarning, LongtailError, ParameterError
from longtail.serve.app import create_app
from longtail.serve.connections import LARGEST_HEAD, connection_class
from longtail.serve.guards import check_log
from longtail.serve.heap import use_few_arenas
from longtail.serve.run_folder import RunFolder
from longtail.serve.server import Server
from longtail.serve.settings import PATHS, ServeSettings

LOG = logging.getLogger("longtail.serve")
BACKLOG = 2048
KEEP_ALIVE = 15  # seconds
SWITCH_SECONDS = 0.0005  # after which one thread lets the other go on: scoring and answering take turns
LONGEST_BREAK = 30.0  # seconds between two starts of a worker that keeps ending
Tell = Callable[[list[dict[str, Any]], str], None]


def run_server(settings: ServeSettings, tell: Tell | None = None) -> int:
    """Serve until a signal ends it; returns an exit code.

    The first SIGTERM or SIGINT lets requests that have begun be answered; a second one ends everything at once.

    Parameters
    ----------
    settings : ServeSettings
        What is served, to whom, and within which limits.
    tell : callable (models, address) or None
        Called once when the server answers, with what the list of models says and the address of the page.
    """
    use_few_arenas()
    if settings.log is not None:
        check_log(settings.log)
    with contextlib.closing(listening_socket(settings)) as listening:
        if settings.workers > 1:
            return Supervisor(settings, listening, tell).run()
        server = Server(settings)
        try:
            return serve_here(settings, server, listening, 0, lambda: announce(server, listening, tell))
        finally:
            server.folder.close()


def announce(server: Server, listening: socket.socket, tell: Tell | None) -> None:
    """Tell what is served and where."""
    from longtail.serve.model_facts import model_facts

    if tell is not None:
        tell([model_facts(server, served) for served in server.models], address_of(server.settings, listening))


def address_of(settings: ServeSettings, listening: socket.socket) -> str:
    """Return the address of the page."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listening.getsockname()[1]}/"


def listening_socket(settings: ServeSettings) -> socket.socket:
    """Return a socket that listens at the address of a server."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with contextlib.ExitStack() as stack:
            listening = stack.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
            listening.set_inheritable(True)
            stack.pop_all()
            return listening
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no name of a host"
        if not isinstance(error, OSError) or isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            problem = f"{settings.host!r} cannot be listened at: {why}; give an address or a name of this machine."
            raise ParameterError(name="host", problem=problem) from error
        raise ParameterError(
            name="port", problem=f"{settings.port} at {settings.host!r} cannot be listened at: {why}."
        ) from error


def serve_here(
    settings: ServeSettings, server: Server, listening: socket.socket, slot: int, on_ready: Callable[[], None]
) -> int:
    """Answer in this process until a signal ends it."""
    log_to_stderr()
    sys.setswitchinterval(SWITCH_SECONDS)
    config = uvicorn.Config(
        create_app(settings, server, slot),
        http=connection_class(settings.connections, settings.send_seconds),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=1,  # connections that are taken at once: several processes share them
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.seconds) + 5,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )
    GracefulServer(config, listening, on_ready, server.folder.close).run(sockets=[listening])
    return 0


class GracefulServer(uvicorn.Server):
    """Ends at the first signal when all is answered, at the second at once."""

    should_exit: bool

    def __init__(
        self,
        config: uvicorn.Config,
        listening: socket.socket,
        on_ready: Callable[[], None],
        clean_up: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._listening, self._on_ready, self._clean_up = listening, on_ready, clean_up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and tell so."""
        await super().startup(sockets)
        self._listening.listen(BACKLOG)  # asyncio has set it to what it takes at once
        self._parent = os.getppid()
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving; none of them is left over for others afterwards."""
        with handling_signals(self._signalled):
            yield

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self.should_exit:
            self._clean_up()
            os._exit(128 + number)
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Look whether the end has come: by a signal, or since the process that started this one is gone."""
        if counter % 10 == 0 and os.getppid() != self._parent:
            self.should_exit = True
        return await super().on_tick(counter)


@contextlib.contextmanager
def handling_signals(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGTERM and SIGINT within a block."""
    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Supervisor:
    """Starts worker processes that share one listening socket, and starts another for one that has died."""

    listening: socket.socket
    tell: Tell | None

    def __init__(self, settings: ServeSettings, listening: socket.socket, tell: Tell | None) -> None:
        self.folder: RunFolder = RunFolder(settings.run_folder)
        self.settings: ServeSettings = dataclasses.replace(settings, run_folder=self.folder.path)
        self.listening, self.tell = listening, tell
        self.workers: list[subprocess.Popen[bytes] | None] = [None] * settings.workers
        self.starts: list[int] = [0] * settings.workers
        self.due: list[float] = [0.0] * settings.workers  # when the next one is started
        self.ending: bool = False
        self.signals: int = 0

    def run(self) -> int:
        """Keep workers running until a signal comes; returns an exit code."""
        log_to_stderr()
        self.folder.secret()
        write_settings(self.settings, self.folder.path / "settings.json")
        try:
            with handling_signals(self._signalled):
                return self._keep_running()
        finally:
            for worker in self.workers:
                if worker is not None and worker.poll() is None:
                    worker.kill()
                    worker.wait()
            self.folder.close()

    def _keep_running(self) -> int:
        told = False
        while not self.ending:
            for slot in range(len(self.workers)):
                code = self._look_at(slot, told)
                if code is not None:
                    return code
            if not told and all(self._ready(slot).exists() for slot in range(len(self.workers))):
                told = True
                if self.tell is not None:
                    facts = json.loads(self._ready(0).read_bytes())
                    self.tell(facts, address_of(self.settings, self.listening))
            time.sleep(0.1)
        return self._end()

    def _look_at(self, slot: int, told: bool) -> int | None:
        """Start a worker where there is none; returns an exit code where none can be started."""
        worker = self.workers[slot]
        if worker is not None:
            code = worker.poll()
            if code is None:
                return None
            if not told:
                return code if code > 0 else 1
            LOG.warning("worker %d ended with %d; another is started", slot, code)
            self.workers[slot] = None
            self.due[slot] = time.monotonic() + min(LONGEST_BREAK, 0.1 * 2 ** min(self.starts[slot] - 1, 10))
        if self.workers[slot] is None and time.monotonic() >= self.due[slot]:
            self.starts[slot] += 1
            self._ready(slot).unlink(missing_ok=True)
            number = self.listening.fileno()
            own = [str(self.folder.path), str(slot), str(number)]
            command = [sys.executable, "-P", "-m", "longtail.serve.worker", *own]
            self.workers[slot] = subprocess.Popen(command, pass_fds=[number], start_new_session=True)
        return None

    def _ready(self, slot: int) -> Path:
        """Return the file by which a worker says that it answers."""
        return self.folder.path / f"ready-{slot}"

    def _end(self) -> int:
        """Let workers finish what they have begun, or end them at once after a second signal."""
        self.listening.close()
        running = [worker for worker in self.workers if worker is not None]
        for worker in running:
            with contextlib.suppress(ProcessLookupError):
                worker.terminate()
        until = time.monotonic() + self.settings.seconds + 10
        while any(worker.poll() is None for worker in running):
            if self.signals > 1 or time.monotonic() > until:
                for worker in running:
                    worker.kill()
            time.sleep(0.05)
        return 0

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        self.ending = True


def write_settings(settings: ServeSettings, file: Path) -> None:
    """Write settings for worker processes."""
    facts = {name: value for name, value in vars(settings).items() if value is not None}
    facts["models"] = {id: str(path.resolve()) for id, path in settings.models.items()}
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        json.dump(facts, opened, default=str)


def read_settings(file: Path) -> ServeSettings:
    """Return the settings that another process wrote."""
    facts = json.loads(file.read_bytes())
    for name in PATHS:
        if name in facts:
            facts[name] = Path(facts[name])
    facts["models"] = {id: Path(path) for id, path in facts["models"].items()}
    facts["hosts"] = tuple(facts["hosts"])
    return ServeSettings(**facts)


def log_to_stderr() -> None:
    """Let the log of the server, and what uvicorn finds wrong, go to standard error."""
    warnings.simplefilter("ignore", DataWarning)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("longtail.serve", logging.INFO), ("uvicorn.error", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def run_worker(folder: Path, slot: int, number: int) -> int:
    """Answer as one of several processes, on a socket that the first process has opened."""
    use_few_arenas()
    settings = read_settings(folder / "settings.json")
    listening = socket.socket(fileno=number)
    try:
        server = Server(settings)
    except LongtailError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code

    def ready() -> None:
        from longtail.serve.model_facts import model_facts

        server.metrics.add("longtail_workers_started_total")
        facts = [model_facts(server, served) for served in server.models]
        file = folder / f"ready-{slot}"
        file.with_suffix(".tmp").write_text(json.dumps(facts), "utf-8")
        file.with_suffix(".tmp").replace(file)

    return serve_here(settings, server, listening, slot, ready)
