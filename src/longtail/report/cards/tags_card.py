"""The card of suggested labels: every text with its labels and their probabilities as bars."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.facts import SuggestionFacts
from longtail.notebook import Html, card, h, shortened, table
from longtail.report.cards.pieces import chance, label
from longtail.report.people import for_people

LABELS_SHOWN, LETTERS_SHOWN = 20, 300


def tags_html(rows: Sequence[Sequence[SuggestionFacts]], texts: Sequence[str | None], n_rows: int) -> str:
    """Return the labels of some texts, best first; `n_rows` is how many texts there are in all.

    >>> shown = tags_html([[{"label": "<b>", "probability": 0.5}]], ["a text"], 1)
    >>> "<b>" in shown, "&lt;b&gt;" in shown, "50%" in shown, "a text" in shown
    (False, True, True, True)
    """
    body: list[Html] = []
    for text, row in zip(texts, rows, strict=True):
        if text is not None:
            body.append(h("p", shortened(text, LETTERS_SHOWN), class_="text"))
        few = for_people(list(row[:LABELS_SHOWN]))
        known = all(one.get("probability") is not None for one in few)
        columns = ["label", "probability" if known else "score"]
        found = table(columns, [[label(one), chance(one)] for one in few])
        body.append(found if few else h("p", "no label", class_="soft"))
        if len(row) > len(few):
            body.append(h("p", f"… and {len(row) - len(few):,} more labels", class_="soft"))
    if n_rows > len(rows):
        body.append(h("p", f"… and {n_rows - len(rows):,} more texts", class_="soft"))
    return card("Suggested labels", *body)
