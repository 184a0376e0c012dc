"""The card of monitoring: whether new rows are like those the model was judged by."""

from __future__ import annotations

from longtail.facts import MonitorFacts
from longtail.notebook import card, fold, h, table
from longtail.report.monitor_tables import (
    VERDICT_COLUMNS,
    monitor_headline,
    monitor_sentence,
    monitor_tables,
    verdict_rows,
)

LISTED, LETTERS = 10, 80


def monitor_html(facts: MonitorFacts) -> str:
    """Return the verdict, every comparison, and in folds what is new; every key may be missing.

    >>> "Steady" in monitor_html({"verdict": "steady", "rows": 40})
    True
    """
    comparisons = facts.get("comparisons") or []
    rows = verdict_rows(comparisons)
    columns = [name.strip() for name in VERDICT_COLUMNS]
    folds = [
        fold(
            found.title,
            h("p", found.lead, class_="soft"),
            table([name.strip() for name in found.columns], found.rows),
        )
        for found in monitor_tables(facts, LISTED, LETTERS)
    ]
    headline = f"{monitor_headline(facts)} {facts.get('advice', '')}".strip()
    compared = table(columns, rows, (2, 3, 4, 5)) if rows else None
    return card("Monitoring", h("p", headline), compared, *folds, note=monitor_sentence(facts))
