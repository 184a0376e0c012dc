"""Link rates: of the training rows that name a label, how many carry it.

A rate is kept for each entry (a form of a name), and for each context of it: at the beginning of a text or later, as a
phrase, near or far apart. Few rows say little, so a rate is drawn towards the mean of entries alike: forms of the same
kind, with as many words, as ambiguous, met as often. The rate of an entry in one context is drawn towards its rate in
all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.name_matches.find_kernel import ENTRY, FIRST, GRADE, PHRASE
from longtail.name_matches.logistic import fit_logistic, sigmoid
from longtail.name_matches.name_forms import ALTERNATIVE, PART, SHORTENED

BEGINNING = 32  # words of a text
N_CONTEXTS = 6
STRENGTHS = 2.0 ** np.arange(-1, 9)  # how many rows the mean of entries alike may count for
CONTEXT_STRENGTH = 4.0  # rows that the rate in all contexts counts for
N_TRAITS = 10
LOG_SCALE = 5.0


class Links(NamedTuple):
    """Training rows that name a label by an entry, and those among them that carry the label, by context."""

    named: np.ndarray  # int64 (n_entries, N_CONTEXTS)
    carried: np.ndarray  # int64 (n_entries, N_CONTEXTS)


def contexts(columns: np.ndarray) -> np.ndarray:
    """Return the context of each candidate: whether the text begins with it, and how far apart the words stand."""
    return (columns[:, FIRST] >= BEGINNING) + 2 * (PHRASE - columns[:, GRADE])


def add_links(links: Links, columns: np.ndarray, right: np.ndarray, folds: np.ndarray) -> None:
    """Add the candidates of training rows to links by fold (n_folds, n_entries, N_CONTEXTS).

    `right` says which labels the rows carry, `folds` in which fold they are. Costs nothing for other entries.
    """
    n_entries = links.named.shape[1]
    key = (folds * n_entries + columns[:, ENTRY]) * N_CONTEXTS + contexts(columns)
    for counts, keys in ((links.named, key), (links.carried, key[right])):
        met, times = np.unique(keys, return_counts=True)
        counts.reshape(-1)[met] += times.astype(counts.dtype)


def entry_traits(kind: np.ndarray, n_words: np.ndarray, n_labels: np.ndarray, n_rows: np.ndarray) -> np.ndarray:
    """Return what makes entries alike, float64 (n_entries, N_TRAITS).

    Kind, number of words, labels that share the words, training rows that have the name.
    """
    often = np.log1p(n_rows) / LOG_SCALE
    columns = [
        np.ones(kind.size),
        kind == ALTERNATIVE,
        kind == SHORTENED,
        kind == PART,
        n_words == 2,
        n_words > 2,
        np.log(n_labels),
        often,
        often**2,
        often * (n_words > 1),
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def fit_means(traits: np.ndarray, named: np.ndarray, carried: np.ndarray) -> tuple[np.ndarray, float]:
    """Learn the mean rate of entries by their traits, and how many rows this mean counts for.

    Returns the weights of the traits and the strength that makes the counts likeliest (a beta-binomial model).
    """
    from scipy.special import betaln  # slow to import, and only training needs it

    used = named > 0
    traits, named, carried = traits[used], named[used].astype(np.float64), carried[used].astype(np.float64)
    if named.size == 0:
        return np.concatenate([[-2.0], np.zeros(N_TRAITS - 1)]), 4.0
    middle = 8.0
    weights = fit_logistic(traits, carried / named, named * middle / (named + middle))
    mean = np.clip(sigmoid(traits @ weights), 1e-6, 1 - 1e-6)
    likelihoods = [
        np.sum(betaln(carried + a * mean, named - carried + a * (1 - mean)) - betaln(a * mean, a * (1 - mean)))
        for a in STRENGTHS
    ]
    return weights, float(STRENGTHS[int(np.argmax(likelihoods))])


def rates(
    mean: np.ndarray, strength: float, named: np.ndarray, carried: np.ndarray, there: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rate of each candidate in all contexts and in its own; `there` are its counts in its own.

    >>> rates(np.array([0.5]), 2.0, np.array([8]), np.array([8]), (np.array([4]), np.array([4])))[0].tolist()
    [0.9]
    """
    overall = (carried + strength * mean) / (named + strength)
    inside = (there[1] + CONTEXT_STRENGTH * overall) / (there[0] + CONTEXT_STRENGTH)
    return overall, inside
