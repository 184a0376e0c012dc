"""Protocols of features, as models and Taggers use them: texts in, rows out; names and positions of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from longtail.storage import Part, PartSchema
from longtail.validate import Rows


class TextReader(Protocol):
    """Turns texts into rows."""

    def transform(self, texts: Sequence[str]) -> Rows: ...


class TextFeatures(TextReader, Protocol):
    """Features that are learned from texts, such as `TfidfFeatures` or a vectoriser of scikit-learn."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def set_params(self, **params: Any) -> Any: ...

    def fit_transform(self, texts: Sequence[str]) -> Rows: ...


@runtime_checkable
class WordFeatures(TextReader, Protocol):
    """Features whose columns stand for words: their names, and where a text has them."""

    def get_feature_names_out(self) -> np.ndarray: ...

    def locate(self, text: str) -> list[tuple[int, int, int]]: ...


@runtime_checkable
class SavedFeatures(TextReader, Protocol):
    """Features that a model folder can hold."""

    kind: ClassVar[str]
    schema: ClassVar[PartSchema]
    n_features_: int

    def to_part(self) -> Part: ...

    @classmethod
    def from_part(cls, part: Part) -> Self: ...


@runtime_checkable
class BuiltLater(Protocol):
    """Features with a network that loading leaves until it is needed; `build` makes it now."""

    def build(self) -> None: ...
