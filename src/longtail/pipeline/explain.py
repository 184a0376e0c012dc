"""Why labels came: the words for and against each, of models that count words and of models that read texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from longtail.data import TopK
from longtail.errors import DataError, ModelError, ParameterError
from longtail.facts import ExplanationFacts, PathStepFacts, SuggestionFacts, WordFacts
from longtail.pipeline.text_models import takes_texts
from longtail.report import explanation_html
from longtail.validate import check_integer

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger


class TextExplanation(dict[str, Any]):
    """An explanation as facts (`ExplanationFacts`), which a notebook shows as a text with marked words."""

    def _repr_html_(self) -> str:
        return explanation_html(cast(ExplanationFacts, self))


def explains_words(tagger: Tagger) -> bool:
    """Say whether a tagger can tell which words a label came from."""
    if takes_texts(tagger.model_):
        return hasattr(tagger.model_, "explain_words")
    return tagger.features_ is not None and hasattr(tagger.features_, "locate")


def explain_text(tagger: Tagger, text: Any, k: int, labels: Sequence[str] | None) -> ExplanationFacts:
    """Return why the k best labels of a text (or the given ones) came."""
    if not isinstance(text, str):
        raise DataError(f"explain takes one text; got {type(text).__name__}.")
    X = tagger.rows([text])
    if not explains_words(tagger):
        raise ModelError("only a Tagger that reads words can explain itself by words.")
    if labels is not None:
        wanted = _with_rows(tagger, labels)
    else:
        top = tagger.model_.predict_topk(X, k=check_integer("k", k, low=1))
        wanted = [int(label) for label in top.ids[0] if label >= 0]
    explain = _read if takes_texts(tagger.model_) else _counted
    predicted = explain(tagger, text, X, wanted) if wanted else []
    return cast(ExplanationFacts, TextExplanation(text=text, predicted=predicted))


def _counted(tagger: Tagger, text: str, X: Any, wanted: list[int]) -> list[SuggestionFacts]:
    """Explain labels by the weights of counted words, which add up."""
    found = tagger.model_.explain(X, wanted)
    tags = tagger.name_tags(TopK(np.array([wanted]), np.array([[e.score for e in found]])))[0]
    words = tagger.features_.feature_names()
    spans: dict[int, list[list[int]]] = {}
    for start, end, column in tagger.features_.locate(text):
        spans.setdefault(int(column), []).append([int(start), int(end)])
    out: list[SuggestionFacts] = []
    for tag, why in zip(tags, found, strict=True):
        weights: list[WordFacts] = [{"word": words[f], "weight": w, "spans": spans.get(f, [])} for f, w in why.features]
        path: list[PathStepFacts] = [
            {"level": s["level"], "node": s["node"], "margin": s["margin"], "typical": _typical(tagger, s["labels"])}
            for s in why.path
        ]
        more: SuggestionFacts = {"margin": why.margin, "bias": why.bias, "words": weights, "path": path}
        out.append({"label": tag.label, "score": tag.score, "probability": tag.probability, **more})
    return out


def _read(tagger: Tagger, text: str, X: Any, wanted: list[int]) -> list[SuggestionFacts]:
    """Explain labels by what their scores lose without each word; that does not add up, so there is no bias."""
    model: Any = tagger.model_
    top = model.predict_topk(X, k=len(wanted), allow=wanted)
    score = dict(zip(top.ids[0].tolist(), top.scores[0].tolist(), strict=True))
    tags = tagger.name_tags(TopK(np.array([wanted]), np.array([[score[label] for label in wanted]])))[0]
    words = model.explain_words(text, wanted)
    return [
        {
            "label": tag.label,
            "score": tag.score,
            "probability": tag.probability,
            "margin": tag.score,
            "bias": None,
            "words": found,
            "path": [],
        }
        for tag, found in zip(tags, words, strict=True)
    ]


def _with_rows(tagger: Tagger, labels: Sequence[str]) -> list[int]:
    """Return the numbers of labels; one that was never in training has no weights, unless its text speaks for it."""
    numbers = tagger._numbers(labels)
    for name, number in zip(labels, numbers, strict=True):
        if tagger.model_.label_counts_[number] == 0 and not takes_texts(tagger.model_):
            raise ParameterError(f"label {name!r} has no training row, so there is nothing to explain.")
    return numbers


def _typical(tagger: Tagger, labels: np.ndarray, n: int = 3) -> list[str]:
    """Return the names of the most frequent of some labels."""
    order = np.argsort(-tagger.model_.label_counts_[labels], kind="stable")[:n]
    return [tagger.labels_[i] for i in labels[order]]
