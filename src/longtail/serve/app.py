"""The app: routes of all protocols behind the guards."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from longtail.errors import LongtailError
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
from longtail.serve.problems import Problem, answer_http_exception, answer_problem
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
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guards, server=owner, routes=routes)],
        exception_handlers={
            Problem: answer_problem,
            LongtailError: answer_problem,
            HTTPException: answer_http_exception,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect would name the host and the scheme that a caller claims
    app.state.server = owner
    return app
