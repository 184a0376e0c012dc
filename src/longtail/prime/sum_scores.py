"""Two opinions on labels made one: the scores of one model, and products of vectors by another."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def blend_lists(
    rows, vectors,        # IN   of queries (n, width), and of labels; both float32
    ids, scores,          # IN   labels and their scores by the first model, -1 where none        (n, m)
    more,                 # IN   further labels, -1 where none                                    (n, e)
    known,                # IN   bool per label: whether the first model knows it
    lowest,               # IN   what stands for the score of a label that is known, but not listed (n,)
    trust,                # IN   what the first model's scores are multiplied with                  (n,)
    share, start, slope,  # IN   what a product counts; what stands for the score of a label that is not known
    out_ids, out_scores,  # OUT  best first, equal scores by label, -1 and -inf where none        (n, k)
):  # fmt: skip
    """Add share × product to trust × the score of every label and keep the k best.

    A further label has the row's lowest score if the first model knows it, else min(0, start + slope × product).
    """
    n, k = out_ids.shape
    width = rows.shape[1]
    out_ids[:] = -1
    out_scores[:] = -np.inf
    for row in range(n):
        for i in range(ids.shape[1] + more.shape[1]):
            listed = i < ids.shape[1]
            label = ids[row, i] if listed else more[row, i - ids.shape[1]]
            if label < 0:
                continue
            if not listed:
                for j in range(ids.shape[1]):
                    if ids[row, j] == label:
                        listed = True
                        break
                if listed:
                    continue
            product = np.float32(0.0)
            for j in range(width):
                product += rows[row, j] * vectors[label, j]
            if listed:
                base = scores[row, i]
            elif known[label]:
                base = lowest[row]
            else:
                base = np.float32(min(0.0, start + slope * product))
            score = np.float32(trust[row] * base + share * product)
            place = k
            while place > 0 and (
                score > out_scores[row, place - 1]
                or (score == out_scores[row, place - 1] and label < out_ids[row, place - 1])
            ):
                place -= 1
            if place == k:
                continue
            for j in range(k - 1, place, -1):
                out_scores[row, j] = out_scores[row, j - 1]
                out_ids[row, j] = out_ids[row, j - 1]
            out_scores[row, place] = score
            out_ids[row, place] = label


def blend_lists_plain(
    rows: np.ndarray,
    vectors: np.ndarray,
    ids: np.ndarray,
    scores: np.ndarray,
    more: np.ndarray,
    known: np.ndarray,
    lowest: np.ndarray,
    trust: np.ndarray,
    share: float,
    start: float,
    slope: float,
    out_ids: np.ndarray,
    out_scores: np.ndarray,
) -> None:
    """The same in numpy."""
    out_ids[:], out_scores[:] = -1, -np.inf
    for row in range(rows.shape[0]):
        listed = {int(label): score for label, score in zip(ids[row], scores[row], strict=True) if label >= 0}
        labels = np.array(sorted({*listed, *(int(label) for label in more[row] if label >= 0)}), dtype=np.int64)
        products = vectors[labels] @ rows[row]
        unknown = np.minimum(0.0, start + slope * products)
        base = [listed.get(int(m), lowest[row] if known[m] else u) for m, u in zip(labels, unknown, strict=True)]
        total = (trust[row] * np.array(base) + share * products).astype(np.float32)
        best = np.argsort(-total, kind="stable")[: out_ids.shape[1]]
        out_ids[row, : best.size], out_scores[row, : best.size] = labels[best], total[best]
