"""JSON Schemas of what the API takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}


def or_null(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def record(required: Sequence[str] | None = None, *, closed: bool = False, **fields: Schema) -> Schema:
    """Return the schema of an object; all fields are required where none are named."""
    out: Schema = {"type": "object", "properties": fields, "required": list(fields if required is None else required)}
    if closed:
        out["additionalProperties"] = False
    return out


PROBLEM = record(type=TEXT, title=TEXT, status=WHOLE, detail=TEXT)
NAMED = record(label=TEXT, name=TEXT)
TAG = record(label=TEXT, name=TEXT, score=NUMBER, probability=or_null(NUMBER), assigned=FLAG)
HOW = ("k", "threshold", "target", "language")
HOW_QUERY: dict[str, Schema] = {
    "k": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 5},
    "threshold": NUMBER,
    "target": TEXT,
    "language": TEXT,
}
HOW_FIELDS: dict[str, Schema] = {
    "k": HOW_QUERY["k"],
    "threshold": or_null(NUMBER),
    "target": or_null(TEXT),
    "allow": or_null(list_of(TEXT)),
    "deny": or_null(list_of(TEXT)),
    "language": or_null(TEXT),
}
SUGGEST = record((), closed=True, text=TEXT, texts=list_of(TEXT), **HOW_FIELDS)
SUGGEST["oneOf"] = [{"required": ["text"]}, {"required": ["texts"]}]
SUGGESTED = record(model=TEXT, digest=TEXT, results=list_of(record(tags=list_of(TAG), known_words=FLAG)))
TARGET = record(name=TEXT, sentence=TEXT)
VOCABULARY = record(title=TEXT, n_concepts=WHOLE, languages=list_of(TEXT), hierarchy=FLAG)
MODEL = record(
    ("id", "method", "title", "n_labels", "n_rows", "digest", "loaded_at", "calibrated", "vocabulary", "targets"),
    id=TEXT,
    method=TEXT,
    title=TEXT,
    n_labels=WHOLE,
    n_rows=or_null(WHOLE),
    digest=TEXT,
    loaded_at=TEXT,
    calibrated=FLAG,
    vocabulary=or_null(VOCABULARY),
    targets=list_of(TARGET),
    columns=record(text=list_of(TEXT), id=TEXT),
    language=or_null(TEXT),
    review=FLAG,
    problem=or_null(TEXT),
    facts={"type": "object"},
)
MODELS = record(models=list_of(MODEL), default=TEXT)
EXPLAIN = record(
    ("text",), closed=True, text=TEXT, labels=or_null(list_of(TEXT)), k={"type": "integer", "minimum": 1, "maximum": 50}
)
SPAN = record(start=WHOLE, end=WHOLE, word=TEXT, weight=NUMBER)
EXPLAINED = record(
    text=TEXT,
    predicted=list_of(
        record(("label", "name", "score", "spans"), label=TEXT, name=TEXT, score=NUMBER, spans=list_of(SPAN))
    ),
)
THRESHOLDS = record(
    points=or_null(list_of(record(threshold=NUMBER, precision=or_null(NUMBER), recall=NUMBER, labels_per_row=NUMBER))),
    default=or_null(NUMBER),
    rows=WHOLE,
    reason=or_null(TEXT),
)
RELOADED = record(id=TEXT, swapped=FLAG, digest=TEXT)
LABELS = record(
    total=WHOLE,
    labels=list_of(record(label=TEXT, name=TEXT, matched=TEXT, rows=WHOLE, suggested=FLAG, broader=list_of(NAMED))),
)
LABEL = record(
    label=TEXT,
    name=TEXT,
    alternative=list_of(TEXT),
    definition=or_null(TEXT),
    broader=list_of(NAMED),
    narrower=list_of(NAMED),
    related=list_of(NAMED),
    rows=WHOLE,
    guideline=or_null(TEXT),
)
TREE = record(
    label=or_null(TEXT),
    total=WHOLE,
    children=list_of(record(label=TEXT, name=TEXT, rows=WHOLE, children=WHOLE)),
    reason=or_null(TEXT),
)
SIGN_IN = record(closed=True, token={"type": "string", "maxLength": 200})
SESSION = record(name=TEXT, role={"enum": ["suggest", "review", "admin"]}, csrf=or_null(TEXT))
STATUS = record(("status",), status=TEXT, models=list_of(TEXT))
JOB = record(
    id=TEXT,
    model=TEXT,
    state={"enum": ["running", "done", "failed"]},
    rows=or_null(WHOLE),
    done=WHOLE,
    error=or_null(TEXT),
    created_at=TEXT,
)
JOBS = record(batches=list_of(JOB))
