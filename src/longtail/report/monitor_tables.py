"""Facts of monitoring as a headline and as tables, shared by page and terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from longtail.facts import DriftFacts, LabelChangeFacts, MonitorFacts, NewLabelFacts
from longtail.report.formatting import count, percent, plural

HEADLINES = {
    "steady": "Steady: these rows look like those the model was judged by.",
    "watch": "Watch: these rows differ a little from those the model was judged by.",
    "changed": "Changed: these rows are not like those the model was judged by.",
}
MARKS = {"steady": "✓ steady", "watch": "! watch", "changed": "✗ changed"}


class MonitorTable(NamedTuple):
    """A list of words, labels or rows; columns of text have a name that ends in a blank."""

    title: str
    lead: str
    columns: list[str]
    rows: list[list[str]]


def monitor_headline(facts: MonitorFacts) -> str:
    """Return the verdict in one sentence."""
    return HEADLINES.get(facts.get("verdict", ""), "")


def monitor_sentence(facts: MonitorFacts) -> str:
    """Return what was compared with what."""
    rows, known = facts.get("rows", 0), facts.get("labelled_rows", 0)
    labelled = " without labels" if not known else "" if known == rows else f" ({count(known)} with labels)"
    source = facts.get("reference", "training")
    of = "held out of the training" if source == "training" else f"of {source}"
    return f"{plural(rows, 'row')}{labelled}, compared with {plural(facts.get('reference_rows', 0), 'row')} {of}."


VERDICT_COLUMNS = ["", "verdict ", "before", "now", "differ, %", "chance, %"]


def verdict_rows(comparisons: Sequence[DriftFacts]) -> list[list[str]]:
    """Return title, verdict, the number of before and of now, the difference and its limit, of every comparison."""
    return [
        [
            one["title"],
            MARKS[one["verdict"]],
            _number(one, one["reference"]),
            _number(one, one["batch"]),
            f"{100 * one['distance']:.1f}",
            "" if one["what"] == "single_labels" else f"to {100 * one['limit']:.1f}",
        ]
        for one in comparisons
    ]


def monitor_tables(facts: MonitorFacts, shown: int, letters: int) -> list[MonitorTable]:
    """Return the lists that have something in them, at most `shown` entries each, texts of so many letters."""
    words = [[one["word"], f"{one['rows']:,}"] for one in (facts.get("unknown_words") or [])[:shown]]
    labels = [[_label(one), f"{one['rows']:,}"] for one in (facts.get("unknown_labels") or [])[:shown]]
    strange = [
        [one["id"] or str(one["row"]), f"{one['unknown']:,} of {one['words']:,}", _short(one["text"], letters)]
        for one in (facts.get("strange_rows") or [])[:shown]
    ]
    changes = ["label", "rows", "now, %", "before, %", "times"]
    tables = [
        MonitorTable("New words", "In the most rows; no row of the training had them.", ["word", "rows"], words),
        MonitorTable(
            "Labels that come more often",
            "By more than chance allows.",
            changes,
            _changes((facts.get("labels_more") or [])[:shown]),
        ),
        MonitorTable(
            "Labels that come less often",
            "By more than chance allows.",
            changes,
            _changes((facts.get("labels_less") or [])[:shown]),
        ),
        MonitorTable("Labels the model does not know", "They count as misses.", ["label", "rows"], labels),
        MonitorTable("Rows to look at", "Most of their words are new.", ["row", "new words", "text "], strange),
    ]
    return [table for table in tables if table.rows]


def _changes(found: Sequence[LabelChangeFacts]) -> list[list[str]]:
    return [
        [
            _label(one),
            f"{one['rows']:,}",
            percent(one["share"], 1),
            percent(one["reference_share"], 1),
            "–" if one["times"] is None else f"{one['times']:.1f}",
        ]
        for one in found
    ]


def _label(facts: LabelChangeFacts | NewLabelFacts) -> str:
    """Return a label as people know it, with what machines call it behind it."""
    label, name = facts["label"], facts.get("name")
    return label if name is None or name == label else f"{name} ({label})"


def _number(one: DriftFacts, value: float | None) -> str:
    """Return the number that sums up one side of a comparison."""
    if value is None or one["what"] == "single_labels":
        return ""
    if one["unit"] == "share":
        return f"{100 * value:.1f}%"
    if one["unit"] == "points":
        return f"{100 * value:+.1f}"
    return f"{value:.2f}" if one["unit"] == "labels" else f"{value:,.0f}"


def _short(text: str, letters: int) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= letters else text[: letters - 1] + "…"
