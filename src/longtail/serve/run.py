"""Run a server: the listening socket, uvicorn, signals."""

from __future__ import annotations

import uvicorn

from longtail.serve.app import create_app
from longtail.serve.settings import ServeSettings


def run_server(settings: ServeSettings) -> None:
    """Serve until a signal ends it."""
    app = create_app(settings)
    config = uvicorn.Config(app, host=settings.host, port=settings.port, access_log=False, log_level="warning")
    uvicorn.Server(config).run()
