"""The page of an audit: what the model can never give, what is hardest for it, and how much fits into it at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from longtail.report.formatting import count, flat_rows, percent
from longtail.report.html.page import Markup, definitions, element, figure, page, section, table
from longtail.report.html.pages import footer, header
from longtail.report.plots.audit_plots import plain, radius_plot, size_plot

Facts = Mapping[str, Any]
ROWS_AT_ONCE = 25


def audit_page(facts: Facts) -> str:
    """Return the page about an audit; takes what `pipeline.auditing.audit_model` finds.

    >>> "Of all label sets" in audit_page({"capacity": {"n_labels": 3, "width": 2, "sets": 6, "log10_share": -0.1}})
    True
    """
    title, found = str(facts.get("title") or "Audit"), facts.get("audit") or {}
    capacity = element("p", capacity_sentence(facts)) if facts.get("capacity") else ""
    parts = [
        header(title, headline(facts) or capacity_sentence(facts), _tiles(found)),
        _verdicts(facts),
        _sets(
            "Never, whatever the input",
            "Each with a proof: labels whose scores cannot have these signs at once.",
            found.get("impossible"),
        ),
        _sets("Undecided", "Neither an input nor a proof was found with 64-bit floats.", found.get("undecided")),
        _plots(facts),
        _sets(
            "Possible, but hardest",
            "Sets that some input gives, with the smallest ball of such inputs first.",
            found.get("hardest"),
            radius=True,
        ),
        section("Of all label sets there could be", "", capacity),
        _background(facts),
        footer(facts),
    ]
    return page(title, parts, facts)


def _tiles(found: Facts) -> Markup:
    if not found.get("n_sets"):
        return Markup()
    counts, n = found["sets"], found["n_sets"]
    never = counts.get("not argmaxable", 0)
    lowest = (found.get("radius_quantiles") or {}).get("0.0")
    tiles = [
        ("different sets", count(n), ""),
        ("never", count(never), f"{percent(never / n, 1)}%"),
        ("undecided", count(counts.get("undecided", 0)), ""),
        ("smallest radius", plain(lowest) if lowest is not None else "–", f"inputs within ±{found['box']:g}"),
    ]
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value, element("small", low) if low else ""), css="tile")
            for name, value, low in tiles
        ),
        css="tiles",
    )


def _verdicts(facts: Facts) -> Markup:
    rows = [
        [row["name"], count(row["sets"]), count(row["rows"]), row["meaning"]]
        for row in verdict_rows(facts.get("audit") or {})
    ]
    told = [sentence for sentence in (unknown_sentence(facts), beyond_sentence(facts)) if sentence]
    return section(
        "What can come out",
        layer_sentence(facts),
        *(element("p", sentence) for sentence in told),
        table(["verdict", "sets", "rows", "meaning "], rows) if rows else "",
    )


def _sets(title: str, lead: str, listed: Any, *, radius: bool = False) -> Markup:
    rows: Sequence[Facts] = listed or []
    body = [
        [_named(row), count(len(row.get("labels") or [])), count(row.get("rows")), *([plain(row["radius"])] * radius)]
        for row in rows
    ]
    if not body:
        return Markup()
    columns = ["labels", "how many", "rows", *(["radius"] * radius)]
    return section(title, lead, table(columns, body, css="sortable clusters", tall=len(body) > ROWS_AT_ONCE))


def _named(row: Facts) -> Markup:
    told = element("span", reason(row), css="low") if reason(row) else ""
    return Markup(element("span", names(row)) + told)


def _plots(facts: Facts) -> Markup:
    found, out = facts.get("audit") or {}, []
    drawn = radius_plot(facts.get("radii") or {}, title="Radii of label sets", eps=found.get("eps"))
    if drawn:
        note = "Every input within the ball gives exactly this set; the smaller the ball, the less likely an input is."
        out.append(figure(radii_sentence(facts), note, drawn))
    rows = facts.get("sizes") or []
    drawn = size_plot(rows, title="Sets that cannot come out, by number of labels") if len(rows) > 1 else ""
    if drawn and any(row["impossible"] or row["undecided"] for row in rows):
        out.append(figure("Sets that never come out, by their number of labels", "Grey: undecided.", drawn))
    return section("How much room a set has", "", element("div", *out, css="pair") if out else "")


def _background(facts: Facts) -> Markup:
    blocks = []
    for title, rows in (
        ("Layer", flat_rows(facts.get("layer"))),
        ("Data", flat_rows(facts.get("data"))),
        ("Decided by", flat_rows((facts.get("audit") or {}).get("decided_by"))),
        ("Time", flat_rows(facts.get("timings"))),
    ):
        if rows:
            blocks.append(element("div", element("h3", title), definitions(rows)))
    return section("Behind the numbers", "", element("div", *blocks, css="pair") if blocks else "")
