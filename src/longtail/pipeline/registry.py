"""The models and features that a Tagger and a model folder know, by kind, and the models by method.

The tables hold the names of our own classes; a class is imported when it is first asked for. So loading a model imports
the folder of its method alone, and what a file names is a key of these tables or is refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TypeVar

from longtail.decisions import DECISION
from longtail.model import CALIBRATION, SavedFeatures, TextFeatures, XMCEstimator, clone
from longtail.monitoring import REFERENCE
from longtail.pipeline.schema import TAGGER, TAGGER_FACTS
from longtail.storage import FolderSchema, PartSchema
from longtail.text import TfidfFeatures
from longtail.vocabulary import VOCABULARY_SCHEMA

Saved = TypeVar("Saved", XMCEstimator, SavedFeatures)


class ClassTable(MutableMapping[str, type[Saved]]):
    """Classes by kind or by method; each stands here by its folder and its name until it is asked for.

    >>> METHODS["tree"].__name__, "tree" in METHODS, len(METHODS) == len(list(METHODS))
    ('LabelTreeClassifier', True, True)
    """

    def __init__(self, homes: Mapping[str, tuple[str, str]]) -> None:
        self._entries: dict[str, tuple[str, str] | type[Saved]] = dict(homes)

    def __getitem__(self, key: str) -> type[Saved]:
        entry = self._entries[key]
        if isinstance(entry, tuple):
            folder, name = entry
            entry = self._entries[key] = getattr(importlib.import_module(f"longtail.{folder}"), name)
        return entry

    def __setitem__(self, key: str, value: type[Saved]) -> None:
        self._entries[key] = value

    def __delitem__(self, key: str) -> None:
        del self._entries[key]

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class _SchemasOf(Mapping[str, PartSchema]):
    """The schemas of the classes in a table, by kind."""

    def __init__(self, classes: ClassTable[XMCEstimator] | ClassTable[SavedFeatures]) -> None:
        self._classes = classes

    def __getitem__(self, kind: str) -> PartSchema:
        schema = self._classes[kind].schema
        if schema is None:
            raise KeyError(kind)
        return schema

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


_HOMES = {  # method: kind, folder and class
    "tree": ("label-tree.v1", "tree", "LabelTreeClassifier"),
    "ova": ("one-vs-all.v1", "one_vs_all", "OneVsAllClassifier"),
    "dft": ("bottleneck.v1", "bottleneck", "BottleneckClassifier"),
    "prime": ("prime.v1", "prime", "Prime"),
    "hybrid": ("hybrid.v1", "hybrid", "Hybrid"),
}
METHODS: ClassTable[XMCEstimator] = ClassTable({method: (home, name) for method, (_, home, name) in _HOMES.items()})
MODELS: ClassTable[XMCEstimator] = ClassTable(
    {kind: (home, name) for kind, home, name in (*_HOMES.values(), ("miml.v1", "groups", "MIMLClassifier"))}
)
FEATURES: ClassTable[SavedFeatures] = ClassTable(
    {
        "tfidf.v1": ("text", "TfidfFeatures"),
        "beginning-features.v1": ("text", "BeginningFeatures"),
        "encoder.v1": ("encoder", "EncoderFeatures"),
        "prime-features.v1": ("prime", "PrimeFeatures"),
    }
)
DEFAULT_METHOD = "tree"
_OWN = {"calibration": CALIBRATION, "vocabulary": VOCABULARY_SCHEMA, "decision": DECISION, "reference": REFERENCE}


def part_schemas() -> dict[str, PartSchema]:
    """Return what every kind of part may hold that a model folder can have, by kind; each stands with its code."""
    features, models = (saved.schema for saved in FEATURES.values()), (saved.schema for saved in MODELS.values())
    schemas = (TAGGER, *_OWN.values(), *features, *models)
    return {schema.kind: schema for schema in schemas if schema is not None}


def folder_schemas() -> dict[str, FolderSchema]:
    """Return what every kind of folder may hold that `load` reads, by kind."""
    own = {name: {schema.kind: schema} for name, schema in _OWN.items()}
    of_model = {"model": _SchemasOf(MODELS), "calibration": own["calibration"]}
    of_tagger = {"tagger": {TAGGER.kind: TAGGER}, "features": _SchemasOf(FEATURES), **of_model, **own}
    folders = (
        FolderSchema("tagger.v1", of_tagger, frozenset({"features", *own}), True, TAGGER_FACTS),
        FolderSchema("estimator.v1", of_model, frozenset({"calibration"})),
    )
    return {folder.kind: folder for folder in folders}


def new_features(features: TextFeatures | None, n_jobs: int | None) -> TextFeatures:
    """Return a copy of the features, not fitted, or `TfidfFeatures()`; threads are set where they are left open."""
    made = TfidfFeatures() if features is None else clone(features)
    if made.get_params(deep=False).get("n_jobs", 0) is None:
        made.set_params(n_jobs=n_jobs)
    return made
