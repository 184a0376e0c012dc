"""Audits in plain sentences: the verdicts, the audited layer, and what the numbers mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from longtail.audit import VERDICTS
from longtail.facts import AuditFacts, LabelSetFacts, LayerFacts, SetsFacts
from longtail.report.formatting import count, percent
from longtail.report.plots.audit_plots import radius_text
from longtail.report.plots.canvas import finite

NOUNS = {
    "label sets": ("combination of labels", "combinations of labels", "be assigned"),
    "classes": ("label", "labels", "be the first suggestion"),
    "top sets": ("combination of labels", "combinations of labels", "be the first suggestions"),
}
MOST_NAMED = 6  # labels of a proof that are named


class VerdictRow(TypedDict):
    """How many label sets and rows have a verdict, and what it means."""

    name: str
    sets: int
    rows: int
    meaning: str


def audit_headline(facts: AuditFacts) -> str:
    """Return in plain language what the model can never assign.

    >>> counts = {"eps-argmaxable": 99, "argmaxable": 0, "not argmaxable": 1, "undecided": 0}
    >>> audit = {"kind": "label sets", "n_sets": 100, "n_rows": 100, "sets": counts, "rows": counts}
    >>> audit_headline({"audit": audit})
    '1 of 100 combinations of labels (1.0%) can never be assigned, whatever the text; 1 of 100 rows has it.'
    """
    audit = facts.get("audit") or {}
    n = audit.get("n_sets") or 0
    if not n:
        if facts.get("data"):
            return "No combination of labels of the data could be audited."
        return ""
    noun, nouns, verb = NOUNS.get(str(audit.get("kind")), NOUNS["label sets"])
    if audit.get("kind") == "top sets" and facts.get("top_k"):
        verb = f"be the first {facts['top_k']['k']} suggestions"
    never, unsure = audit["sets"].get("not argmaxable", 0), audit["sets"].get("undecided", 0)
    more = f" {count(unsure)} could not be decided." if unsure else ""
    if not never:
        if unsure == n:
            return f"For {count(n)} {noun if n == 1 else nouns} it could not be decided whether they can {verb}."
        if unsure:
            return f"{count(n - unsure)} of {count(n)} {nouns} can {verb}, each for some input.{more}"
        return f"All {count(n)} {nouns} can {verb}, each for some input." if n > 1 else f"The {noun} can {verb}."
    out = f"{count(never)} of {count(n)} {noun if n == 1 else nouns} ({percent(never / n, 1)}%) can never {verb}, "
    out += "whatever the text"
    rows, of = audit["rows"].get("not argmaxable", 0), audit.get("n_rows")
    if audit.get("kind") != "classes" and of:
        have = "has" if rows == 1 else "have"
        out += f"; {count(rows)} of {count(of)} rows {have} {'it' if never == 1 else 'one of them'}"
    return f"{out}.{more}"


def never_heading(audit: SetsFacts) -> str:
    """Return the heading of what can never happen.

    >>> never_heading({"kind": "classes"})
    'What can never be the first suggestion'
    """
    return f"What can never {NOUNS.get(str(audit.get('kind')), NOUNS['label sets'])[2]}"


def advice(facts: AuditFacts) -> list[str]:
    """Return what can be done about combinations that are never assigned, a sentence each; nothing if all are possible.

    >>> advice({"audit": {"n_sets": 3, "sets": {"not argmaxable": 0, "undecided": 0}}})
    []
    """
    audit, layer, unknown = facts.get("audit") or {}, facts.get("layer") or {}, facts.get("unknown")
    sets = audit.get("sets") or {}
    out = []
    if unknown:
        out.append(
            "Labels that the model never gives: train again with rows that have them, or leave them out of the "
            "vocabulary in use. A model that reads the texts of labels (prime) can give a label without any row."
        )
    if sets.get("not argmaxable"):
        if _narrow(layer):
            out.append(
                f"The model squeezes every text into {count(layer['width'])} numbers before it scores its "
                f"{count(layer['n_labels'])} labels. More numbers make more combinations possible; the method dft "
                "makes every combination of up to a chosen number of labels possible."
            )
        if any(_never_without(row) for row in audit.get("impossible") or []):
            out.append(
                "Where a label is never assigned without another one, the training rows hardly ever have it alone: "
                "add rows that do, or make the two one label if that is what they are."
            )
        if audit.get("kind", "label sets") == "label sets":
            out.append(
                "Until then, a person has to add or remove a label by hand where one of these combinations is right."
            )
    if sets.get("undecided"):
        out.append("Combinations that could not be decided: allow more time, or audit fewer rows.")
    return out


def _narrow(layer: LayerFacts) -> bool:
    """Say whether a layer has fewer dimensions than labels."""
    return bool(layer.get("width")) and layer["width"] < layer.get("n_labels", 0)


def _never_without(row: LabelSetFacts) -> bool:
    """Say whether a combination is impossible since some labels are never assigned without others, few in all."""
    conflict = row.get("conflict") or {}
    on, off = conflict.get("on") or [], conflict.get("off") or []
    return bool(on) and bool(off) and len(on) + len(off) <= MOST_NAMED


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
    n, rows, sets = unknown["labels"], unknown["rows"], unknown["sets"]
    first = ", ".join(str(label["label"]) for label in (unknown.get("listed") or [])[:3])
    named = f", such as {first}" if n > 3 and first else f" ({first})" if first else ""
    are, one = ("label of the data is", "it") if n == 1 else ("labels of the data are", "one of them")
    out = f"{count(n)} {are} never given by the model{named}: {_n_rows(rows)} {'has' if rows == 1 else 'have'} {one}"
    return out + f", in {count(sets)} more combination{'s' * (sets != 1)} that cannot be assigned."


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


def reason(row: LabelSetFacts, most: int | None = None) -> str:
    """Return why a combination can never be assigned: the labels of its proof, in words, the first `most` of many.

    >>> reason({"conflict": {"on": ["a"], "off": ["b"]}}), reason({"conflict": {"on": ["a", "b"], "off": []}})
    ('a is never assigned without b', 'a and b are never assigned together')
    >>> reason({"conflict": {"on": ["a", "b", "c"], "off": ["d", "e", "f", "g"]}}, most=2)
    'the scores of 7 labels contradict each other: on a, b, c; off d, e and 2 more'
    """
    conflict = row.get("conflict") or {}
    on, off = ([str(label) for label in labels or []] for labels in (conflict.get("on"), conflict.get("off")))
    if not on and not off:
        return ""
    if len(on) + len(off) > MOST_NAMED:
        sides = [f"{word} {set_names({'labels': side}, most)}" for word, side in (("on", on), ("off", off)) if side]
        return f"the scores of {count(len(on) + len(off))} labels contradict each other: {'; '.join(sides)}"
    if not on:
        only = "is always assigned" if len(off) == 1 else "one of them is always assigned"
        return f"{_listed(off, 'and')}: {only}" if len(off) > 1 else f"{off[0]} {only}"
    if not off:
        return f"{on[0]} is never assigned" if len(on) == 1 else f"{_listed(on, 'and')} are never assigned together"
    together = "is never assigned" if len(on) == 1 else "are never assigned together"
    return f"{_listed(on, 'and')} {together} without {_listed(off, 'or')}"


def _listed(names: Sequence[str], word: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
