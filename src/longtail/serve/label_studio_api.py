"""Label Studio's protocol for ML backends, under `/label-studio`; `/label-studio/{model}` for one of several models.

Label Studio sends an access token when it connects; it is not needed, and neither kept nor logged. Nothing that a
request names is ever fetched.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from longtail.errors import DataError
from longtail.serve.label_config import Control, read_control
from longtail.serve.longtail_api import note_texts
from longtail.serve.operations import Described, Operation, Takes
from longtail.serve.problems import Problem, json_answer
from longtail.serve.requests import kind_of, read_json
from longtail.serve.reviewed_documents import ReviewedDocument, keep_reviewed
from longtail.serve.scores import unit_scores
from longtail.serve.server import Server
from longtail.serve.suggesting import How, ServedModel, SuggestedTag
from longtail.serve.tokens import require

ROOT = "/label-studio"
KEPT = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED")
LABELS = 50  # that are looked at, where the configuration lists none
QUESTIONS_KEPT = 32
NAMES_KEPT = 500_000  # on the paths of all of them together
MOST_UPWARDS = 50  # steps from a concept to the top


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes."""
    questions = _Questions(server)

    async def label_studio_health(request: Request) -> Response:
        _model(server, request)
        return json_answer({"status": "UP", "model_class": "longtail"})

    async def label_studio_setup(request: Request) -> Response:
        served = _model(server, request)
        await _read_object(request)
        return json_answer({"model_version": served.digest})

    async def label_studio_versions(request: Request) -> Response:
        served = _model(server, request)
        return json_answer({"versions": [served.digest], "message": "the model that is served."})

    async def label_studio_predict(request: Request) -> Response:
        served, body = _model(server, request), await _read_object(request)
        tasks = body.get("tasks")
        if not isinstance(tasks, list) or len(tasks) > server.settings.rows:
            raise Problem(413 if isinstance(tasks, list) else 422, _about_tasks(tasks, server.settings.rows))
        question = await questions.find(served, body.get("label_config"))
        texts = {at: text for at, task in enumerate(tasks) if (text := question.control.text_of(task)) is not None}
        note_texts(request, server, list(texts.values()))
        rows = await _suggest(server, served, question, texts)
        return json_answer({"results": [_prediction(served, question, rows.get(at, [])) for at in range(len(tasks))]})

    async def label_studio_webhook(request: Request) -> Response:
        served, body = _model(server, request), await _read_object(request)
        action = body.get("action")
        if action == "START_TRAINING":
            return json_answer({"status": _about_training(server)})
        if action not in KEPT:
            return json_answer({"status": f"nothing to do for {action!r:.50}."})
        caller, reviews = require(request, "review"), server.reviews
        if reviews is None:
            return json_answer({"status": "not kept: the server has no file of reviews."})
        document, reviewer, why = await server.run(lambda: _annotated(served, body, caller))
        if document is None:
            return json_answer({"status": f"not kept: {why}."})
        await server.run(lambda: keep_reviewed(reviews, [document], reviewer))
        return json_answer({"status": "kept as a reviewed row.", "labels": len(document.labels)}, 201)

    takes = [Takes({"type": "object"})]
    refusals = (400, 404, 413, 415, 422, 503)
    found: list[BaseRoute] = []
    for root, suffix in ((ROOT, ""), (f"{ROOT}/{{model}}", "_of_model")):
        for method, word, endpoint, described in (
            ("GET", "health", label_studio_health, Described("Label Studio: is it up?", role=None, errors=[404])),
            ("GET", "versions", label_studio_versions, Described("Label Studio: the model served.", errors=[404])),
            (
                "POST",
                "setup",
                label_studio_setup,
                Described("Label Studio: connect a project.", takes=takes, errors=refusals),
            ),
            (
                "POST",
                "predict",
                label_studio_predict,
                Described("Label Studio: labels for tasks.", takes=takes, errors=refusals),
            ),
            (
                "POST",
                "webhook",
                label_studio_webhook,
                Described(
                    "Label Studio: keep annotations as reviewed rows, which needs the role review.",
                    takes=takes,
                    errors=[*refusals, 403],
                ),
            ),
        ):
            route = Operation(method, f"{root}/{word}", endpoint, described)
            route.name += suffix
            found.append(route)
    return found


def _model(server: Server, request: Request) -> ServedModel:
    """Return the model of an address; the default one where it names none."""
    return server.models.get(request.path_params.get("model", server.models.default))


async def _read_object(request: Request) -> dict[str, Any]:
    """Return the body, which must be an object; Label Studio adds fields from version to version."""
    body = await read_json(request)
    if not isinstance(body, dict):
        raise Problem(422, f"the body must be a JSON object; got {kind_of(body)}.")
    return body


def _about_tasks(tasks: object, most: int) -> str:
    """Return what is wrong with the tasks of a request."""
    if isinstance(tasks, list):
        return f"tasks must have at most {most} entries; got {len(tasks)}."
    return f"tasks must be a list; got {kind_of(tasks)}."


def _config_text(config: object) -> str:
    """Return a configuration, which must be a text."""
    if not isinstance(config, str):
        raise Problem(422, f"label_config must be a text; got {kind_of(config)}.")
    return config


def _control(config: str) -> Control:
    """Return the question that a configuration asks."""
    try:
        return read_control(config)
    except DataError as error:
        raise Problem(422, str(error)) from error


class _Question(NamedTuple):
    """The question of a configuration, and the labels of a model that it offers, each with its path there."""

    control: Control
    offered: dict[str, tuple[str, ...]]
    names: int  # on all paths together


class _Questions:
    """The questions of the configurations that came last; Label Studio sends its own with every request."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._known: OrderedDict[tuple[str, str, str], _Question] = OrderedDict()

    async def find(self, served: ServedModel, config: object) -> _Question:
        """Return the question of a configuration, read on a thread of its own where it is new."""
        text = _config_text(config)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        key = (served.id, served.digest, digest)
        found = self._known.pop(key, None)
        if found is None:
            found = await self.server.run(partial(_question, served, text))
        self._known[key] = found
        names = sum(known.names for known in self._known.values())
        while len(self._known) > QUESTIONS_KEPT or names > NAMES_KEPT:
            names -= self._known.popitem(last=False)[1].names
        return found


def _question(served: ServedModel, config: str) -> _Question:
    """Return the question of a configuration."""
    control = _control(config)
    return _Question(control, _offered(served, control), sum(map(len, control.paths.values())))


async def _suggest(
    server: Server, served: ServedModel, question: _Question, texts: dict[int, str]
) -> dict[int, list[SuggestedTag]]:
    """Return the labels of texts among those offered, all where the configuration lists none; long texts are cut."""
    listed, offered = bool(question.control.paths), question.offered
    if not texts or (listed and not offered):
        return {}
    how = How(k=min(len(offered), LABELS), allow=tuple(offered)) if listed else How(k=LABELS)
    most = server.settings.text_characters
    found = await server.suggest(served.id, [text[:most] for text in texts.values()], how)
    return dict(zip(texts, found.rows, strict=True))


def _prediction(served: ServedModel, question: _Question, tags: list[SuggestedTag]) -> dict[str, Any]:
    """Return the prediction for one task: the best label of a single choice, else those that the model gives."""
    control = question.control
    chosen = tags[:1] if control.single else [tag for tag in tags if tag.assigned]
    scores = unit_scores(served, tags)
    answers = [question.offered[tag.label] if control.paths else _path(served, tag) for tag in chosen]
    sure = scores[: len(chosen)] or scores[:1]
    return {
        "result": control.result(answers),
        "score": sum(sure) / len(sure) if sure else 0.0,
        "model_version": served.digest,
    }


def _offered(served: ServedModel, control: Control) -> dict[str, tuple[str, ...]]:
    """Return the labels of the model that a question offers, each with its path there."""
    out: dict[str, tuple[str, ...]] = {}
    for name, path in control.paths.items():
        label = _label_named(served, name)
        if label is not None:
            out.setdefault(label, path)
    return out


def _label_named(served: ServedModel, name: str) -> str | None:
    """Return the one label of the model that a choice means, by id, notation or name; None where it is not clear."""
    if name in served.numbers:
        return name
    vocabulary = served.tagger.vocabulary_
    meant = [] if vocabulary is None else [id for id in vocabulary.candidates(name) if id in served.numbers]
    return meant[0] if len(meant) == 1 else None


def _path(served: ServedModel, tag: SuggestedTag) -> tuple[str, ...]:
    """Return the names on the way from the top of the vocabulary to a label."""
    vocabulary, path, label = served.tagger.vocabulary_, [tag.name], tag.label
    while vocabulary is not None and label in vocabulary and len(path) < MOST_UPWARDS:
        above = vocabulary.broader(label)
        if not above:
            break
        label = above[0]
        path.append(vocabulary.name(label))
    return tuple(reversed(path))


def _annotated(served: ServedModel, body: dict[str, Any], caller: str) -> tuple[ReviewedDocument | None, str, str]:
    """Return the document of an annotation with its labels, who made it, and otherwise why there is nothing to keep."""
    annotation, task, project = (
        body[name] if isinstance(body.get(name), dict) else {} for name in ("annotation", "task", "project")
    )
    reviewer = _reviewer(annotation, caller)
    if annotation.get("was_cancelled"):
        return None, reviewer, "the task was skipped"
    control = _control(_config_text(project.get("label_config")))
    text = control.text_of(task)
    if text is None or not text.strip():
        return None, reviewer, "the task has no text"
    answers = control.answers(annotation.get("result"))
    labels = [label for path in answers if (label := _label_of(served, path[-1])) is not None]
    if answers and not labels:
        return None, reviewer, "the model's vocabulary has none of the choices"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    id = f"label-studio-{_number(project.get('id'))}-{_number(task.get('id'))}-{digest}"
    return ReviewedDocument(text, tuple(dict.fromkeys(labels)), id), reviewer, ""


def _label_of(served: ServedModel, name: str) -> str | None:
    """Return the label that an answer means: one of the model, a concept, or without a vocabulary a new label."""
    label = _label_named(served, name)
    vocabulary = served.tagger.vocabulary_
    if label is not None or vocabulary is None:
        return label or name
    meant = vocabulary.candidates(name)
    return meant[0] if len(meant) == 1 else None


def _reviewer(annotation: dict[str, Any], caller: str) -> str:
    """Return who made an annotation: the caller's name, and the number of the person in Label Studio."""
    by = annotation.get("completed_by")
    return f"{caller}/{_number(by.get('id') if isinstance(by, dict) else by)}"


def _number(value: object) -> int:
    """Return a number of Label Studio; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _about_training(server: Server) -> str:
    """Return what happens when training is asked for."""
    if server.reviews is None:
        return "nothing is trained: the server has no file of reviews."
    return "annotations are kept as reviewed rows; the next update (longtail update, or an admin's button) learns them."
