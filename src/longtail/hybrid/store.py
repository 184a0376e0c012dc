"""Save and restore the experts of a hybrid as plain parameters and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.hybrid.boosted_trees import BoostedTrees
from longtail.hybrid.combine import Combination
from longtail.hybrid.encoder_with_labels import EncoderWithLabels
from longtail.hybrid.experts import Experts
from longtail.hybrid.frozen_encoder import FrozenEncoder
from longtail.hybrid.neighbours import Neighbours
from longtail.hybrid.schema import BEGINNINGS, BOOSTED, FROZEN, NAMES, NEIGHBOURS, PRIME, TREE, WORDS
from longtail.hybrid.shown_rows import SHOWN_ROWS, ShownRows
from longtail.name_matches import NameMatches
from longtail.prime import Prime
from longtail.storage import Part
from longtail.text import BeginningFeatures, TfidfFeatures
from longtail.tree import LabelTreeClassifier

ENCODERS = {Prime.kind: PRIME, FrozenEncoder.kind: FROZEN}  # beginnings of the names of their arrays
READERS = {TfidfFeatures.kind: WORDS, BeginningFeatures.kind: BEGINNINGS}


def experts_part(experts: Experts, combination: Combination) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the parameters and arrays that make the experts and their weights again."""
    params: dict[str, Any] = {}
    arrays = {"combination.weights": combination.weights, "combination.bias": combination.bias}
    if combination.trees is not None:
        arrays |= {f"{BOOSTED}{name}": array for name, array in combination.trees.to_arrays().items()}
    encoder = None if experts.encoder is None else experts.encoder.to_part()
    inner: dict[str, Part | None] = {PRIME: None, ENCODERS[Prime.kind if encoder is None else encoder.kind]: encoder}
    words = None if experts.words is None else experts.words.to_part()
    inner |= {WORDS: None, READERS[TfidfFeatures.kind if words is None else words.kind]: words}
    trained = {TREE: experts.tree, NAMES: experts.names}
    inner |= {prefix: None if expert is None else expert.to_part() for prefix, expert in trained.items()}
    for prefix, part in inner.items():
        params[prefix.rstrip(".")] = None if part is None else part.params
        arrays |= {} if part is None else {f"{prefix}{name}": array for name, array in part.arrays.items()}
    if experts.classifier is not None:
        arrays["classifier.vectors"] = experts.classifier
    if experts.neighbours is not None:
        arrays |= {f"{NEIGHBOURS}{name}": array for name, array in experts.neighbours.to_arrays().items()}
    if experts.shown is not None:
        arrays |= {f"{SHOWN_ROWS}{name}": array for name, array in experts.shown.arrays.items()}
    return params, arrays


def restore_combination(params: dict[str, Any], part: Part) -> Combination:
    """Return the combination that a checked part describes."""
    trees = part.under(BOOSTED)
    return Combination.restore(
        part.array("combination.weights"),
        part.array("combination.bias"),
        params["tail"],
        params["unused"],
        params["n_trained"],
        BoostedTrees(**trees) if trees else None,
    )


def restore_experts(params: dict[str, Any], part: Part, experts: tuple[str, ...], n_jobs: int) -> Experts:
    """Return the experts that a checked part describes."""

    def inside(prefix: str, kind: Any) -> Any:
        own = params.get(prefix.rstrip("."))
        return None if own is None else kind.from_part(part.inner(prefix, kind.kind, own))

    encoder: EncoderWithLabels | None = inside(PRIME, Prime) or inside(FROZEN, FrozenEncoder)
    remembered = part.under(NEIGHBOURS)
    counts = part.array("label_counts")
    return Experts(
        encoder=encoder,
        use_prototypes="prototypes" in experts and encoder is not None,
        classifier=part.arrays.get("classifier.vectors"),
        words=inside(WORDS, TfidfFeatures) or inside(BEGINNINGS, BeginningFeatures),
        tree=inside(TREE, LabelTreeClassifier),
        neighbours=Neighbours(**remembered) if remembered else None,
        names=inside(NAMES, NameMatches),
        shown=ShownRows(shown) if (shown := part.under(SHOWN_ROWS)) else None,
        n_labels=int(counts.size),
        counts=counts,
        n_jobs=n_jobs,
    )
