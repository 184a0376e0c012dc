"""Audits on the terminal: the sentences and tables of the audit page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

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
from longtail.report.formatting import count, flat_rows
from longtail.report.people import for_people
from longtail.report.plots.audit_plots import radius_text, size_range
from longtail.report.terminal.console import clean, heading, print_facts, print_table, say, share_bar

LABELS_SHOWN = 8  # of a set that is possible; the page names all
PROOF_SHOWN = 3  # labels on and labels off, of a proof with many


def show_audit(
    console: Console, facts: AuditFacts, *, limit: str = "limit", details: bool = True, more: str = ""
) -> None:
    """Print an audit; takes the same facts as `audit_page`. `limit` names what sets how many combinations are listed.

    Without `details` the terms and numbers of specialists are left out, and `more` says at the end where they are.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> counts = {"eps-argmaxable": 3, "argmaxable": 0, "not argmaxable": 1, "undecided": 0}
    >>> audit = {"kind": "label sets", "n_sets": 4, "n_rows": 4, "sets": counts, "rows": counts, "eps": 1e-8}
    >>> show_audit(console, {"audit": audit})
    >>> "1 of 4 combinations of labels" in console.file.getvalue()
    True
    """
    facts = for_people(facts)
    audit = facts.get("audit") or {}
    say(console, facts.get("title"), "bold")
    for sentence in facts.get("assumed") or []:
        say(console, sentence)
    say(console, audit_headline(facts) or ("" if details else capacity_sentence(facts)))
    say(console, unknown_sentence(facts))
    _show_sets(console, never_heading(audit), audit.get("impossible"), audit, limit)
    _show_sets(console, "Not decided", audit.get("undecided"), audit, limit)
    told = advice(facts)
    if told:
        heading(console, "What to do about it")
    for sentence in told:
        say(console, f"- {sentence}")
    if details:
        _show_details(console, facts, limit)
    else:
        say(console, more, "dim")


def _show_details(console: Console, facts: AuditFacts, limit: str) -> None:
    """Print the audited layer, the verdicts, the radii and how many sets could come out at all."""
    audit = facts.get("audit") or {}
    if facts.get("layer"):
        heading(console, "The output layer")
    for sentence in (layer_sentence(facts), beyond_sentence(facts)):
        say(console, sentence)
    rows = verdict_rows(audit)
    if rows:
        heading(console, str(audit.get("kind", "sets")).capitalize())
        body = [[row["name"], count(row["sets"]), count(row["rows"]), row["meaning"]] for row in rows]
        print_table(console, ["", "sets", "rows", "meaning "], body)
    _show_sets(console, "Possible, but hardest", audit.get("hardest"), audit, limit, radius=True)
    _show_radii(console, facts)
    _show_sizes(console, facts)
    if facts.get("capacity"):
        heading(console, "Of all label sets there could be")
        say(console, capacity_sentence(facts))
    print_facts(console, "Time", flat_rows(facts.get("timings")))


def show_narrow(console: Console, audits: Sequence[AuditFacts]) -> None:
    """Print which label sets models with fewer and fewer dimensions can never give, from the facts of their audits."""
    body = []
    for facts in audits:
        audit, layer = facts.get("audit") or {}, facts.get("layer") or {}
        n, never = audit.get("n_sets") or 0, (audit.get("sets") or {}).get("not argmaxable", 0)
        share = never / n if n else 0.0
        body.append([count(layer.get("width")), count(n), count(never), share_bar(console, share)])
    if not body:
        return
    told = "Networks squeeze a text into a few numbers before they score its labels. Then some label sets cannot come "
    say(console, told + "out, whatever the text. Of those of these texts, with one linear classifier per label:")
    print_table(console, ["numbers", "label sets", "never", " "], body)
    example = next((row for row in (audits[0].get("audit") or {}).get("impossible") or []), None)
    if example is not None:
        width = (audits[0].get("layer") or {}).get("width")
        say(console, f"One of them, with {count(width)} numbers: {set_names(example)}.")


def _show_sets(
    console: Console,
    title: str,
    rows: Sequence[LabelSetFacts] | None,
    audit: SetsFacts,
    limit: str,
    *,
    radius: bool = False,
) -> None:
    if not rows:
        return
    heading(console, title)
    body = []
    for row in rows:
        size = [radius_text(row["radius"])] if radius else []
        cell = Text(clean(console, set_names(row, LABELS_SHOWN if radius else None)))
        if why := reason(row, PROOF_SHOWN):
            cell.append("\n" + clean(console, why), style="dim")
        body.append([count(row.get("rows")) or "", *size, cell])
    print_table(console, ["rows", *(["radius"] if radius else []), "labels "], body)
    verdict = str(rows[0].get("verdict"))
    total = int((audit.get("sets") or {}).get(verdict, 0)) if not radius else 0
    if total > len(rows):
        say(console, f"{total - len(rows):,} more; {limit} lists them.", "dim")


def _show_radii(console: Console, facts: AuditFacts) -> None:
    radii = facts.get("radii") or {}
    counts = radii.get("counts") or []
    most = max([*counts, int(radii.get("zero") or 0), 1])
    edges = radii.get("edges") or []
    body: list[list[object]] = []
    if radii.get("zero"):
        body.append(["no ball", count(radii["zero"]), share_bar(console, radii["zero"] / most)])
    for low, high, n in zip(edges, edges[1:], counts, strict=False):
        body.append([f"{radius_text(low)} – {radius_text(high)}", count(n), share_bar(console, n / most)])
    if body:
        heading(console, radii_sentence(facts))
        print_table(console, ["radius", "sets", " "], body)


def _show_sizes(console: Console, facts: AuditFacts) -> None:
    rows = facts.get("sizes") or []
    if len(rows) > 1:
        heading(console, "By number of labels")
        body = [
            [
                size_range(row),
                count(row["sets"]),
                count(row["impossible"]),
                count(row["undecided"]),
                "–" if row["median_radius"] is None else radius_text(row["median_radius"]),
            ]
            for row in rows
        ]
        print_table(console, ["labels", "sets", "never", "undecided", "median radius"], body)
