"""The OpenAPI 3.1 document, made of the routes themselves, so that it cannot say anything else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from starlette.routing import BaseRoute

from longtail._version import __version__
from longtail.serve import schemas
from longtail.serve.operations import Described, Operation

PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
ALWAYS = (400, 408, 421, 429, 431, 503)
PATH_PARAMETERS: dict[str, dict[str, Any]] = {
    "model": {"type": "string", "pattern": "^[a-z0-9._-]{1,64}$"},
    "label": {"type": "string", "minLength": 1},
}


def openapi_document(routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """Return the document that describes all operations among some routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if isinstance(route, Operation):
            entry = paths.setdefault(PARAMETER.sub(r"{\1}", route.path), {})
            entry[route.method.lower()] = operation(route.name, route.path, route.described)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "longtail",
            "version": __version__,
            "description": "Labels for texts, by models that are served with `longtail serve`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": schemas.PROBLEM},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "longtail"},
            },
        },
    }


def operation(name: str, path: str, described: Described) -> dict[str, Any]:
    """Return the description of one operation."""
    parameters = [
        {"name": found, "in": "path", "required": True, "schema": PATH_PARAMETERS.get(found, {"type": "string"})}
        for found in PARAMETER.findall(path)
    ]
    parameters += [{"name": found, "in": "query", "schema": dict(schema)} for found, schema in described.query.items()]
    gives = described.gives
    answer: dict[str, Any] = {"description": gives.sentence}
    if gives.schema is not None:
        answer["content"] = {gives.media_type: {"schema": dict(gives.schema)}}
    refusal = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    errors = sorted({*ALWAYS, *described.errors, *((401, 403) if described.role is not None else (403,))})
    out: dict[str, Any] = {
        "operationId": name,
        "summary": described.summary,
        "parameters": parameters,
        "responses": {
            str(gives.status): answer,
            **{str(status): {"description": HTTPStatus(status).phrase, "content": refusal} for status in errors},
        },
        "security": [] if described.role is None else [{}, {"token": []}, {"session": []}],
        "x-role": described.role,
    }
    if described.takes:
        content: dict[str, Any] = {}
        for takes in described.takes:
            content[takes.media_type] = {"schema": dict(takes.schema)}
            if takes.example is not None:
                content[takes.media_type]["example"] = takes.example
        out["requestBody"] = {"required": True, "content": content}
    return out
