"""The label tree on a page: its clusters as boxes in a drawing and as rows of a table; and the way to one label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longtail.report.formatting import count, percent, whole
from longtail.report.html.page import Markup, element, section, table
from longtail.report.plots.canvas import finite
from longtail.report.plots.treemap import Box, Cell, shades_legend, treemap

Facts = Mapping[str, Any]
Family = tuple[Facts, list[Any]]  # a cluster, and the families of the clusters right below it
OFTEN = (3, 10, 30, 100, 300)  # uses per label from which on a box is a shade stronger
MARKS = ("under 3", "3+", "10+", "30+", "100+", "300+")
NAMED = 5  # labels of a cluster in the table
NAMED_BELOW = 3  # of a cluster inside it
ROWS_AT_ONCE = 12  # a longer table scrolls in its own window


def tree(facts: Facts) -> Markup:
    """Return the section about the label tree (`tree` in the facts, from `pipeline.page_tree`).

    >>> found = [{"level": 0, "labels": 3, "uses": 9, "typical": [{"label": name}]} for name in ("fruit", "cars")]
    >>> "2 clusters" in tree({"tree": {"labels": 6, "levels": [{"clusters": 2}], "clusters": found}})
    True
    """
    found = facts.get("tree") or {}
    families = nested(found.get("clusters") or [])
    while len(families) == 1:  # a level of one cluster says nothing
        families = families[0][1]
    if not families:
        return Markup()
    tops = [cluster for cluster, _ in families]
    cells = any(cluster.get("inside") for cluster in tops)
    about = element("figcaption", element("h3", caption(found, tops)), element("p", _note(cells)))
    rows = [_row(cluster, [inner for inner, _ in below]) for cluster, below in families]
    return section(
        "How the labels are grouped",
        lead(found),
        element("figure", about, *(_map(found, families, *shape) for shape in _shapes(len(tops), cells)), css="full"),
        table(["cluster", "labels", "uses, %"], rows, css="sortable clusters", tall=len(rows) > ROWS_AT_ONCE),
    )


def nested(listed: Sequence[Facts]) -> list[Family]:
    """Return listed clusters, each with those below it.

    >>> nested([{"level": 0}, {"level": 1}, {"level": 0}])
    [({'level': 0}, [({'level': 1}, [])]), ({'level': 0}, [])]
    """
    roots: list[Family] = []
    way: list[Family] = []
    for found in listed:
        family: Family = (found, [])
        del way[found["level"] :]
        (way[-1][1] if way else roots).append(family)
        way.append(family)
    return roots


def lead(found: Facts) -> str:
    """Return in a sentence how many clusters there are.

    >>> lead({"labels": 900, "levels": [{"clusters": 4}, {"clusters": 30}]})
    'The model has sorted its 900 labels into 4 clusters, and inside them into 30, so that labels of similar rows ...'
    """
    several = [count(level["clusters"]) for level in found.get("levels") or [] if level["clusters"] > 1]
    if not several:
        return f"All {count(found.get('labels'))} labels are in one cluster."
    inside = "".join(f", and inside them into {n}" for n in several[1:])
    out = f"The model has sorted its {count(found.get('labels'))} labels into {several[0]} clusters{inside}, "
    out += "so that labels of similar rows are together. It looks for the best clusters, and only there for labels."
    return out + (f" This is the first of {found['trees']} trees." if found.get("trees", 1) > 1 else "")


def caption(found: Facts, tops: Sequence[Facts]) -> str:
    """Return what one sees first: the cluster whose labels are used most."""
    most = max(tops, key=lambda cluster: cluster.get("uses") or 0)
    several = [level for level in found["levels"] if level["clusters"] > 1]
    out = f"{count(several[0]['clusters'])} clusters"
    if finite(most.get("share")) and names(most):
        out += f"; the one around “{names(most)[0]}” has {whole(most['share'])} of all uses"
    return out


def names(cluster: Facts) -> list[str]:
    """Return the typical labels of a cluster by name."""
    return [str(label.get("label", "")) for label in cluster.get("typical") or []] or ["labels without training rows"]


def words(cluster: Facts) -> list[str]:
    """Return the telling words of a cluster."""
    return [str(word.get("word", "")) for word in cluster.get("words") or []]


def size(cluster: Facts) -> str:
    """Return how large a cluster is, in words."""
    out = f"{count(cluster.get('labels'))} labels"
    if cluster.get("clusters"):
        out += f" in {count(cluster['clusters'])} clusters"
    uses = f", used {count(cluster['uses'])} times" if finite(cluster.get("uses")) else ""
    return out + uses + (f" ({percent(cluster['share'], 1)}% of all uses)" if finite(cluster.get("share")) else "")


def steps(predicted: Facts) -> list[tuple[str, str]]:
    """Return the clusters on the way to a label, from the top: the margin of each, and its typical labels.

    >>> steps({"path": [{"level": 0, "margin": 0.5, "typical": ["chess", "poker"]}]})
    [('+0.50', 'chess, poker')]
    """
    return [
        (f"{step['margin']:+.2f}", ", ".join(str(name) for name in step.get("typical") or []))
        for step in predicted.get("path") or []
        if isinstance(step, Mapping) and finite(step.get("margin"))
    ]


def _note(cells: bool) -> str:
    out = "A box is as large as the cluster has labels, and its colour the stronger the more they are used: once by "
    out += "every training row that has them. It names the most used ones; point at it to learn more."
    return out + (" The cells below the names are the clusters inside." if cells else "")


def _shapes(n: int, cells: bool) -> list[tuple[float, float, str]]:
    """Return width, height and place of both drawings: one for a desk, one for a phone."""
    wide, narrow = (18.0, 42.0) if cells else (10.0, 30.0)
    low = min(200.0 + 50.0 * n, 560.0) if cells else min(160.0 + 40.0 * n, 460.0)
    return [
        (944.0, min(max(wide * n, low), 880.0), "desk"),
        (340.0, min(max(narrow * n, low), 1800.0), "phone"),
    ]


def _map(found: Facts, families: Sequence[Family], width: float, height: float, css: str) -> Markup:
    boxes = [
        Box(
            cluster["labels"],
            names(cluster),
            _shade(cluster["labels"], cluster["uses"]),
            _told(cluster),
            _cells(cluster, [names(inner) for inner, _ in below]),
        )
        for cluster, below in families
    ]
    tops = [cluster for cluster, _ in families]
    rest = found.get("rest")
    if rest and tops[0]["level"] == 0:
        boxes.append(Box(rest["labels"], [f"{count(rest['clusters'])} more clusters"], None, size(rest)))
    described = "; ".join(f"{', '.join(names(cluster)[:2])}: {count(cluster['labels'])} labels" for cluster in tops)
    legend = shades_legend("uses per label" if css == "desk" else "uses", MARKS)
    about = {"title": "Clusters of labels", "description": described}
    return Markup(treemap(boxes, width=width, height=height, css=css, legend=legend, **about))


def _cells(cluster: Facts, below: Sequence[Sequence[str]]) -> list[Cell]:
    """Return a cell for every cluster inside one; those that are listed, the most used, have names."""
    sizes = cluster.get("inside") or []
    known = [*below, *[()] * len(sizes)]
    return [Cell(labels, _shade(labels, uses), known[i]) for i, (labels, uses) in enumerate(sizes)]


def _told(cluster: Facts) -> str:
    """Return what the pointer finds on a box."""
    out = f"{', '.join(names(cluster))}\n{size(cluster)}"
    return out + (f"\nwords: {', '.join(words(cluster))}" if words(cluster) else "")


def _shade(labels: int, uses: int) -> int:
    return sum(uses / max(labels, 1) >= often for often in OFTEN)


def _row(cluster: Facts, below: Sequence[Facts]) -> list[object]:
    told = [element("span", ", ".join(names(cluster)[:NAMED]))]
    if words(cluster):
        told.append(element("span", "words: " + ", ".join(words(cluster)), css="low"))
    if below:
        left = (cluster.get("rest") or {}).get("clusters")
        items = [element("li", ", ".join(names(c)[:NAMED_BELOW]), element("span", size(c), css="low")) for c in below]
        items += [element("li", f"… and {count(left)} more", css="soft")] if left else []
        summary = element("summary", f"{count(cluster['clusters'])} clusters")
        told.append(element("details", summary, element("ul", *items)))
    return [Markup("".join(told)), count(cluster["labels"]) or "–", percent(cluster.get("share"), 1)]
