"""Cards of a Tagger, its tags and facts about it, for notebooks; these are lists and dictionaries in every other way.

The cards are made by `longtail.report`, which is imported when something is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from longtail.data import Dataset
from longtail.facts import (
    ComparisonFacts,
    EvaluationFacts,
    ExplanationFacts,
    ImputationFacts,
    MethodFacts,
    MonitorFacts,
    SuggestionFacts,
    TreeFacts,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.pipeline.tagger import Tag, Tagger

TEXTS_SHOWN = 5  # with their tags
ROWS_SHOWN = 8  # of imputed data
WAYS = (  # to go on with a Tagger that reads texts
    ("tagger.tag(texts, k=5)", "the best labels of every text, with probabilities"),
    ("tagger.predict(texts)", "the labels every text should get"),
    ("tagger.explain(text)", "the words behind every label"),
    ("tagger.save(folder)", "longtail.load(folder) and `longtail serve FOLDER` read it"),
)


class ShownTags(list["list[Tag]"]):
    """Tags of several texts: a list of lists, which a notebook shows with the texts and with bars."""

    def __init__(self, tags: Iterable[list[Tag]], texts: Sequence[str | None]) -> None:
        super().__init__(tags)
        self.first_texts = texts  # of the rows that are shown; None for rows that are no texts

    @classmethod
    def of(cls, tags: list[list[Tag]], texts: Any) -> ShownTags:
        """Return tags with the first of their texts; rows of numbers have none."""
        few = () if hasattr(texts, "columns") else islice(texts, TEXTS_SHOWN)  # of a DataFrame, these are its columns
        told = [text if isinstance(text, str) else None for text in few]
        return cls(tags, told or [None] * min(len(tags), TEXTS_SHOWN))

    def _repr_html_(self) -> str:
        from longtail.report import tags_html

        n = min(len(self), len(self.first_texts))  # a list may have changed since
        return tags_html([[_suggested(tag) for tag in row] for row in self[:n]], self.first_texts[:n], len(self))


class ExplainedText(dict[str, Any]):
    """An explanation as facts (`ExplanationFacts`), which a notebook shows as a text with marked words."""

    def _repr_html_(self) -> str:
        from longtail.report import explanation_html

        return explanation_html(cast(ExplanationFacts, self))


class ShownEvaluation(dict[str, Any]):
    """Facts of an evaluation (`EvaluationFacts`), which a notebook shows with the plots of the report."""

    def _repr_html_(self) -> str:
        from longtail.report import evaluation_html

        return evaluation_html(cast(EvaluationFacts, self))


class ShownComparison(dict[str, Any]):
    """Facts of a comparison (`ComparisonFacts`), which a notebook shows with the plot of the report."""

    def _repr_html_(self) -> str:
        from longtail.report import comparison_html

        return comparison_html(cast(ComparisonFacts, self))


class ShownTree(dict[str, Any]):
    """Facts about a label tree (`TreeFacts`), which a notebook shows as clusters that can be opened."""

    def _repr_html_(self) -> str:
        from longtail.report import tree_html

        return tree_html(cast(TreeFacts, self))


class ShownMonitor(dict[str, Any]):
    """Facts about new rows beside those of the training (`MonitorFacts`), which a notebook shows as tables."""

    def _repr_html_(self) -> str:
        from longtail.report import monitor_html

        return monitor_html(cast(MonitorFacts, self))


class ShownMethod(dict[str, Any]):
    """The choice of a method (`MethodFacts`), which a notebook shows with its reasons."""

    def _repr_html_(self) -> str:
        from longtail.report import method_html

        return method_html(cast(MethodFacts, self))


def tagger_card(tagger: Tagger) -> str:
    """Return the card of a trained Tagger."""
    from longtail.pipeline.evaluation import model_facts
    from longtail.report import tagger_html

    ways = WAYS if tagger.reads_texts_ else ()
    return tagger_html(model_facts(tagger), ways=ways, trained_twice=tagger.model_.trained_twice)


def imputation_card(facts: ImputationFacts, data: Dataset, confidence: csr_array) -> str:
    """Return the card of labels found for rows of groups, with the first rows that got some."""
    from longtail.report import imputation_html

    rows = []
    for row in _first_with_labels(data):
        low, high = data.Y.indptr[row], data.Y.indptr[row + 1]
        chances = [float(confidence[row, label]) for label in data.Y.indices[low:high].tolist()]
        found: list[SuggestionFacts] = [
            {"label": label, "score": chance} for label, chance in zip(data.labels_of(row), chances, strict=True)
        ]
        text = f"row {row}" if data.texts is None else data.texts[row]
        rows.append((text, ", ".join(_groups_of(data, row)), sorted(found, key=lambda one: -one["score"])))
    return imputation_html(facts, rows)


def _first_with_labels(data: Dataset) -> list[int]:
    found = (row for row in range(data.n_rows) if data.Y.indptr[row + 1] > data.Y.indptr[row])
    return [row for row, _ in zip(found, range(ROWS_SHOWN), strict=False)]


def _groups_of(data: Dataset, row: int) -> list[str]:
    if data.groups is None:
        return []
    numbers = data.groups.indices[data.groups.indptr[row] : data.groups.indptr[row + 1]].tolist()
    return [str(i) if data.group_names is None else data.group_names[i] for i in numbers]


def _suggested(tag: Tag) -> SuggestionFacts:
    """Return a tag as the facts of a suggestion."""
    out: SuggestionFacts = {"label": tag.label, "score": tag.score, "probability": tag.probability}
    if tag.name is not None:
        out["name"] = tag.name
    return out
