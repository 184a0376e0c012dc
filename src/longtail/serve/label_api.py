"""The routes of labels: search while typing, one label, the hierarchy of the vocabulary."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from longtail.serve import schemas
from longtail.serve.longtail_api import ROOT
from longtail.serve.operations import Described, Gives, Operation
from longtail.serve.problems import Problem, json_answer
from longtail.serve.requests import query, query_integer
from longtail.serve.server import Server
from longtail.serve.suggesting import ServedModel
from longtail.vocabulary import Vocabulary

MOST_LISTED = 1000  # labels of one answer
MOST_CHILDREN = 500
CONCEPTS = ("labels", "all")


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes."""

    async def labels(request: Request) -> Response:
        served = server.models.get(request.path_params["model"])
        given = query(request, ("q", "limit", "offset", "language", "concepts"))
        if given.get("concepts", "labels") not in CONCEPTS:
            raise Problem(422, f"concepts must be one of {', '.join(CONCEPTS)}; got {given['concepts']!r:.80}.")
        others = given.get("concepts") == "all"
        limit = query_integer(given, "limit", 20, low=1, high=MOST_LISTED)
        offset = query_integer(given, "offset", 0, low=0, high=10**9)
        language = given.get("language")
        served.vocabulary(language)
        return json_answer(
            await server.run(
                lambda: found_labels(served, given.get("q", ""), limit, offset, language, others), quick=True
            )
        )

    async def label(request: Request) -> Response:
        served = server.models.get(request.path_params["model"])
        given = query(request, ("language",))
        return json_answer(
            await server.run(lambda: label_facts(server, served, request.path_params["label"], given.get("language")))
        )

    async def tree(request: Request) -> Response:
        served = server.models.get(request.path_params["model"])
        given = query(request, ("label", "language"))
        return json_answer(await server.run(lambda: tree_facts(served, given.get("label"), given.get("language"))))

    one = f"{ROOT}/models/{{model}}"
    text, number = {"type": "string"}, {"type": "integer", "minimum": 0}
    return [
        Operation(
            "GET",
            f"{one}/labels",
            labels,
            Described(
                "Labels by the beginnings of words of their names, the most frequent first; with concepts=all then "
                "those concepts of the vocabulary that the model cannot suggest, since it saw no row with them.",
                query={
                    "q": {**text, "maxLength": 200},
                    "limit": {**number, "minimum": 1, "maximum": MOST_LISTED, "default": 20},
                    "offset": {**number, "maximum": 10**9, "default": 0},
                    "language": text,
                    "concepts": {"enum": list(CONCEPTS), "default": "labels"},
                },
                gives=Gives(schemas.LABELS),
                errors=[404, 422],
            ),
        ),
        Operation(
            "GET",
            f"{one}/labels/{{label:path}}",
            label,
            Described(
                "One label: its names and what stands near it.",
                query={"language": text},
                gives=Gives(schemas.LABEL),
                errors=[404, 422],
            ),
        ),
        Operation(
            "GET",
            f"{one}/tree",
            tree,
            Described(
                "The hierarchy of the vocabulary: top concepts, or what stands right below one.",
                query={"label": text, "language": text},
                gives=Gives(schemas.TREE),
                errors=[404, 422],
            ),
        ),
    ]


def found_labels(
    served: ServedModel, typed: str, limit: int, offset: int, language: str | None, others: bool
) -> dict[str, Any]:
    """Return the labels that match what was typed, and after them the other concepts of the vocabulary if asked for."""
    found = served.search.find(typed, limit, offset)
    counts, labels, total = served.tagger.model_.label_counts_, served.tagger.labels_, found.total
    shown = [(labels[number], matched, int(counts[number]), True) for number, matched in found.labels]
    if others and served.other_concepts:
        rest, concepts = max(limit - len(shown), 0), served.other_concepts
        more = served.other_search.find(typed, rest, max(offset - found.total, 0))
        shown += [(concepts[number], matched, 0, False) for number, matched in more.labels]
        total += more.total
    vocabulary = served.vocabulary(language)
    facts = [
        {
            "label": id,
            "name": id if vocabulary is None or id not in vocabulary else vocabulary.name(id),
            "matched": matched,
            "rows": rows,
            "suggested": suggested,
            "broader": broader_facts(vocabulary, id),
        }
        for id, matched, rows, suggested in shown
    ]
    return {"total": total, "labels": facts}


def broader_facts(vocabulary: Vocabulary | None, label: str) -> list[dict[str, str]]:
    """Return the concepts right above a label."""
    if vocabulary is None or label not in vocabulary:
        return []
    return [{"label": id, "name": vocabulary.name(id)} for id in vocabulary.broader(label)]


def label_facts(server: Server, served: ServedModel, label: str, language: str | None) -> dict[str, Any]:
    """Return one label, which may be given by its id or its name, or a concept that is no label."""
    vocabulary = served.vocabulary(language)
    number = served.numbers.get(label)
    if number is None and (vocabulary is None or label not in vocabulary):
        raise Problem(404, f"the model {served.id!r} has no label {label!r:.200}.")
    rows = 0 if number is None else int(served.tagger.model_.label_counts_[number])
    facts: dict[str, Any] = {"label": label, "name": label, "alternative": [], "definition": None}
    facts |= {"broader": [], "narrower": [], "related": [], "rows": rows, "guideline": server.guideline(label)}
    if vocabulary is not None and label in vocabulary:
        names = vocabulary.names_of(label)
        facts |= {"name": vocabulary.name(label), "alternative": list(names[1:])}
        facts["broader"] = broader_facts(vocabulary, label)
        facts["narrower"] = [
            {"label": id, "name": vocabulary.name(id)} for id in vocabulary.narrower(label)[:MOST_CHILDREN]
        ]
    texts = served.tagger.label_texts_
    if texts is not None and number is not None and vocabulary is None:
        facts["definition"] = texts[number][:2000]
    return facts


def tree_facts(served: ServedModel, label: str | None, language: str | None) -> dict[str, Any]:
    """Return top concepts of the vocabulary, or those right below one, with the rows of each."""
    vocabulary = served.vocabulary(language)
    if vocabulary is None or not vocabulary.has_hierarchy:
        return {"label": label, "total": 0, "children": [], "reason": "the model has no vocabulary with a hierarchy."}
    if label is None:
        ids = served.top_concepts
    elif label in vocabulary:
        ids = list(vocabulary.narrower(label))
    else:
        raise Problem(404, f"the vocabulary has no concept {label!r:.200}.")
    counts = served.tagger.model_.label_counts_
    children = []
    for id in ids[:MOST_CHILDREN]:
        number = served.numbers.get(id)
        rows = 0 if number is None else int(counts[number])
        children.append(
            {"label": id, "name": vocabulary.name(id), "rows": rows, "children": len(vocabulary.narrower(id))}
        )
    children.sort(key=lambda child: str(child["name"]).casefold())
    return {"label": label, "total": len(ids), "children": children, "reason": None}
