"""Audits in words and on the terminal; the sentences and tables of the page too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from longtail.report.audit_sentences import (
    beyond_sentence,
    capacity_sentence,
    headline,
    layer_sentence,
    names,
    radii_sentence,
    reason,
    unknown_sentence,
    verdict_rows,
)
from longtail.report.formatting import count, flat_rows
from longtail.report.plots.audit_plots import plain, sizes
from longtail.report.terminal.console import clean, heading, print_bar, print_facts, print_table, say

Facts = Mapping[str, Any]
LABELS_SHOWN = 8  # of a set that is possible; the page names all


def show_audit(console: Console, facts: Facts, *, limit: str = "limit") -> None:
    """Print an audit; takes the same facts as `audit_page`. `limit` names what sets how many label sets are listed.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> counts = {"eps-argmaxable": 3, "argmaxable": 0, "not argmaxable": 1, "undecided": 0}
    >>> audit = {"kind": "label sets", "n_sets": 4, "n_rows": 4, "sets": counts, "rows": counts, "eps": 1e-8}
    >>> show_audit(console, {"audit": audit})
    >>> "1 of 4 label sets" in console.file.getvalue()
    True
    """
    found = facts.get("audit") or {}
    say(console, facts.get("title"), "bold")
    for sentence in (headline(facts), layer_sentence(facts), unknown_sentence(facts), beyond_sentence(facts)):
        say(console, sentence)
    rows = verdict_rows(found)
    if rows:
        heading(console, str(found.get("kind", "sets")).capitalize())
        body = [[row["name"], count(row["sets"]), count(row["rows"]), row["meaning"]] for row in rows]
        print_table(console, ["", "sets", "rows", "meaning "], body)
    _show_sets(console, "Never, whatever the input", found.get("impossible"), found, limit)
    _show_sets(console, "Undecided", found.get("undecided"), found, limit)
    _show_sets(console, "Possible, but hardest", found.get("hardest"), found, limit, radius=True)
    _show_radii(console, facts)
    _show_sizes(console, facts)
    if facts.get("capacity"):
        heading(console, "Of all label sets there could be")
        say(console, capacity_sentence(facts))
    print_facts(console, "Time", flat_rows(facts.get("timings")))


def show_narrow(console: Console, audits: Sequence[Facts]) -> None:
    """Print what models with fewer and fewer dimensions can never give; takes the facts of several audits."""
    body = []
    for facts in audits:
        found, layer = facts.get("audit") or {}, facts.get("layer") or {}
        n, never = found.get("n_sets") or 0, (found.get("sets") or {}).get("not argmaxable", 0)
        share = never / n if n else 0.0
        body.append([count(layer.get("width")), count(n), count(never), print_bar(console, share)])
    if not body:
        return
    told = "Networks squeeze a text into a few numbers before they score its labels. Then some label sets cannot come "
    say(console, told + "out, whatever the text. Of those of these texts, with one linear classifier per label:")
    print_table(console, ["numbers", "label sets", "never", " "], body)
    example = next((row for row in (audits[0].get("audit") or {}).get("impossible") or []), None)
    if example is not None:
        width = (audits[0].get("layer") or {}).get("width")
        say(console, f"One of them, with {count(width)} numbers: {names(example)}.")


def _show_sets(console: Console, title: str, listed: Any, found: Facts, limit: str, *, radius: bool = False) -> None:
    rows: Sequence[Facts] = listed or []
    if not rows:
        return
    heading(console, title)
    body = []
    for row in rows:
        size = [plain(row["radius"])] if radius else []
        told = Text(clean(console, names(row, LABELS_SHOWN if radius else None)))
        if reason(row):
            told.append("\n" + clean(console, reason(row)), style="dim")
        body.append([count(row.get("rows")) or "", *size, told])
    print_table(console, ["rows", *(["radius"] if radius else []), "labels "], body)
    verdict = str(rows[0].get("verdict"))
    total = int((found.get("sets") or {}).get(verdict, 0)) if not radius else 0
    if total > len(rows):
        say(console, f"{total - len(rows):,} more; {limit} lists them.", "dim")


def _show_radii(console: Console, facts: Facts) -> None:
    radii = facts.get("radii") or {}
    counts: list[int] = list(radii.get("counts") or [])
    most = max([*counts, int(radii.get("zero") or 0), 1])
    edges = list(radii.get("edges") or [])
    body = [["no ball", count(radii["zero"]), print_bar(console, radii["zero"] / most)]] if radii.get("zero") else []
    for low, high, n in zip(edges, edges[1:], counts, strict=False):
        body.append([f"{plain(low)} – {plain(high)}", count(n), print_bar(console, n / most)])
    if body:
        heading(console, radii_sentence(facts))
        print_table(console, ["radius", "sets", " "], body)


def _show_sizes(console: Console, facts: Facts) -> None:
    rows = facts.get("sizes") or []
    if len(rows) > 1:
        heading(console, "By number of labels")
        body = [
            [
                sizes(row),
                count(row["sets"]),
                count(row["impossible"]),
                count(row["undecided"]),
                plain(row["median_radius"]) if row.get("median_radius") is not None else "–",
            ]
            for row in rows
        ]
        print_table(console, ["labels", "sets", "never", "undecided", "median radius"], body)
