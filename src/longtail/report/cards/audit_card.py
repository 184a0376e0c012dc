"""The card of an audit: which label sets never come out, why, and what to do about it."""

from __future__ import annotations

from longtail.facts import AuditFacts
from longtail.notebook import Html, card, fold, h, join, meter, table
from longtail.report.audit_sentences import (
    advice,
    audit_headline,
    beyond_sentence,
    capacity_sentence,
    layer_sentence,
    never_heading,
    reason,
    set_names,
    unknown_sentence,
    verdict_rows,
)
from longtail.report.cards.pieces import plots
from longtail.report.formatting import count
from longtail.report.html.audit_page import audit_plots
from longtail.report.people import for_people
from longtail.report.plots.audit_plots import radius_text
from longtail.report.plots.canvas import plot_rules

SETS_SHOWN, LABELS_SHOWN = 10, 8


def audit_html(facts: AuditFacts) -> str:
    """Return an audit (facts from `pipeline.audit_model`); every key may be missing.

    >>> counts = {"eps-argmaxable": 3, "argmaxable": 0, "not argmaxable": 1, "undecided": 0}
    >>> audit = {"kind": "label sets", "n_sets": 4, "n_rows": 4, "sets": counts, "rows": counts, "eps": 1e-8}
    >>> "1 of 4 combinations of labels (25.0%) can never be assigned" in audit_html({"audit": audit})
    True
    """
    facts = for_people(facts)
    audit = facts.get("audit") or {}
    impossible = _sets(facts, "impossible")
    hardest = _sets(facts, "hardest")
    verdicts = [
        [row["name"], row["meaning"], meter(row["sets"] / max(audit.get("n_sets") or 0, 1), count(row["sets"]) or "")]
        for row in verdict_rows(audit)
        if row["sets"]
    ]
    told = [layer_sentence(facts), beyond_sentence(facts), unknown_sentence(facts), capacity_sentence(facts)]
    body = [
        h("p", audit_headline(facts)),
        *(h("p", sentence) for sentence in facts.get("assumed") or []),
        table(["verdict", "means", "label sets"], verdicts) if verdicts else None,
        fold(never_heading(audit), impossible, open=True) if impossible else None,
        *plots(audit_plots(facts)),
        fold("Possible, but hardest", hardest) if hardest else None,
        fold("What to do about it", h("ul", *(h("li", line) for line in advice(facts)))) if advice(facts) else None,
        *(h("p", line, class_="soft") for line in told if line),
    ]
    return card(facts.get("title") or "Audit", *body, style=plot_rules())


def _sets(facts: AuditFacts, kind: str) -> Html | None:
    """Return a table of the listed label sets of a kind, with the reason for those that are impossible."""
    found = (facts.get("audit") or {}).get(kind) or []
    rows = []
    for row in found[:SETS_SHOWN]:  # type: ignore[index]
        why = reason(row, LABELS_SHOWN)
        name = join([h("bdi", set_names(row, LABELS_SHOWN)), h("div", h("small", why), class_="soft") if why else None])
        rows.append([name, count(row.get("rows")) or "–", radius_text(row["radius"])])
    return table(["label set", "rows", "radius"], rows, (1, 2)) if rows else None
