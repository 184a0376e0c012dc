"""The facts about a model that callers of the server are told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from longtail.pipeline import decision_facts, offered_targets
from longtail.serve.server import Server
from longtail.serve.suggesting import ID_COLUMN, TEXT_COLUMN, ServedModel


def model_facts(server: Server, served: ServedModel) -> dict[str, Any]:
    """Return what the list of models says of one."""
    tagger, vocabulary = served.tagger, served.tagger.vocabulary_
    shown = None
    if vocabulary is not None:
        shown = {
            "title": vocabulary.name_of_vocabulary or "",
            "n_concepts": len(vocabulary),
            "languages": [language for language in vocabulary.languages if language],
            "hierarchy": vocabulary.has_hierarchy,
        }
    return {
        "id": served.id,
        "method": tagger.method_,
        "title": served.folder.name,
        "n_labels": tagger.n_labels_,
        "n_rows": tagger.data_.get("rows"),
        "digest": served.digest,
        "loaded_at": datetime.fromtimestamp(served.loaded_at, UTC).isoformat(timespec="seconds"),
        "calibrated": bool(tagger.model_.calibrated_),
        "vocabulary": shown,
        "targets": offered_targets(tagger),
        "columns": {
            "text": served.reading.get("text_column", [TEXT_COLUMN]),
            "id": served.reading.get("id_column", ID_COLUMN),
        },
        "language": None if vocabulary is None else vocabulary.shown_language or None,
        "review": server.settings.reviews is not None and served.id == server.models.default,
        "problem": server.models.problems.get(served.id),
    }


def full_facts(server: Server, served: ServedModel) -> dict[str, Any]:
    """Return all facts about a model."""
    tagger = served.tagger
    facts = {
        "data": {name: value for name, value in tagger.data_.items() if name != "read_as"},
        "held_out": tagger.held_out_,
        "decision": decision_facts(tagger),
        "model": tagger.model_.describe(),
    }
    return {**model_facts(server, served), "facts": facts}
