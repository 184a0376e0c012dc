"""Attack a server as somebody who wants to get in would: every attack, what it should come to, and what it came to.

    python benchmarks/serve/attacks.py

Starts servers of its own on this machine's loopback address, of a small model whose labels are markup, formulas and
paths: one with tokens, two processes and a review file, read once by httptools and once by h11; one that is open to
anyone; one without tokens. Then it tries tokens and roles, cookies and forged requests, names and origins, paths,
addresses to fetch, markup in a browser, formulas in exports, packed bodies, broken JSON, smuggled and endless requests,
numbers out of range, and races. Nothing but 127.0.0.1 is asked.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import json
import os
import re
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import make_parser, start_facts, write_results
from benchmarks.serve.load import free_port, running
from longtail.serve import add_token, remove_token

V1, REVIEW = "/v1/longtail", "/v1/longtail/review"
MODEL = f"{V1}/models/hostile"
MARKUP = '<img src=x onerror="window.hacked=1">'
FORMULAS = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "=HYPERLINK(1)")
LABELS = {
    f"{MARKUP}fruit": "red apple juicy pear",
    '=HYPERLINK("http://127.0.0.1/")': "fast car engine wheel",
    "../../../etc/passwd": "sea ship harbour sail",
    "javascript:window.hacked=1": "cat dog kitten puppy",
}
CHROMIUM = Path("/usr/bin/chromium")
WITHOUT_HTTPTOOLS = "import sys; sys.modules['httptools'] = None; from longtail.cli import main; main()"


@dataclass
class Answer:
    """What came back: status, headers by small names, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Target:
    """A server to attack, its tokens by role, and the folder that it works in."""

    port: int
    folder: Path
    pid: int
    tokens: dict[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def ask(self, method: str, path: str, body: Any = None, role: str | None = None, **headers: str) -> Any:
        """Send one request; headers by their names with underscores."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if role is not None:
            sent["Authorization"] = f"Bearer {self.tokens[role]}"
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            asking.request(method, path, body, sent)
            got = asking.getresponse()
            return Answer(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())
        finally:
            asking.close()

    def raw(self, sent: bytes, seconds: float = 3.0, more: Callable[[socket.socket], None] | None = None) -> Any:
        """Send bytes and return what comes until the connection ends or is silent."""
        got = b""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as talk:
            talk.sendall(sent)
            if more is not None:
                more(talk)
            while piece := talk.recv(65536):
                got += piece
        return got

    def batch(self, rows: bytes, role: str | None = None, query: str = "", kind: str = "text/csv") -> Any:
        """Send a batch and wait for its end; returns what the server says of it."""
        begun = self.ask("POST", f"{V1}/batches?{query}", rows, role, Content_Type=kind)
        if begun.status != 202:
            return {"state": begun.status, "error": begun.body.decode()}
        facts = begun.json
        until = time.monotonic() + 30
        while facts["state"] == "running" and time.monotonic() < until:
            time.sleep(0.05)
            facts = self.ask("GET", f"{V1}/batches/{facts['id']}", role=role).json
        return facts


def head(first: str, *headers: str, token: str = "") -> str:
    """Return the head of a request, its end not included."""
    own = ["Host: localhost", *([f"Authorization: Bearer {token}"] if token else [])]
    return "\r\n".join([f"{first} HTTP/1.1", *own, *headers, ""])


class Findings:
    """The list of attacks and what they came to."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def note(self, kind: str, attack: str, expected: str, found: object, ok: bool) -> None:
        """Write down one attack."""
        told = re.sub(r"lt_[\w-]{20,}", "lt_…", str(found))[:300]
        self.all.append({"kind": kind, "attack": attack, "expected": expected, "found": told, "ok": bool(ok)})
        if not ok:
            print(f"NOT OK  {kind}: {attack}: expected {expected}; found {told}")


def main() -> None:
    parser = make_parser(__doc__, "serve_security.json")
    parser.add_argument("--no-browser", action="store_true", help="leave out what needs a browser")
    args = parser.parse_args()
    found, began = Findings(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        model = hostile_model(work / "hostile")
        for parser_name in ("httptools", "h11"):
            with started(model, work / parser_name, parser_name) as target:
                for attack in () if parser_name == "h11" else GUARDED:
                    attempt(found, attack, target)
                if parser_name == "httptools" and not args.no_browser:
                    attempt(found, browser, target)
                for parsed in PARSED:  # last: by then a server has given back what it needed to start
                    attempt(found, parsed, target, parser_name)
        with started(model, work / "open", mode="--open") as target:
            attempt(found, anonymous, target)
        with started(model, work / "local", mode="") as target:
            attempt(found, local, target)
    kinds = sorted({one["kind"] for one in found.all})
    wrong = [one for one in found.all if not one["ok"]]
    facts = start_facts(args, {}, "starlette", "uvicorn", "httptools", "h11") | {
        "attacks": len(found.all),
        "not_as_expected": len(wrong),
        "seconds": round(time.perf_counter() - began, 1),
        "kinds": {kind: sum(one["kind"] == kind for one in found.all) for kind in kinds},
        "list": found.all,
    }
    write_results(facts, args.output)
    print(f"{len(found.all)} attacks, {len(wrong)} not as expected, {facts['seconds']} s")
    sys.exit(1 if wrong else 0)


def attempt(found: Findings, attack: Callable[..., None], *what: Any) -> None:
    """Try one group of attacks; what breaks in it is noted too."""
    began = time.perf_counter()
    try:
        attack(found, *what)
    except Exception as error:
        found.note("program", attack.__name__, "runs to its end", repr(error), False)
    print(f"{attack.__name__}: {time.perf_counter() - began:.1f} s", flush=True)


def hostile_model(folder: Path) -> Path:
    """Return the folder of a small model whose labels are markup, formulas, paths and addresses."""
    texts = [words for words in LABELS.values() for _ in range(20)]
    labels = [[label] for label in LABELS for _ in range(20)]
    return lt.Tagger("ova", random_state=0).fit(texts, labels).save(folder)


@contextlib.contextmanager
def started(model: Path, folder: Path, http_parser: str = "httptools", mode: str = "--tokens") -> Iterator[Target]:
    """Start a server as a user would, in a folder of its own."""
    folder.mkdir()
    port, options, tokens = free_port(), ["--log", str(folder / "log")], {}
    if mode == "--tokens":
        names = ("suggest", "other", "review", "admin")
        tokens = {name: add_token(folder / "tokens", name, "suggest" if name == "other" else name) for name in names}
        options += ["--tokens", str(folder / "tokens"), "--reviews", str(folder / "reviews.db"), "--workers", "2"]
    elif mode:
        options += [mode, "--workers", "2"]
    program = ["-m", "longtail"] if http_parser == "httptools" else ["-c", WITHOUT_HTTPTOOLS]
    if http_parser == "h11":
        del options[options.index("--workers") :]  # a worker would be started as it always is
    command = [sys.executable, *program, "serve", str(model), "--port", str(port), "--max-upload", "8", *options]
    os.environ["TMPDIR"] = str(folder)  # where the server makes its private folder
    try:
        with running(command, port, "/ready") as server:
            yield Target(port, folder, server.pid, tokens)
    finally:
        del os.environ["TMPDIR"]


# --- who may do what ------------------------------------------------------------------------------------------------


def roles(found: Findings, target: Target) -> None:
    """Ask for every operation of the document without a token, with a wrong one, and with each role."""
    document = target.ask("GET", f"{V1}/openapi.json").json
    ranks = ("suggest", "review", "admin")
    open_ones = set()
    for path, methods in document["paths"].items():
        for method, facts in methods.items():
            needed, address = facts["x-role"], path.replace("{model}", "hostile").replace("{project_id}", "hostile")
            address = re.sub(r"\{\w+\}", "1", address)
            verb, body = method.upper(), b"" if method == "post" else None
            statuses: dict[str | None, int] = {None: target.ask(verb, address, body).status}
            statuses["wrong"] = target.ask(verb, address, body, Authorization="Bearer lt_" + "A" * 43).status
            if needed is None:
                open_ones.add(f"{verb} {path}")
                continue
            for role in ranks[: ranks.index(needed)]:
                statuses[role] = target.ask(verb, address, body, role).status
            ok = all(code == (401 if who in (None, "wrong") else 403) for who, code in statuses.items())
            found.note("roles", f"{verb} {path} without the role {needed}", "401, or 403", statuses, ok)
    expected = {
        f"GET {V1}/openapi.json",
        f"GET {V1}/metrics",
        f"GET {V1}/health",
        f"GET {V1}/ready",
        f"GET {V1}/session",
        f"POST {V1}/session",
        f"DELETE {V1}/session",
        "GET /v1/",
        "GET /label-studio/health",
        "GET /label-studio/{model}/health",
    }
    found.note(
        "roles",
        "operations that need no token",
        "health, the document, signing in; numbers on this machine",
        sorted(open_ones),
        open_ones == expected,
    )
    for path in ("/metrics", f"{V1}/metrics"):
        proxied = target.ask("GET", path, X_Forwarded_For="203.0.113.9", Host="127.0.0.1")
        found.note("roles", f"GET {path} through a proxy, no token", "401", proxied.status, proxied.status == 401)
    got = target.ask("GET", "/ready").json
    found.note("information", "GET /ready without a token", "no names of models", got, "hostile" not in json.dumps(got))


def tokens(found: Findings, target: Target) -> None:
    """Guess, garble and look for tokens."""
    good = target.tokens["suggest"]
    basic = {
        "password only": base64.b64encode(f":{good}".encode()).decode(),
        "token as the name": base64.b64encode(f"{good}:x".encode()).decode(),
    }
    wanted = {"password only": 200, "token as the name": 401}
    for name, value in basic.items():
        got = target.ask("GET", f"{V1}/models", Authorization=f"Basic {value}").status
        found.note("tokens", f"Basic, {name}", str(wanted[name]), got, got == wanted[name])
    for value in (
        good,
        f"Bearer {good[:-1]}",
        f"Bearer {good}A",
        f"Bearer {good.swapcase()}",
        "Bearer",
        "Bearer  ",
        "Basic ====",
        f"Bearer {good}\x00",
        "Bearer " + "A" * 20000,
        f"Digest {good}",
        f"Bearer {good},Bearer {good}",
    ):
        try:
            got = target.ask("GET", f"{V1}/models", Authorization=value).status
        except ValueError:
            raw = f"GET {V1}/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: {value}\r\nConnection: close\r\n\r\n"
            got = int((target.raw(raw.encode()) or b"HTTP/1.1 400")[9:12])
        found.note("tokens", f"Authorization: {value[:20]!r}…", "400, 401 or 431", got, got in (400, 401, 431))
    for path in (
        f"{V1}/models?token={good}",
        f"{V1}/models?access_token={good}",
        f"{V1}/models?Authorization=Bearer%20{good}",
    ):
        got = target.ask("GET", path)
        found.note("tokens", "a token after the question mark", "401", got.status, got.status == 401)
    for what in ("tokens", "reviews.db"):
        mode = stat.S_IMODE((target.folder / what).stat().st_mode)
        found.note("files", f"permissions of {what}", "not for others", oct(mode), not mode & 0o007)
    private = list(target.folder.glob("longtail-serve-*"))
    mode = stat.S_IMODE(private[0].stat().st_mode) if private else 0o777
    found.note("files", "permissions of the server's private folder", "0o700", oct(mode), mode == 0o700)
    texts = [file for file in target.folder.rglob("*") if file.is_file() and file.stat().st_size < 10_000_000]
    leaks = [
        file.name for file in texts if any(token.encode() in file.read_bytes() for token in target.tokens.values())
    ]
    found.note("tokens", "tokens in any file of the server, its log included", "none", leaks, not leaks)
    got = target.ask("GET", f"{V1}/models", role="other").status
    remove_token(target.folder / "tokens", "other")
    time.sleep(2.5)
    after = {target.ask("GET", f"{V1}/models", role="other").status for _ in range(8)}
    found.note(
        "tokens", "a removed token, 2.5 s later, all processes", "401", (got, after), got == 200 and after == {401}
    )
    target.tokens["other"] = add_token(target.folder / "tokens", "other", "suggest")
    with ThreadPoolExecutor(12) as threads:
        for n in range(12):
            threads.submit(add_token, target.folder / "tokens", f"t{n}", "suggest")
    there = (target.folder / "tokens").read_text().count('"name": "t')
    found.note("races", "12 tokens added at once", "12 in the file", there, there == 12)
    time.sleep(2.5)


def sessions(found: Findings, target: Target) -> None:
    """Forge, fix, keep and steal cookies; change things with a cookie from elsewhere."""
    fixed = "longtail=" + "0" * 32 + ".9999999999.AAAA." + "0" * 64
    got = target.ask("POST", f"{V1}/session", {"token": target.tokens["admin"]}, Cookie=fixed)
    flags, csrf = got.headers.get("set-cookie", ""), got.json.get("csrf", "")
    cookie = flags.partition(";")[0]
    sound = all(word in flags for word in ("HttpOnly", "SameSite=Strict", "Path=/")) and "Domain" not in flags
    found.note(
        "sessions",
        "flags of the cookie",
        "HttpOnly, SameSite=Strict, Path=/, no Domain",
        re.sub("=[0-9a-f]{32}.*?;", "=…;", flags),
        sound,
    )
    found.note(
        "sessions",
        "fixation: a cookie that was there before",
        "another one after signing in",
        cookie != fixed,
        cookie != fixed,
    )
    value = cookie.partition("=")[2]
    key, until, nonce, sign = value.split(".")
    forged = {
        "nothing signed": f"{key}.{until}.{nonce}.",
        "longer": f"{key}.{int(until) + 9999}.{nonce}.{sign}",
        "another key": f"{'0' * 32}.{until}.{nonce}.{sign}",
        "dots": f"{key}.{until}.{nonce}.x.{sign}",
        "empty": "",
        "quoted": '"' + value[:-1] + '\\0"',
        "unicode": "é" + value,
    }
    for name, other in forged.items():
        got = target.ask("GET", f"{V1}/models", Cookie=f"longtail={other}".encode().decode("latin-1")).status
        found.note("sessions", f"forged cookie: {name}", "400 or 401", got, got in (400, 401))
    reload = f"{MODEL}/reload"
    for name, headers, wanted in (
        ("cookie alone", {}, 403),
        ("wrong X-CSRF-Token", {"X_CSRF_Token": "0" * 64}, 403),
        ("X-CSRF-Token, page of another site", {"X_CSRF_Token": csrf, "Origin": "http://evil.example"}, 403),
        ("X-CSRF-Token, Origin null", {"X_CSRF_Token": csrf, "Origin": "null"}, 403),
        ("X-CSRF-Token, Sec-Fetch-Site: same-site", {"X_CSRF_Token": csrf, "Sec_Fetch_Site": "same-site"}, 403),
        ("all that a page of ours sends", {"X_CSRF_Token": csrf, "Origin": f"http://127.0.0.1:{target.port}"}, 200),
    ):
        got = target.ask("POST", reload, b"", Cookie=cookie, **headers).status
        found.note("forged requests", f"POST reload: {name}", str(wanted), got, got == wanted)
    for method in ("GET", "HEAD"):
        got = target.ask(
            method, f"{REVIEW}/queue", Cookie=cookie, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors"
        )
        found.note(
            "forged requests", f"{method} queue for a page of another site", "403", got.status, got.status == 403
        )
    got = target.ask("GET", "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status
    found.note("forged requests", "a link from another site to the page", "200", got, got == 200)
    other = target.ask("POST", f"{V1}/session", {"token": target.tokens["suggest"]})
    mixed = target.ask("POST", reload, b"", Cookie=cookie, X_CSRF_Token=other.json["csrf"]).status
    found.note("forged requests", "X-CSRF-Token of another session", "403", mixed, mixed == 403)
    both = target.ask("GET", f"{V1}/session", Cookie=cookie, Authorization="Bearer lt_x").status
    found.note("sessions", "a good cookie beside a wrong token", "401", both, both == 401)
    target.ask("DELETE", f"{V1}/session", Cookie=cookie, X_CSRF_Token=csrf)
    after = {target.ask("GET", f"{V1}/models", Cookie=cookie).status for _ in range(8)}
    found.note("sessions", "a stolen cookie after signing out, all processes", "401", after, after == {401})


def names(found: Findings, target: Target) -> None:
    """Come by other names: rebinding, proxies, poisoned caches, redirects."""
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "[::1",
        "127.0.0.1@evil.example",
        "evil.example:80",
    ):
        raw = f"GET {V1}/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
        got = target.raw(raw)[9:12].decode()
        found.note("names", f"Host: {host!r}", "400 or 421", got, got in ("400", "421"))
    raw = f"GET http://evil.example{V1}/models HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode()
    got = target.raw(raw)[9:12].decode()
    found.note("names", "absolute address of another host", "400 or 421", got, got in ("400", "421"))
    for path in (
        "/v1/projects/",
        "//evil.example/v1/projects/",
        f"{V1}/models/",
        "/static",
        "/\\evil.example",
        "//evil.example",
    ):
        forwarded = ("X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https", "Connection: close")
        asked = head(f"GET {path}", *forwarded) + "\r\n"
        said = target.raw(asked.encode()).decode("latin-1")
        where = re.search(r"(?i)^location: (.*)\r$", said, re.M)
        ok = where is None or (where[1].startswith("/") and not where[1].startswith("//"))
        found.note("redirects", f"GET {path}", "no redirect to a host", where and where[1], ok)
    got = target.ask(
        "GET", "/", X_Forwarded_Host="evil.example", X_Forwarded_Proto="gopher", Forwarded="host=evil.example"
    )
    found.note(
        "caches",
        "X-Forwarded-Host on the page",
        "says nothing of it",
        got.status,
        b"evil" not in got.body and "evil" not in str(got.headers),
    )
    api = target.ask("GET", f"{V1}/models", role="suggest").headers.get("cache-control")
    found.note("caches", "an answer that needs a token", "no-store", api, api == "no-store")


def paths(found: Findings, target: Target) -> None:
    """Ask for files outside, by every address that names something."""
    outs = (
        "../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "....//etc/passwd",
        "..%5c..%5cetc%5cpasswd",
        "%00",
        "/etc/passwd",
        "..%c0%af..%c0%afetc/passwd",
        "passwd%00.js",
    )
    stems = (
        "/static/",
        f"{V1}/models/",
        f"{V1}/batches/",
        f"{MODEL}/labels/",
        "/v1/projects/",
        "/label-studio/",
        f"{REVIEW}/items/",
        f"{REVIEW}/guidelines/",
    )
    for stem in stems:
        statuses, leaked = set(), False
        for out in outs:
            for end in ("", "/result", "/suggest", "/health"):
                got = target.raw(
                    (head(f"GET {stem}{out}{end}", "Connection: close", token=target.tokens["admin"]) + "\r\n").encode()
                )
                statuses.add(got[9:12].decode())
                leaked |= b"root:" in got
        found.note(
            "paths",
            f"{stem}… out of it, {len(outs) * 4} ways",
            "no file, no 5xx",
            sorted(statuses),
            not leaked and not any(code >= "5" for code in statuses),
        )
    facts = target.batch(b"id,text\n../../x,red apple\n", "suggest", "text_column=../../etc/passwd")
    found.note(
        "paths",
        "a batch whose column is a path",
        "refused, no path of the server",
        facts.get("error"),
        "/tmp" not in str(facts) and str(target.folder) not in str(facts),
    )


def fetching(found: Findings, target: Target) -> None:
    """Name addresses and look whether the server asks them."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.settimeout(0.2)
        url = f"http://127.0.0.1:{trap.getsockname()[1]}/x"
        config = (
            f'<View><Text name="t" value="$t" valueType="url"/><Choices name="c" toName="t" apiUrl="{url}">'
            f'<Choice value="{url}"/></Choices></View>'
        )
        plain = config.replace(' valueType="url"', "")
        entity = f'<!DOCTYPE x [<!ENTITY a SYSTEM "{url}">]><View>&a;</View>'
        for body in (
            (
                "/label-studio/setup",
                {"project": "1", "schema": plain, "hostname": url, "access_token": "secret", "extra_params": url},
            ),
            ("/label-studio/predict", {"tasks": [{"data": {"t": url}}], "label_config": config, "project": url}),
            ("/label-studio/predict", {"tasks": [{"data": {"t": url}}], "label_config": plain}),
            ("/label-studio/predict", {"tasks": [{"data": {"t": url}}], "label_config": entity}),
            (
                "/label-studio/webhook",
                {
                    "action": "ANNOTATION_CREATED",
                    "project": {"label_config": plain},
                    "task": {"data": {"t": url}, "storage": url},
                    "annotation": {"result": []},
                },
            ),
            (f"{MODEL}/suggest", {"text": url}),
        ):
            target.ask("POST", body[0], body[1], "admin", Referer=url)
        target.batch(f"id,text\n{url},{url}\n".encode(), "suggest")
        with contextlib.suppress(TimeoutError):
            while True:
                talk, _ = trap.accept()
                asked.append(talk.recv(100))
    found.note(
        "fetching",
        "addresses in setup, predict, webhook, entities, texts and batches",
        "nobody asks them",
        asked,
        not asked,
    )


# --- what is sent ---------------------------------------------------------------------------------------------------


def formulas(found: Findings, target: Target) -> None:
    """Put formulas into ids, texts, labels and names, and read every table that comes out."""
    rows = "".join(f'"{start}",red apple\r\n' for start in FORMULAS)
    facts = target.batch(f"id,text\r\n{rows}".encode(), "suggest", "k=4")
    table = target.ask("GET", f"{V1}/batches/{facts['id']}/result?format=csv", role="suggest")
    import csv
    import io

    cells = [cell for row in csv.reader(io.StringIO(table.body.decode("utf-8-sig"))) for cell in row]
    bad = [cell for cell in cells if runs(cell)]
    kind = table.headers.get("content-disposition", "")
    found.note(
        "formulas", "ids and labels in the table of a batch", "none is taken for one", bad, not bad and bool(cells)
    )
    found.note(
        "formulas",
        "the table of a batch in a browser",
        "a download, nosniff",
        kind,
        kind.startswith("attachment") and table.headers["x-content-type-options"] == "nosniff",
    )
    lines = "".join(
        json.dumps({"id": f"{start}row", "text": f"{start} red apple", "labels": [f"{start}label"]}) + "\n"
        for start in FORMULAS
        if start[0] != "\t"
    )
    target.ask("POST", f"{REVIEW}/items", lines.encode(), "review", Content_Type="application/x-ndjson")
    for start in FORMULAS:
        if start[0] != "\t":
            target.ask("POST", f"{REVIEW}/items/{http_quoted(start)}row/done", b"", "review")
    from longtail.review import ReviewStore, export_spreadsheet

    out = target.folder / "reviewed.csv"
    with ReviewStore(target.folder / "reviews.db") as store:
        n = export_spreadsheet(store, out, "all")
    cells = [cell for row in csv.reader(io.StringIO(out.read_text("utf-8-sig"))) for cell in row]
    bad = [cell for cell in cells if runs(cell)]
    found.note(
        "formulas", "the table of reviewed rows", "none is taken for one", bad or f"{n} rows", not bad and n >= 5
    )


def runs(cell: str) -> bool:
    """Say whether a spreadsheet would take a cell for a formula; numbers are none."""
    try:
        float(cell)
    except ValueError:
        return cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    return False


def http_quoted(text: str) -> str:
    """Return a text as a part of an address."""
    from urllib.parse import quote

    return quote(text, safe="")


def bombs(found: Findings, target: Target) -> None:
    """Send what is small and unpacks to much."""
    bomb = gzip.compress(b'{"text":"' + b"a" * 50_000_000 + b'"}')
    before = memory(target.pid)
    for coding in ("gzip", "deflate", "br", "zstd", "x-gzip", "identity, gzip", "GZIP"):
        got = target.ask(
            "POST", f"{MODEL}/suggest", bomb, "suggest", Content_Encoding=coding, Content_Type="application/json"
        )
        found.note("bombs", f"Content-Encoding: {coding}", "415, unread", got.status, got.status == 415)
    rows = gzip.compress(b"id,text\n" + b"1,red apple\n" * 3_000_000)
    for kind, media in (("csv", "text/csv"), ("jsonl", "application/x-ndjson")):
        facts = target.batch(rows, "suggest", f"format={kind}", media)
        found.note("bombs", f"a packed file as {kind}", "fails in a sentence", facts, facts["state"] == "failed")
    got = target.ask("POST", f"{REVIEW}/items", rows, "review", Content_Type="application/x-ndjson")
    found.note("bombs", "packed rows for review", "422", got.status, got.status == 422)
    laugh = (
        "<!DOCTYPE l [<!ENTITY a 'aaaaaaaaaa'>"
        + "".join(f"<!ENTITY a{n} '{('&a' + (str(n - 1) if n else '') + ';') * 10}'>" for n in range(9))
        + "]><View>&a8;</View>"
    )
    got = target.ask("POST", "/label-studio/predict", {"tasks": [{"data": {}}], "label_config": laugh}, "suggest")
    found.note("bombs", "a billion laughs in a labeling configuration", "422", got.status, got.status == 422)
    for n in range(4):
        nested = (
            "<Choice value='a'>" * 90
            + "".join(f"<Choice value='{n}{at}'/>" for at in range(100_000))
            + "</Choice>" * 90
        )
        config = f"<View><Text name='t' value='$t'/><Taxonomy name='c' toName='t'>{nested}</Taxonomy></View>"
        got = target.ask(
            "POST", "/label-studio/predict", {"tasks": [{"data": {"t": "red"}}], "label_config": config}, "suggest"
        )
    grown = memory(target.pid) - before
    found.note(
        "bombs",
        "four configurations of 100,000 deep choices, kept for later",
        "less than 300 MB",
        f"{got.status}, {grown / 1e6:.0f} MB",
        grown < 300e6,
    )


def memory(pid: int) -> int:
    """Return the memory of their own that a process and its children use, in bytes."""
    total = 0
    for one in (pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())):
        for line in Path(f"/proc/{one}/status").read_text().splitlines():
            if line.startswith(("RssAnon", "RssShmem", "VmSwap")):
                total += 1024 * int(line.split()[1])
    return total


def bodies(found: Findings, target: Target) -> None:
    """Send JSON and forms that hurt."""
    hurts = {
        "deep lists": b"[" * 1_000_000,
        "deep objects": b'{"text":' * 200_000,
        "NaN": b'{"text":"a","threshold":NaN}',
        "Infinity": b'{"text":"a","threshold":-Infinity}',
        "1e999": b'{"text":"a","threshold":1e999}',
        "a key twice": b'{"text":"a","text":"b"}',
        "wrong UTF-8": b'{"text":"\xff\xfe"}',
        "half a pair": b'{"text":"\\ud800"}',
        "a mark": b'\xef\xbb\xbf{"text":"a"}',
        "UTF-16": '{"text":"a"}'.encode("utf-16"),
        "a number of 100,000 digits": b'{"text":"a","k":' + b"9" * 100_000 + b"}",
        "a number of 4,000 digits": b'{"text":"a","k":' + b"9" * 4000 + b"}",
        "true as k": b'{"text":"a","k":true}',
        "k=-1": b'{"text":"a","k":-1}',
        "an unknown field": b'{"text":"a","__proto__":{"role":"admin"}}',
        "a list": b"[]",
        "nothing": b"",
        "constructor": b'{"text":"a","constructor":{}}',
        "many unknown labels": json.dumps({"text": "a", "allow": ["x" * 1900] * 1000}).encode(),
        "an integer as text": b'{"text":1}',
    }
    for name, body in hurts.items():
        got = target.ask("POST", f"{MODEL}/suggest", body, "suggest", Content_Type="application/json")
        ok = (
            got.status in (400, 413, 422)
            and got.headers["content-type"] == "application/problem+json"
            and len(got.body) < 2000
        )
        found.note(
            "bodies", f"suggest: {name}", "400, 413 or 422, one sentence", f"{got.status} {got.body[:120]!r}", ok
        )
    got = target.ask("POST", f"{MODEL}/suggest", {"text": "\x00\u202e apple"}, "suggest").status
    found.note("bodies", "suggest: NUL and a turn of direction in a text", "200", got, got == 200)
    escape = "<p>red &#" + "9" * 5000 + "; apple</p>"
    config = '<View><HyperText name="t" value="$t"/><Choices name="c" toName="t"><Choice value="a"/></Choices></View>'
    got = target.ask(
        "POST", "/label-studio/predict", {"tasks": [{"data": {"t": escape}}], "label_config": config}, "suggest"
    )
    found.note("bodies", "HTML with a character of 5,000 digits", "200", got.status, got.status == 200)
    began = time.perf_counter()
    slow = {"text": "a", "allow": ["use::editinh" * 100]}
    got = target.ask("POST", f"{MODEL}/suggest", slow, "suggest")
    taken = time.perf_counter() - began
    found.note(
        "bodies",
        "a label that is nearly one",
        "422 within 1 s",
        f"{got.status} in {taken:.2f} s",
        got.status == 422 and taken < 1,
    )
    for name, typed in (
        ("repeats", "a" * 5000),
        ("marks", "(.*)+" * 500),
        ("letters that grow", "\ufdfa" * 800),
        ("quotes", "';--\"" * 300),
    ):
        began = time.perf_counter()
        got = target.ask(
            "GET", f"{MODEL}/labels?q={http_quoted(typed)[:7000].rpartition('%')[0] or typed}", role="suggest"
        )
        taken = time.perf_counter() - began
        found.note(
            "bodies",
            f"label search: {name}",
            "an answer within 1 s",
            f"{got.status} in {taken:.2f} s",
            got.status < 500 and taken < 1,
        )


def numbers(found: Findings, target: Target) -> None:
    """Use numbers and names that SQLite and Python do not hold."""
    for number in ("0", "-1", "9" * 18, str(2**63), "9" * 400, "9" * 5000, "1e3", "٣"):
        got = target.ask("POST", f"{REVIEW}/decisions/{http_quoted(number)}/undo", b"", "review")
        found.note("numbers", f"undo of decision {number[:20]}", "404 or 422", got.status, got.status in (404, 422))
    for query in (
        "limit=99999999999999999999",
        "limit=-1",
        "limit=1.5",
        "limit=%D9%A3",
        "order=control%27%20OR%201=1",
        "limit=1&limit=2",
    ):
        got = target.ask("GET", f"{REVIEW}/queue?{query}", role="review")
        found.note("numbers", f"queue?{query}", "422", got.status, got.status == 422)
    for item in ("x' OR '1'='1", 'x"; DROP TABLE items; --', "%00", "\ufffd", "a" * 7000):
        got = target.ask("GET", f"{REVIEW}/items/{http_quoted(item)[:7000]}", role="review")
        found.note("SQL", f"row {item[:20]!r}", "404 or 422", got.status, got.status in (404, 422))
    there = target.ask("GET", f"{REVIEW}/progress", role="review").status
    found.note("SQL", "the review file afterwards", "200", there, there == 200)
    for body in (
        {"item": "x", "label": "a\nb", "verdict": "add"},
        {"item": "x", "label": "a" * 9000, "verdict": "add"},
        {"item": "x", "label": "a", "verdict": "done"},
        {"item": "x", "label": "a", "verdict": "add", "reviewer": "admin"},
    ):
        got = target.ask("POST", f"{REVIEW}/decisions", body, "review")
        found.note(
            "numbers", f"decision {str(body)[:60]}", "404, 413 or 422", got.status, got.status in (404, 413, 422)
        )
    got = target.ask("POST", f"{REVIEW}/items", b'{"id":"own","text":"red apple"}', "review")
    made = target.ask("POST", f"{REVIEW}/decisions", {"item": "own", "label": "a", "verdict": "reject"}, "review").json
    other = target.ask("POST", f"{REVIEW}/decisions/{made['decision']}/undo", b"", "admin").status
    found.note("roles", "undo of another person's decision", "422", other, other == 422)
    got = target.ask("POST", f"{REVIEW}/items", b'{"id":"own","text":"another text"}', "review")
    found.note(
        "information",
        "paths in a refusal of rows",
        "none",
        got.body.decode(),
        str(target.folder) not in got.body.decode(),
    )


def information(found: Findings, target: Target) -> None:
    """Look for paths, versions and tracebacks in answers and errors."""
    shown = b""
    for method, path, role in (
        ("GET", f"{V1}/models", "suggest"),
        ("GET", MODEL, "suggest"),
        ("GET", "/v1/projects", "suggest"),
        ("GET", "/v1/vocabs", "suggest"),
        ("GET", f"{REVIEW}/update", "review"),
        ("GET", f"{REVIEW}/progress", "review"),
        ("GET", "/nothing", None),
        ("GET", f"{V1}/batches", "suggest"),
        ("PUT", "/", None),
        ("GET", "/label-studio/versions", "suggest"),
    ):
        got = target.ask(method, path, role=role)
        shown += got.body + str(got.headers).encode()
    words = [
        word
        for word in (
            str(target.folder.parent),
            "/home/",
            "site-packages",
            "Traceback",
            "uvicorn",
            "starlette",
            "Python/",
        )
        if word.encode() in shown
    ]
    found.note("information", "paths, programs and tracebacks in ten answers", "none", words, not words)
    broken = target.folder.parent / "hostile" / "manifest.json"
    sound = broken.read_bytes()
    try:
        broken.with_name("manifest.new").write_bytes(b"{")
        broken.with_name("manifest.new").replace(broken)
        time.sleep(5)
        told = target.ask("GET", f"{V1}/models", role="suggest").json["models"][0]["problem"]
    finally:
        broken.with_name("manifest.new").write_bytes(sound)
        broken.with_name("manifest.new").replace(broken)
    found.note(
        "information",
        "why a folder is not served, for the role suggest",
        "no path",
        told,
        told and str(target.folder.parent) not in told,
    )
    time.sleep(5)


def others(found: Findings, target: Target) -> None:
    """Look for batches of others, and push them out."""
    mine = target.batch(b"text\nred apple\n", "other")
    for method, path in (("GET", ""), ("GET", "/result"), ("DELETE", "")):
        got = target.ask(method, f"{V1}/batches/{mine['id']}{path}", role="suggest").status
        found.note("batches", f"{method} batch{path} of another caller", "404", got, got == 404)
    listed = target.ask("GET", f"{V1}/batches", role="suggest").json["batches"]
    found.note("batches", "list of batches", "only one's own", len(listed), mine["id"] not in str(listed))
    for _ in range(25):
        target.batch(b"text\nred apple\n", "suggest")
    got = target.ask("GET", f"{V1}/batches/{mine['id']}", role="other").status
    found.note("batches", "25 batches of one caller, 20 are kept", "the other's stays", got, got == 200)
    held, chunked = [], ("Content-Type: text/csv", "Transfer-Encoding: chunked")
    try:
        for _ in range(40):
            talk = socket.create_connection(("127.0.0.1", target.port), timeout=5)
            talk.sendall(
                (head(f"POST {V1}/batches", *chunked, token=target.tokens["suggest"]) + "\r\n5\r\ntext\n\r\n").encode()
            )
            held.append(talk)
        time.sleep(1.0)
        folders = len(list(next(target.folder.glob("longtail-serve-*/batches")).iterdir()))
        free = target.batch(b"text\nred apple\n", "other")
    finally:
        for talk in held:
            talk.close()
    found.note(
        "batches",
        "40 uploads of one caller at once",
        "at most 20 batches and one per process, others go on",
        f"{folders} folders, the other's is {free['state']}",
        folders <= 22 and free["state"] == "done",
    )
    time.sleep(0.5)
    rows = b"text\n" + b"apple car ship cat\n" * 20_000
    facts = target.batch(rows, "suggest", "k=1000")
    found.note(
        "batches",
        "20,000 rows that ask for 1,000 labels each",
        "an end",
        facts,
        facts["state"] in ("done", "failed", "running"),
    )
    if "id" in facts:
        target.ask("DELETE", f"{V1}/batches/{facts['id']}", role="suggest")


# --- how it is sent -------------------------------------------------------------------------------------------------


def smuggling(found: Findings, target: Target, name: str) -> None:
    """Send requests that two readers would end at different places; the second request must never be answered."""
    token = target.tokens["suggest"]
    first = head(f"POST {MODEL}/suggest", "Content-Type: application/json", token=token)
    h2c = ("Connection: Upgrade", "Upgrade: h2c", "Content-Type: application/json", "Content-Length: 14")
    websocket = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: AA==", "Sec-WebSocket-Version: 13")
    hidden = f"GET {V1}/health HTTP/1.1\r\nHost: localhost\r\nX-Hidden: 1\r\n\r\n"
    kinds = {
        "Content-Length and Transfer-Encoding": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding and Content-Length": "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "two lengths": "Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
        "a list of lengths": "Content-Length: 0, 5\r\n\r\n",
        "a length with a plus": "Content-Length: +0\r\n\r\n",
        "a negative length": "Content-Length: -1\r\n\r\n",
        "a length of 30 digits": f"Content-Length: {'9' * 30}\r\n\r\n",
        "chunked twice": "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "chunked, then identity": "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "another coding": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "a blank before the colon": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "a folded header": "X: a\r\n Transfer-Encoding: chunked\r\n\r\n",
        "a bare CR": "X: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "a NUL": "X: a\x00b\r\n\r\n",
        "a chunk size with 0x": "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
        "a chunk size that wraps": "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff0\r\n\r\n",
        "a negative chunk size": "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    }
    for kind, rest in kinds.items():
        got = target.raw((first + rest + hidden).encode("latin-1"), 2.0)
        statuses = re.findall(rb"HTTP/1\.1 (\d{3})", got)
        harmless = {"a folded header"}  # one request after another, as both readers see them, is pipelining
        ok = (b'"UP"' not in got and all(code[:1] == b"4" for code in statuses)) or kind in harmless
        found.note("smuggling", f"{name}: {kind}", "refused and closed", [code.decode() for code in statuses], ok)
    upgrade = head(f"POST {MODEL}/suggest", *h2c, token=token) + "\r\n" + '{"text":"red"}'
    for kind, raw in (
        ("h2c with a body, and a request after it", upgrade + hidden),
        (
            "a websocket",
            head(f"GET {V1}/health", *websocket) + "\r\n",
        ),
        ("CONNECT", "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: localhost\r\n\r\n" + hidden),
        ("TRACE", "TRACE / HTTP/1.1\r\nHost: localhost\r\nX-Secret: 1\r\n\r\n"),
        ("HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ):
        got = target.raw(raw.encode(), 2.0)
        statuses = [code.decode() for code in re.findall(rb"HTTP/1\.1 (\d{3})", got)]
        ok = not any(code.startswith("5") or code == "101" for code in statuses) and b"X-Secret" not in got
        found.note("smuggling", f"{name}: {kind}", "no upgrade, no 5xx, nothing sent back", statuses, ok)


def endless(found: Findings, target: Target, name: str) -> None:
    """Send parts of requests that do not end, and look at the memory."""
    target.ask("POST", f"{MODEL}/suggest", {"text": "red apple"}, "suggest")
    time.sleep(max(0.0, target.started + 24 - time.monotonic()))  # the memory of its start is given back after 20 s
    begun = head(f"POST {MODEL}/suggest", "Content-Type: application/json", token=target.tokens["suggest"])
    line = b"X-Flood: " + b"a" * 900 + b"\r\n"

    def flood(piece: bytes, times: int = 60_000) -> Callable[[socket.socket], None]:
        def send(talk: socket.socket) -> None:
            many = piece * 100
            until = time.monotonic() + 2.5
            for _ in range(times // 100):
                if time.monotonic() > until:
                    return
                talk.sendall(many)

        return send

    kinds = (
        ("headers", begun.encode(), flood(line)),
        ("a header of one name", begun.encode() + b"X: ", flood(b"a" * 900)),
        ("an address", b"GET /", flood(b"a" * 900)),
        ("trailers", begun.encode() + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", flood(line)),
        ("an extension of a chunk", begun.encode() + b"Transfer-Encoding: chunked\r\n\r\n2;", flood(b"a" * 900)),
        ("chunks of one byte", begun.encode() + b"Transfer-Encoding: chunked\r\n\r\n", flood(b"1\r\n \r\n" * 150)),
        ("pipelined requests", b"", flood(f"GET {V1}/health HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 10, 6000)),
    )
    for kind, first, more in kinds:
        stop, before = threading.Event(), memory(target.pid)
        seen = [before]
        looking = threading.Thread(target=watch_memory, args=(target.pid, stop, seen))
        looking.start()
        got = target.raw(first, 2.0, more)
        stop.set()
        looking.join()
        grown = (max(seen) - before) / 1e6
        codes = [code.decode() for code in re.findall(rb"HTTP/1\.1 (\d{3})", got)[:3]]
        found.note("endless", f"{name}: {kind}", "less than 40 MB more", f"{grown:.0f} MB, {codes}", grown < 40)
    held = [socket.create_connection(("127.0.0.1", target.port), timeout=20) for _ in range(150)]
    for talk in held:
        talk.sendall(b"GET / HT")
    began = time.perf_counter()
    status = target.ask("GET", f"{V1}/health").status
    taken = time.perf_counter() - began
    ended = 0
    for talk in held:
        with contextlib.suppress(OSError):
            ended += talk.recv(1) == b""
        talk.close()
    found.note(
        "endless",
        f"{name}: 150 heads that never end",
        "others are answered; all are closed",
        f"{status} in {taken:.2f} s, {ended} closed",
        status == 200 and ended == 150,
    )


def watch_memory(pid: int, stop: threading.Event, seen: list[int]) -> None:
    """Note the memory of a server again and again."""
    while not stop.wait(0.05):
        seen.append(memory(pid))


# --- other servers, and a browser ----------------------------------------------------------------------------------


def anonymous(found: Findings, target: Target) -> None:
    """Ask a server that is open to anyone."""
    for method, path in (
        ("POST", f"{MODEL}/reload"),
        ("POST", f"{REVIEW}/update"),
        ("GET", f"{REVIEW}/queue"),
        ("POST", "/v1/projects/hostile/learn"),
    ):
        got = target.ask(method, path, b"" if method == "POST" else None).status
        found.note("open", f"{method} {path}", "403 or 404", got, got in (403, 404))
    mine = target.batch(b"text\nred apple\n")
    listed = target.ask("GET", f"{V1}/batches").json["batches"]
    found.note(
        "open", "list of batches, for somebody else", "none", len(listed), mine["state"] == "done" and not listed
    )


def local(found: Findings, target: Target) -> None:
    """Ask a server without tokens from a page of another site, by another name, and through a proxy."""
    for name, headers, wanted in (
        ("rebinding", {"Host": f"evil.example:{target.port}"}, 421),
        ("a form of another site", {"Origin": "http://evil.example", "Content_Type": "text/plain"}, 403),
        ("a page of another port", {"Origin": "http://127.0.0.1:1"}, 403),
        ("a file", {"Origin": "null"}, 403),
        ("a proxy", {"X_Forwarded_For": "203.0.113.9"}, 403),
        ("a proxy that names the host only", {"X_Forwarded_Host": "tags.example.org"}, 403),
        ("a proxy that names the scheme only", {"X_Forwarded_Proto": "https"}, 403),
    ):
        got = target.ask("POST", f"{MODEL}/reload", b"", **headers).status
        found.note("local", f"POST reload: {name}", str(wanted), got, got == wanted)
    got = target.ask("GET", f"{V1}/models")
    found.note(
        "local",
        "CORS",
        "not granted",
        got.headers.get("access-control-allow-origin"),
        "access-control-allow-origin" not in got.headers,
    )
    preflight = target.ask(
        "OPTIONS", f"{MODEL}/suggest", Origin="http://evil.example", Access_Control_Request_Method="POST"
    )
    found.note(
        "local",
        "a preflight",
        "not granted",
        preflight.status,
        not any("access-control" in name for name in preflight.headers),
    )


def browser(found: Findings, target: Target) -> None:
    """Open every view on labels, texts, guidelines and names that are markup, in a real browser."""
    if not CHROMIUM.exists():
        return
    from playwright.sync_api import sync_playwright

    hurt = f"{MARKUP}<script>window.hacked=1</script><svg onload=window.hacked=1>javascript:window.hacked=1 red apple"
    rows = json.dumps({"id": f"{MARKUP}id", "text": hurt, "labels": [f"{MARKUP}given", *LABELS]}).encode()
    target.ask("POST", f"{REVIEW}/items", rows, "review", Content_Type="application/x-ndjson")
    for label in LABELS:
        target.ask("PUT", f"{REVIEW}/guidelines/{http_quoted(label)}", {"text": hurt}, "review")
    base = f"http://127.0.0.1:{target.port}"
    wrong: list[str] = []
    with sync_playwright() as play:
        program = play.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        context = program.new_context(locale="en-GB")
        context.set_default_timeout(8000)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(base) else wrong.append(asked.url))
        page.goto(f"{base}/#/try")
        page.fill("input[name=token]", target.tokens["admin"])
        page.click("button[type=submit]")
        page.wait_for_selector("main.view-try")
        page.fill("textarea.paper-text", hurt)
        page.wait_for_selector(".tag-head")
        page.click(".tag-head")
        page.wait_for_timeout(400)
        for view in (
            "batch",
            "labels",
            f"labels/{http_quoted(next(iter(LABELS)))}",
            "review",
            "dashboard",
            "models",
            "compare",
        ):
            page.evaluate("view => { location.hash = '#/' + view }", view)
            page.wait_for_selector(f"main.view-{view.split('/')[0]}")
            page.wait_for_timeout(400)
            if view == "batch":
                files: Any = {
                    "name": f"{MARKUP}.csv",
                    "mimeType": "text/csv",
                    "buffer": f"{MARKUP.replace(chr(34), '')},text\n{MARKUP.replace(chr(34), '')},red\n".encode(),
                }
                page.set_input_files("input[type=file]", files)
                page.wait_for_timeout(400)
        hacked = page.evaluate("window.hacked ?? null")
        stores = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
        found.note(
            "markup",
            "labels, texts, ids, guidelines and names of files in seven views",
            "stay text",
            [hacked, *wrong],
            hacked is None and not wrong,
        )
        found.note(
            "tokens",
            "the token in what the browser keeps, and the cookie for scripts",
            "neither",
            stores,
            "lt_" not in stores and "longtail=" not in stores,
        )
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.inline=1\">')")
        page.evaluate(
            "const s = document.createElement('script'); s.textContent = 'window.inline=2'; document.body.append(s)"
        )
        page.evaluate(
            "const s = document.createElement('script'); s.src = 'data:text/javascript,window.inline=3';"
            "document.body.append(s)"
        )
        page.evaluate("fetch('http://127.0.0.1:1/').catch(() => { window.refused = 1 })")
        page.wait_for_timeout(300)
        inline = page.evaluate("window.inline ?? null")
        found.note(
            "markup",
            "inline code and scripts from data, put in by force",
            "stopped by the policy",
            inline,
            inline is None,
        )
        wrong.clear()
        for address in ("#/labels/%", "#/%E0%A4%A", "#/__proto__", "#/constructor/toString", "#/labels/__proto__"):
            page.goto(f"{base}/{address}")
            page.reload()
            page.wait_for_selector("main.view", timeout=8000)
        found.note("markup", "addresses that are no address", "a view is shown", wrong, not wrong)
        page.evaluate("location.hash = '#/try'")
        page.wait_for_selector("textarea.paper-text")
        page.fill("textarea.paper-text", "private words")
        page.click("details.account summary")
        page.click("details.account button")
        page.wait_for_selector("input[name=token]")
        page.fill("input[name=token]", target.tokens["suggest"])
        page.click("button[type=submit]")
        page.wait_for_selector("textarea.paper-text")
        left = page.input_value("textarea.paper-text")
        found.note("sessions", "what the next person finds after signing out", "no text", left, left == "")
        program.close()


PARSED = (smuggling, endless)
GUARDED = (roles, names, sessions, paths, fetching, formulas, bodies, numbers, information, others, bombs, tokens)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
