"""The models and features that a Tagger and a model folder know, by kind, and the models by method."""

from __future__ import annotations

from longtail.bottleneck import BottleneckClassifier
from longtail.decisions import DECISION
from longtail.encoder import EncoderFeatures
from longtail.groups import MIMLClassifier
from longtail.hybrid import Hybrid
from longtail.model import CALIBRATION, SavedFeatures, TextFeatures, XMCEstimator, clone
from longtail.monitoring import REFERENCE
from longtail.one_vs_all import OneVsAllClassifier
from longtail.pipeline.schema import TAGGER, TAGGER_FACTS
from longtail.prime import Prime, PrimeFeatures
from longtail.storage import FolderSchema, PartSchema
from longtail.text import TfidfFeatures
from longtail.tree import LabelTreeClassifier
from longtail.vocabulary import VOCABULARY_SCHEMA

_MODELS: tuple[type[XMCEstimator], ...] = (
    LabelTreeClassifier,
    OneVsAllClassifier,
    BottleneckClassifier,
    Prime,
    Hybrid,
    MIMLClassifier,
)
_FEATURES: tuple[type[SavedFeatures], ...] = (TfidfFeatures, EncoderFeatures, PrimeFeatures)

MODELS: dict[str, type[XMCEstimator]] = {model.kind: model for model in _MODELS}
FEATURES: dict[str, type[SavedFeatures]] = {features.kind: features for features in _FEATURES}
METHODS: dict[str, type[XMCEstimator]] = {model.tagger_method: model for model in _MODELS if model.tagger_method}
DEFAULT_METHOD = "tree"


def part_schemas() -> dict[str, PartSchema]:
    """Return what every kind of part may hold that a model folder can have, by kind; each stands with its code."""
    models = (model.schema for model in MODELS.values())
    features = (features.schema for features in FEATURES.values())
    own = (TAGGER, CALIBRATION, VOCABULARY_SCHEMA, DECISION, REFERENCE)
    return {schema.kind: schema for schema in (*own, *features, *models) if schema is not None}


def folder_schemas() -> dict[str, FolderSchema]:
    """Return what every kind of folder may hold that `load` reads, by kind."""
    known = part_schemas()
    parts = {"model": tuple(known[kind] for kind in MODELS if kind in known), "calibration": (CALIBRATION,)}
    more = {
        "tagger": (TAGGER,),
        "features": tuple(known[kind] for kind in FEATURES),
        "vocabulary": (VOCABULARY_SCHEMA,),
        "decision": (DECISION,),
        "reference": (REFERENCE,),
    }
    may_miss = frozenset({"features", "calibration", "vocabulary", "decision", "reference"})
    folders = (
        FolderSchema("tagger.v1", {**more, **parts}, may_miss, True, TAGGER_FACTS),
        FolderSchema("estimator.v1", parts, frozenset({"calibration"})),
    )
    return {folder.kind: folder for folder in folders}


def new_features(features: TextFeatures | None, n_jobs: int | None) -> TextFeatures:
    """Return a copy of the features, not fitted, or `TfidfFeatures()`; threads are set where they are left open."""
    made = TfidfFeatures() if features is None else clone(features)
    if made.get_params(deep=False).get("n_jobs", 0) is None:
        made.set_params(n_jobs=n_jobs)
    return made
