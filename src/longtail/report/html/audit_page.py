"""The page of an audit: which label sets never come out, which are hardest, and how many could come out at all."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.audit import IMPOSSIBLE, UNDECIDED
from longtail.facts import AuditFacts, LabelSetFacts, SetsFacts
from longtail.report.audit_sentences import (
    advice,
    audit_headline,
    beyond_sentence,
    capacity_sentence,
    layer_sentence,
    never_heading,
    radii_sentence,
    reason,
    set_names,
    unknown_sentence,
    verdict_rows,
)
from longtail.report.formatting import count, flat_rows, percent
from longtail.report.html.rendering import FactBlock, Figure, Tile, View, render_page
from longtail.report.people import for_people
from longtail.report.plots.audit_plots import radius_plot, radius_text, size_plot

ROWS_AT_ONCE = 25  # a longer table scrolls in its own window


def audit_page(facts: AuditFacts) -> str:
    """Return the page about an audit; takes the facts of `pipeline.audit_model`.

    >>> capacity = {"n_labels": 3, "width": 2, "sets": 6, "log10_share": -0.1}
    >>> "At most 6 of the 8 sets" in audit_page({"capacity": capacity})
    True
    """
    told, facts = facts, for_people(facts)
    audit = facts.get("audit") or {}
    blocks = [
        FactBlock("Layer", flat_rows(facts.get("layer"))),
        FactBlock("Data", flat_rows(facts.get("data"))),
        FactBlock("Decided by", flat_rows(audit.get("decided_by"))),
        FactBlock("Time", flat_rows(facts.get("timings"))),
    ]
    return render_page(
        "audit.html",
        str(facts.get("title") or "Audit"),
        told,
        headline=audit_headline(facts) or capacity_sentence(facts),
        tiles=verdict_tiles(audit),
        impossible=sets_section(audit.get("impossible"), audit["sets"].get(IMPOSSIBLE, 0) if audit else 0),
        never=never_heading(audit),
        combinations=audit.get("kind") != "classes",
        unknown=unknown_section(facts),
        assumed=list(facts.get("assumed") or []),
        advice=advice(facts),
        undecided=sets_section(audit.get("undecided"), audit["sets"].get(UNDECIDED, 0) if audit else 0),
        hardest=sets_section(audit.get("hardest"), 0),
        verdicts=verdicts_section(facts),
        plots=audit_plots(facts),
        capacity=capacity_sentence(facts),
        blocks=[block for block in blocks if block.rows],
    )


def verdict_tiles(audit: SetsFacts) -> list[Tile]:
    """Return how many combinations there are, how many are never assigned, and how many rows have one of these."""
    n = audit.get("n_sets")
    if not n:
        return []
    never, rows, of = audit["sets"].get(IMPOSSIBLE, 0), audit["rows"].get(IMPOSSIBLE, 0), audit.get("n_rows") or 0
    what = "labels" if audit.get("kind") == "classes" else "combinations"
    tiles = [Tile(f"{what} looked at", count(n)), Tile("never possible", count(never), f"{percent(never / n, 1)}%")]
    if audit.get("kind") != "classes" and of:
        tiles.append(Tile("rows with one of these", count(rows), f"{percent(rows / of, 1)}%"))
    return [*tiles, Tile("not decided", count(audit["sets"].get(UNDECIDED, 0)))]


def unknown_section(facts: AuditFacts) -> View | None:
    """Return the labels of the data that the model never gives."""
    unknown = facts.get("unknown")
    if not unknown:
        return None
    rows = [
        {"label": str(label["label"]), "id": str(label.get("id", "")), "cells": [count(label["rows"])]}
        for label in unknown.get("listed") or []
    ]
    left = unknown["labels"] - len(rows)
    return {"lead": unknown_sentence(facts), "rows": rows, "left": count(left) if rows and left > 0 else None}


def verdicts_section(facts: AuditFacts) -> View | None:
    """Return how many sets have each verdict, and what else never comes out."""
    rows = [
        {"name": row["name"], "sets": count(row["sets"]), "rows": count(row["rows"]), "meaning": row["meaning"]}
        for row in verdict_rows(facts.get("audit") or {})
    ]
    sentences = [sentence for sentence in (beyond_sentence(facts),) if sentence]
    return {"lead": layer_sentence(facts), "sentences": sentences, "rows": rows} if rows or sentences else None


def sets_section(sets: Sequence[LabelSetFacts] | None, total: int) -> View | None:
    """Return a table of combinations of labels, with the reason for those that are impossible."""
    rows = [
        {
            "names": set_names(row),
            "reason": reason(row),
            "size": count(len(row.get("labels") or [])),
            "rows": count(row.get("rows")) or "–",
            "radius": radius_text(row["radius"]),
        }
        for row in sets or []
    ]
    left = count(total - len(rows)) if total > len(rows) else None
    return {"rows": rows, "left": left, "tall": len(rows) > ROWS_AT_ONCE} if rows else None


def audit_plots(facts: AuditFacts) -> list[Figure]:
    """Return the plots of radii, and of sets that never come out by their number of labels."""
    plots = []
    eps = (facts.get("audit") or {}).get("eps")
    radii = radius_plot(facts.get("radii") or {}, title="Radii of label sets", eps=eps)
    if radii:
        note = "Every input within the ball gives exactly this set; the smaller the ball, the less likely an input is."
        plots.append(Figure(radii_sentence(facts), note, radii))
    rows = facts.get("sizes") or []
    sizes = size_plot(rows, title="Sets that cannot come out, by number of labels") if len(rows) > 1 else ""
    if sizes and any(row["impossible"] or row["undecided"] for row in rows):
        plots.append(Figure("Sets that never come out, by their number of labels", "Grey: undecided.", sizes))
    return plots
