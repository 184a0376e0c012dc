"""Annif's REST API (1.4) under `/v1`: models are projects, so that whatever talks to Annif can talk to us.

Learning keeps documents as reviewed rows: the model learns them by the next update, which is judged before it is used.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from longtail._version import __version__
from longtail.errors import MissingExtraError
from longtail.serve.language_detection import LANGUAGES_AT_ONCE, UnsupportedLanguage, detect_language
from longtail.serve.longtail_api import note_texts
from longtail.serve.model_shelf import MANIFEST
from longtail.serve.operations import Described, Gives, Operation, Takes
from longtail.serve.problems import Problem, json_answer
from longtail.serve.requests import checked_string, kind_of, read_body, read_json
from longtail.serve.reviewed_documents import ReviewedDocument, keep_reviewed
from longtail.serve.scores import unit_scores
from longtail.serve.server import Server
from longtail.serve.suggesting import How, ServedModel, SuggestedTag
from longtail.serve.tokens import require

ROOT = "/v1"
DOCUMENTS_AT_ONCE = 32
FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 200
MOST_SUBJECTS = 10_000
NO_LANGUAGE = "und"  # BCP 47: undetermined
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}")


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes."""

    async def annif_info(request: Request) -> Response:
        return json_answer({"title": "Annif REST API, by longtail", "version": __version__})

    async def annif_vocabs(request: Request) -> Response:
        found = {facts["vocab_id"]: facts for facts in (_vocab_facts(served) for served in server.models)}
        return json_answer({"vocabs": list(found.values())})

    async def annif_projects(request: Request) -> Response:
        return json_answer({"projects": [_project_facts(served) for served in server.models]})

    async def annif_project(request: Request) -> Response:
        return json_answer(_project_facts(_project(server, request)))

    async def annif_suggest(request: Request) -> Response:
        served = _project(server, request)
        fields = await _read_form(request)
        if "text" not in fields:
            raise Problem(400, "text is missing; it must be a text.")
        wish = _Wish(served, fields)
        text = checked_string("text", fields["text"], server.settings.text_characters)
        note_texts(request, server, [text])
        return json_answer((await _suggest(server, served, [text], wish))[0])

    async def annif_suggest_batch(request: Request) -> Response:
        served = _project(server, request)
        wish = _Wish(served, dict(request.query_params))
        texts, ids = _documents(await read_json(request), server.settings.text_characters)
        note_texts(request, server, texts)
        found = await _suggest(server, served, texts, wish)
        return json_answer([facts | {"document_id": id} for facts, id in zip(found, ids, strict=True)])

    async def annif_learn(request: Request) -> Response:
        served, caller = _project(server, request), require(request, "review")
        reviews = server.reviews if server.settings.learn else None
        if reviews is None:
            told = f"Project {served.id!r} is not configured to allow learning via API"
            raise Problem(403, told, title="Learning not allowed")
        documents = _indexed_documents(await read_json(request), served, server.settings.rows)
        await server.run(lambda: keep_reviewed(reviews, documents, caller))
        return Response(status_code=204)

    async def annif_detect_language(request: Request) -> Response:
        text, languages = _to_detect(await read_json(request), server.settings.text_characters)
        try:
            shares = await server.run(lambda: detect_language(text, languages))
        except UnsupportedLanguage:
            raise Problem(400, "unsupported candidate languages.") from None
        except MissingExtraError as error:
            raise Problem(501, str(error)) from error
        return json_answer({"results": [{"language": name, "score": share} for name, share in shares.items()]})

    refusals = (400, 404, 413, 503)
    project = f"{ROOT}/projects/{{project_id}}"
    return [
        Operation("GET", f"{ROOT}/", annif_info, Described("Annif: what this is.", role=None)),
        Operation("GET", f"{ROOT}/vocabs", annif_vocabs, Described("Annif: the vocabularies of all models.")),
        Operation("GET", f"{ROOT}/projects", annif_projects, Described("Annif: the models, as projects.")),
        Operation("GET", project, annif_project, Described("Annif: one model, as a project.", errors=[404])),
        Operation(
            "POST",
            f"{project}/suggest",
            annif_suggest,
            Described(
                "Annif: subjects for a text.",
                takes=[Takes(_FORM_SCHEMA, FORM)],
                gives=Gives(_RESULTS_SCHEMA),
                errors=[*refusals, 415],
            ),
        ),
        Operation(
            "POST",
            f"{project}/suggest-batch",
            annif_suggest_batch,
            Described(
                f"Annif: subjects for at most {DOCUMENTS_AT_ONCE} texts.",
                query=_WISH_SCHEMA,
                takes=[Takes(_BATCH_SCHEMA)],
                gives=Gives({"type": "array", "items": _RESULTS_SCHEMA}),
                errors=[*refusals, 415],
            ),
        ),
        Operation(
            "POST",
            f"{project}/learn",
            annif_learn,
            Described(
                "Annif: keep documents with their subjects as reviewed rows, to be learned by the next update.",
                role="review",
                takes=[Takes({"type": "array", "items": {"type": "object"}})],
                gives=Gives(status=204),
                errors=[*refusals, 403, 415],
            ),
        ),
        Operation(
            "POST",
            f"{ROOT}/detect-language",
            annif_detect_language,
            Described(
                "Annif: the language of a text.",
                takes=[Takes(_DETECT_SCHEMA)],
                gives=Gives({"type": "object"}),
                errors=[400, 413, 415, 501, 503],
            ),
        ),
    ]


_WISH_SCHEMA: dict[str, Any] = {
    "limit": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 10},
    "threshold": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
    "language": {"type": "string"},
}
_FORM_SCHEMA = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string"}, **_WISH_SCHEMA},
    "additionalProperties": {"type": "string"},
}
_RESULTS_SCHEMA = {
    "type": "object",
    "required": ["results"],
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["uri", "label", "score"],
                "properties": {
                    "uri": {"type": "string"},
                    "label": {"type": "string"},
                    "notation": {"type": ["string", "null"]},
                    "score": {"type": "number", "minimum": 0, "maximum": 1},
                },
            },
        },
        "document_id": {"type": ["string", "null"]},
    },
}
_BATCH_SCHEMA = {
    "type": "object",
    "required": ["documents"],
    "properties": {
        "documents": {
            "type": "array",
            "maxItems": DOCUMENTS_AT_ONCE,
            "items": {
                "type": "object",
                "required": ["text"],
                "properties": {"text": {"type": "string"}, "document_id": {"type": "string"}},
            },
        }
    },
}
_DETECT_SCHEMA = {
    "type": "object",
    "required": ["text", "languages"],
    "properties": {
        "text": {"type": "string"},
        "languages": {
            "type": "array",
            "minItems": 1,
            "maxItems": LANGUAGES_AT_ONCE,
            "items": {"type": "string", "pattern": "^[a-z]{2,3}$"},
        },
    },
}


def _project(server: Server, request: Request) -> ServedModel:
    """Return the model that is asked for."""
    id = request.path_params["project_id"]
    if id not in server.models:
        raise Problem(404, f"Project {id!r:.100} not found", title="Project not found")
    return server.models.get(id)


def _project_facts(served: ServedModel) -> dict[str, Any]:
    """Return a model as Annif describes a project."""
    vocab = _vocab_facts(served)
    vocabulary = served.tagger.vocabulary_
    language = (vocabulary.shown_language if vocabulary is not None else "") or NO_LANGUAGE
    return {
        "project_id": served.id,
        "name": served.folder.name,
        "language": language,
        "backend": {"backend_id": f"longtail_{served.tagger.method_}"},
        "vocab": vocab,
        "vocab_language": language,
        "is_trained": True,
        "modification_time": _saved_at(served).isoformat(),
    }


def _saved_at(served: ServedModel) -> datetime:
    """Return when a model was saved; when it was loaded, where its folder is gone."""
    try:
        seconds = (served.folder / MANIFEST).stat().st_mtime
    except OSError:
        seconds = served.loaded_at
    return datetime.fromtimestamp(seconds, UTC)


def _vocab_facts(served: ServedModel) -> dict[str, Any]:
    """Return the vocabulary of a model as Annif describes it; labels without one are a vocabulary of their own."""
    vocabulary = served.tagger.vocabulary_
    if vocabulary is None:
        id, languages, size = served.id, [NO_LANGUAGE], served.tagger.n_labels_
    else:
        id = re.sub(r"\W+", "-", vocabulary.name_of_vocabulary, flags=re.ASCII).strip("-") or served.id
        languages, size = sorted(language or NO_LANGUAGE for language in vocabulary.languages), len(vocabulary)
    return {"vocab_id": id, "languages": languages, "size": size, "loaded": True}


class _Wish:
    """How many subjects are asked for, how likely, and in which language their names."""

    def __init__(self, served: ServedModel, fields: dict[str, str]) -> None:
        self.limit = _limit(fields.get("limit", "10"))
        self.threshold = _threshold(fields.get("threshold", "0"))
        self.language: str | None = fields.get("language") or None
        if self.language is not None and self.language not in _vocab_facts(served)["languages"]:
            raise Problem(400, f'language "{self.language[:50]}" not supported by vocabulary')
        if self.language == NO_LANGUAGE:
            self.language = None


def _limit(text: str) -> int:
    """Return how many subjects are asked for."""
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise Problem(400, f"limit must be a whole number >= 0; got {text[:80]!r}.")
    return int(text)


def _threshold(text: str) -> float:
    """Return the least score that is asked for."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise Problem(400, f"threshold must be a number from 0 to 1; got {text[:80]!r}.")
    return value


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; of one that stands twice the last."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise Problem(415, f"the body must be a form, with the Content-Type {FORM}; got {kind!r:.100}.")
    try:
        raw = (await read_body(request)).decode("ascii")  # whatever else stands in a form is written with %
        pairs = parse_qsl(raw, keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=MOST_FIELDS)
    except UnicodeError:
        raise Problem(400, "the form is not UTF-8, with other letters than ASCII written as %XX.") from None
    except ValueError:
        raise Problem(400, f"the form has more than {MOST_FIELDS} fields.") from None
    return dict(pairs)


async def _suggest(server: Server, served: ServedModel, texts: list[str], wish: _Wish) -> list[dict[str, Any]]:
    """Return subjects of texts as Annif does."""
    k = min(wish.limit, server.settings.most_labels)
    if k == 0 or not texts:
        return [{"results": []} for _ in texts]
    found = await server.suggest(served.id, texts, How(k=k, language=wish.language))
    return [{"results": _results(served, tags, wish.threshold)} for tags in found.rows]


def _results(served: ServedModel, tags: list[SuggestedTag], threshold: float) -> list[dict[str, Any]]:
    """Return the subjects of one text."""
    vocabulary = served.tagger.vocabulary_
    scores = unit_scores(served, tags)
    return [
        {
            "uri": tag.label,
            "label": tag.name,
            "notation": (vocabulary.notation(tag.label) or None)
            if vocabulary is not None and tag.label in vocabulary
            else None,
            "score": score,
        }
        for tag, score in zip(tags, scores, strict=True)
        if score >= threshold
    ]


def _documents(body: object, most: int) -> tuple[list[str], list[str | None]]:
    """Return texts and ids of the documents of a batch."""
    documents = body.get("documents") if isinstance(body, dict) else None
    if not isinstance(documents, list):
        raise Problem(400, f"the body must be an object with a list of documents; got {kind_of(body)}.")
    if len(documents) > DOCUMENTS_AT_ONCE:
        raise Problem(400, f"too many items - 'documents': at most {DOCUMENTS_AT_ONCE}; got {len(documents)}.")
    texts, ids = [], []
    for at, document in enumerate(documents):
        if not isinstance(document, dict) or not isinstance(document.get("text"), str):
            raise Problem(400, f"documents[{at}] must be an object with a text.")
        id = document.get("document_id")
        if id is not None and not isinstance(id, str):
            raise Problem(400, f"documents[{at}].document_id must be a text; got {kind_of(id)}.")
        texts.append(checked_string(f"documents[{at}].text", document["text"], most))
        ids.append(id)
    return texts, ids


def _indexed_documents(body: object, served: ServedModel, most: int) -> list[ReviewedDocument]:
    """Return documents with the labels that their subjects are; those without text or known subject are left out."""
    if not isinstance(body, list):
        raise Problem(400, f"the body must be a list of documents; got {kind_of(body)}.")
    if len(body) > most:
        raise Problem(413, f"at most {most} documents are taken at once; got {len(body)}.")
    vocabulary, out = served.tagger.vocabulary_, []
    for at, document in enumerate(body):
        if not isinstance(document, dict):
            raise Problem(400, f"[{at}] must be an object; got {kind_of(document)}.")
        text, subjects = document.get("text"), document.get("subjects")
        if text is None or subjects is None:
            continue
        if not isinstance(text, str) or not isinstance(subjects, list) or len(subjects) > MOST_SUBJECTS:
            raise Problem(400, f"[{at}] must have a text, and a list of at most {MOST_SUBJECTS} subjects.")
        if not all(isinstance(subject, dict) and isinstance(subject.get("uri"), str) for subject in subjects):
            raise Problem(400, f"[{at}].subjects must be objects, each with a uri.")
        uris = dict.fromkeys(subject["uri"].removeprefix("<").removesuffix(">") for subject in subjects)
        known = [uri for uri in uris if vocabulary is None or uri in vocabulary or uri in served.numbers]
        if known and text.strip():
            out.append(ReviewedDocument(text, tuple(known)))
    return out


def _to_detect(body: object, most: int) -> tuple[str, tuple[str, ...]]:
    """Return text and languages of a question for the language."""
    text, languages = (body.get("text"), body.get("languages")) if isinstance(body, dict) else (None, None)
    if not isinstance(text, str) or not isinstance(languages, list):
        raise Problem(400, "the body must be an object with a text and a list of languages.")
    if not 1 <= len(languages) <= LANGUAGES_AT_ONCE:
        raise Problem(400, f"languages must be 1 to {LANGUAGES_AT_ONCE} codes; got {len(languages)}.")
    if not all(isinstance(code, str) and LANGUAGE_CODE.fullmatch(code) for code in languages):
        raise Problem(400, "languages must be codes of two or three letters, such as en.")
    return checked_string("text", text, most), tuple(languages)
