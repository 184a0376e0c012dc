"""Scores between 0 and 1, for programs that know no other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from longtail.serve.suggesting import ServedModel, SuggestedTag

LEAST = 1e-6  # the score of a label that is ranked but has no chance; many programs take 0 for "not suggested"
STEP = 1 - 2.0**-22  # the smallest step down that is seen in 32 bits


def unit_scores(served: ServedModel, tags: Sequence[SuggestedTag]) -> list[float]:
    """Return scores in (0, 1] that fall from rank to rank, for the labels of one text, best first.

    They are probabilities where the model is calibrated. Else a tree's score is a logarithm, and any other log-odds.
    The ends of the calibrated curve are flat; labels there keep their order by the smallest steps there are, since the
    programs that ask sort by score alone.
    """
    out: list[float] = []
    above = 1 / STEP
    for rank, tag in enumerate(tags):
        least = LEAST * (len(tags) - rank) / len(tags)
        above = min(max(_unit(served, tag), least), above * STEP)
        out.append(above)
    return out


def _unit(served: ServedModel, tag: SuggestedTag) -> float:
    """Return one score between 0 and 1."""
    if tag.probability is not None:
        return tag.probability
    if served.tagger.method_ == "tree":
        return math.exp(min(tag.score, 0.0))
    return 1 / (1 + math.exp(-max(min(tag.score, 500.0), -500.0)))
