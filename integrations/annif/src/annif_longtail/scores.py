"""Scores between 0 and 1, as Annif wants them, of the labels that a Tagger ranks."""

from __future__ import annotations

import numpy as np

from longtail import Tagger, TopK

LEAST = 1e-6  # the score of a label that is ranked but has no chance; 0 would leave it out


def annif_scores(tagger: Tagger, top: TopK) -> np.ndarray:
    """Return scores in (0, 1], float32 (n_texts, k), that fall from rank to rank.

    They are probabilities where the model is calibrated. Else a tree's score is a logarithm, and any other log-odds.
    Ends of the calibrated curve are flat; ranks there keep their order by the smallest steps there are, since Annif
    sorts by score alone.
    """
    if tagger.model_.calibrated_:
        scores = tagger.model_.probabilities(top).scores.astype(np.float32)
    elif tagger.method_ == "tree":
        scores = np.exp(np.minimum(top.scores, 0.0)).astype(np.float32)
    else:
        scores = (1.0 / (1.0 + np.exp(-top.scores.astype(np.float64)))).astype(np.float32)
    k = scores.shape[1]
    least = np.float32(LEAST) * np.arange(k, 0, -1, dtype=np.float32) / np.float32(max(k, 1))
    scores = np.maximum(np.where(top.ids >= 0, scores, 0.0), least).astype(np.float32)
    for rank in range(1, k):
        scores[:, rank] = np.minimum(scores[:, rank], np.nextafter(scores[:, rank - 1], np.float32(0.0)))
    return scores
