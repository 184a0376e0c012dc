"""The schema of a saved Tagger: how it was made, and the facts in its manifest."""

from __future__ import annotations

from longtail.model import SEED
from longtail.storage import Facts, Flag, ListOf, MapOf, ParamSpec, PartSchema, Real, Record, Text, Value, Whole

MOST_DIGESTS = 1000  # of data that a model learned from; of more updates the last are kept

TAGGER = PartSchema(
    kind="tagger.v1",
    about="how a `Tagger` was made",
    params=(
        ParamSpec("method", Text(100), "name of the method, or of the class of a model that is no method's"),
        ParamSpec("calibrate", Real(0, 0.5), "share of the rows held out"),
    ),
)

_COUNTS = (
    "rows",
    "labels",
    "labels_used",
    "rows_without_labels",
    "labels_seen_once",
    "features",
    "groups",
    "labels_added",
    "labels_removed",
    "updates",
    "rows_of_updates",
)
_READING: dict[str, Value] = {
    **dict.fromkeys(
        ("format", "suffix", "labels_column", "id_column", "label_separator", "encoding", "guessed_encoding"), Text()
    ),
    "delimiter": Text(3),
    "text_column": ListOf(Text(), 1, 1000),
}
_DATA: dict[str, Value] = {
    "name": Text(4096),
    "digest": Text(200),
    "digests": ListOf(Text(200), 0, MOST_DIGESTS),
    **dict.fromkeys((*_COUNTS, "labels_unknown_to_model", "labels_ambiguous"), Whole()),
    **dict.fromkeys(("labels_per_row", "rows_per_label", "features_per_row"), Real(0)),
    **dict.fromkeys(("has_texts", "has_label_texts"), Flag()),
    "tail": ListOf(ListOf(Whole(), 2, 2), 0, 10_000),
    "imputed": Facts(),
    "vocabulary": Facts(),
    "reading": Record(_READING, frozenset(_READING)),
}
_METRIC = Record({name: Real(none=True) for name in ("value", "low", "high")}, frozenset({"low", "high"}))
TAGGER_FACTS: dict[str, Value] = {
    "seed": SEED,
    "data": Record(_DATA, frozenset(_DATA)),
    "held_out": Record({"rows": Whole(), "metrics": MapOf(_METRIC, names=r"[a-z_0-9]{1,30}@[0-9]{1,7}")}, none=True),
}
