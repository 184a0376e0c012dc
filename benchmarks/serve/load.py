"""Measure requests per second and latencies of `longtail serve` and of what users would run instead.

    python benchmarks/serve/load.py --annif ENVIRONMENT/bin --project FOLDER

Three servers on the same data (the bundled `debtags`), each with two processes: `longtail serve`
with a label tree, Annif's own server with Omikuji Bonsai (gunicorn and uvicorn workers, as its documentation says;
FOLDER has its `projects.cfg` and its trained project `bonsai`, as `benchmarks/hybrid/peers.py annif` leaves them),
and a plain service of uvicorn and scikit-learn (`plain_service.py`). A generator on the same machine sends the texts
of the test rows over 1, 16 and 64 connections, alone or 32 in a request, and asks for five labels. The servers take
turns of a few seconds, again and again, so that whatever else the machine does meets all of them. What counts are
ratios: all share two cores with the generator.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table

HERE = Path(__file__).resolve().parent
ROWS = 2000
TEXTS_AT_ONCE = 32
LOADS = (("one text", 1, 1), ("one text", 1, 16), ("one text", 1, 64), ("32 texts", TEXTS_AT_ONCE, 8))
Start = Callable[[int, Path, Any], contextlib.AbstractContextManager[subprocess.Popen[bytes]]]
Body = Callable[[Sequence[str]], tuple[str, str, str]]  # path, type and body of a request


def main() -> None:
    parser = make_parser(__doc__, "serve_load.json")
    parser.add_argument("--annif", type=Path, metavar="FOLDER", help="programs of the environment with Annif")
    parser.add_argument("--project", type=Path, metavar="FOLDER", help="projects.cfg and data of Annif's project")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a turn")
    parser.add_argument("--turns", type=int, default=5, help="of every server with every load")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=list(SERVERS), choices=list(SERVERS))
    args = parser.parse_args()
    facts = start_facts(args, {"servers": {}}, "starlette", "uvicorn", "httptools")
    facts |= {"workers": args.workers, "seconds_of_a_turn": args.seconds, "turns": args.turns}
    texts = list(lt.data.load_bundled("debtags", "test").texts or ())[:ROWS]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        work = Path(folder)
        running = [Running(name, stack, texts, work, args) for name in args.only]
        for one in running:
            for load in LOADS:
                one.take_turn(load, 3.0)
            one.found.clear()  # by now all is compiled and loaded
        for turn in range(args.turns):
            for load in LOADS:
                for one in running:
                    one.take_turn(load, args.seconds)
            print(f"turn {turn + 1} of {args.turns}", flush=True)
        facts["servers"] = {one.name: one.results() for one in running}
    facts["ratios"] = ratios(facts["servers"])
    write_results(facts, args.output)
    show(facts)


class Running:
    """A server that runs, and what was found about it so far."""

    def __init__(self, name: str, stack: contextlib.ExitStack, texts: list[str], work: Path, args: Any) -> None:
        self.name, self.port = name, free_port()
        started, body = SERVERS[name]
        self.process = stack.enter_context(started(self.port, work, args))
        self.files: dict[int, Path] = {}
        self.found: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
        for at_once in {at_once for _, at_once, _ in LOADS}:
            groups = [texts[at : at + at_once] for at in range(0, len(texts) - at_once + 1, at_once)]
            self.files[at_once] = work / f"{name}-{at_once}.json"
            self.files[at_once].write_text(json.dumps([request(self.port, *body(group)) for group in groups]), "utf-8")

    def take_turn(self, load: tuple[str, int, int], seconds: float) -> None:
        """Let one load go on for some seconds."""
        found = generate(self.port, self.files[load[1]], load[2], seconds)
        self.found.setdefault(load, []).append(found)

    def results(self) -> dict[str, Any]:
        """Return what all turns found together."""
        out: dict[str, Any] = {}
        for (what, at_once, connections), turns in self.found.items():
            times = np.concatenate([np.array(turn["milliseconds"]) for turn in turns])
            per_second = times.size / sum(turn["seconds"] for turn in turns)
            out[f"{what}, {connections} connections"] = {
                "requests": times.size,
                "per_second": round(per_second, 1),
                "texts_per_second": round(per_second * at_once, 1),
                "p50_ms": round(float(np.percentile(times, 50)), 3),
                "p99_ms": round(float(np.percentile(times, 99)), 3),
                "worst_ms": round(float(times.max()), 3),
                "per_second_of_turns": [turn["per_second"] for turn in turns],
                "p99_ms_of_turns": [turn["p99_ms"] for turn in turns],
            }
        out["memory_mb"] = round(sum(proportional_bytes(pid) for pid in family(self.process.pid)) / 1e6, 1)
        return out


def generate(port: int, file: Path, connections: int, seconds: float) -> dict[str, Any]:
    """Return what a generator in a process of its own finds."""
    words = ["127.0.0.1", str(port), str(file), str(connections), str(seconds), "--times"]
    command = [sys.executable, str(HERE / "generator.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    if set(found["statuses"]) != {"200"}:
        raise SystemExit(f"answers other than 200: {found['statuses']}")
    return found


def request(port: int, path: str, kind: str, body: str) -> str:
    """Return a whole request; letters stand for bytes."""
    raw = body.encode("utf-8").decode("latin-1")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {kind}\r\nContent-Length: {len(raw)}\r\n\r\n"
    )
    return head + raw


def of_longtail(texts: Sequence[str]) -> tuple[str, str, str]:
    asked: dict[str, Any] = {"text": texts[0]} if len(texts) == 1 else {"texts": list(texts)}
    return "/v1/longtail/models/debtags/suggest", "application/json", json.dumps({**asked, "k": 5})


def of_annif(texts: Sequence[str]) -> tuple[str, str, str]:
    if len(texts) == 1:
        form = urllib.parse.urlencode({"text": texts[0], "limit": 5})
        return "/v1/projects/bonsai/suggest", "application/x-www-form-urlencoded", form
    documents = [{"text": text} for text in texts]
    return "/v1/projects/bonsai/suggest-batch?limit=5", "application/json", json.dumps({"documents": documents})


def of_plain(texts: Sequence[str]) -> tuple[str, str, str]:
    return "/predict", "application/json", json.dumps({"texts": list(texts)})


@contextlib.contextmanager
def longtail(port: int, work: Path, args: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Train a label tree and serve it."""
    model = work / "debtags"
    if not model.exists():
        lt.Tagger(random_state=0).fit_dataset(lt.data.load_bundled("debtags")).save(model)
    options = ["--port", str(port), "--workers", str(args.workers), "--log", str(work / "access.log")]
    command = [sys.executable, "-m", "longtail", "serve", str(model), *options]
    with running(command, port, "/ready") as process:
        yield process


@contextlib.contextmanager
def annif(port: int, work: Path, args: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run Annif's own server."""
    if args.annif is None or args.project is None:
        raise SystemExit("Annif needs --annif and --project.")
    options = [
        "--workers",
        str(args.workers),
        "--bind",
        f"127.0.0.1:{port}",
        "--worker-class",
        "uvicorn.workers.UvicornWorker",
    ]
    command = [str(args.annif.absolute() / "gunicorn"), "annif:create_cx_app()", *options, "--timeout", "600"]
    with running(command, port, "/v1/projects", cwd=args.project) as process:
        yield process


@contextlib.contextmanager
def plain(port: int, work: Path, args: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Train and run the plain service."""
    command = [sys.executable, str(HERE / "plain_service.py"), str(port), str(args.workers)]
    with running(command, port, None) as process:
        yield process


@contextlib.contextmanager
def running(
    command: list[str], port: int, ready: str | None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until it is no longer needed; it is ready when it answers."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(lt.__file__).parents[1])}
    if cwd is not None:  # Annif, which has an environment of its own
        del env["PYTHONPATH"]
        env["ANNIF_DATADIR"] = str((cwd / "annif-data").absolute())
    process = subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 900
        while not answers(port, ready):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{command[0]} did not start")
            time.sleep(0.5)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def answers(port: int, path: str | None) -> bool:
    """Say whether a server answers at a port."""
    try:
        if path is None:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return True
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as got:
            return got.status == 200
    except OSError:
        return False


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def family(pid: int) -> list[int]:
    """Return a process and all below it."""
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in below for one in family(int(child)))]


def proportional_bytes(pid: int) -> int:
    """Return the memory of a process, shared pages divided among those who share them."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * int(text.partition("Pss:")[2].split()[0])


SERVERS: dict[str, tuple[Start, Body]] = {
    "longtail": (longtail, of_longtail),
    "annif": (annif, of_annif),
    "plain": (plain, of_plain),
}


def ratios(servers: dict[str, Any]) -> dict[str, Any]:
    """Return how many times as much longtail does as the others, and their latencies as multiples of its own."""
    out: dict[str, Any] = {}
    own = servers.get("longtail")
    for name in ("annif", "plain"):
        if own is None or name not in servers:
            continue
        out[name] = {
            load: {
                "throughput": round(own[load]["per_second"] / max(servers[name][load]["per_second"], 1e-9), 2),
                "p50": round(servers[name][load]["p50_ms"] / own[load]["p50_ms"], 2),
                "p99": round(servers[name][load]["p99_ms"] / own[load]["p99_ms"], 2),
            }
            for load in own
            if isinstance(own[load], dict)
        }
    return out


def show(facts: dict[str, Any]) -> None:
    """Print the tables."""
    rows = [
        [name, load, f["per_second"], f["texts_per_second"], f["p50_ms"], f["p99_ms"]]
        for name, found in facts["servers"].items()
        for load, f in found.items()
        if isinstance(f, dict)
    ]
    show_table("Servers", ["server", "load", "requests/s", "texts/s", "p50 ms", "p99 ms"], rows, left=2)
    more = [
        [f"{load}, against {name}", f["throughput"], f["p50"], f["p99"]]
        for name, found in facts["ratios"].items()
        for load, f in found.items()
    ]
    show_table("Times as much, and how many times as long others take", ["load", "throughput", "p50", "p99"], more)


if __name__ == "__main__":
    main()
