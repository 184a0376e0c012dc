"""Thresholds with a guarantee: conformal risk control.

Every row has a loss at a threshold λ, between 0 and 1, that rises or falls with λ only in one direction. With n rows
that the model has never seen, the guarantee holds for the λ at which

    (sum of the losses of the n rows + 1) / (n + 1) <= α,

the least cautious such λ: the expected loss of a new row, exchangeable with these, is at most α (Angelopoulos, Bates,
Fisch, Lei and Schuster, Conformal risk control, ICLR 2024; 1 is the largest loss).

missed  share of the true labels of a row that are not assigned, those outside its candidates too; 0 for a row without
        labels. It rises with λ: the largest λ is taken.
wrong   share of the assigned labels that are wrong, 0 where nothing is assigned; since this can rise and fall, the
        largest share at λ or any higher threshold is taken, which is never less. It falls with λ: the least λ is taken.
"""

from __future__ import annotations

import numpy as np

from longtail.decisions.decision import NEVER, Decision
from longtail.decisions.judged_pairs import JudgedRows
from longtail.decisions.purposes import Target
from longtail.errors import DataError


def control_risk(judged: JudgedRows, guarantee: Target) -> Decision:
    """Return the threshold at which the expected share of missed or of wrong labels is at most α; see the module."""
    n, alpha = judged.n_rows, float(guarantee.value or 0.0)
    if guarantee.name == "missed":
        threshold = _missed_threshold(*missed_steps(judged), n, alpha)
    else:
        threshold = _wrong_threshold(*wrong_steps(judged), n, alpha)
    return Decision.of_thresholds(str(guarantee), threshold, candidates=judged.probabilities.k, n_rows=n)


def missed_steps(judged: JudgedRows) -> tuple[np.ndarray, np.ndarray, float]:
    """Return where the summed loss of missed labels falls and by how much, and its value with nothing assigned."""
    true = judged.row_true.astype(np.float64)
    rows, _ = np.nonzero(judged.hits)
    return judged.probabilities.scores[judged.hits], 1.0 / true[rows], float((true > 0).sum())


def wrong_steps(judged: JudgedRows) -> tuple[np.ndarray, np.ndarray]:
    """Return where the summed loss of wrong labels rises, made monotone, and by how much."""
    top = judged.probabilities
    wrong = np.cumsum(~judged.hits, axis=1) / np.arange(1, top.k + 1)
    tied = np.zeros(wrong.shape, dtype=bool)  # equal probabilities are assigned together
    tied[:, :-1] = top.scores[:, 1:] == top.scores[:, :-1]
    wrong[tied | (top.ids < 0)] = 0.0
    worst = np.maximum.accumulate(wrong, axis=1)
    rises = np.diff(worst, axis=1, prepend=0.0)
    return top.scores[rises > 0], rises[rises > 0]


def mean_missed(judged: JudgedRows, threshold: float) -> float:
    """Return the mean share of missed labels of rows at a threshold."""
    at, fall, whole = missed_steps(judged)
    return float(whole - fall[at >= np.float32(threshold)].sum()) / judged.n_rows


def mean_wrong(judged: JudgedRows, threshold: float) -> float:
    """Return the mean share of wrong labels of rows at a threshold, as it is, not made monotone."""
    kept = (judged.probabilities.ids >= 0) & (judged.probabilities.scores >= np.float32(threshold))
    said = kept.sum(axis=1)
    return float(((kept & ~judged.hits).sum(axis=1) / np.maximum(said, 1)).mean())


def _missed_threshold(at: np.ndarray, fall: np.ndarray, whole: float, n: int, alpha: float) -> float:
    """Return the largest threshold at which (sum of losses + 1) / (n + 1) is at most α."""
    order = np.argsort(-at, kind="stable")
    at, losses = at[order], whole - np.cumsum(fall[order])
    if (whole + 1) / (n + 1) <= alpha:
        return NEVER
    fits = np.append(at[1:] != at[:-1], True)[: at.size] & ((losses + 1) / (n + 1) <= alpha)
    if fits.any():
        return float(at[np.argmax(fits)])
    least = (float(losses[-1] if losses.size else whole) + 1) / (n + 1)
    raise _out_of_reach("missed", alpha, least, "with all candidates assigned", n)


def _wrong_threshold(at: np.ndarray, rises: np.ndarray, n: int, alpha: float) -> float:
    """Return the least threshold at which (sum of losses + 1) / (n + 1) is at most α."""
    if 1 / (n + 1) > alpha:
        raise _out_of_reach("wrong", alpha, 1 / (n + 1), "with nothing assigned", n)
    order = np.argsort(-at, kind="stable")
    at, losses = at[order], np.cumsum(rises[order])
    ends = np.flatnonzero(np.append(at[1:] != at[:-1], True)[: at.size])
    broken = ends[(losses[ends] + 1) / (n + 1) > alpha]
    return float(np.nextafter(at[broken[0]], np.float32(2))) if broken.size else 0.0


def _out_of_reach(name: str, alpha: float, least: float, how: str, n: int) -> DataError:
    """Return the complaint about a guarantee that cannot be given, with the least that can."""
    return DataError(
        f"{name}={alpha:g} cannot be guaranteed on these {n:,} rows; the least that can be is "
        f"{name}={np.ceil(10_000 * least) / 10_000:g}, {how}."
    )
