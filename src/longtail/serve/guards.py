"""What every request passes first, and every answer last: who is calling, limits, headers, the access log."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from longtail.serve.server import Server
from longtail.serve.tokens import Caller


class Guards:
    """The outermost layer of the app."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self.app, self.server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["longtail.caller"] = self._caller(scope)
        await self.app(scope, receive, send)

    def _caller(self, scope: Scope) -> Caller | None:
        """Return who is calling; None where nobody is known."""
        tokens, settings = self.server.tokens, self.server.settings
        if tokens is None:
            return Caller("anyone", "suggest", "open") if settings.open else Caller("local", "admin", "local")
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1 or given[0][:7].lower() != b"bearer ":
            return None
        token = tokens.find(given[0][7:].strip().decode("latin-1"))
        return None if token is None else Caller(token.name, token.role, "token")
