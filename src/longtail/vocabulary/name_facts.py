"""Names beside the labels of facts: the one place where facts learn what people call a label."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from longtail.vocabulary.vocabulary import Vocabulary

Facts = TypeVar("Facts")
LISTS = {  # lists of labels within facts, and what the list of their names is called
    "true": "true_names",
    "typical": "typical_names",
    "labels": "label_names",
    "on": "on_names",
    "off": "off_names",
    "shared": "shared_names",
    "differing": "differing_names",
}
SHARED = "model"  # facts that are the model's own, and stay as they are


def add_names(facts: Facts, vocabulary: Vocabulary | None) -> Facts:
    """Add to every record with a `label` its `name`, and beside every list of labels the list of their names.

    Facts are changed in place and returned; without a vocabulary they stay as they are.

    >>> from longtail.vocabulary import Concept, Vocabulary
    >>> add_names({"predicted": [{"label": "c1"}], "true": ["c1"]}, Vocabulary([Concept("c1", {"": "cats"})]))
    {'predicted': [{'label': 'c1', 'name': 'cats'}], 'true': ['c1'], 'true_names': ['cats']}
    """
    if vocabulary is not None:
        known = vocabulary

        def name(label: str) -> str:
            return known.name(label) if label in known else label

        _walk(facts, name)
    return facts


def _walk(facts: Any, name: Callable[[str], str]) -> None:
    """Add names to nested facts."""
    if isinstance(facts, dict):
        for key, value in list(facts.items()):
            if key != SHARED:
                _walk(value, name)
        label = facts.get("label")
        if isinstance(label, str):
            facts["name"] = name(label)
        for key, names in LISTS.items():
            labels = facts.get(key)
            if isinstance(labels, list) and labels and all(isinstance(item, str) for item in labels):
                facts[names] = [name(item) for item in labels]
    elif isinstance(facts, list):
        for value in facts:
            _walk(value, name)
