"""The methods that are compared with the label tree, and their settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Method:
    """One method: a library with settings."""

    title: str
    library: str
    about: str
    params: dict[str, Any] = field(default_factory=dict)
    trees: int = 1
    seeded: bool = True  # whether the library takes a seed; otherwise every run is another draw

    @property
    def ours(self) -> bool:
        return self.library == "longtail"


_BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}
_NAPKIN = {"loss": "l2", "liblinear_c": 1}
METHODS: dict[str, Method] = {
    "longtail": Method("longtail", "longtail", "LabelTreeClassifier, defaults"),
    "longtail-fast": Method("longtail fast", "longtail", "LabelTreeClassifier.fast()", {"fast": True}),
    "longtail-3": Method("longtail, 3 trees", "longtail", "LabelTreeClassifier(n_trees=3)", {"n_trees": 3}, trees=3),
    "pecos": Method(
        "PECOS XR-Linear",
        "libpecos",
        "PIFA, nr_splits 16, beam 10, threshold 0.1; rest as it comes",
        {"nr_splits": 16, "max_leaf_size": 100, "threshold": 0.1},
    ),
    "parabel": Method(
        "Omikuji Parabel", "omikuji", "balanced 2-means, defaults, beam 10", {"n_trees": 1}, seeded=False
    ),
    "parabel-3": Method(
        "Omikuji Parabel, 3 trees", "omikuji", "the same, 3 trees", {"n_trees": 3}, trees=3, seeded=False
    ),
    "bonsai": Method(
        "Omikuji Bonsai", "omikuji", "unbalanced 100-means, depth 3, beam 10", {"n_trees": 1, **_BONSAI}, seeded=False
    ),
    "bonsai-3": Method(
        "Omikuji Bonsai, 3 trees", "omikuji", "the same, 3 trees", {"n_trees": 3, **_BONSAI}, trees=3, seeded=False
    ),
    "napkinxc": Method("napkinXC PLT", "napkinxc", "liblinear, squared hinge, C=1; rest as it comes", _NAPKIN),
}
