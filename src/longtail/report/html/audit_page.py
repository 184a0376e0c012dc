"""The page of an audit: which label sets never come out, which are hardest, and how many could come out at all."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.audit import IMPOSSIBLE, UNDECIDED
from longtail.facts import AuditFacts, LabelSetFacts, SetsFacts
from longtail.report.audit_sentences import (
    audit_headline,
    beyond_sentence,
    capacity_sentence,
    layer_sentence,
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

    >>> "Of all label sets" in audit_page({"capacity": {"n_labels": 3, "width": 2, "sets": 6, "log10_share": -0.1}})
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
    blocks = [block for block in blocks if block.rows]
    return render_page(
        "audit.html",
        str(facts.get("title") or "Audit"),
        told,
        headline=audit_headline(facts) or capacity_sentence(facts),
        tiles=verdict_tiles(audit),
        verdicts=verdicts_section(facts),
        impossible=sets_section(audit.get("impossible")),
        undecided=sets_section(audit.get("undecided")),
        plots=audit_plots(facts),
        hardest=sets_section(audit.get("hardest")),
        capacity=capacity_sentence(facts),
        background={"figure": None, "blocks": blocks} if blocks else None,
    )


def verdict_tiles(audit: SetsFacts) -> list[Tile]:
    """Return how many sets there are, how many never come out, and the smallest radius."""
    n = audit.get("n_sets")
    if not n:
        return []
    never, lowest = audit["sets"].get(IMPOSSIBLE, 0), (audit.get("radius_quantiles") or {}).get("0.0")
    return [
        Tile("different sets", count(n)),
        Tile("never", count(never), f"{percent(never / n, 1)}%"),
        Tile("undecided", count(audit["sets"].get(UNDECIDED, 0))),
        Tile("smallest radius", "–" if lowest is None else radius_text(lowest), f"inputs within ±{audit['box']:g}"),
    ]


def verdicts_section(facts: AuditFacts) -> View | None:
    """Return how many sets have each verdict, and what else never comes out."""
    rows = [
        {"name": row["name"], "sets": count(row["sets"]), "rows": count(row["rows"]), "meaning": row["meaning"]}
        for row in verdict_rows(facts.get("audit") or {})
    ]
    sentences = [sentence for sentence in (unknown_sentence(facts), beyond_sentence(facts)) if sentence]
    return {"lead": layer_sentence(facts), "sentences": sentences, "rows": rows} if rows or sentences else None


def sets_section(sets: Sequence[LabelSetFacts] | None) -> View | None:
    """Return a table of label sets, with the reason for those that are impossible."""
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
    return {"rows": rows, "tall": len(rows) > ROWS_AT_ONCE} if rows else None


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
