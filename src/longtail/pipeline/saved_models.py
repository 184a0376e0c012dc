"""Reading saved models back: the kinds a folder may name, and nothing else, become objects."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from longtail.errors import ModelError, near
from longtail.model import Calibration, XMCEstimator
from longtail.pipeline.registry import FEATURES, METHODS, MODELS
from longtail.pipeline.tagger import Tagger
from longtail.storage import LoadedFolder, Part, load_folder

Kind = TypeVar("Kind")


def load(path: str | Path, *, verify: bool = True) -> Tagger | XMCEstimator:
    """Return the Tagger or estimator saved in a folder; `verify=False` skips the digests.

    >>> import tempfile, numpy as np
    >>> from longtail.one_vs_all import OneVsAllClassifier
    >>> model = OneVsAllClassifier().fit(np.eye(4), np.eye(4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = model.save(folder + "/model")
    ...     load(saved).predict_topk(np.eye(4), k=1).ids.ravel().tolist()
    [0, 1, 2, 3]
    """
    folder = load_folder(path, verify=verify)
    kind = folder.manifest.get("kind")
    try:
        if kind == "tagger.v1":
            return _tagger(folder)
        if kind == "estimator.v1":
            return _model(folder)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder.path} is damaged: {error}.") from error
    raise ModelError(f"{folder.path} holds a model of the unknown kind {kind!r}.{near(kind, ['tagger.v1'])}")


def load_tagger(path: str | Path, *, verify: bool = True) -> Tagger:
    """Return the Tagger saved in a folder; a bare estimator is refused."""
    loaded = load(path, verify=verify)
    if not isinstance(loaded, Tagger):
        raise ModelError(
            "{path} holds a {found} without label names; {caller} needs a Tagger.",
            path=path,
            found=type(loaded).__name__,
            caller="load_tagger",
        )
    return loaded


def _tagger(folder: LoadedFolder) -> Tagger:
    params = _part(folder, "tagger").params
    method = params["method"] if params["method"] in METHODS else None  # a model that is no method's tells its own name
    tagger = Tagger(method, calibrate=params["calibrate"], random_state=folder.manifest["seed"])
    tagger.features_, tagger.model_ = None, _model(folder)
    if "features" in folder.parts:
        part = folder.parts["features"]
        features = _class(folder, part, FEATURES).from_part(part)
        width, n = features.n_features_, tagger.model_.n_features_in_
        if width != n:
            raise ModelError(f"{folder.path} is inconsistent: its texts become {width} features, its model takes {n}.")
        tagger.features_ = features
    tagger.labels_ = tuple(record["name"] for record in folder.labels)
    if not all(isinstance(name, str) for name in tagger.labels_) or len(set(tagger.labels_)) != len(tagger.labels_):
        raise ModelError(f"{folder.path} is inconsistent: its label names are not different strings.")
    if len(tagger.labels_) != tagger.model_.n_labels_:
        raise ModelError(
            f"{folder.path} is inconsistent: {len(tagger.labels_)} label names for {tagger.model_.n_labels_} labels."
        )
    texts = [record["text"] for record in folder.labels if "text" in record]
    tagger.label_texts_ = tuple(texts) if len(texts) == len(folder.labels) else None
    tagger.held_out_ = folder.manifest.get("held_out")
    tagger.data_ = folder.manifest.get("data", {})
    return tagger


def _model(folder: LoadedFolder) -> XMCEstimator:
    part = _part(folder, "model")
    model = _class(folder, part, MODELS).from_part(part)
    if "calibration" in folder.parts:
        model.calibration_ = Calibration.from_part(folder.parts["calibration"])
    return model


def _part(folder: LoadedFolder, name: str) -> Part:
    if name not in folder.parts:
        raise ModelError(f"{folder.path} is damaged: the part '{name}' is missing.")
    return folder.parts[name]


def _class(folder: LoadedFolder, part: Part, known: dict[str, type[Kind]]) -> type[Kind]:
    if part.kind not in known:
        raise ModelError(f"{folder.path} has a part of the kind {part.kind!r}; this longtail knows {sorted(known)}.")
    return known[part.kind]
