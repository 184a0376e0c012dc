"""One table of routes: what each takes and gives, and who may call it. The OpenAPI document is made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from longtail.serve.tokens import require

Endpoint = Callable[[Request], Awaitable[Response]]
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Takes:
    """The body that an operation takes: its type and its schema."""

    schema: Schema
    media_type: str = "application/json"
    example: Any = None


@dataclass(frozen=True)
class Gives:
    """What an operation answers with: its status, schema and type."""

    schema: Schema | None = None
    status: int = 200
    media_type: str = "application/json"
    sentence: str = "The answer."


@dataclass(frozen=True)
class Described:
    """What is written about an operation in the OpenAPI document."""

    summary: str
    role: str | None = "suggest"
    query: Mapping[str, Schema] = field(default_factory=dict)
    takes: Sequence[Takes] = ()
    gives: Gives = field(default_factory=Gives)
    errors: Sequence[int] = ()


class Operation(Route):
    """A route of one method that is described; callers without its role are refused before anything is read."""

    described: Described
    method: str

    def __init__(self, method: str, path: str, endpoint: Endpoint, described: Described) -> None:
        self.described, self.method = described, method

        async def answered(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive, send)
            if described.role is not None:
                require(request, described.role)
            response = await endpoint(request)
            await response(scope, receive, send)

        super().__init__(path, endpoint, methods=[method], name=endpoint.__name__)
        self.app = answered  # what goes wrong is answered by the guards, around all routes
