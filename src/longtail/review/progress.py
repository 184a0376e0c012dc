"""Facts for the dashboard: how often suggestions are right on the control sample, and who decided how much.

Precision is measured on finished control rows alone. The other rows were chosen because they are hard, or because a
label looked wrong; what is right of them says nothing about all rows, and how likely each was to be chosen is not
known. They are counted, never mixed in. Intervals are Wilson's at 95%, for as many pairs as the labels of one row,
which are right or wrong together, leave: pairs / design effect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from longtail.facts import (
    ReviewDayFacts,
    ReviewedLabelFacts,
    ReviewerFacts,
    ReviewFacts,
    SharePeriodFacts,
    ShareRightFacts,
)
from longtail.metrics import share_interval
from longtail.review.store import ReviewStore
from longtail.review.verdicts import ReviewedRow, reviewed_rows

LABELS_LISTED = 200
SENTENCE = (
    "Precision is the share of the labels the model would give that stand after review, on finished rows of the random "
    "control sample; rows that were chosen for another reason are left out."
)


def review_facts(store: ReviewStore) -> ReviewFacts:
    """Return the facts of the dashboard: counts, precision on control rows over time, and work per label and person."""
    control = [_Judged(row) for row in reviewed_rows(store, control=True)]
    days: dict[str, list[tuple[int, int]]] = defaultdict(list)
    models: dict[str, list[tuple[int, int]]] = defaultdict(list)
    first: dict[str, str] = {}
    for one in control:
        days[one.day].append(one.hits)
        models[one.digest].append(one.hits)
        first[one.digest] = min(first.get(one.digest, one.day), one.day)
    return {
        "sentence": SENTENCE,
        "counts": store.counts(),
        "control": share_right([one.hits for one in control]),
        "over_time": _over_time(days),
        "models": [
            {"digest": digest, "since": first[digest], **share_right(models[digest])}
            for digest in sorted(models, key=lambda digest: (first[digest], digest))
        ],
        "days": _days(store),
        "labels": _labels(store, control),
        "reviewers": _reviewers(store),
    }


class _Judged:
    """A finished control row: which labels the model would have given, and which of them stand."""

    def __init__(self, row: ReviewedRow) -> None:
        _, opinion = row.finishers[0]
        self.day, self.digest, self.assigned = opinion.at[:10], opinion.digest, opinion.assigned
        self.right = self.assigned & set(row.final())
        self.hits = (len(self.right), len(self.assigned))


def share_right(rows: Sequence[tuple[int, int]]) -> ShareRightFacts:
    """Return the share of right ones among the labels of rows, each (right, given), with its interval.

    >>> facts = share_right([(2, 2)] * 8 + [(0, 2)] * 8)
    >>> facts["precision"], round(facts["low"], 2), round(facts["high"], 2)
    (0.5, 0.27, 0.73)
    """
    right, pairs = sum(one for one, _ in rows), sum(given for _, given in rows)
    if not pairs:
        return {"rows": len(rows), "pairs": 0, "right": 0, "precision": None, "low": None, "high": None}
    share = right / pairs
    effect = max(1.0, design_effect(rows, share))
    low, high = share_interval(right / effect, pairs / effect)
    return {"rows": len(rows), "pairs": pairs, "right": right, "precision": share, "low": low, "high": high}


def design_effect(rows: Sequence[tuple[int, int]], share: float) -> float:
    """Return how many times larger the variance of a share is than if the labels of a row were independent."""
    pairs, n = sum(given for _, given in rows), sum(1 for _, given in rows if given)
    if n < 2:
        return float(pairs)  # one row: its labels count as one
    if share in (0.0, 1.0):
        return pairs / n  # nothing to estimate it by: a row counts as one
    variance = sum((right - share * given) ** 2 for right, given in rows) * n / (n - 1) / pairs**2
    return variance / (share * (1 - share) / pairs)


def _over_time(days: dict[str, list[tuple[int, int]]]) -> list[SharePeriodFacts]:
    """Return the precision of every day, and of all days up to it."""
    out: list[SharePeriodFacts] = []
    so_far: list[tuple[int, int]] = []
    for day in sorted(days):
        so_far += days[day]
        out.append({"day": day, **share_right(days[day]), "so_far": share_right(so_far)})
    return out


def _days(store: ReviewStore) -> list[ReviewDayFacts]:
    """Return how much was decided and finished on every day."""
    with store.reading() as db:
        rows = db.execute(
            "SELECT substr(at, 1, 10), SUM(verdict IN ('accept', 'reject', 'add')), SUM(verdict = 'done')"
            " FROM decisions GROUP BY 1 ORDER BY 1"
        ).fetchall()
    return [{"day": day, "decisions": int(made), "rows": int(done)} for day, made, done in rows]


def _labels(store: ReviewStore, control: Iterable[_Judged]) -> list[ReviewedLabelFacts]:
    """Return for every label how it was judged: precision on control rows, verdicts on all; the most judged first."""
    given: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for row in control:
        given.update(row.assigned)
        right.update(row.right)
    with store.reading() as db:
        rows = db.execute("SELECT label, verdict, COUNT(*) FROM decisions WHERE label <> '' GROUP BY 1, 2").fetchall()
    said: dict[str, dict[str, int]] = defaultdict(dict)
    for label, verdict, count in rows:
        said[label][verdict] = count
    names = sorted(set(given) | set(said), key=lambda name: (-given[name] - sum(said[name].values()), name))
    out: list[ReviewedLabelFacts] = []
    for name in names[:LABELS_LISTED]:
        one = share_right([(1, 1)] * right[name] + [(0, 1)] * (given[name] - right[name]))
        counts = said[name]
        out.append(
            {
                "label": name,
                **one,
                "accepted": counts.get("accept", 0),
                "rejected": counts.get("reject", 0),
                "added": counts.get("add", 0),
            }
        )
    return out


def _reviewers(store: ReviewStore) -> list[ReviewerFacts]:
    """Return how much every person decided."""
    with store.reading() as db:
        rows = db.execute(
            "SELECT reviewer, SUM(verdict = 'accept'), SUM(verdict = 'reject'), SUM(verdict = 'add'),"
            " SUM(verdict = 'undo'), MAX(at), (SELECT COUNT(*) FROM finished f WHERE f.reviewer = d.reviewer)"
            " FROM decisions d GROUP BY reviewer ORDER BY reviewer"
        ).fetchall()
    names = ("reviewer", "accepted", "rejected", "added", "undone", "last", "rows")
    return [dict(zip(names, row, strict=True)) for row in rows]  # type: ignore[misc]
