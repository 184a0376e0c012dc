"""The routes for those who run the server: health, readiness, numbers, and the description of the API."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from longtail.serve import schemas
from longtail.serve.guards import is_forwarded
from longtail.serve.longtail_api import ROOT
from longtail.serve.openapi import openapi_document
from longtail.serve.operations import Described, Gives, Operation
from longtail.serve.problems import json_answer
from longtail.serve.server import Server
from longtail.serve.tokens import require


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes."""

    async def openapi(request: Request) -> Response:
        return json_answer(openapi_document(request.app.routes))

    async def health(request: Request) -> Response:
        return json_answer({"status": "UP"})

    async def ready(request: Request) -> Response:
        if request.scope["longtail.caller"] is None:  # names of models are for those who may ask them
            return json_answer({"status": "READY"})
        return json_answer({"status": "READY", "models": [served.id for served in server.models]})

    async def metrics(request: Request) -> Response:
        if not server.settings.is_loopback or is_forwarded({name for name, _ in request.scope["headers"]}):
            require(request, "admin" if server.tokens is not None else "suggest")
        return PlainTextResponse(server.metrics.text(), media_type="text/plain; version=0.0.4")

    return [
        Operation(
            "GET", f"{ROOT}/openapi.json", openapi, Described("This document.", None, gives=Gives({"type": "object"}))
        ),
        Operation(
            "GET", f"{ROOT}/health", health, Described("Whether the process lives.", None, gives=Gives(schemas.STATUS))
        ),
        Operation(
            "GET", f"{ROOT}/ready", ready, Described("Whether models are loaded.", None, gives=Gives(schemas.STATUS))
        ),
        Operation(
            "GET",
            f"{ROOT}/metrics",
            metrics,
            Described(
                "Numbers in Prometheus' text format.", None, gives=Gives({"type": "string"}, media_type="text/plain")
            ),
        ),
        Route("/health", health, methods=["GET"]),
        Route("/ready", ready, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]
