"""Cards of label trees without names, for notebooks: clusters as folds inside each other, with label numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.notebook import Html, card, facts, fold, h

if TYPE_CHECKING:
    from longtail.tree.label_tree import LabelTree

CLUSTERS_SHOWN = (12, 6, 3)  # below the root, below each of those, and below all others
LABELS_SHOWN = 24  # of a leaf


def label_tree_html(tree: LabelTree) -> str:
    """Return the size of a tree and its clusters; the largest come first."""
    sizes = [tree.sizes(level) for level in range(tree.n_levels)]
    starts = [tree.children(level) for level in range(tree.n_levels)]

    def listed(level: int, nodes: range) -> list[Html]:
        """Return a fold for each of the largest clusters of a level, and how many are left."""
        most = CLUSTERS_SHOWN[min(level, len(CLUSTERS_SHOWN) - 1)]
        order = sorted(nodes, key=lambda node: (-sizes[level][node], node))
        out = [cluster(level, node) for node in order[:most]]
        left = len(order) - most
        return [*out, h("p", f"… and {left:,} more clusters", class_="soft")] if left > 0 else out

    def cluster(level: int, node: int) -> Html:
        low, high = int(starts[level][node]), int(starts[level][node + 1])
        title = f"cluster {node}: {sizes[level][node]:,} labels"
        if level < tree.n_levels - 1:
            return fold(title, *listed(level + 1, range(low, high)))
        labels = tree.leaf_labels[low : min(high, low + LABELS_SHOWN)].tolist()
        return fold(title, h("p", ", ".join(map(str, labels)) + (", …" if high - low > LABELS_SHOWN else "")))

    size = [
        ("labels", f"{tree.n_labels:,}"),
        ("clusters", ", then ".join(f"{nodes.size:,}" for nodes in sizes)),
        ("leaf slots", f"{tree.n_slots:,}"),
    ]
    note = "labels are shown by number; tree_facts of a Tagger shows them by name"
    return card("LabelTree", facts(size), *listed(0, range(tree.n_nodes(0))), note=note)
