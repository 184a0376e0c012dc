"""Let everything go wrong at once: full load, mixed with slow, huge, broken and hostile requests; nothing may give.

    python benchmarks/serve/hostile.py --minutes 30 --schemathesis ENVIRONMENT/bin/schemathesis

A server with two processes gets ordinary requests over 8 connections without a pause and, at the same time, from other
processes: heads and bodies that come letter by letter or not at all, bodies of 100 MB, answers that nobody reads,
connections that are opened and left, bytes at random, JSON that is broken, deep or ambiguous, packed bodies, wrong
hosts and origins, long headers and addresses, paths that lead out, pipelined requests, streams that end in the middle,
batches; and schemathesis draws requests from the OpenAPI document. Then: no answer of 500 or above but 503 and 501,
which are stated; memory of its own that is the same at the end as after the first fifth, within 5 %; and
it still answers, and ends when it is asked to.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import make_parser, start_facts, write_results
from benchmarks.serve.load import HERE, family, free_port, of_longtail, request, running

MODEL = "/v1/longtail/models/debtags"
STATED = {501, 503}  # no package that detects languages, too much to do


def main() -> None:
    parser = make_parser(__doc__, "serve_hostile.json")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--schemathesis", type=Path, default=None, help="the program, in an environment of its own")
    args = parser.parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        lt.Tagger(random_state=0).fit_dataset(lt.data.load_bundled("debtags")).save(work / "debtags")
        log = work / "access.log"
        options = ["--port", str(port), "--workers", str(args.workers), "--log", str(log), "--max-upload", "20"]
        options += ["--reviews", str(work / "reviews.sqlite")]
        command = [sys.executable, "-m", "longtail", "serve", str(work / "debtags"), *options]
        with running(command, port, "/ready") as server:
            found = torment(port, server.pid, 60 * args.minutes, work, args.schemathesis)
            found["answers_at_the_end"] = suggests(port)
            server.send_signal(signal.SIGTERM)
            found["exit_code"] = server.wait(90)
        found["statuses"], found["requests"] = statuses(log)
    facts = start_facts(args, {}, "starlette", "uvicorn") | {"minutes": args.minutes, "workers": args.workers} | found
    facts["unstated_5xx"] = sum(
        n for code, n in found["statuses"].items() if int(code) >= 500 and int(code) not in STATED
    )
    write_results(facts, args.output)
    print(
        json.dumps(
            {name: facts[name] for name in ("requests", "statuses", "unstated_5xx", "memory", "exit_code")}, indent=1
        )
    )


def torment(port: int, pid: int, seconds: float, work: Path, schemathesis: Path | None) -> dict[str, Any]:
    """Run everything against a server for so long; return what was measured meanwhile."""
    until = time.time() + seconds
    kinds = (
        slow_heads,
        slow_bodies,
        huge_bodies,
        deaf_readers,
        idle_connections,
        broken_requests,
        broken_bodies,
        batches,
    )
    attackers = [multiprocessing.Process(target=repeat, args=(kind, port, until, at)) for at, kind in enumerate(kinds)]
    texts = list(lt.data.load_bundled("debtags", "test").texts or ())[:1000]
    file = work / "good.json"
    file.write_text(json.dumps([request(port, *of_longtail([text])) for text in texts]), "utf-8")
    words = ["127.0.0.1", str(port), str(file), "8", str(seconds)]
    good = subprocess.Popen([sys.executable, str(HERE / "generator.py"), *words], stdout=subprocess.PIPE, text=True)
    for attacker in attackers:
        attacker.start()
    drawn = (
        None if schemathesis is None else multiprocessing.Process(target=draw, args=(schemathesis, port, until, work))
    )
    if drawn is not None:
        drawn.start()
    memory: list[float] = []
    while time.time() < until:
        memory.append(sum(own_bytes(one) for one in family(pid)) / 1e6)
        if len(memory) % 12 == 0:
            print(f"{len(memory) * 5 // 60} minutes: {statistics.median(memory[-12:]):.1f} MB", flush=True)
        time.sleep(min(5.0, max(0.1, until - time.time())))
    for attacker in attackers:
        attacker.join(30)
        attacker.kill()
    if drawn is not None:
        drawn.join(60)
        drawn.kill()
    out, _ = good.communicate(timeout=200)
    fifth = max(1, len(memory) // 5)
    early, late = statistics.median(memory[fifth : 2 * fifth]), statistics.median(memory[-fifth:])
    counts = work / "schemathesis.json"
    return {
        "good": json.loads(out),
        "memory": {
            "early_mb": round(early, 1),
            "late_mb": round(late, 1),
            "change_percent": round(100 * (late / early - 1), 2),
            "most_mb": round(max(memory), 1),
            "every_minute_mb": [round(statistics.median(memory[at : at + 12]), 1) for at in range(0, len(memory), 12)],
        },
        "schemathesis": json.loads(counts.read_text()) if counts.exists() else None,
    }


def own_bytes(pid: int) -> int:
    """Return the memory that a process shares with nobody."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    lines = (line.split() for line in text.splitlines() if line.startswith(("Private_", "Swap:")))
    return 1024 * sum(int(line[1]) for line in lines)


def repeat(kind: Callable[[int, random.Random, float], None], port: int, until: float, seed: int) -> None:
    """Do one kind of harm again and again."""
    rng = random.Random(seed)
    while time.time() < until:
        try:
            kind(port, rng, until)
        except OSError:
            time.sleep(0.05)


def connect(port: int, seconds: float = 15.0) -> socket.socket:
    """Return a connection to the server."""
    return socket.create_connection(("127.0.0.1", port), timeout=seconds)


def head(path: str, *more: str) -> bytes:
    """Return the head of a request with a body."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def slow_heads(port: int, rng: random.Random, until: float) -> None:
    """Send heads letter by letter, over many connections."""
    callers = [connect(port) for _ in range(50)]
    for letter in b"GET /v1/longtail/models HTTP/1.1\r\nHost: localhost\r\nX-Long: ":
        for caller in callers:
            try:
                caller.send(bytes([letter]))
            except OSError:
                continue
        time.sleep(0.3)
        if time.time() > until:
            break
    for caller in callers:
        caller.close()


def slow_bodies(port: int, rng: random.Random, until: float) -> None:
    """Promise bodies and send them slowly, or never."""
    callers = [connect(port, 40) for _ in range(30)]
    for caller in callers:
        caller.sendall(
            head(f"{MODEL}/{rng.choice(['suggest', 'suggest-stream', 'explain'])}", "Content-Length: 100000")
            + b'{"text": "'
        )
    for _ in range(rng.randint(5, 60)):
        for caller in callers:
            try:
                caller.send(b"a")
            except OSError:
                continue
        time.sleep(0.5)
        if time.time() > until:
            break
    for caller in callers:
        caller.close()


def huge_bodies(port: int, rng: random.Random, until: float) -> None:
    """Send bodies far beyond every limit, with and without saying so before."""
    with connect(port) as caller:
        if rng.random() < 0.5:
            caller.sendall(head(f"{MODEL}/suggest", "Content-Length: 104857600"))
            for _ in range(1600):
                caller.sendall(b" " * 65536)
        else:
            caller.sendall(
                head(rng.choice([f"{MODEL}/suggest", "/v1/longtail/batches?format=csv"]), "Transfer-Encoding: chunked")
            )
            for _ in range(1600):
                caller.sendall(b"10000\r\n" + b"\t" * 65536 + b"\r\n")
        caller.recv(4096)


def deaf_readers(port: int, rng: random.Random, until: float) -> None:
    """Ask for long answers and read nothing of them."""
    callers = []
    body = json.dumps({"texts": ["a fast editor for the terminal"] * 200, "k": 500}).encode()
    for _ in range(5):
        caller = connect(port)
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        caller.sendall(head(f"{MODEL}/suggest", f"Content-Length: {len(body)}") + body)
        callers.append(caller)
    time.sleep(min(rng.uniform(1, 20), max(0.1, until - time.time())))
    for caller in callers:
        caller.close()


def idle_connections(port: int, rng: random.Random, until: float) -> None:
    """Open connections and leave them; cut some off."""
    callers = [connect(port) for _ in range(200)]
    time.sleep(min(rng.uniform(0, 12), max(0.1, until - time.time())))
    for caller in callers:
        if rng.random() < 0.5:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        caller.close()


def broken_requests(port: int, rng: random.Random, until: float) -> None:
    """Send bytes that are no HTTP, or hardly."""
    good = head(f"{MODEL}/suggest", "Content-Length: 12") + b'{"text":"a"}'
    kind = rng.randrange(9)
    if kind == 0:
        raw = rng.randbytes(rng.randint(1, 5000))
    elif kind == 1:
        raw = bytes(letter if rng.random() > 0.05 else rng.randrange(256) for letter in good)
    elif kind == 2:
        raw = good * 50
    elif kind == 3:
        raw = head("/" + "a" * rng.choice([100, 9000, 70000]))
    elif kind == 4:
        raw = head(f"{MODEL}/suggest", "X: " + "a" * rng.choice([30000, 60000]), "Content-Length: 0")
    elif kind == 5:
        raw = (
            head(f"{MODEL}/suggest", "Content-Length: 5", "Content-Length: 6", "Transfer-Encoding: chunked")
            + b"0\r\n\r\n"
        )
    elif kind == 6:
        raw = good.replace(b"localhost", rng.choice([b"evil.example", b"", b"[::", b"a\tb"]))
    elif kind == 7:
        path = rng.choice(
            ["/../../etc/passwd", "/static/..%2f..%2fapp.py", "/v1/longtail/models/..%00/suggest", "//", "*"]
        )
        raw = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    else:
        raw = head(f"{MODEL}/suggest", "Origin: http://evil.example", "Content-Length: 0")
    with connect(port, 2) as caller:
        caller.sendall(raw)
        caller.recv(65536)


def broken_bodies(port: int, rng: random.Random, until: float) -> None:
    """Send bodies that are no JSON, or JSON that hurts."""
    bodies = (
        b"[" * 500_000,
        b'{"text":' * 100_000,
        b'{"text": "' + b"\xff" * 100 + b'"}',
        b'{"text": "a", "k": ' + b"9" * 100_000 + b"}",
        b'{"text": "\\ud800", "k": 3}',
        b'{"texts": [' + b'"",' * 100_000 + b'""]}',
        json.dumps({"text": "word " * 39_000, "k": 1000}).encode(),
        json.dumps({"text": "(" * 199_000}).encode(),
        json.dumps({"text": "a", "allow": ["x" * 1900] * 1000}).encode(),
        json.dumps({"text": "\x00\u202e\ud83d\ude00" * 1000, "k": 7, "language": "xx"}).encode(),
        json.dumps({"text": "editor " * 5000, "labels": ["use::editing"]}).encode(),
        b"\x1f\x8b\x08" + rng.randbytes(1000),
    )
    path = rng.choice(["suggest", "explain", "suggest-stream", "reload"])
    body = rng.choice(bodies)
    more = ("Content-Encoding: gzip",) if body[:1] == b"\x1f" else ()
    with connect(port) as caller:
        caller.sendall(head(f"{MODEL}/{path}", f"Content-Length: {len(body)}", *more) + body)
        if rng.random() < 0.8:
            caller.recv(65536)


def batches(port: int, rng: random.Random, until: float) -> None:
    """Send files, good and bad, and leave them."""
    rows = "id,text\n" + "".join(f"{at},a fast editor number {at}\n" for at in range(rng.randint(1, 500)))
    body = rng.choice([rows.encode(), rows.encode("utf-16"), rng.randbytes(10_000), b"text\n" + b'"' * 100_000])
    with connect(port) as caller:
        caller.sendall(head("/v1/longtail/batches?format=csv", f"Content-Length: {len(body)}") + body)
        caller.recv(65536)
    time.sleep(0.5)


def draw(program: Path, port: int, until: float, work: Path) -> None:
    """Let schemathesis draw requests from the document until the time is over, with another seed in every run."""
    runs, failed, drawn, last = 0, 0, 0, ""
    url = f"http://127.0.0.1:{port}/v1/longtail/openapi.json"
    stated = ", ".join(f'"{code}"' for code in ("2xx", "3xx", "4xx", *sorted(STATED)))
    (work / "schemathesis.toml").write_text(f"[checks]\nnot_a_server_error.expected-statuses = [{stated}]\n")
    folders = {"PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": "schemathesis_bodies"}
    version = subprocess.run([str(program), "--version"], capture_output=True, text=True).stdout.strip()
    while time.time() < until - 5:
        options = ["--checks", "not_a_server_error", "--max-examples", "50", "--seed", str(runs), "--no-color"]
        try:
            done: subprocess.CompletedProcess[str] | None = subprocess.run(
                [str(program), "run", url, *options],
                cwd=work,
                env={**os.environ, **folders},
                capture_output=True,
                text=True,
                timeout=max(5, until - time.time()),
            )
        except subprocess.TimeoutExpired as stopped:
            said = (stopped.stdout or b"").decode("utf-8", "replace")
            if "Server error" in said:
                failed, last = failed + 1, said[-3000:]
            done = None
        if done is not None:
            runs += 1
            drawn += sum(map(int, re.findall(r"(\d+) generated", done.stdout)))
            if done.returncode:
                failed, last = failed + 1, (done.stdout + done.stderr)[-3000:]
        facts = {"version": version, "runs": runs, "requests_drawn": drawn, "failed": failed, "last_failure": last}
        (work / "schemathesis.json").write_text(json.dumps(facts))


def suggests(port: int) -> bool:
    """Say whether the server still suggests labels."""
    body = b'{"text":"a fast editor"}'
    with connect(port, 60) as caller:
        caller.sendall(head(f"{MODEL}/suggest", f"Content-Length: {len(body)}", "Connection: close") + body)
        got = b""
        while piece := caller.recv(65536):
            got += piece
    return got.startswith(b"HTTP/1.1 200") and b"use::editing" in got


def statuses(log: Path) -> tuple[dict[str, int], int]:
    """Return how often every status stands in an access log, and the number of requests."""
    counts: Counter[str] = Counter()
    with log.open("rb") as lines:
        for line in lines:
            counts[str(json.loads(line)["status"])] += 1
    return dict(sorted(counts.items())), sum(counts.values())


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
