"""The features that a row store keeps beside the rows they made, and whether they suit a model."""

from __future__ import annotations

import numpy as np

from longtail.data import Dataset
from longtail.errors import DataError, ModelError, ParameterError
from longtail.model import SavedFeatures, TextFeatures, TextReader
from longtail.pipeline.registry import FEATURES, new_features
from longtail.storage import Part
from longtail.text import TfidfFeatures


def features_for(data: Dataset, wanted: TextFeatures | None, n_jobs: int | None) -> TextFeatures | None:
    """Return what turns the texts of some data into rows: new features, those of a row store, or None without texts.

    Other features than those of the row store can only be had by writing it again.
    """
    if data.made_by is None:
        return None if data.texts is None else new_features(wanted, n_jobs)
    kind = FEATURES.get(data.made_by.kind)
    if kind is not TfidfFeatures:
        raise DataError(f"the row store {data.name!r} has features of the kind {data.made_by.kind!r}, not TF-IDF.")
    try:
        own = TfidfFeatures.from_part(data.made_by).set_params(n_jobs=n_jobs)
    except ModelError as error:
        raise DataError(f"the features of the row store {data.name!r} cannot be used: {error}") from error
    if wanted is not None and _settings(wanted) not in (_settings(TfidfFeatures()), _settings(own)):
        raise ParameterError(
            name="features",
            problem=f"must be left out, or be those of the row store, {own!r}; got {wanted!r}.",
        )
    return own


def made_alike(data: Dataset, features: TextReader) -> bool:
    """Say whether the rows of some data were made by the same features as a model reads."""
    if data.made_by is None or not isinstance(features, SavedFeatures):
        return False
    ours, theirs = features.to_part(), data.made_by
    return same_arrays(ours, theirs) and all(ours.params[name] == value for name, value in theirs.params.items())


def same_arrays(a: Part, b: Part) -> bool:
    """Say whether two parts are of one kind and have the same arrays."""
    if a.kind != b.kind or a.params.keys() != b.params.keys() or a.arrays.keys() != b.arrays.keys():
        return False
    return all(np.array_equal(array, b.arrays[name]) for name, array in a.arrays.items())


def _settings(features: TextFeatures) -> object:
    """Return the class of features and their parameters, threads left out."""
    params = features.get_params(deep=False)
    return type(features), {name: value for name, value in params.items() if name != "n_jobs"}
