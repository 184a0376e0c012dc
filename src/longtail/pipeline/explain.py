"""Why labels came: the words for and against each, by the names of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from longtail.data import TopK
from longtail.errors import DataError, ModelError, ParameterError
from longtail.facts import ExplanationFacts, PathStepFacts, SuggestionFacts
from longtail.pipeline.shown import ExplainedText
from longtail.validate import Json, check_integer
from longtail.vocabulary import add_names

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger

TYPICAL = 3  # labels named for a node of a tree


def explain_text(
    tagger: Tagger,
    text: str,
    k: int,
    labels: Sequence[str] | None,
    allow: Sequence[str] | None = None,
    deny: Sequence[str] | None = None,
) -> ExplanationFacts:
    """Return why the k best labels of a text (or the given ones) came, of those that may come."""
    if labels is not None and (allow is not None or deny is not None):
        raise ParameterError("allow and deny choose among suggested labels; they cannot be used with labels.")
    if not isinstance(text, str):
        raise DataError(f"explain takes one text; got {type(text).__name__}.")
    if not tagger.reads_texts_:
        raise ModelError(
            "the model was trained on rows of features; only models of texts can explain themselves by words."
        )
    row, model = tagger.rows([text]), tagger.model_
    if not model.explains_words(tagger.features_):
        raise ModelError("only a Tagger that reads words can explain itself by words.")
    if labels is not None:
        wanted = _predictable(tagger, labels)
    else:
        given = {of: names for of, names in (("allow", allow), ("deny", deny)) if names is not None}
        limit = {of: tagger.label_numbers(names, of) for of, names in given.items()}
        top = model.predict_topk(row, k=check_integer("k", k, low=1), **limit)
        may = model.predictable_labels()
        wanted = [int(label) for label in top.ids[0] if label >= 0 and may[label]]
    if not wanted:
        return cast(ExplanationFacts, ExplainedText(text=text, predicted=[]))
    reasons = model.explain_text(text, row, wanted, tagger.features_)
    tags = tagger.name_tags(TopK(np.array([wanted]), np.array([[why.score for why in reasons]])))[0]
    predicted: list[SuggestionFacts] = [
        {
            "label": tag.label,
            "score": tag.score,
            "probability": tag.probability,
            "margin": why.margin,
            "bias": why.bias,
            "words": why.words,
            "path": [_node(tagger, step) for step in why.path],
            **({"experts": why.experts} if why.experts else {}),
        }
        for tag, why in zip(tags, reasons, strict=True)
    ]
    return cast(ExplanationFacts, add_names(ExplainedText(text=text, predicted=predicted), tagger.vocabulary_))


def _predictable(tagger: Tagger, labels: Sequence[str]) -> list[int]:
    """Return the numbers of labels; one that the model can never give has nothing that speaks for it."""
    numbers, may = tagger.label_numbers(labels), tagger.model_.predictable_labels()
    for name, number in zip(labels, numbers, strict=True):
        if not may[number]:
            raise ParameterError(f"label {name!r} has no training row, so there is nothing to explain.")
    return numbers


def _node(tagger: Tagger, step: Json) -> PathStepFacts:
    """Return a node on the path to a label, with the names of its most frequent labels."""
    labels = step["labels"]
    order = np.argsort(-tagger.model_.label_counts_[labels], kind="stable")[:TYPICAL]
    typical = [tagger.labels_[i] for i in labels[order]]
    return {"level": step["level"], "node": step["node"], "margin": step["margin"], "typical": typical}
