"""The app: routes of all protocols behind the guards."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from longtail.errors import LongtailError
from longtail.serve import longtail_api, page, review_api
from longtail.serve.guards import Guards
from longtail.serve.problems import Problem, answer_http_exception, answer_problem
from longtail.serve.server import Server
from longtail.serve.settings import ServeSettings

PROTOCOLS = (longtail_api, page, review_api)  # every one has `routes(server)`


def create_app(settings: ServeSettings, server: Server | None = None) -> Starlette:
    """Return the app that serves models; they are loaded now.

    Parameters
    ----------
    settings : ServeSettings
        What is served, to whom, and within which limits.
    server : Server or None, default=None
        A server that was made before, of the same settings.
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
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guards, server=owner)],
        exception_handlers={
            Problem: answer_problem,
            LongtailError: answer_problem,
            HTTPException: answer_http_exception,
        },
        lifespan=lifespan,
    )
    app.state.server = owner
    return app
