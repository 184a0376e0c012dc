"""What is known of a candidate, a label that a text names, as numbers for the logistic model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.name_matches.find_kernel import COUNT, COVERED, ENTRY, EXACT, FIRST, FREE, GRADE, LAST, LOOSE, ROW
from longtail.name_matches.link_rates import Links, contexts, rates
from longtail.name_matches.name_forms import ALTERNATIVE, PART, SHORTENED

POSITIONS = (1, 4, 8, 16, 32, 64, 128, 256)  # words at which a new bin of first positions begins
TURNS = (-4.0, -2.0, 0.0)  # log-odds of link rates at which their effect may bend
SURE = 1e-9  # link rates stay this far from 0 and 1
LEAST_RIVALS = 0.02  # added to the link rates of the other candidates of a row
FEATURES = (
    "constant",
    "link rate",
    "link rate in this context",
    *(f"link rate above {turn:g}" for turn in TURNS),
    "matches",
    "one match",
    "two matches",
    "eight matches or more",
    "matches per word",
    "first position",
    "first position in the text",
    *(f"first position from {position} on" for position in POSITIONS),
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
    "labels that share the words",
    "rarity of the name",
    "matches and rarity",
    "length of the text",
    "candidates of the text",
    "link rates of other candidates",
    "no training rows",
    "no training rows and link rate",
    "no training rows and form as in the name",
    "no training rows and loose",
    "no training rows and matches",
    "no training rows and first position",
    "link rate and matches",
    "link rate and loose",
    "link rate and inside longer names",
    "link rate squared",
    "link rate and length of the text",
    "link rate and first position",
    "matches and length of the text",
)


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
    entry, row = columns[:, ENTRY], columns[:, ROW]
    trained = facts.trained[entry] if untrained is None else facts.trained[entry] & ~untrained
    overall, inside = _own_rates(columns, facts, seen, trained)
    link, here = _log_odds(overall), _log_odds(inside)
    length = np.maximum(n_words, 1)[row].astype(np.float64)
    count, first = columns[:, COUNT].astype(np.float64), columns[:, FIRST].astype(np.float64)
    log_count, log_first, log_length = np.log(count), np.log1p(first), np.log(length)
    loose, nested, exact = columns[:, GRADE] == LOOSE, columns[:, FREE] == 0, columns[:, EXACT] > 0
    kind, size, rarity = facts.kind[entry], facts.n_words[entry], facts.rarity[entry]
    rivals = np.bincount(row, weights=inside, minlength=n_words.size)[row] - inside
    features = [
        np.ones(entry.size),
        link,
        here - link,
        *(np.maximum(link - turn, 0) for turn in TURNS),
        log_count,
        count == 1,
        count == 2,
        count >= 8,
        log_count - log_length,
        log_first,
        first / length,
        *(first >= position for position in POSITIONS),
        (columns[:, LAST] - first) / length,
        np.sqrt(np.minimum(columns[:, COVERED] / length, 1.0)),
        size == 1,
        size > 2,
        kind == ALTERNATIVE,
        kind == SHORTENED,
        kind == PART,
        nested,
        columns[:, FREE] / count,
        exact,
        loose,
        np.log(facts.n_labels[entry]),
        rarity,
        log_count * rarity,
        log_length,
        np.log(np.bincount(row, minlength=n_words.size)[row]),
        np.log(np.maximum(rivals, 0.0) + LEAST_RIVALS),
        ~trained,
        link * ~trained,
        exact & ~trained,
        loose & ~trained,
        log_count * ~trained,
        log_first * ~trained,
        link * log_count,
        link * loose,
        link * nested,
        link**2,
        link * log_length,
        link * log_first,
        log_count * log_length,
    ]
    out = np.empty((entry.size, len(FEATURES)))
    for at, values in enumerate(features):
        out[:, at] = values
    return out


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
