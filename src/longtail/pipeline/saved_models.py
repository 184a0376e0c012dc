"""Reading saved models back: the kinds a folder may name, and nothing else, become objects."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from longtail.decisions import GUARANTEES, Decision
from longtail.errors import ModelError
from longtail.model import Calibration, XMCEstimator
from longtail.monitoring import Reference
from longtail.pipeline.deciding import check_loaded
from longtail.pipeline.registry import FEATURES, METHODS, MODELS, folder_schemas
from longtail.pipeline.schema import TAGGER
from longtail.pipeline.tagger import Tagger
from longtail.storage import LabelColumns, LoadedFolder, load_folder
from longtail.vocabulary import Vocabulary


def load(
    path: str | Path, *, verify: bool | str = True, in_memory: bool = False, key: str | Path | bytes | None = None
) -> Tagger | XMCEstimator:
    """Return the Tagger or estimator saved in a folder, after everything in it has been checked.

    Parameters
    ----------
    path : str or Path
        The folder.
    verify : bool or "once", default=True
        Check every file against its digest; False is faster for large models you trust. All else is always checked.
        "once" checks everything the first time on this machine and later only that no file was touched since, so that a
        model of gigabytes loads at once.
    in_memory : bool, default=False
        Read the arrays instead of mapping the files: nothing that happens to the files later matters then.
    key : str, Path, bytes or None, default=None
        A public key, or its file: a folder that was not signed with its other half is refused (`longtail sign`).

    >>> import tempfile, numpy as np
    >>> from longtail.one_vs_all import OneVsAllClassifier
    >>> model = OneVsAllClassifier().fit(np.eye(4), np.eye(4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = model.save(folder + "/model")
    ...     load(saved).predict_topk(np.eye(4), k=1).ids.ravel().tolist()
    [0, 1, 2, 3]
    """
    return open_model(path, verify=verify, in_memory=in_memory, key=key)[1]


def open_model(
    path: str | Path, *, verify: bool | str = True, in_memory: bool = False, key: str | Path | bytes | None = None
) -> tuple[LoadedFolder, Tagger | XMCEstimator]:
    """Return a model folder as it was read, and the Tagger or estimator made of it; parameters are those of `load`."""
    folder = load_folder(path, folder_schemas(), verify=verify, in_memory=in_memory, key=key)
    try:
        return folder, _tagger(folder) if folder.manifest["kind"] == TAGGER.kind else _model(folder)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder.path} is damaged: {error}.") from error


def load_tagger(
    path: str | Path, *, verify: bool | str = True, in_memory: bool = False, key: str | Path | bytes | None = None
) -> Tagger:
    """Return the Tagger saved in a folder; a bare estimator is refused."""
    loaded = load(path, verify=verify, in_memory=in_memory, key=key)
    if not isinstance(loaded, Tagger):
        raise ModelError(
            "{path} holds a {found} without label names; {caller} needs a Tagger.",
            path=path,
            found=type(loaded).__name__,
            caller="load_tagger",
        )
    return loaded


def _tagger(folder: LoadedFolder) -> Tagger:
    params = folder.parts["tagger"].params
    method = params["method"] if params["method"] in METHODS else None  # a model that is no method's tells its own name
    tagger = Tagger(method, calibrate=params["calibrate"], random_state=folder.manifest.get("seed"))
    tagger.features_, tagger.model_ = None, _model(folder)
    if "features" in folder.parts:
        part = folder.parts["features"]
        features = FEATURES[part.kind].from_part(part)
        width, n = features.n_features_, tagger.model_.n_features_in_
        if width != n:
            raise ModelError(f"{folder.path} is inconsistent: its texts become {width} features, its model takes {n}.")
        tagger.features_ = features
    columns = folder.labels if isinstance(folder.labels, LabelColumns) else None
    tagger.labels_ = cast("tuple[str, ...]", columns.names) if columns else tuple(r["name"] for r in folder.labels)
    if columns is None and len(set(tagger.labels_)) != len(tagger.labels_):
        raise ModelError(f"{folder.path} is inconsistent: its label names are not different strings.")
    if len(tagger.labels_) != tagger.model_.n_labels_:
        raise ModelError(
            f"{folder.path} is inconsistent: {len(tagger.labels_)} label names for {tagger.model_.n_labels_} labels."
        )
    if columns is not None:
        tagger.label_texts_ = cast("tuple[str, ...] | None", columns.texts)
    else:
        texts = [record["text"] for record in folder.labels if "text" in record]
        tagger.label_texts_ = tuple(texts) if len(texts) == len(folder.labels) else None
    saved = folder.parts.get("vocabulary")
    tagger.vocabulary_ = None if saved is None else Vocabulary.from_part(saved)
    tagger.held_out_ = folder.manifest.get("held_out")
    tagger.data_ = folder.manifest.get("data", {})
    if "decision" in folder.parts:
        tagger.decision_ = check_loaded(tagger, Decision.from_part(folder.parts["decision"]))
        if not tagger.decision_.purpose.startswith(GUARANTEES):
            tagger.target, tagger.per = tagger.decision_.purpose, tagger.decision_.per
    if "reference" in folder.parts:
        reference = Reference.from_part(folder.parts["reference"])
        if reference.n_labels > tagger.n_labels_:
            raise ModelError(f"{folder.path} is inconsistent: its reference lists labels that it does not have.")
        tagger.reference_ = reference
    return tagger


def _model(folder: LoadedFolder) -> XMCEstimator:
    part = folder.parts["model"]
    model = MODELS[part.kind].from_part(part)
    if "calibration" in folder.parts:
        model.calibration_ = Calibration.from_part(folder.parts["calibration"])
    return model
