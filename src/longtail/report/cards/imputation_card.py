"""The card of labels found for the rows of groups: what was done, and the first rows with what they got."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.facts import ImputationFacts, SuggestionFacts
from longtail.notebook import card, fold, h, join, meter, shortened, table
from longtail.report.formatting import plural, whole_percent
from longtail.report.imputation_sentences import imputing_lines

LETTERS_SHOWN = 120
Row = tuple[str, str, Sequence[SuggestionFacts]]  # text or number, groups, labels with how likely each is right


def imputation_html(facts: ImputationFacts, rows: Sequence[Row]) -> str:
    """Return in sentences how labels were found, and some rows with their labels."""
    lines = imputing_lines(facts)
    found = facts["rows"] - facts["rows_without_labels"]
    note = f"{plural(facts['assigned'], 'label')} for {plural(found, 'row')}"
    body = [
        [
            shortened(text, LETTERS_SHOWN),
            h("bdi", group),
            join(
                [
                    h("div", meter(one["score"], f"{whole_percent(one['score'])} "), h("bdi", one["label"]))
                    for one in few
                ]
            ),
        ]
        for text, group, few in rows
    ]
    shown = fold("First rows", table(["row", "group", "labels found, with confidence"], body), open=True)
    return card("Imputed", *(h("p", line) for line in lines), shown if body else None, note=note)
