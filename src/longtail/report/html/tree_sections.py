"""The label tree on a page: its clusters as a treemap and as a table, and the labels with more than one leaf slot."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.facts import ClusterFacts, SplitsFacts, TreeFacts
from longtail.report.formatting import count, percent
from longtail.report.html.rendering import View
from longtail.report.plots.treemap import Box, Cell, shades_legend, treemap
from longtail.report.tree_sentences import (
    Family,
    cluster_size,
    label_names,
    neighbours,
    nested,
    splits_sentence,
    tree_caption,
    tree_sentence,
    word_list,
)

USES = (3, 10, 30, 100, 300)  # uses per label from which on a box is a shade stronger
USES_NAMES = ("under 3", "3+", "10+", "30+", "100+", "300+")
NAMED = 5  # labels of a cluster in the table
NAMED_BELOW = 3  # of a cluster inside it
NO_ROWS = "labels without training rows"
ROWS_AT_ONCE = 12  # a longer table scrolls in its own window


def tree_section(tree: TreeFacts) -> View | None:
    """Return the clusters of a label tree (facts from `pipeline.page_tree`), drawn and listed.

    >>> clusters = [{"level": 0, "labels": 3, "uses": 9, "typical": [{"label": name}]} for name in ("fruit", "cars")]
    >>> tree_section({"labels": 6, "levels": [{"clusters": 2}], "clusters": clusters})["caption"]
    '2 clusters'
    """
    families = nested(tree.get("clusters") or [])
    while len(families) == 1:  # a level of one cluster tells nothing
        families = families[0][1]
    if not families:
        return None
    tops = [cluster for cluster, _ in families]
    has_cells = any(cluster.get("inside") for cluster in tops)
    rows = [_row(cluster, [inner for inner, _ in below]) for cluster, below in families]
    return {
        "lead": tree_sentence(tree),
        "caption": tree_caption(tree, tops),
        "has_cells": has_cells,
        "drawings": [_drawing(tree, families, *shape) for shape in _shapes(len(tops), has_cells)],
        "rows": rows,
        "tall": len(rows) > ROWS_AT_ONCE,
    }


def splits_section(splits: SplitsFacts) -> View | None:
    """Return the labels with the most leaf slots (facts from `pipeline.page_splits`).

    >>> slot = {"neighbours": [{"label": "judo"}], "words": [{"word": "black"}]}
    >>> splits = {"labels": 9, "several": 1, "listed": [{"label": "belt", "rows": 12, "slots": [slot, slot]}]}
    >>> splits_section(splits)["rows"][0]["slots"][0]
    {'beside': 'judo', 'words': 'black'}
    """
    rows = [
        {
            "label": str(label.get("label", "")),
            "slots": [
                {
                    "beside": ", ".join(neighbours(slot)) or "alone in its cluster",
                    "words": ", ".join(word_list(slot)),
                }
                for slot in label["slots"]
            ],
            "rows": count(label.get("rows")) or "–",
            "n_slots": count(len(label["slots"])),
        }
        for label in splits.get("listed") or []
    ]
    return {"lead": splits_sentence(splits), "rows": rows, "tall": len(rows) > ROWS_AT_ONCE} if rows else None


def _row(cluster: ClusterFacts, below: Sequence[ClusterFacts]) -> View:
    """Return a line of the table: a cluster with the clusters inside it."""
    rest = cluster.get("rest")
    return {
        "names": ", ".join(label_names(cluster)[:NAMED]),
        "words": ", ".join(word_list(cluster)),
        "below": [{"names": ", ".join(label_names(c)[:NAMED_BELOW]), "size": cluster_size(c)} for c in below],
        "n_below": count(cluster.get("clusters")),
        "n_not_listed": count(rest["clusters"]) if rest else None,
        "labels": count(cluster["labels"]) or "–",
        "share": percent(cluster.get("share"), 1),
    }


def _shapes(n: int, has_cells: bool) -> list[tuple[float, float, str]]:
    """Return width, height and CSS class of both drawings: one for a desk, one for a phone."""
    per_box, per_box_on_phone = (18.0, 42.0) if has_cells else (10.0, 30.0)
    low = min(200.0 + 50.0 * n, 560.0) if has_cells else min(160.0 + 40.0 * n, 460.0)
    return [
        (944.0, min(max(per_box * n, low), 880.0), "desk"),
        (340.0, min(max(per_box_on_phone * n, low), 1800.0), "phone"),
    ]


def _drawing(tree: TreeFacts, families: Sequence[Family], width: float, height: float, css: str) -> str:
    """Return the treemap of the uppermost clusters; a last box counts those that are not listed."""
    boxes = [
        Box(
            cluster["labels"],
            label_names(cluster),
            _shade(cluster["labels"], cluster["uses"]),
            _note(cluster),
            _cells(cluster, [label_names(inner) for inner, _ in below], noted=css == "desk"),
        )
        for cluster, below in families
    ]
    tops = [cluster for cluster, _ in families]
    rest = tree.get("rest")
    if rest and tops[0]["level"] == 0:
        boxes.append(Box(rest["labels"], [f"{count(rest['clusters'])} more clusters"], None, cluster_size(rest)))
    described = "; ".join(f"{', '.join(label_names(top)[:2])}: {count(top['labels'])} labels" for top in tops)
    legend = shades_legend("uses per label" if css == "desk" else "uses", USES_NAMES)
    title = "Clusters of labels"
    return treemap(boxes, width=width, height=height, title=title, description=described, css=css, legend=legend)


def _cells(cluster: ClusterFacts, below: Sequence[Sequence[str]], *, noted: bool) -> list[Cell]:
    """Return a cell for every cluster inside one, with the names of its most used labels where facts tell them."""
    sizes = cluster.get("inside") or []
    typical = [[str(label.get("label", "")) for label in cell] for cell in cluster.get("inside_typical") or []]
    known = [*(typical or below), *[()] * len(sizes)]
    out = []
    for (labels, uses), names in zip(sizes, known, strict=False):
        told = f"{', '.join(names) or NO_ROWS}\n{count(labels)} labels, used {count(uses)} times" if noted else ""
        out.append(Cell(labels, _shade(labels, uses), names, told))
    return out


def _note(cluster: ClusterFacts) -> str:
    """Return the text shown when the pointer rests on a box."""
    out = f"{', '.join(label_names(cluster))}\n{cluster_size(cluster)}"
    return out + (f"\nwords: {', '.join(word_list(cluster))}" if word_list(cluster) else "")


def _shade(labels: int, uses: int) -> int:
    return sum(uses / max(labels, 1) >= least for least in USES)
