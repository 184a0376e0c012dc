"""Labels with several places: the most split ones on a page, and the words for a place that all outputs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail.report.formatting import count, whole
from longtail.report.html.page import Markup, element, section, table

Facts = Mapping[str, Any]
ROWS_AT_ONCE = 12  # a longer table scrolls in its own window
COLUMNS = ("label", "rows", "places")
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}


def splits(facts: Facts) -> Markup:
    """Return the section about labels with several places (`splits` in the facts, from `pipeline.page_splits`).

    >>> place = {"neighbours": [{"label": "judo"}], "words": [{"word": "black"}]}
    >>> found = {"labels": 9, "several": 1, "listed": [{"label": "belt", "rows": 12, "places": [place, place]}]}
    >>> "1 of 9 labels stands in several clusters" in splits({"splits": found})
    True
    """
    found = facts.get("splits") or {}
    rows = [
        [_label(label), count(label.get("rows")) or "–", count(len(label["places"]))]
        for label in found.get("listed") or []
    ]
    return section(
        "Labels in several clusters",
        lead(found) if rows else "",
        table(COLUMNS, rows, css="sortable clusters", tall=len(rows) > ROWS_AT_ONCE) if rows else "",
    )


def lead(found: Facts) -> str:
    """Return in a few sentences how many labels have several places.

    >>> lead({"labels": 900, "several": 90})[:52]
    '90 of 900 labels (10%) stand in several clusters, so'
    """
    several, labels = found.get("several") or 0, found.get("labels") or 0
    share = f" ({whole(several / labels)})" if labels >= 100 else ""
    stand = "stands" if several == 1 else "stand"
    out = f"{count(several)} of {count(labels)} labels{share} {stand} in several clusters, "
    out += "so that different kinds of rows find them. "
    n = len(found.get("listed") or [])
    if n < several:
        out += f"These are the {count(n)} with the most places; among equals, those whose places are most unlike. "
    out += "Each place is told by labels that stand beside it there, and by words of the label that lead there rather "
    out += "than elsewhere."
    return out + (f" This is the first of {found['trees']} trees." if found.get("trees", 1) > 1 else "")


def places_sentence(facts: Facts) -> str:
    """Return in how many places a label stands and how many training rows have it.

    >>> places_sentence({"label": "belt", "rows": 1, "trees": 1, "places": [{"tree": 0}, {"tree": 0}]})
    'belt has two places in the tree. One training row has it.'
    """
    label, trees = facts.get("label", ""), int(facts.get("trees") or 1)
    sizes = [sum(place.get("tree", 0) == tree for place in facts["places"]) for tree in range(trees)]
    if trees == 1:
        out = f"{label} has {NUMBERS.get(sizes[0], sizes[0])} place{'s' * (sizes[0] != 1)} in the tree."
    elif max(sizes) == 1:
        out = f"{label} has one place in each of the {trees} trees."
    else:
        out = f"{label} has {', '.join(map(str, sizes[:-1]))} and {sizes[-1]} places in the {trees} trees."
    rows = facts.get("rows")
    if rows is None:
        return out
    if rows == 0:
        return out + " No training row has it, so it is never suggested."
    return out + (" One training row has it." if rows == 1 else f" {count(rows)} training rows have it.")


def neighbours(place: Facts) -> list[str]:
    """Return the labels beside a label in one of its places, by name."""
    return [str(found.get("label", "")) for found in place.get("neighbours") or []]


def words(place: Facts, key: str = "words") -> list[str]:
    """Return the words of a place."""
    return [str(found.get("word", "")) for found in place.get(key) or []]


def how_often(facts: Facts, place: Facts, several: bool) -> str:
    """Return how many rows of the data come to a place."""
    total = facts["data"]["rows_with_label"]
    if not several:
        return f"{count(total)} row{'s' * (total != 1)} of the data:"
    verb = "comes" if place["rows"] == 1 else "come"
    return f"{count(place['rows'])} of {count(total)} rows {verb} here" + (":" if place.get("texts") else ".")


def _label(label: Facts) -> Markup:
    """Return a label with its places, one below the other."""
    items = []
    for place in label["places"]:
        beside = ", ".join(neighbours(place)) or "alone in its cluster"
        told = element("span", "words: " + ", ".join(words(place)), css="low") if words(place) else ""
        items.append(element("li", element("bdi", beside), told))
    return Markup(element("span", str(label.get("label", ""))) + element("ol", *items))
