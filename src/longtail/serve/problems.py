"""Refusals: one clear sentence each, as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from longtail.errors import DataError, LongtailError, ModelError, ParameterError, one_line

ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode  # made once


class Problem(Exception):
    """A request that is refused: status, one sentence, headers of the answer, and its title where it has its own."""

    detail: str
    headers: dict[str, str]
    status: int
    title: str

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, title: str = "") -> None:
        self.status, self.detail, self.headers, self.title = status, one_line(detail), dict(headers or {}), title
        super().__init__(self.detail)


class Refused(Problem):
    """A caller who is not known (401), or may not do this (403)."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(status, detail, {"WWW-Authenticate": "Bearer"} if status == 401 else None)


class Busy(Problem):
    """More work is waiting than can be done in time (503)."""

    def __init__(self, detail: str, retry_after: int = 1) -> None:
        super().__init__(503, detail, {"Retry-After": str(retry_after)})


def problem(status: int, title: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a refusal as `application/problem+json`; "" as title for the usual words of the status."""
    facts = {"type": "about:blank", "title": title or HTTPStatus(status).phrase, "status": status, "detail": detail}
    return Response(json_bytes(facts), status, dict(headers or {}), media_type="application/problem+json")


def json_bytes(facts: Any) -> bytes:
    """Return facts as JSON in UTF-8; half a surrogate pair, which UTF-8 cannot hold, is written as an escape."""
    try:
        return ENCODE(facts).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(facts, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


JSON_HEADER = (b"content-type", b"application/json")


class JsonAnswer(Response):
    """An answer in JSON; made of what it is, without asking what else it could be."""

    background: None
    body: bytes
    status_code: int

    def __init__(self, body: bytes) -> None:
        self.status_code, self.body, self.background = 200, body, None
        self.raw_headers: list[tuple[bytes, bytes]] = [JSON_HEADER, (b"content-length", b"%d" % len(body))]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def json_answer(facts: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return facts as an answer in JSON."""
    if status == 200 and not headers:
        return JsonAnswer(json_bytes(facts))
    return Response(json_bytes(facts), status, dict(headers or {}), media_type="application/json")


def status_of(error: LongtailError) -> int:
    """Return the status of an answer to a request that ended in one of our errors."""
    return 422 if isinstance(error, ParameterError | DataError | ModelError) else 500


def without_folders(sentence: str, paths: Iterable[Path]) -> str:
    """Return a sentence that names files of the server by their names alone: where they lie is nobody's business.

    >>> without_folders("/srv/models/tags/manifest.json is damaged.", [Path("/srv/models/tags")])
    'tags/manifest.json is damaged.'
    """
    for path in paths:
        for written in (path, path.absolute(), path.resolve()):
            sentence = sentence.replace(str(written), path.name)
    return sentence


def answer_to_error(
    scope: Scope, error: Problem | LongtailError | HTTPException, paths: Iterable[Path] = ()
) -> Response:
    """Return the answer to a request that was refused: by us, or because no route takes it.

    `paths` are the files and folders of the server, which no answer tells the place of.
    """
    if isinstance(error, Problem):
        return problem(error.status, error.title, error.detail, error.headers)
    if isinstance(error, LongtailError):
        return problem(status_of(error), "", without_folders(str(error), paths))
    status, headers = error.status_code, error.headers
    if status == 404:
        return problem(404, "", f"there is nothing at {scope['path']!r:.200}.")
    if status == 405:
        allowed = (headers or {}).get("Allow", "another method")
        told = f"{scope['method']} is not possible at {scope['path']!r:.200}; {allowed} is."
        return problem(405, "", told, headers)
    return problem(status, "", f"{error.detail or HTTPStatus(status).phrase}.".replace("..", "."), headers)
