"""Audits in plain sentences: the verdicts, the audited layer, and what the numbers mean."""

from __future__ import annotations

from typing import TypedDict

from longtail.audit import VERDICTS
from longtail.facts import AuditFacts, LabelSetFacts, SetsFacts
from longtail.report.formatting import count, percent
from longtail.report.plots.audit_plots import radius_text
from longtail.report.plots.canvas import finite

NOUNS = {
    "label sets": ("label set", "come out"),
    "classes": ("label", "have the highest score"),
    "top sets": ("label set", "be the top"),
}
MOST_NAMED = 6  # labels of a proof that are named


class VerdictRow(TypedDict):
    """How many label sets and rows have a verdict, and what it means."""

    name: str
    sets: int
    rows: int
    meaning: str


def audit_headline(facts: AuditFacts) -> str:
    """Return in plain language what the model can never give.

    >>> counts = {"eps-argmaxable": 99, "argmaxable": 0, "not argmaxable": 1, "undecided": 0}
    >>> audit = {"kind": "label sets", "n_sets": 100, "n_rows": 100, "sets": counts, "rows": counts}
    >>> audit_headline({"audit": audit})
    '1 of 100 label sets (1.0%) can never come out, whatever the input: it is that of 1 of 100 rows.'
    """
    audit = facts.get("audit") or {}
    n = audit.get("n_sets") or 0
    if not n:
        if facts.get("data"):
            return "No label set of the data could be audited."
        return ""
    noun, verb = NOUNS.get(str(audit.get("kind")), NOUNS["label sets"])
    if audit.get("kind") == "top sets" and facts.get("top_k"):
        verb = f"be the top {facts['top_k']['k']}"
    never, unsure = audit["sets"].get("not argmaxable", 0), audit["sets"].get("undecided", 0)
    more = f" {count(unsure)} could not be decided." if unsure else ""
    if not never:
        sure = n - unsure
        if unsure:
            return f"{count(sure)} of {count(n)} {noun}s can {verb}, each for some input.{more}"
        return f"All {count(n)} {noun}s can {verb}, each for some input." if n > 1 else f"The {noun} can {verb}."
    out = f"{count(never)} of {count(n)} {noun}{'s' * (n != 1)} ({percent(never / n, 1)}%) can never {verb}, "
    out += "whatever the input"
    rows, of = audit["rows"].get("not argmaxable", 0), audit.get("n_rows")
    if audit.get("kind") != "classes" and of:
        are = "it is that" if never == 1 else "they are those"
        out += f": {are} of {count(rows)} of {count(of)} rows"
    return f"{out}.{more}"


def layer_sentence(facts: AuditFacts) -> str:
    """Return what was audited."""
    layer = facts.get("layer") or {}
    if not layer:
        return ""
    out = f"{layer.get('source')}: {count(layer.get('n_labels'))} labels in {count(layer.get('width'))} dimensions"
    out += ", with a bias" if layer.get("bias") else ""
    if layer.get("ranked"):
        out += "; its scores only rank, so a set comes out as the top of a ranking"
    elif (facts.get("audit") or {}).get("kind", "label sets") == "label sets":
        cut = layer.get("score_above") or 0
        out += f"; a label is on when its score is above {cut:.3g}"
    out += "."
    if layer.get("labels_never_given"):
        n = layer["labels_never_given"]
        have, come = ("s have", "come") if n != 1 else (" has", "comes")
        out += f" {count(n)} more label{have} no training row and never {come} out."
    if layer.get("guaranteed"):
        out += f" Every set of at most {count(layer['guaranteed'])} of its labels can come out, by construction."
    data = facts.get("data") or {}
    if data.get("rows_audited"):
        out += f" {count(data['rows_audited'])} of {count(data['rows'])} rows were drawn at random."
    top = facts.get("top_k")
    if top and top["rows_of_other_size"]:
        n = top["rows_of_other_size"]
        have, are = ("have", "are") if n != 1 else ("has", "is")
        out += f" {_n_rows(n)} {have} more or fewer than {top['k']} labels and {are} left out."
    return out


def unknown_sentence(facts: AuditFacts) -> str:
    """Return which labels of the data the model never gives."""
    unknown = facts.get("unknown")
    if not unknown:
        return ""
    first = ", ".join(str(label["label"]) for label in (unknown.get("listed") or [])[:3])
    one = unknown["labels"] == 1
    out = f"{count(unknown['sets'])} more label set{'s' * (unknown['sets'] != 1)}, of {_n_rows(unknown['rows'])}, "
    out += f"cannot come out because the model never gives {'one of their labels' if not one else 'their label'}"
    return out + (f": {first}{', …' if unknown['labels'] > 3 else '.'}" if first else ".")


def _n_rows(n: int) -> str:
    return f"{count(n)} row{'s' * (n != 1)}"


def beyond_sentence(facts: AuditFacts) -> str:
    """Return how many sets have more labels than the layer guarantees."""
    layer = facts.get("layer") or {}
    n, k = layer.get("sets_beyond_guarantee"), layer.get("guaranteed")
    if not n or not k:
        return ""
    return f"{count(n)} of the sets have more than {k} labels: for those nothing is guaranteed."


def capacity_sentence(facts: AuditFacts) -> str:
    """Return how many of all label sets a layer of this shape can give.

    >>> capacity_sentence({"capacity": {"n_labels": 3, "width": 2, "sets": 6, "log10_sets": 0.8, "log10_share": -0.1}})
    'At most 6 of the 8 sets of 3 labels can come out of 2 dimensions, whatever the weights.'
    """
    capacity = facts.get("capacity")
    if not capacity:
        return ""
    n, share = capacity["n_labels"], capacity.get("log10_share") or 0.0
    with_bias = " and a bias" if capacity.get("bias") else ""
    if share == 0:
        out = f"All sets of {count(n)} labels can come out of {count(capacity['width'])} dimensions{with_bias}"
        position = facts.get("position") or {}
        if position.get("rank") is not None and position["rank"] < n:
            return f"{out} if the rows of the weights are independent; here only {count(position['rank'])} of them are."
        return f"{out} if the rows of the weights are independent" + ("; they are." if position else ".")
    come = (
        f"of {count(n)} labels can come out of {count(capacity['width'])} dimensions{with_bias}, whatever the weights"
    )
    if capacity.get("sets") and n <= 50:
        out = f"At most {count(capacity['sets'])} of the {count(2**n)} sets {come}."
    else:
        sets = capacity["log10_sets"]
        out = f"At most about 10^{sets:.0f} of the 10^{sets - share:.0f} sets {come}: one in 10^{-share:.0f}."
    position = facts.get("position") or {}
    if position.get("general_position") is False:
        rows = position.get("dependent_rows") or []
        told = f" (rows {', '.join(map(str, rows[:6]))}{' …' if len(rows) > 6 else ''})" if rows else ""
        out += f" Here it is less: some rows of the weights depend on each other{told}."
    return out


def radii_sentence(facts: AuditFacts) -> str:
    """Return what the plot of radii shows."""
    audit = facts.get("audit") or {}
    quantiles = audit.get("radius_quantiles") or {}
    middle, lowest = quantiles.get("0.5"), quantiles.get("0.0")
    if not finite(middle) or not finite(lowest):
        return "Radius of the largest ball of inputs"
    at_least = " at least" if audit.get("radius") == "bound" else ""
    out = f"Half of the possible sets have a ball of inputs of radius{at_least} {radius_text(middle)}"
    return f"{out}; the smallest has {radius_text(lowest)}"


def verdict_rows(audit: SetsFacts) -> list[VerdictRow]:
    """Return how many sets have each verdict, and what it means."""
    eps = audit.get("eps")
    ball = f"a ball of inputs of radius {radius_text(eps)} gives it" if finite(eps) else "a ball of inputs gives it"
    meanings = (ball, "some input gives it", "no input gives it: proved", "neither is proved")
    sets, rows = audit.get("sets") or {}, audit.get("rows") or {}
    return [
        {"name": name, "sets": sets.get(name, 0), "rows": rows.get(name, 0), "meaning": meaning}
        for name, meaning in zip(VERDICTS, meanings, strict=True)
        if sets
    ]


def set_names(row: LabelSetFacts, most: int | None = None) -> str:
    """Return the labels of a set by name.

    >>> set_names({"labels": ["a", "b"]}), set_names({"labels": []}), set_names({"labels": ["a", "b", "c"]}, most=1)
    ('a, b', '(no label)', 'a and 2 more')
    """
    labels = [str(label) for label in row.get("labels") or []]
    if most is not None and len(labels) > most + 1:
        return f"{', '.join(labels[:most])} and {len(labels) - most} more"
    return ", ".join(labels) or "(no label)"


def reason(row: LabelSetFacts) -> str:
    """Return why a set is impossible: the labels of its proof.

    >>> reason({"conflict": {"on": ["a"], "off": ["b"]}})
    'never on: a, with off: b'
    """
    conflict = row.get("conflict") or {}
    on, off = ([str(label) for label in labels or []] for labels in (conflict.get("on"), conflict.get("off")))
    if not on and not off:
        return ""
    if len(on) + len(off) > MOST_NAMED:
        return f"the scores of {count(len(on) + len(off))} labels contradict each other"
    if on and off:
        return f"never on: {', '.join(on)}, with off: {', '.join(off)}"
    return f"never {'on' if on else 'off'} together: {', '.join(on or off)}"
