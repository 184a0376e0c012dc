"""The routes under `/v1/longtail`: models, suggestions, explanations and thresholds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from longtail.errors import LongtailError
from longtail.pipeline import threshold_facts
from longtail.serve import schemas
from longtail.serve.guards import watch_of
from longtail.serve.model_facts import full_facts, model_facts
from longtail.serve.operations import Described, Gives, Operation, Takes
from longtail.serve.problems import Problem, json_answer, json_bytes
from longtail.serve.requests import (
    Fields,
    checked_string,
    how_of_query,
    parse_json,
    query,
    read_how,
    read_json,
    read_texts,
)
from longtail.serve.server import Server
from longtail.serve.suggesting import How, SuggestedTag
from longtail.validate import Json

ROOT = "/v1/longtail"
LINES = "application/x-ndjson"
LINES_AT_ONCE = 64
EXPLAINED_AT_MOST = 50


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes."""
    settings = server.settings

    async def models(request: Request) -> Response:
        found = [model_facts(server, served) for served in server.models]
        return json_answer({"models": found, "default": server.models.default})

    async def model(request: Request) -> Response:
        served = server.models.get(request.path_params["model"])
        return json_answer(await server.run(lambda: full_facts(server, served)))

    async def suggest(request: Request) -> Response:
        id = request.path_params["model"]
        server.models.get(id)
        fields = Fields(await read_json(request))
        texts = read_texts(fields, settings.rows, settings.text_characters)
        how = read_how(fields, settings.most_labels)
        fields.finish()
        note_texts(request, server, texts)
        found = await server.suggest(id, texts, how)
        results = [
            {"tags": [tag_facts(tag) for tag in tags], "known_words": known}
            for tags, known in zip(found.rows, found.known, strict=True)
        ]
        return json_answer({"model": id, "digest": found.digest, "results": results})

    async def suggest_stream(request: Request) -> Response:
        id = request.path_params["model"]
        how = how_of_query(query(request, schemas.HOW), settings.most_labels)
        server.models.get(id).wish(how)
        watch = watch_of(request.scope)
        watch.streams, watch.body_limit = True, 1 << 62
        return LinesAnswer(stream_of_lines(server, id, how, request))

    async def explain(request: Request) -> Response:
        served = server.models.get(request.path_params["model"])
        fields = Fields(await read_json(request))
        text = fields.string("text", most=settings.text_characters, needed=True) or ""
        labels = fields.strings("labels", most=EXPLAINED_AT_MOST, most_characters=2000)
        k = fields.integer("k", 3, low=1, high=EXPLAINED_AT_MOST)
        fields.finish()
        note_texts(request, server, [text])
        return json_answer(await server.run(lambda: explained(served.tagger, text, k, labels)))

    async def thresholds(request: Request) -> Response:
        served = server.models.get(request.path_params["model"])
        return json_answer(threshold_facts(served.tagger))

    async def reload(request: Request) -> Response:
        id = request.path_params["model"]
        server.models.get(id)
        swapped = await server.run(lambda: server.models.reload(id), seconds=600)
        server.ask_all_to_look()
        return json_answer({"id": id, "swapped": swapped, "digest": server.models.get(id).digest})

    one, how = f"{ROOT}/models/{{model}}", schemas.HOW_QUERY
    return [
        Operation(
            "GET", f"{ROOT}/models", models, Described("The models that are served.", gives=Gives(schemas.MODELS))
        ),
        Operation(
            "GET",
            one,
            model,
            Described("One model, with all facts about it.", gives=Gives(schemas.MODEL), errors=[404]),
        ),
        Operation(
            "POST",
            f"{one}/suggest",
            suggest,
            Described(
                "Labels for one text, or for several.",
                takes=[Takes(schemas.SUGGEST, example={"text": "A fast editor for the terminal", "k": 3})],
                gives=Gives(schemas.SUGGESTED),
                errors=[404, 413, 415, 422],
            ),
        ),
        Operation(
            "POST",
            f"{one}/suggest-stream",
            suggest_stream,
            Described(
                "Labels for any number of texts: one JSON object per line in, one per line out, in the same order.",
                query=how,
                takes=[Takes({"type": "string"}, LINES, '{"id":"1","text":"A fast editor"}\n')],
                gives=Gives({"type": "string"}, media_type=LINES),
                errors=[404, 422],
            ),
        ),
        Operation(
            "POST",
            f"{one}/explain",
            explain,
            Described(
                "The words of a text that speak for and against labels, with their positions in it.",
                takes=[Takes(schemas.EXPLAIN, example={"text": "A fast editor for the terminal", "k": 1})],
                gives=Gives(schemas.EXPLAINED),
                errors=[404, 413, 415, 422],
            ),
        ),
        Operation(
            "GET",
            f"{one}/thresholds",
            thresholds,
            Described(
                "Precision, recall and labels per text at every threshold, on rows held out of the training.",
                gives=Gives(schemas.THRESHOLDS),
                errors=[404],
            ),
        ),
        Operation(
            "POST",
            f"{one}/reload",
            reload,
            Described(
                "Load the folder of a model again, now.", "admin", gives=Gives(schemas.RELOADED), errors=[404, 422]
            ),
        ),
    ]


def tag_facts(tag: SuggestedTag) -> dict[str, Any]:
    """Return a suggested label as JSON."""
    return {
        "label": tag.label,
        "name": tag.name,
        "score": tag.score,
        "probability": tag.probability,
        "assigned": tag.assigned,
    }


def note_texts(request: Request, server: Server, texts: list[str]) -> None:
    """Note for the access log how many texts came and, only if that was asked for, the texts."""
    note = watch_of(request.scope).note
    note["rows"] = len(texts)
    if server.settings.log_texts:
        note["texts"] = texts


def explained(tagger: Any, text: str, k: int, labels: list[str] | None) -> Json:
    """Return why labels came, each with the positions of its words in the text."""
    facts = dict(tagger.explain(text, k=k, labels=labels))
    facts["predicted"] = [
        {
            **suggestion,
            "name": suggestion.get("name", suggestion["label"]),
            "spans": [
                {"start": start, "end": end, "word": word["word"], "weight": word["weight"]}
                for word in suggestion["words"]
                for start, end in word.get("spans", ())
            ],
        }
        for suggestion in facts["predicted"]
    ]
    return facts


class LinesAnswer(Response):
    """An answer of lines that are sent while the request is still being read."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        super().__init__(media_type=LINES)
        self.lines = lines
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for block in self.lines:
            await send({"type": "http.response.body", "body": block, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def stream_of_lines(server: Server, model: str, how: How, request: Request) -> AsyncIterator[bytes]:
    """Yield the labels of the texts of lines, in their order; what has come is answered before more is read."""
    longest = 8 * server.settings.text_characters + 1000  # bytes: a letter may be written as an escape
    left = b""
    try:
        async for chunk in request.stream():
            *lines, left = (left + chunk).split(b"\n")
            for start in range(0, len(lines), LINES_AT_ONCE):
                yield await answered_lines(server, model, how, lines[start : start + LINES_AT_ONCE], longest)
            if len(left) > longest:
                yield json_bytes({"id": None, "error": f"a line has more than {longest} bytes."}) + b"\n"
                return
        if left.strip():
            yield await answered_lines(server, model, how, [left], longest)
    except Problem as error:
        yield json_bytes({"id": None, "error": error.detail}) + b"\n"


async def answered_lines(server: Server, model: str, how: How, lines: list[bytes], longest: int) -> bytes:
    """Return the answers to some lines."""
    answers: list[dict[str, Any]] = []
    texts: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        id, text, error = read_line(line, server.settings.text_characters)
        answers.append({"id": id} if error is None else {"id": id, "error": error})
        if error is None:
            texts.append(text)
    if texts:
        try:
            rows = iter((await server.suggest(model, texts, how)).rows)
        except (LongtailError, Problem) as error:
            for answer in answers:
                answer.setdefault("error", str(error))
            rows = iter(())
        for answer in answers:
            if "error" not in answer:
                answer["tags"] = [tag_facts(tag) for tag in next(rows)]
    return b"".join(json_bytes(answer) + b"\n" for answer in answers)


def read_line(line: bytes, characters: int) -> tuple[Any, str, str | None]:
    """Return id and text of a line, and what is wrong with it."""
    id: Any = None
    try:
        fields = Fields(parse_json(line, "the line"), "the line")
        id = fields.take("id")
        if id is not None and not isinstance(id, str | int):
            id = None
            return id, "", "id must be a text or a whole number."
        if isinstance(id, str):
            id = checked_string("id", id, 1000)
        text = fields.string("text", most=characters, needed=True) or ""
        fields.finish("the line")
    except Problem as error:
        return id if isinstance(id, int) or (isinstance(id, str) and len(id) <= 1000) else None, "", error.detail
    return id, text, None
