"""Words for label trees, shared by pages and terminal: how labels are grouped, and the leaf slots of a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from longtail.facts import ClusterFacts, LabelFacts, RestFacts, SlotFacts, SplitsFacts, SuggestionFacts, TreeFacts
from longtail.report.formatting import count, percent, whole_percent
from longtail.report.plots.canvas import finite

NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
Family = tuple[ClusterFacts, list["Family"]]  # a cluster, and the families of the clusters right below it


def nested(clusters: Sequence[ClusterFacts]) -> list[Family]:
    """Return listed clusters, each with those below it.

    >>> nested([{"level": 0}, {"level": 1}, {"level": 0}])
    [({'level': 0}, [({'level': 1}, [])]), ({'level': 0}, [])]
    """
    roots: list[Family] = []
    path: list[Family] = []  # from the root to the last cluster
    for cluster in clusters:
        family: Family = (cluster, [])
        del path[cluster["level"] :]
        (path[-1][1] if path else roots).append(family)
        path.append(family)
    return roots


def tree_sentence(tree: TreeFacts) -> str:
    """Return in a sentence how many clusters there are.

    >>> tree_sentence({"labels": 900, "levels": [{"clusters": 4}, {"clusters": 30}]})
    'The model has sorted its 900 labels into 4 clusters, and inside them into 30, so that labels of similar rows ...'
    """
    split_levels = [count(level["clusters"]) for level in tree.get("levels") or [] if level["clusters"] > 1]
    if not split_levels:
        return f"All {count(tree.get('labels'))} labels are in one cluster."
    inside = "".join(f", and inside them into {n}" for n in split_levels[1:])
    out = f"The model has sorted its {count(tree.get('labels'))} labels into {split_levels[0]} clusters{inside}, "
    out += "so that labels of similar rows are together. It looks for the best clusters, and only there for labels."
    return out + (f" This is the first of {tree['trees']} trees." if tree.get("trees", 1) > 1 else "")


def tree_caption(tree: TreeFacts, tops: Sequence[ClusterFacts]) -> str:
    """Return the number of clusters, and which of the uppermost ones is used most."""
    most = max(tops, key=lambda cluster: cluster.get("uses") or 0)
    first = next(level for level in tree["levels"] if level["clusters"] > 1)
    out = f"{count(first['clusters'])} clusters"
    if finite(most.get("share")) and label_names(most):
        out += f"; the one around “{label_names(most)[0]}” has {whole_percent(most['share'])} of all uses"
    return out


def label_names(cluster: ClusterFacts) -> list[str]:
    """Return the typical labels of a cluster by name."""
    return [str(label.get("label", "")) for label in cluster.get("typical") or []] or ["labels without training rows"]


def word_list(facts: ClusterFacts | SlotFacts) -> list[str]:
    """Return the telling words of a cluster or of a leaf slot."""
    return [str(word.get("word", "")) for word in facts.get("words") or []]


def heavier_words(slot: SlotFacts) -> list[str]:
    """Return the words that weigh more in one leaf slot of a label than in its others."""
    return [str(word.get("word", "")) for word in slot.get("heavier") or []]


def cluster_size(cluster: ClusterFacts | RestFacts) -> str:
    """Return how large a cluster is, in words."""
    out = f"{count(cluster.get('labels'))} labels"
    if cluster.get("clusters"):
        out += f" in {count(cluster['clusters'])} clusters"
    uses = f", used {count(cluster['uses'])} times" if finite(cluster.get("uses")) else ""
    share = cluster.get("share")
    return out + uses + (f" ({percent(share, 1)}% of all uses)" if finite(share) else "")


def path_steps(suggestion: SuggestionFacts) -> list[tuple[str, str]]:
    """Return the clusters on the way to a label, from the top: the margin of each, and its typical labels.

    >>> path_steps({"path": [{"level": 0, "margin": 0.5, "typical": ["chess", "poker"]}]})
    [('+0.50', 'chess, poker')]
    """
    return [
        (f"{step['margin']:+.2f}", ", ".join(str(name) for name in step.get("typical") or []))
        for step in suggestion.get("path") or []
        if isinstance(step, Mapping) and finite(step.get("margin"))
    ]


def splits_sentence(splits: SplitsFacts) -> str:
    """Return in a few sentences how many labels have more than one leaf slot.

    >>> splits_sentence({"labels": 900, "several": 90})[:52]
    '90 of 900 labels (10%) stand in several clusters, so'
    """
    n_split, labels = splits.get("several") or 0, splits.get("labels") or 0
    share = f" ({whole_percent(n_split / labels)})" if labels >= 100 else ""
    stand = "stands" if n_split == 1 else "stand"
    out = f"{count(n_split)} of {count(labels)} labels{share} {stand} in several clusters, "
    out += "so that different kinds of rows find them. "
    n = len(splits.get("listed") or [])
    if n < n_split:
        out += f"These are the {count(n)} with the most leaf slots; among equals, those whose slots are most unlike. "
    out += "Each slot is told by labels that stand beside it there, and by words of the label that lead there rather "
    out += "than elsewhere."
    return out + (f" This is the first of {splits['trees']} trees." if splits.get("trees", 1) > 1 else "")


def slots_sentence(facts: LabelFacts) -> str:
    """Return how many leaf slots a label has and how many training rows have it.

    >>> slots_sentence({"label": "belt", "rows": 1, "trees": 1, "slots": [{"tree": 0}, {"tree": 0}]})
    'belt has two leaf slots in the tree. One training row has it.'
    """
    label, trees = facts.get("label", ""), int(facts.get("trees") or 1)
    sizes = [sum(slot.get("tree", 0) == tree for slot in facts["slots"]) for tree in range(trees)]
    if trees == 1:
        out = f"{label} has {NUMBERS.get(sizes[0], sizes[0])} leaf slot{'s' * (sizes[0] != 1)} in the tree."
    elif max(sizes) == 1:
        out = f"{label} has one leaf slot in each of the {trees} trees."
    else:
        out = f"{label} has {', '.join(map(str, sizes[:-1]))} and {sizes[-1]} leaf slots in the {trees} trees."
    rows = facts.get("rows")
    if rows is None:
        return out
    if rows == 0:
        return out + " No training row has it, so it is never suggested."
    return out + (" One training row has it." if rows == 1 else f" {count(rows)} training rows have it.")


def neighbours(slot: SlotFacts) -> list[str]:
    """Return the labels beside a label in one of its leaf slots, by name."""
    return [str(label.get("label", "")) for label in slot.get("neighbours") or []]


def rows_sentence(slot: SlotFacts, total: int, n_slots: int) -> str:
    """Return how many of the label's rows in the data come to a leaf slot."""
    if n_slots == 1:
        return f"{count(total)} row{'s' * (total != 1)} of the data:"
    verb = "comes" if slot["rows"] == 1 else "come"
    return f"{count(slot['rows'])} of {count(total)} rows {verb} here" + (":" if slot.get("texts") else ".")
