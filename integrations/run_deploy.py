"""The files of deploy/ tried: nginx in front of two servers, with streams, limits and failover; the unit of systemd.

    python integrations/run_deploy.py

It needs Debian's `nginx`, `openssl` and `systemd-analyze`. The site of `deploy/nginx.conf` is taken as it is, but for
the ports, which are free ones of this machine, and the certificate, which is made for the run. The unit is verified
and rated; it is not started. Results: benchmarks/results/serve_deploy.json.
"""

from __future__ import annotations

import contextlib
import getpass
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness.program import ROOT, free_port, make_parser, start_facts, write_results
from benchmarks.harness.transcript import Background, Transcript

import longtail as lt

SITE = ROOT / "deploy" / "nginx.conf"
UNIT = ROOT / "deploy" / "longtail-serve.service"
NAME = "tags.example.org"
MODEL = "/v1/longtail/models/subjects"
MAIN = """\
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log;
events { worker_connections 256; }
http {
    access_log nginx.log;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include site.conf;
}
"""


def main() -> None:
    """Run everything and write what happened."""
    parser = make_parser(__doc__, "serve_deploy.json")
    parser.add_argument("--seconds", type=float, default=12.0, help="of requests while servers end and begin")
    args = parser.parse_args()
    facts = start_facts(args, {}, "starlette", "uvicorn", "httptools")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        told = Transcript(folder, {})
        facts["unit"] = check_unit(told)
        train = lt.data.load_bundled("debtags").take(slice(None, None, 8))
        lt.Tagger(random_state=0).fit_dataset(train).save(folder / "subjects")
        found = told.run(sys.executable, "-m", "longtail", "tokens", "add", "page", "tokens", "--role", "suggest")
        token = re.findall(r"lt_[\w-]+", found)[0]
        ports = {name: free_port() for name in ("http", "https", "first", "second", "open")}
        write_site(folder, ports)
        secured = ("--tokens", "tokens", "--https", "--name", NAME)
        first = stack.enter_context(server(told, ports["first"], "first", *secured))
        second = stack.enter_context(server(told, ports["second"], "second", *secured))
        nginx: list[str | Path] = ["nginx", "-p", folder, "-c", folder / "nginx.conf"]
        told.run(*nginx, "-t")
        stack.enter_context(Background(told, nginx, f"http://127.0.0.1:{ports['http']}/health-of-nginx"))
        site = Site(ports["https"], token, folder / "site.pem")
        facts["checks"] = [
            *check_requests(site, ports),
            check_stream(site),
            *check_limits(site),
            check_proxy_without_tokens(told, ports, folder),
        ]
        facts["failover"] = check_failover(site, told, (first, second), ports, secured, args.seconds)
        facts["transcript"] = json.loads(json.dumps(told.steps).replace(token, "TOKEN"))
    facts["versions"]["nginx"] = version_of("nginx", "-v")
    facts["versions"]["systemd"] = version_of("systemd-analyze", "--version")
    facts["passed"] = all(check["passed"] for check in facts["checks"]) and facts["failover"]["passed"]
    write_results(facts, args.output)
    shown = {key: facts[key] for key in ("unit", "checks", "failover", "passed")}
    print(json.dumps(shown, indent=1))
    if not facts["passed"]:
        raise SystemExit(1)


def version_of(*words: str) -> str:
    """Return the version that a program tells."""
    done = subprocess.run(words, capture_output=True, text=True)
    return re.findall(r"\d+(?:\.\d+)+|\d{3}", done.stdout + done.stderr)[0]


def check_unit(told: Transcript) -> dict[str, Any]:
    """Verify the unit of systemd, with a program that is there, and let systemd rate what it may do."""
    unit = told.folder / UNIT.name
    text = UNIT.read_text("utf-8").replace("/opt/longtail/bin/longtail", sys.executable)
    unit.write_text(text, "utf-8")
    said = told.run("systemd-analyze", "verify", unit, may_fail=True)
    own = [line for line in (said + str(told.steps[-1]["output"])).splitlines() if UNIT.name in line]
    rated = told.run("systemd-analyze", "security", "--offline=yes", "--no-pager", unit, may_fail=True)
    level = re.findall(r"Overall exposure level[^:]*: ([\d.]+) (\w+)", rated)
    return {
        "exit_of_verify": told.steps[-2]["exit"],
        "complaints": [told.told(line) for line in own],
        "exposure": float(level[0][0]) if level else None,
        "rated": level[0][1] if level else None,
    }


def write_site(folder: Path, ports: dict[str, int]) -> None:
    """Write the site with ports and certificate of this run, and with its second server."""
    key, certificate = folder / "site.key", folder / "site.pem"
    subject = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    text = SITE.read_text("utf-8")
    for old, new in (
        ("server 127.0.0.1:8383;", f"server 127.0.0.1:{ports['first']} max_fails=2 fail_timeout=2s;"),
        (
            "# server 10.0.0.2:8383 max_fails=2 fail_timeout=10s;",
            f"server 127.0.0.1:{ports['second']} max_fails=2 fail_timeout=2s;",
        ),
        ("listen 80;", f"listen 127.0.0.1:{ports['http']};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{ports['https']} ssl;"),
        (f"/etc/letsencrypt/live/{NAME}/fullchain.pem", str(certificate)),
        (f"/etc/letsencrypt/live/{NAME}/privkey.pem", str(key)),
        ("return 301", "location = /health-of-nginx { return 204; }\n    location / { return 301"),
        ("$host$request_uri;", "$host$request_uri; }"),
    ):
        if old not in text:
            raise RuntimeError(f"{SITE.name} has no {old!r} any more")
        text = text.replace(old, new, 1)
    (folder / "site.conf").write_text(text, "utf-8")
    own = f"user {getpass.getuser()};\n" if os.geteuid() == 0 else ""  # else it would give its workers another user
    (folder / "nginx.conf").write_text(own + MAIN, "utf-8")


def server(told: Transcript, port: int, name: str, *options: str) -> Background:
    """Return a server of longtail that runs while a block does."""
    words = [sys.executable, "-m", "longtail", "serve", "subjects", "--port", str(port)]
    return Background(told, [*words, "--log", f"{name}.log", *options], f"http://127.0.0.1:{port}/health")


class Site:
    """The site as a client sees it: by https, under its name."""

    def __init__(self, port: int, token: str, certificate: Path) -> None:
        self.port, self.token = port, token
        self.context = ssl.create_default_context(cafile=str(certificate))

    def socket(self) -> ssl.SSLSocket:
        """Return an encrypted connection; the certificate is checked."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        return self.context.wrap_socket(plain, server_hostname=NAME)

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.sock = self.socket()
        given = {"Host": NAME, "Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, {name: value for name, value in given.items() if value})
            got = connection.getresponse()
            return got.status, {name.lower(): value for name, value in got.getheaders()}, got.read()
        finally:
            connection.close()

    def suggest(self) -> tuple[int, dict[str, str], bytes]:
        """Ask for the labels of one text."""
        return self.ask("POST", f"{MODEL}/suggest", json.dumps({"text": "a fast editor", "k": 2}).encode())


def checked(what: str, got: Any, expected: Any) -> dict[str, Any]:
    """Return a check, passed where what came is what was expected."""
    print(f"  {'passed' if got == expected else 'FAILED'}: {what}", flush=True)
    return {"what": what, "expected": expected, "got": got, "passed": got == expected}


def check_requests(site: Site, ports: dict[str, int]) -> list[dict[str, Any]]:
    """Ask through the proxy as a caller, without a token, by http, and under another name."""
    plain = http.client.HTTPConnection("127.0.0.1", ports["http"], timeout=30)
    plain.request("GET", "/page?x=1", headers={"Host": NAME})
    moved = plain.getresponse()
    status, headers, body = site.suggest()
    label = json.loads(body)["results"][0]["tags"][0]["label"]
    unknown = site.ask("GET", MODEL, Authorization="")
    other = site.ask("GET", MODEL, Host="evil.example")
    foreign = site.ask("POST", f"{MODEL}/suggest", b"{}", Origin="https://evil.example")
    own = site.ask("POST", f"{MODEL}/suggest", b'{"text":"a"}', Origin=f"https://{NAME}")
    page = site.ask("GET", "/", Authorization="")
    return [
        checked(
            "http is sent on to https",
            [moved.status, moved.getheader("Location")],
            [301, f"https://{NAME}/page?x=1"],
        ),
        checked("labels come through the proxy", [status, label], [200, "use::editing"]),
        checked("answers keep browsers on https", "strict-transport-security" in headers, True),
        checked("without a token: 401", unknown[0], 401),
        checked("under a name that is not ours: 421", other[0], 421),
        checked("a change from a page of another site: 403", foreign[0], 403),
        checked("a change from our own page, as the proxy passes it on: 200", own[0], 200),
        checked(
            "the page with its policy",
            [page[0], "script-src 'self'" in page[1]["content-security-policy"]],
            [200, True],
        ),
    ]


def check_stream(site: Site) -> dict[str, Any]:
    """Send lines one by one, each only when the answer to the one before has come."""
    with site.socket() as caller:
        head = f"POST {MODEL}/suggest-stream?k=1 HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Bearer {site.token}\r\n"
        caller.sendall(f"{head}Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        caller.settimeout(10)
        answered, got = [], b""
        for number in range(5):
            line = json.dumps({"id": number, "text": "a fast editor"}).encode() + b"\n"
            caller.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            while b'"id":%d,' % number not in got:
                got += caller.recv(65536)
            answered.append(number)
        caller.sendall(b"0\r\n\r\n")
    return checked("a stream is answered line by line, while it is still being sent", answered, [0, 1, 2, 3, 4])


def check_limits(site: Site) -> list[dict[str, Any]]:
    """Send what is too large for the server, for the proxy, and ask for what the proxy keeps to itself."""
    large = site.ask("POST", f"{MODEL}/suggest", b" " * (5 << 20))
    kind = large[1]["content-type"]
    with site.socket() as caller:
        head = f"POST /v1/longtail/batches HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {261 << 20}\r\n\r\n"
        caller.sendall(head.encode())
        huge = int(caller.recv(4096).split()[1])
    table = b"id,text\n" + b"".join(b"%d,a fast editor for the terminal\n" % at for at in range(200_000))
    batch = site.ask("POST", "/v1/longtail/batches?k=1", table, Content_Type="text/csv")
    if batch[0] == 202:
        site.ask("DELETE", f"/v1/longtail/batches/{json.loads(batch[2])['id']}")
    return [
        checked(
            "5 MB to suggest: refused by the server in a sentence", [large[0], kind], [413, "application/problem+json"]
        ),
        checked("261 MB: refused by the proxy before they are sent", huge, 413),
        checked(f"a batch of {len(table) >> 20} MB passes both", batch[0], 202),
        checked("the numbers of the server are not for the world", site.ask("GET", "/metrics")[0], 403),
    ]


def check_proxy_without_tokens(told: Transcript, ports: dict[str, int], folder: Path) -> dict[str, Any]:
    """Ask a server without tokens as the proxy does: it sees who is really asking, and refuses."""
    with server(told, ports["open"], "open", "--name", NAME):
        connection = http.client.HTTPConnection("127.0.0.1", ports["open"], timeout=30)
        connection.request("GET", MODEL, headers={"Host": NAME, "X-Forwarded-For": "203.0.113.9"})
        refused = connection.getresponse()
        return checked("without tokens nobody is answered through a proxy", refused.status, 403)


def check_failover(
    site: Site,
    told: Transcript,
    servers: tuple[Background, Background],
    ports: dict[str, int],
    secured: tuple[str, ...],
    seconds: float,
) -> dict[str, Any]:
    """Ask without a pause while one server is killed, begins again, and the other one is ended; nobody notices."""
    statuses: Counter[str] = Counter()
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            try:
                statuses[str(site.suggest()[0])] += 1
            except OSError as error:
                statuses[type(error).__name__] += 1

    callers = [threading.Thread(target=ask) for _ in range(4)]
    for caller in callers:
        caller.start()
    before = served(told.folder)
    time.sleep(seconds / 4)
    os.kill(servers[0].process.pid, signal.SIGKILL)
    told.note("kill -9 FIRST", "while requests are being answered")
    time.sleep(seconds / 4)
    while_away = served(told.folder)
    with server(told, ports["first"], "first", *secured):
        time.sleep(3.0)  # longer than the proxy leaves it out
        back = served(told.folder)
        servers[1].process.terminate()
        told.note("kill SECOND", "which finishes what it began")
        time.sleep(seconds / 2)
        stop.set()
        for caller in callers:
            caller.join()
        after = served(told.folder)
    out = {
        "statuses": dict(statuses),
        "by_first": {"before_the_kill": before["first"], "by_the_end": after["first"]},
        "by_second": {"while_first_was_away": while_away["second"], "by_the_end": after["second"]},
        "first_took_over_again": after["first"] > back["first"] > 0,
    }
    out["passed"] = set(statuses) == {"200"} and out["first_took_over_again"]
    print(f"  {'passed' if out['passed'] else 'FAILED'}: failover, {dict(statuses)}", flush=True)
    return out


def served(folder: Path) -> dict[str, int]:
    """Return how many requests each server has answered, by its log."""
    return {name: len((folder / f"{name}.log").read_bytes().splitlines()) for name in ("first", "second")}


if __name__ == "__main__":
    main()
