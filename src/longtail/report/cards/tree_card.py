"""The card of a label tree: clusters that a reader opens, told by their most used labels and their telling words."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.facts import RestFacts, TreeFacts
from longtail.notebook import Html, card, fold, h, join, meter
from longtail.report.formatting import count, percent
from longtail.report.people import for_people
from longtail.report.tree_sentences import Family, label_names, nested, tree_sentence, word_list

NAMED = 3  # labels in the summary of a cluster; all that the facts name stand inside


def tree_html(facts: TreeFacts) -> str:
    """Return the clusters of a label tree (facts from `pipeline.tree_facts`), the most used first.

    >>> clusters = [{"level": 0, "labels": 3, "uses": 9, "share": 0.5, "typical": [{"label": "<b>"}]}]
    >>> shown = tree_html({"labels": 6, "levels": [{"clusters": 2}], "clusters": clusters})
    >>> "<b>" in shown, "&lt;b&gt;" in shown, shown.count("<details")
    (False, True, 1)
    """
    facts = for_people(facts)
    families = nested(facts.get("clusters") or [])
    most = max((cluster.get("share") or 0.0 for cluster, _ in families), default=0.0)
    body = [*_listed(families, most or 1.0), *_rest(facts.get("rest"))]
    return card("Label tree", h("p", tree_sentence(facts)), *body, note=f"{count(facts.get('labels'))} labels")


def _listed(families: Sequence[Family], most: float) -> list[Html]:
    return [_cluster(family, most) for family in families]


def _cluster(family: Family, most: float) -> Html:
    """Return a cluster that opens to its labels, its words and the clusters inside it."""
    cluster, below = family
    names, words = label_names(cluster), word_list(cluster)
    uses, size = (
        cluster.get("share") or 0.0,
        f" {count(cluster.get('labels'))} labels, {percent(cluster.get('share'), 1)}% of uses",
    )
    summary = join([meter(uses / most), h("bdi", ", ".join(names[:NAMED])), h("small", size, class_="soft")])
    used = [
        join(
            [h("bdi", one["label"]), h("small", f" {count(one.get('uses'))}", class_="soft") if "uses" in one else None]
        )
        for one in cluster.get("typical") or []
    ]
    body = [h("div", join(used, ", ")) if used else None]
    body.append(h("div", h("small", f"words: {', '.join(words)}"), class_="soft") if words else None)
    return fold(summary, *body, *_listed(below, most), *_rest(cluster.get("rest")))


def _rest(rest: RestFacts | None) -> list[Html]:
    told = "" if not rest else f"… and {count(rest['clusters'])} more clusters with {count(rest['labels'])} labels"
    return [h("div", h("small", told), class_="soft")] if told else []
