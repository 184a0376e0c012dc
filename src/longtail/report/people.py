"""Facts for people: names in place of the labels that machines know, where facts have them."""

from __future__ import annotations

from typing import Any, TypeVar

Facts = TypeVar("Facts")
LISTS = {  # lists of names within facts, and the lists of labels that they stand for
    "true_names": "true",
    "typical_names": "typical",
    "label_names": "labels",
    "on_names": "on",
    "off_names": "off",
}


def for_people(facts: Facts) -> Facts:
    """Return facts whose `label` is the name that people know, with the label of machines as `id`.

    Facts without names, those of a model without a vocabulary, are returned as they are.

    >>> for_people({"predicted": [{"label": "http://ex.org/2", "name": "cats"}]})
    {'predicted': [{'label': 'cats', 'id': 'http://ex.org/2'}]}
    """
    return _shown(facts) if _has_names(facts) else facts


def _has_names(facts: Any) -> bool:
    """Say whether any record in nested facts has a name beside its label."""
    if isinstance(facts, dict):
        if ("label" in facts and "name" in facts) or any(key in facts for key in LISTS):
            return True
        return any(_has_names(value) for value in facts.values())
    return isinstance(facts, list) and any(_has_names(value) for value in facts)


def _shown(facts: Any) -> Any:
    if isinstance(facts, list):
        return [_shown(value) for value in facts]
    if not isinstance(facts, dict):
        return facts
    out = {key: _shown(value) for key, value in facts.items() if key not in LISTS}
    for names, labels in LISTS.items():
        if names in facts:
            out[labels] = facts[names]
    if "label" in facts and "name" in facts:
        del out["name"]
        out["label"] = facts["name"]
        if facts["name"] != facts["label"]:
            out["id"] = facts["label"]
    return out
