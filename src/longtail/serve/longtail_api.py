"""The routes under `/v1/longtail`: models and suggestions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from longtail.serve.operations import Described, Operation, Takes
from longtail.serve.problems import json_answer
from longtail.serve.requests import Fields, read_how, read_json, read_texts
from longtail.serve.server import Server
from longtail.serve.suggesting import ServedModel, SuggestedTag

ROOT = "/v1/longtail"


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes."""

    async def models(request: Request) -> Response:
        found = [model_facts(server, served) for served in server.models]
        return json_answer({"models": found, "default": server.models.default})

    async def model(request: Request) -> Response:
        return json_answer(model_facts(server, server.models.get(request.path_params["model"])))

    async def suggest(request: Request) -> Response:
        id = request.path_params["model"]
        server.models.get(id)
        fields, settings = Fields(await read_json(request)), server.settings
        texts = read_texts(fields, settings.rows, settings.text_characters)
        how = read_how(fields, settings.most_labels)
        fields.finish()
        found = await server.suggest(id, texts, how)
        results = [
            {"tags": [tag_facts(tag) for tag in tags], "known_words": known}
            for tags, known in zip(found.rows, found.known, strict=True)
        ]
        return json_answer({"model": id, "digest": found.digest, "results": results})

    return [
        Operation("GET", f"{ROOT}/models", models, Described("The models that are served.")),
        Operation("GET", f"{ROOT}/models/{{model}}", model, Described("One model.")),
        Operation(
            "POST",
            f"{ROOT}/models/{{model}}/suggest",
            suggest,
            Described("Labels for one text or several.", takes=[Takes({"type": "object"})]),
        ),
    ]


def tag_facts(tag: SuggestedTag) -> dict[str, Any]:
    """Return a suggested label as JSON."""
    return tag._asdict()


def model_facts(server: Server, served: ServedModel) -> dict[str, Any]:
    """Return what callers see of a model."""
    tagger, vocabulary = served.tagger, served.tagger.vocabulary_
    return {
        "id": served.id,
        "method": tagger.method_,
        "title": served.folder.name,
        "n_labels": tagger.n_labels_,
        "n_rows": tagger.data_.get("rows"),
        "digest": served.digest,
        "loaded_at": datetime.fromtimestamp(served.loaded_at, UTC).isoformat(timespec="seconds"),
        "calibrated": bool(tagger.model_.calibrated_),
        "vocabulary": None
        if vocabulary is None
        else {
            "title": vocabulary.name_of_vocabulary,
            "n_concepts": len(vocabulary),
            "languages": [language for language in vocabulary.languages if language],
        },
        "targets": [],
        "language": None if vocabulary is None else vocabulary.shown_language or None,
        "review": server.settings.reviews is not None,
        "problem": server.models.problems.get(served.id),
    }
