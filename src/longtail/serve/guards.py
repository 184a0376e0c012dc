"""The layer around all routes: sizes, hosts, origins, callers, rates and headers of every request, and the log."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longtail.errors import LongtailError, ParameterError
from longtail.serve.metrics import OTHER
from longtail.serve.problems import JSON_HEADER, Busy, Problem, Refused, answer_to_error, problem
from longtail.serve.server import Server
from longtail.serve.sessions import cookie_of
from longtail.serve.settings import LOOPBACK, ServeSettings
from longtail.serve.tokens import Caller

LOG = logging.getLogger("longtail.serve")
LONGEST_URL = 8 << 10
LARGEST_HEADERS = 32 << 10
SAFE = ("GET", "HEAD", "OPTIONS")
CALLERS_REMEMBERED = 10_000
HOSTS_REMEMBERED = 100
ONCE = frozenset((b"host", b"authorization", b"origin", b"content-length", b"content-type", b"transfer-encoding"))
FORWARDED = frozenset(
    (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"via")
)
LOCAL = Caller("local", "admin", "local")
ANYONE = Caller("anyone", "suggest", "open")
ENCODE = json.JSONEncoder().encode
PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
API_POLICY = b"default-src 'none'; frame-ancestors 'none'"
HEADERS: list[tuple[bytes, bytes]] = [  # of every answer
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
NO_STORE = (b"cache-control", b"no-store")
HTTPS = (b"strict-transport-security", b"max-age=31536000")
PAGE_HEADERS: list[tuple[bytes, bytes]] = [  # of what a browser shows
    *HEADERS,
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]


@dataclass(eq=False, slots=True)
class Watch:
    """What is known of one request on its way: for limits, the log and the numbers of the server."""

    id: str
    body_limit: int
    body_seconds: float
    streams: bool = False  # the time is that of one piece of the body, not of all of it
    began: float = field(default_factory=time.perf_counter)
    body_began: float | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    body_done: bool = False
    status: int = 0
    note: dict[str, Any] = field(default_factory=dict)  # for the log: rows and, if asked for, texts


def watch_of(scope: Mapping[str, Any]) -> Watch:
    """Return what is known of a request."""
    return scope["longtail.watch"]


class Guards:
    """The outermost layer of the app."""

    app: ASGIApp
    server: Server
    settings: ServeSettings

    def __init__(self, app: ASGIApp, server: Server, routes: Sequence[BaseRoute] = ()) -> None:
        self.app, self.server, self.settings = app, server, server.settings
        self.rates: Rates = Rates(server.settings)
        self.hosts: frozenset[str] | None = allowed_hosts(server.settings)
        self.paths: dict[object, str] = {
            getattr(route, "endpoint", None): getattr(route, "path", OTHER) for route in routes
        }
        self.at_once: int = 0
        self.log: AccessLog = AccessLog(server.settings)
        self.known_hosts: set[bytes] = set()  # headers `Host` that were found good
        self.https: list[tuple[bytes, bytes]] = [HTTPS] if server.settings.https else []
        self.json_headers: list[tuple[bytes, bytes]] = [
            *HEADERS,
            (b"content-security-policy", API_POLICY),
            NO_STORE,
            *self.https,
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        watch = Watch(secrets.token_hex(8), self.settings.body_bytes, self.settings.body_seconds)
        scope["longtail.watch"] = watch
        headers = self._headers(scope, watch, send)
        self.at_once += 1
        try:
            try:
                self._check(scope)
                await self.app(scope, self._limited(scope, receive, watch), headers)
            except (Problem, LongtailError, HTTPException) as error:
                if watch.status:  # too late: the answer has begun
                    raise
                await answer_to_error(scope, error, self.settings.paths())(scope, receive, headers)
        except ClientGone:
            watch.status = watch.status or 499
        except Exception:
            LOG.exception("request %s failed", watch.id)
            if watch.status:
                raise
            detail = f"the server failed on this request; its log has the reason under {watch.id}."
            await problem(500, "", detail)(scope, receive, headers)
        finally:
            self.at_once -= 1
            self._note(scope, watch)

    def _check(self, scope: Scope) -> None:
        """Refuse what no route should have to deal with, and find out who is calling."""
        found: dict[bytes, bytes] = {}
        size = 0
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            if name in found and name in ONCE:
                raise Problem(400, f"the header {name.decode()!r} stands twice.")
            found[name] = value
        if size > LARGEST_HEADERS:
            raise Problem(431, f"the headers have {size} bytes; at most {LARGEST_HEADERS} are read.")
        url = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if url > LONGEST_URL:
            raise Problem(414, f"the address has {url} bytes; at most {LONGEST_URL} are read.")
        if b"content-encoding" in found and found[b"content-encoding"].strip().lower() != b"identity":
            raise Problem(415, "bodies are read as they are; send them without Content-Encoding.")
        if b"transfer-encoding" in found and b"content-length" in found:  # a proxy may read the other one
            close = {"Connection": "close"}
            raise Problem(400, "a body has a Content-Length or a Transfer-Encoding, not both.", close)
        self._check_host(found)
        self._check_origin(found, changes=scope["method"] not in SAFE)
        caller = self._caller(scope, found)
        scope["longtail.caller"] = caller
        if self.at_once > self.settings.requests_at_once:
            raise Busy(f"{self.at_once - 1} requests are being answered; try again soon.")
        if self.rates.rate is None:
            return
        client = scope.get("client")
        self.rates.count(f"ip {client[0] if client else ''}" if caller is None or caller.by != "token" else caller.name)

    def _check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse names under which this server is not known: a page elsewhere may call its own name ours."""
        given = headers.get(b"host", b"")
        if self.hosts is None or given in self.known_hosts:
            return
        host = host_name(given.decode("latin-1"))
        if host in self.hosts:
            if len(self.known_hosts) < HOSTS_REMEMBERED:
                self.known_hosts.add(given)
        else:
            raise Problem(421, f"this server is not known as {host!r:.100}; its names can be set when it is started.")

    def _check_origin(self, headers: Mapping[bytes, bytes], *, changes: bool) -> None:
        """Refuse what a page of another site asks a browser for; a link there may lead here."""
        site = headers.get(b"sec-fetch-site", b"none")
        if site in (b"cross-site", b"same-site") and (changes or headers.get(b"sec-fetch-mode") != b"navigate"):
            raise Refused(403, "this request comes from a page of another site.")
        origin = headers.get(b"origin")
        if changes and origin is not None:
            scheme, _, host = origin.decode("latin-1").partition("://")
            same = host.lower() == headers.get(b"host", b"").decode("latin-1").lower()
            if not same or scheme != ("https" if self.settings.https else "http"):
                raise Refused(
                    403, f"this request comes from a page of another site, {origin.decode('latin-1')!r:.100}."
                )

    def _caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller | None:
        """Return who is calling; None where nobody is known."""
        tokens, settings = self.server.tokens, self.settings
        if tokens is None:
            if settings.open:
                return ANYONE
            if is_forwarded(headers):
                raise Refused(
                    403, "a proxy stands before this server, which has no tokens; start it with a file of tokens."
                )
            return LOCAL
        given = headers.get(b"authorization")
        if given is not None:
            token = token_of(given.decode("latin-1"))
            known = None if token is None else tokens.find(token)
            scope["longtail.token_unknown"] = bool(token) and known is None
            return None if known is None else Caller(known.name, known.role, "token")
        cookie = cookie_of(headers.get(b"cookie", b"").decode("latin-1"), https=settings.https)
        session = None if cookie is None else self.server.sessions.find(cookie)
        if session is None:
            return None
        if scope["method"] not in SAFE:
            self.server.sessions.check_csrf(session, headers.get(b"x-csrf-token", b"").decode("latin-1"))
        return Caller(session.token.name, session.token.role, "session")

    def _limited(self, scope: Scope, receive: Receive, watch: Watch) -> Receive:
        """Return what reads the body of a request within its limits of size and time."""

        async def limited() -> Message:
            if watch.body_done:
                return await receive()
            if watch.body_began is None:
                watch.body_began = time.perf_counter()
                self._check_length(scope, watch)
            left = watch.body_seconds
            if not watch.streams:
                left -= time.perf_counter() - watch.body_began
            try:
                async with asyncio.timeout(max(left, 0.001)):
                    message = await receive()
            except TimeoutError:
                raise Problem(408, f"the body did not come within {watch.body_seconds:g} seconds.") from None
            if message["type"] == "http.disconnect":
                raise ClientGone
            watch.bytes_in += len(message.get("body", b""))
            watch.body_done = not message.get("more_body", False)
            if watch.bytes_in > watch.body_limit:
                raise too_large(watch)
            return message

        return limited

    def _check_length(self, scope: Scope, watch: Watch) -> None:
        """Refuse a body that says itself that it is too large, before it is read."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value[:20]) > watch.body_limit:
                raise too_large(watch)

    def _headers(self, scope: Scope, watch: Watch, send: Send) -> Send:
        """Return what sends an answer with the headers that every answer has, and counts it."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                watch.status = message["status"]
                given = message.get("headers", ())
                if len(given) == 2 and given[0] is JSON_HEADER:  # as most answers are
                    own = [*given, (b"x-request-id", watch.id.encode()), *self.json_headers]
                    await send({"type": "http.response.start", "status": watch.status, "headers": own})
                    return
                own = list(given)
                names = {name for name, _ in own}
                kind = next((value for name, value in own if name == b"content-type"), b"")
                shown = not kind.startswith((b"application/json", b"application/problem+json"))
                own += [header for header in (PAGE_HEADERS if shown else HEADERS) if header[0] not in names]
                own.append((b"x-request-id", watch.id.encode()))
                if b"content-security-policy" not in names:
                    policy = PAGE_POLICY if kind.startswith(b"text/html") else API_POLICY
                    own.append((b"content-security-policy", policy))
                if b"cache-control" not in names:
                    own.append(NO_STORE)
                own += self.https
                message = {**message, "headers": own}
                await send(message)
                return
            watch.bytes_out += len(message.get("body", b""))
            await send(message)

        return sending

    def _note(self, scope: Scope, watch: Watch) -> None:
        """Count the request, and write its line of the access log."""
        seconds = time.perf_counter() - watch.began
        route = self.paths.get(scope.get("endpoint"), OTHER) if "endpoint" in scope else OTHER
        self.server.metrics.request(route, watch.status, seconds)
        if watch.bytes_in:
            self.server.metrics.add("longtail_body_bytes_total", watch.bytes_in)
        self.log.write(scope, watch, seconds, route)


def token_of(authorization: str) -> str | None:
    """Return the token in a header `Authorization`; None where there is none.

    It stands after Bearer, or is the password of Basic: Annif and Label Studio can send nothing else.

    >>> token_of("Bearer lt_abc"), token_of("Basic YW5uaWY6bHRfYWJj"), token_of("Basic ?")
    ('lt_abc', 'lt_abc', None)
    """
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() != "basic":
        return None
    try:
        return base64.b64decode(value.strip(), validate=True).decode("utf-8").partition(":")[2]
    except ValueError:
        return None


def is_forwarded(headers: Iterable[bytes]) -> bool:
    """Say whether a proxy has passed a request on, and says so.

    >>> is_forwarded({b"x-forwarded-for": b"1.2.3.4"}), is_forwarded({})
    (True, False)
    """
    return not FORWARDED.isdisjoint(headers)


class ClientGone(Exception):
    """The other side has closed the connection."""


def too_large(watch: Watch) -> Problem:
    """Return the refusal of a body that is too large."""
    return Problem(413, f"the body is larger than {watch.body_limit} bytes.")


def host_name(host: str) -> str:
    """Return the name in a header `Host`, without its port.

    >>> host_name("LocalHost:8383"), host_name("[::1]:8383"), host_name("a.example")
    ('localhost', '::1', 'a.example')
    """
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    return name.lower().rstrip(".")


def allowed_hosts(settings: ServeSettings) -> frozenset[str] | None:
    """Return the names under which a server may be asked for; None for any.

    A server that others can reach has tokens, which a page elsewhere does not have, or gives suggestions to anyone.
    """
    if not settings.is_loopback and not settings.hosts:
        return None
    return frozenset((*LOOPBACK, settings.host.lower(), *(host.lower() for host in settings.hosts)))


class Rates:
    """How many requests each caller may still send: a bucket that fills by so many a second, two seconds deep."""

    def __init__(self, settings: ServeSettings) -> None:
        self.rate: float | None = None if settings.rate is None else settings.rate / settings.workers
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and when that was

    def count(self, caller: str) -> None:
        """Take one request out of the bucket of a caller; raises Problem (429) where it is empty."""
        if self.rate is None:
            return
        now, most = time.monotonic(), max(1.0, 2 * self.rate)
        left, then = self._buckets.pop(caller, (most, now))
        left = min(most, left + (now - then) * self.rate)
        self._buckets[caller] = (max(left - 1, 0.0) if left >= 1 else left, now)
        while len(self._buckets) > CALLERS_REMEMBERED:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = max(1, round((1 - left) / self.rate))
            detail = f"more than {self.rate:g} requests a second come from here; try again in {wait} s."
            raise Problem(429, detail, {"Retry-After": str(wait)})


class AccessLog:
    """One line of JSON per request, without texts, tokens and what follows a question mark."""

    def __init__(self, settings: ServeSettings) -> None:
        self.texts: bool = settings.log_texts
        self._number: int | None = None
        if settings.log is not None:
            self._number = open_log(settings.log)
        elif settings.log_requests:
            self._number = 2

    def write(self, scope: Scope, watch: Watch, seconds: float, route: str) -> None:
        """Write the line of a request; lines of several processes do not mix."""
        if self._number is None:
            return
        caller: Caller | None = scope.get("longtail.caller")
        client = scope.get("client")
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "id": watch.id,
            "client": client[0] if client else None,
            "caller": None if caller is None else caller.name,
            "method": scope["method"],
            "path": scope["path"][:300],
            "route": route,
            "status": watch.status,
            "ms": round(1000 * seconds, 2),
            "bytes_in": watch.bytes_in,
            "bytes_out": watch.bytes_out,
        }
        line |= watch.note
        try:
            os.write(self._number, ENCODE(line).encode("ascii") + b"\n")
        except OSError:
            self._number = None  # nobody reads it any more, or the disk is full: answering goes on


def open_log(file: Path) -> int:
    """Return the number of an access log that is open for more lines; it is made where there is none."""
    try:
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    except OSError as error:
        there = file.parent.is_dir()
        why = error.strerror if there else f"the folder {file.parent} does not exist"
        raise ParameterError(name="log", problem=f"{file} cannot be written: {why}.") from error


def check_log(file: Path) -> None:
    """Refuse, before anything is started, an access log that could not be written; nothing is left behind."""
    is_new = not file.exists()
    os.close(open_log(file))
    if is_new:
        file.unlink(missing_ok=True)
