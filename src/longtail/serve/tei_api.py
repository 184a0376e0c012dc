"""The `/predict` of text-embeddings-inference (TEI): labels with scores for one text or for many.

Only the best labels are given, since there may be hundreds of thousands: `top_k` says how many.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from longtail.serve.longtail_api import note_texts
from longtail.serve.operations import Described, Gives, Operation, Takes
from longtail.serve.problems import Problem, json_answer
from longtail.serve.requests import Fields, checked_string, kind_of, query, read_json
from longtail.serve.scores import unit_scores
from longtail.serve.server import Server
from longtail.serve.suggesting import How

LABELS = 20  # of a text, where nobody says how many


def routes(server: Server) -> list[BaseRoute]:
    """Return the route."""

    async def tei_predict(request: Request) -> Response:
        model = query(request, ("model",)).get("model", server.models.default)
        served, settings = server.models.get(model), server.settings
        fields = Fields(await read_json(request))
        texts, is_one = _inputs(fields.take("inputs"), settings.rows)
        raw, cut = _flag(fields, "raw_scores"), _flag(fields, "truncate")
        if fields.take("truncation_direction") not in (None, "Left", "Right", "left", "right"):
            raise Problem(422, "truncation_direction must be Left or Right.")
        from_end = str(fields.values.get("truncation_direction") or "").lower() == "left"
        k = fields.integer("top_k", min(LABELS, settings.most_labels), low=1, high=settings.most_labels)
        fields.finish()
        most = settings.text_characters
        if cut:
            texts = [text[-most:] if from_end else text[:most] for text in texts]
        texts = [checked_string(f"inputs[{at}]", text, most) for at, text in enumerate(texts)]
        note_texts(request, server, texts)
        found = await server.suggest(model, texts, How(k=k))
        rows = [
            [
                {"score": tag.score if raw else score, "label": tag.label}
                for tag, score in zip(tags, unit_scores(served, tags), strict=True)
            ]
            for tags in found.rows
        ]
        return json_answer(rows[0] if is_one else rows)

    described = Described(
        "TEI: labels with scores.",
        query={"model": {"type": "string"}},
        takes=[Takes(_SCHEMA, example={"inputs": "a red apple"})],
        gives=Gives({"type": "array"}),
        errors=[400, 404, 413, 415, 422, 503],
    )
    return [Operation("POST", "/predict", tei_predict, described)]


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["inputs"],
    "additionalProperties": False,
    "properties": {
        "inputs": {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1},
                {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1},
                    "minItems": 1,
                },
            ]
        },
        "raw_scores": {"type": "boolean", "default": False},
        "truncate": {"type": ["boolean", "null"], "default": False},
        "truncation_direction": {"enum": ["Left", "Right", "left", "right"]},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 1000},
    },
}


def _inputs(value: object, most: int) -> tuple[list[Any], bool]:
    """Return the texts that are asked about, and whether it is one that is not in a batch."""
    if isinstance(value, str):
        return [value], True
    if not isinstance(value, list) or not value:
        raise Problem(422, f"inputs must be a text, or a list of lists of one text each; got {_kind(value)}.")
    if all(isinstance(one, str) for one in value):
        if len(value) == 2:
            raise Problem(
                422, "inputs is a pair of texts, which these models do not compare; send one text, or [[text], …]."
            )
        if len(value) > 2:
            raise Problem(422, "inputs must be a list of lists of one text each: [[text], [text], …].")
        return [value[0]], True
    if len(value) > most:
        raise Problem(413, f"inputs must have at most {most} entries; got {len(value)}.")
    for at, one in enumerate(value):
        if not isinstance(one, list) or len(one) != 1 or not isinstance(one[0], str):
            raise Problem(422, f"inputs[{at}] must be a list of one text; got {_kind(one)}.")
    return [one[0] for one in value], False


def _kind(value: object) -> str:
    """Return what came instead, in words."""
    return "a list of another kind" if isinstance(value, list) and value else kind_of(value)


def _flag(fields: Fields, name: str) -> bool:
    """Return a field that is true or false."""
    value = fields.take(name)
    if value is not None and not isinstance(value, bool):
        raise Problem(422, f"{name} must be true or false; got {kind_of(value)}.")
    return bool(value)
