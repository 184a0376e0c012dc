"""Features of a label that a text names, for the logistic regression."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.name_matches.find_kernel import (
    BETWEEN,
    COUNT,
    COVERED,
    ENTRY,
    EXACT,
    FAR,
    FIRST,
    FREE,
    GRADE,
    LAST,
    PHRASE,
    ROW,
)
from longtail.name_matches.link_rates import Links, contexts, rates
from longtail.name_matches.name_forms import ALTERNATIVE, PART, SHORTENED

POSITIONS = (1, 4, 8, 16, 32, 64, 128, 256)  # words at which a new bin of first positions begins
TURNS = (-4.0, -2.0, 0.0)  # log-odds of link rates at which their effect may bend
SURE = 1e-9  # link rates stay this far from 0 and 1
LEAST_RIVALS = 0.02  # added to the link rates of the other candidates of a row
POSITION_NAMES = tuple(f"first position from {position} on" for position in POSITIONS)
TURN_NAMES = tuple(f"link rate above {turn:g}" for turn in TURNS)
PRODUCTS = (
    "matches × rarity of the name",
    "matches × length of the text",
    "link rate × link rate",
    "link rate × matches",
    "link rate × loose",
    "link rate × words between",
    "link rate × inside longer names only",
    "link rate × length of the text",
    "link rate × first position",
    "no training rows × link rate",
    "no training rows × form as in the name",
    "no training rows × loose",
    "no training rows × words between",
    "no training rows × matches",
    "no training rows × first position",
)
FEATURES = (  # in the order of their weights
    "constant",
    "link rate",
    "link rate in this context",
    *TURN_NAMES,
    "matches",
    "one match",
    "two matches",
    "eight matches or more",
    "matches per word",
    "first position",
    "first position in the text",
    *POSITION_NAMES,
    "spread",
    "share of the text",
    "one word",
    "three words or more",
    "alternative name",
    "without qualifier",
    "part of a name",
    "inside longer names only",
    "share outside longer names",
    "form as in the name",
    "loose",
    "far apart",
    "words between",
    "labels that share the words",
    "rarity of the name",
    "length of the text",
    "candidates of the text",
    "link rates of other candidates",
    "no training rows",
    *PRODUCTS,
)
NOT_LEARNED = tuple(name for name in PRODUCTS if name.startswith("no training rows"))
"""Features that get no weight since rows held out spoke against them; models saved before have weights for them."""


class EntryFacts(NamedTuple):
    """What is known of every entry."""

    kind: np.ndarray  # int8 (n_entries,)
    n_words: np.ndarray  # int32
    n_labels: np.ndarray  # labels that share its words
    rarity: np.ndarray  # float64, log of training rows per row that has the name
    mean: np.ndarray  # float64, mean link rate of entries alike
    trained: np.ndarray  # bool, whether its label has training rows
    strength: float  # rows that the mean counts for
    totals: tuple[np.ndarray, np.ndarray]  # of its links in all contexts
    links: Links


def candidate_features(
    columns: np.ndarray,
    n_words: np.ndarray,
    facts: EntryFacts,
    seen: Links | None = None,
    untrained: np.ndarray | None = None,
) -> np.ndarray:
    """Return the features of candidates, float64 (n, len(FEATURES)).

    Parameters
    ----------
    columns : int32 array of shape (n, N_COLUMNS)
        The candidates, those of a row together.
    n_words : int32 array of shape (n_rows,)
        Words of the rows.
    facts : EntryFacts
        What is known of their entries.
    seen : Links, default=None
        Given for training rows: links, one line per candidate, that are left out since its own row is among them.
    untrained : bool array of shape (n,), default=None
        Candidates that are taken for labels without training rows.
    """
    entry = columns[:, ENTRY]
    trained = facts.trained[entry] if untrained is None else facts.trained[entry] & ~untrained
    overall, inside = _own_rates(columns, facts, seen, trained)
    values = _of_matches(columns, n_words) | _of_names(entry, facts) | _of_rows(columns, n_words, inside)
    values |= _of_rates(_log_odds(overall), _log_odds(inside)) | {"no training rows": ~trained}
    for name in PRODUCTS:
        left, _, right = name.partition(" × ")
        values[name] = values[left] * values[right]
    out = np.empty((entry.size, len(FEATURES)))
    for at, name in enumerate(FEATURES):
        out[:, at] = values[name]
    return out


def _of_matches(columns: np.ndarray, n_words: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the matches of a label tell."""
    length = np.maximum(n_words, 1)[columns[:, ROW]].astype(np.float64)
    count, first = columns[:, COUNT].astype(np.float64), columns[:, FIRST].astype(np.float64)
    return {
        "matches": np.log(count),
        "one match": count == 1,
        "two matches": count == 2,
        "eight matches or more": count >= 8,
        "matches per word": np.log(count / length),
        "first position": np.log1p(first),
        "first position in the text": first / length,
        **{name: first >= position for name, position in zip(POSITION_NAMES, POSITIONS, strict=True)},
        "spread": (columns[:, LAST] - first) / length,
        "share of the text": np.sqrt(np.minimum(columns[:, COVERED] / length, 1.0)),
        "inside longer names only": columns[:, FREE] == 0,
        "share outside longer names": columns[:, FREE] / count,
        "form as in the name": columns[:, EXACT] > 0,
        "loose": columns[:, GRADE] < PHRASE,
        "far apart": columns[:, GRADE] == FAR,
        "words between": np.log1p(columns[:, BETWEEN]),
    }


def _of_names(entry: np.ndarray, facts: EntryFacts) -> dict[str, np.ndarray]:
    """Return what the name that matched tells."""
    kind, size = facts.kind[entry], facts.n_words[entry]
    return {
        "constant": np.ones(entry.size),
        "one word": size == 1,
        "three words or more": size > 2,
        "alternative name": kind == ALTERNATIVE,
        "without qualifier": kind == SHORTENED,
        "part of a name": kind == PART,
        "labels that share the words": np.log(facts.n_labels[entry]),
        "rarity of the name": facts.rarity[entry],
    }


def _of_rows(columns: np.ndarray, n_words: np.ndarray, inside: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the text and its other candidates tell; `inside` are link rates."""
    row = columns[:, ROW]
    rivals = np.bincount(row, weights=inside, minlength=n_words.size)[row] - inside
    return {
        "length of the text": np.log(np.maximum(n_words, 1))[row],
        "candidates of the text": np.log(np.bincount(row, minlength=n_words.size)[row]),
        "link rates of other candidates": np.log(np.maximum(rivals, 0.0) + LEAST_RIVALS),
    }


def _of_rates(link: np.ndarray, here: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the link rates tell, given as log-odds in all contexts and in this one."""
    bends = {name: np.maximum(link - turn, 0) for name, turn in zip(TURN_NAMES, TURNS, strict=True)}
    return {"link rate": link, "link rate in this context": here - link, **bends}


def _own_rates(
    columns: np.ndarray, facts: EntryFacts, seen: Links | None, trained: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the link rate of each candidate in all contexts and in its own, without the links it has `seen`."""
    entry, context = columns[:, ENTRY], contexts(columns)
    named, carried = facts.links.named, facts.links.carried
    counts = [facts.totals[0][entry], facts.totals[1][entry], named[entry, context], carried[entry, context]]
    if seen is not None:
        lines = np.arange(entry.size)
        own = (
            seen.named.sum(axis=1),
            seen.carried.sum(axis=1),
            seen.named[lines, context],
            seen.carried[lines, context],
        )
        counts = [count - known for count, known in zip(counts, own, strict=True)]
    named_all, carried_all, named_here, carried_here = (np.where(trained, count, 0) for count in counts)
    return rates(facts.mean[entry], facts.strength, named_all, carried_all, (named_here, carried_here))


def _log_odds(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, SURE, 1.0 - SURE)
    return np.log(p / (1.0 - p))
