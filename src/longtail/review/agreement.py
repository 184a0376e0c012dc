"""How far people agree: Krippendorff's alpha for nominal values, any number of people, missing values.

A unit is one label of one row; its values are what each person said, "stands" or "does not". Alpha is 1 where all
agree, 0 where they agree as often as chance would have it, and below 0 where less often:

    alpha = 1 - (n - 1) * sum_u (disagreeing pairs in u) / (m_u - 1)  /  (disagreeing pairs among all n values)

with m_u values in unit u, and n values in units with at least two. Counts are kept as whole numbers and fractions, so
that the order of units does not matter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from fractions import Fraction

from longtail.facts import AgreementFacts, LabelAgreementFacts
from longtail.review.store import ReviewStore
from longtail.review.verdicts import reviewed_rows

FEWEST_UNITS = 2  # that a label must have to be listed
WORST_LISTED = 20


def krippendorff_alpha(units: Iterable[Iterable[Hashable]]) -> float | None:
    """Return Krippendorff's alpha of units, each the values that people gave it; None where it is not defined.

    A unit with fewer than two values does not count. Where all values are the same, chance cannot be told from
    agreement, and alpha is not defined.

    >>> krippendorff_alpha([["a", "a"], ["b", "b"], ["a", "b"], ["b"]])
    0.4444444444444444
    """
    totals = Counter[Hashable]()
    by_size: dict[int, int] = defaultdict(int)
    for unit in units:
        counts = Counter(unit)
        size = counts.total()
        if size < 2:
            continue
        totals += counts
        by_size[size] += size * size - sum(count * count for count in counts.values())
    observed = sum((Fraction(pairs, size - 1) for size, pairs in by_size.items()), Fraction(0))
    n = totals.total()
    expected = n * n - sum(count * count for count in totals.values())
    return None if not expected else float(1 - (n - 1) * observed / expected)


def agreement_facts(store: ReviewStore) -> AgreementFacts:
    """Return how far people agree about rows that at least two reviewed, and on which labels least."""
    units: dict[str, list[list[bool]]] = defaultdict(list)
    reviewers: Counter[str] = Counter()
    rows = 0
    for row in reviewed_rows(store, finished=False):
        if len(row.opinions) < 2:
            continue
        compared = {label: said for label, said in row.values().items() if len(said) > 1}
        rows += bool(compared)
        reviewers.update({name for said in compared.values() for name in said})
        for label, said in compared.items():
            units[label].append(list(said.values()))
    everything = [unit for of_label in units.values() for unit in of_label]
    labels = [_of_label(label, of_label) for label, of_label in units.items() if len(of_label) >= FEWEST_UNITS]
    disputed = sorted((one for one in labels if one["disagreements"]), key=_how_bad)
    return {
        "alpha": krippendorff_alpha(everything),
        "pairs": len(everything),
        "rows": rows,
        "agreed": sum(len(set(unit)) == 1 for unit in everything),
        "reviewers": [{"reviewer": name, "rows": count} for name, count in sorted(_rows_of(store, reviewers).items())],
        "labels": disputed[:WORST_LISTED],
    }


def _rows_of(store: ReviewStore, reviewers: Iterable[str]) -> dict[str, int]:
    """Return how many rows each of some people has finished."""
    with store.reading() as db:
        counts = dict(db.execute("SELECT reviewer, COUNT(*) FROM finished GROUP BY reviewer"))
    return {name: counts.get(name, 0) for name in reviewers}


def _of_label(label: str, units: list[list[bool]]) -> LabelAgreementFacts:
    """Return the agreement on one label."""
    disagreements = sum(len(set(unit)) > 1 for unit in units)
    return {
        "label": label,
        "alpha": krippendorff_alpha(units),
        "pairs": len(units),
        "disagreements": disagreements,
    }


def _how_bad(one: LabelAgreementFacts) -> tuple[float, int, str]:
    """Return by what labels are ordered, the most disputed first."""
    return (2.0 if one["alpha"] is None else one["alpha"], -one["disagreements"], one["label"])
