"""The app: routes of all protocols behind the guards."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from longtail.serve import (
    annif_api,
    batch_api,
    label_api,
    label_studio_api,
    longtail_api,
    page,
    review_api,
    session_api,
    system_api,
    tei_api,
)
from longtail.serve.guards import Guards
from longtail.serve.server import Server
from longtail.serve.settings import ServeSettings

PROTOCOLS = (  # every one has `routes(server)`
    longtail_api,
    label_api,
    batch_api,
    review_api,
    session_api,
    system_api,
    annif_api,
    label_studio_api,
    tei_api,
    page,
)

REMEMBERED = 1000  # addresses of which is known where they go
LONGEST_REMEMBERED = 200  # letters of an address


class App(Starlette):
    """Starlette with one layer around its routes, the guards, which answer whatever goes wrong below them."""

    def __init__(self, server: Server, routes: Sequence[BaseRoute], lifespan: Lifespan[Starlette]) -> None:
        super().__init__()
        self.router: Routes = Routes(routes, lifespan=lifespan)
        self.state.server = server

    def build_middleware_stack(self) -> ASGIApp:
        """Return the layers: every request passes the guards, and then goes to its route."""
        return Guards(self.router, self.state.server, self.routes)


class Routes(Router):
    """Routes that need not be gone through for an address that was asked for before."""

    def __init__(self, routes: Sequence[BaseRoute], lifespan: Lifespan[Starlette]) -> None:
        # a redirect would name the host and the scheme that a caller claims
        super().__init__(routes, redirect_slashes=False, lifespan=lifespan)
        self._remembered: dict[tuple[str, str], tuple[ASGIApp, Mapping[str, Any], Mapping[str, Any]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to its route."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        address = (scope["method"], scope["path"])
        found = self._remembered.get(address)
        if found is None:
            found = self._find(scope, address)
            if found is None:
                await super().__call__(scope, receive, send)
                return
        app, known, parts = found
        scope.update(known)
        scope["path_params"] = dict(parts)
        await app(scope, receive, send)

    def _find(
        self, scope: Scope, address: tuple[str, str]
    ) -> tuple[ASGIApp, Mapping[str, Any], Mapping[str, Any]] | None:
        """Return the app of the route of an address, and what it is told; None where no route takes it."""
        for route in self.routes:
            match, told = route.matches(scope)
            if match is Match.FULL and isinstance(route, Route):
                found = route.app, {"route": route, "endpoint": told["endpoint"]}, told["path_params"]
                if len(self._remembered) < REMEMBERED and len(address[1]) <= LONGEST_REMEMBERED:
                    self._remembered[address] = found
                return found
        return None


def create_app(settings: ServeSettings, server: Server | None = None, slot: int = 0) -> Starlette:
    """Return the app that serves models; they are loaded now.

    Parameters
    ----------
    settings : ServeSettings
        What is served, to whom, and within which limits.
    server : Server or None, default=None
        A server that was made before, of the same settings.
    slot : int, default=0
        The number of this process among the workers of one server.
    """
    owner = Server(settings) if server is None else server

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        owner.start()
        try:
            yield
        finally:
            owner.close()

    routes: list[BaseRoute] = [route for protocol in PROTOCOLS for route in protocol.routes(owner)]
    owner.use_metrics([getattr(route, "path", "") for route in routes], slot)
    return App(owner, routes, lifespan)
