"""Answers of a trained model about itself: explanations of labels, and its linear output layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.errors import ModelError
from longtail.facts import ExpertFacts, WordFacts
from longtail.notebook import table_card

FEATURES_SHOWN = 10  # of an explanation, in a notebook


def with_finite_scores(top: TopK) -> TopK:
    """Return predictions as they are; scores that are no numbers, of weights too large to add up, are refused.

    >>> with_finite_scores(TopK([[0, 1]], [[1.0, np.nan]]))
    Traceback (most recent call last):
    ...
    longtail.errors.ModelError: the scores of row 0 are not finite: ...are too large.
    """
    finite = np.isfinite(top.scores)
    if finite.all():  # most often: no list has fewer labels than asked for
        return top
    wrong = ~finite & (top.ids >= 0)
    if wrong.any():
        raise ModelError(
            f"the scores of row {int(np.argmax(wrong.any(axis=1)))} are not finite: weights of the model or numbers of "
            "the row are too large."
        )
    return top


@dataclass(frozen=True)
class Explanation:
    """Why a label scores as it does: `bias` and the `features` add up to `margin`, which makes the score.

    `path` lists the nodes of a tree on the way to the label, from the top: level, node and the node's own margin.
    """

    label: int
    score: float
    margin: float
    bias: float
    features: list[tuple[int, float]]  # (feature, contribution), strongest first
    path: list[dict[str, Any]]

    def finite(self) -> Self:
        """Return the explanation as it is; one of a label that is switched off, or too large to add up, is refused."""
        if not np.isfinite([self.score, self.margin, *(node["margin"] for node in self.path)]).all():
            raise ModelError(
                f"label {self.label} cannot be explained: the model never gives it, or its weights are too large."
            )
        return self

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the strongest features of the label."""
        rows = [[feature, f"{weight:+.3f}"] for feature, weight in self.features[:FEATURES_SHOWN]]
        note = f"score {self.score:.3g}, margin {self.margin:+.3f}, bias {self.bias:+.3f}"
        return table_card(f"Label {self.label}", ["feature", "contribution"], rows, note)


@dataclass(frozen=True)
class TextExplanation:
    """Why a label of a text scores as it does, by the words of the text.

    Where `bias` is a number, it and the weights of the words add up to `margin`; where it is None they do not.
    """

    label: int
    score: float
    margin: float
    bias: float | None
    words: list[WordFacts]  # word, weight, spans (start and end in the text), strongest first
    path: list[dict[str, Any]]  # as in Explanation
    experts: list[ExpertFacts] = field(default_factory=list)  # of a model made of experts: what each adds


@dataclass(frozen=True, eq=False)
class LabelCircle:
    """Labels at positions of a circle, and a layer whose first columns are waves along it, exactly.

    With t = 2 pi * position / size these columns are sqrt(1 / n), then sqrt(2 / n) cos(j t) and sqrt(2 / n) sin(j t)
    for j = 1..k; n is `size`, which for labels at learned positions is their number too.
    """

    size: int  # length of the circle, in the unit of the positions
    k: int  # frequencies, and so runs of labels that can be on at once
    positions: np.ndarray  # of every label, from 0 to below size, all different: int64, or float64 where learned

    def take(self, labels: np.ndarray) -> LabelCircle:
        """Return the circle with some of the labels."""
        return LabelCircle(self.size, self.k, self.positions[labels])


@dataclass(frozen=True, eq=False)
class LinearLayer:
    """A linear output layer: a row that reaches it as x has the scores W x + bias."""

    W: np.ndarray | sp.csr_array  # (n_labels, width)
    bias: np.ndarray | None = None  # (n_labels,); -inf for labels that are never given
    guaranteed: int = 0  # every set of so many labels can come out, by construction
    ranked: bool = False  # x has one length, so scores only rank: a set comes out as the top of the ranking
    circle: LabelCircle | None = None  # the first columns of W are waves along it, of which W holds the rounded values
