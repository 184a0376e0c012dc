"""The page of a label check: a table for each kind of finding."""

from __future__ import annotations

from longtail.facts import LabelCheckFacts
from longtail.report.formatting import count
from longtail.report.html.rendering import Tile, render_page
from longtail.report.label_check_tables import NOTHING_FOUND, check_sentence, check_tables

ROWS_SHOWN, TEXT_LETTERS = 1000, 80


def label_check_page(facts: LabelCheckFacts) -> str:
    """Return the page about what a label check found; every key of the facts may be missing.

    >>> "4 rows, 2 labels" in label_check_page({"rows": 4, "labels": 2, "pairs": 5, "folds": 2})
    True
    """
    tables = check_tables(facts, ROWS_SHOWN, TEXT_LETTERS)
    return render_page(
        "label_check.html",
        str(facts.get("title") or "Label check"),
        facts,
        headline=check_sentence(facts) + ("" if tables else f" {NOTHING_FOUND}"),
        tiles=[Tile(table.title, count(table.total)) for table in tables],
        tables=tables,
        words=sorted({name for table in tables for name in table.columns if name.endswith(" ")}),
    )
