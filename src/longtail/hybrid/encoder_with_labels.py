"""The protocol of the encoder inside a hybrid: vectors of texts, and vectors of labels in the same space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from longtail.prime import LabelSearch
from longtail.storage import Part
from longtail.validate import MatrixLike


class EncoderWithLabels(Protocol):
    """An encoder of texts with a vector for every label: a `Prime`, or a `FrozenEncoder`.

    Attributes
    ----------
    text_scale_ : float
        Length of the vectors of labels that are known by their texts alone.
    history_ : list of dict
        A record of every epoch in which the encoder was trained.
    budget_ : mapping or None
        What was planned for the minutes that were given.
    """

    text_scale_: float
    history_: list[dict[str, Any]]

    @property
    def n_features_in_(self) -> int:
        """Width of the vectors."""

    @property
    def budget_(self) -> Mapping[str, Any] | None:
        """What was planned for the minutes given."""

    @property
    def search_(self) -> LabelSearch:
        """The search over the vectors of labels."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one float32 row of unit length per text."""

    def encode_as_trained(self, texts: Sequence[str]) -> np.ndarray:
        """Return the same rows, computed in the precision of the training."""

    def label_vectors(self, labels: np.ndarray) -> np.ndarray:
        """Return the vectors of some labels, as float32."""

    def train_label_vectors(self, queries: np.ndarray, Y: MatrixLike, *, epochs: int) -> np.ndarray:
        """Return a vector per label, trained on vectors of texts; the encoder and its labels are not changed."""

    def take_vectors(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return rows that `fit` has read with the encoder as it is now, and their vectors; once, else None."""

    def use_texts_of(self, labels: np.ndarray) -> Any:
        """Let some labels be known by their texts alone."""

    def add_labels(self, label_texts: Sequence[str]) -> Any:
        """Add labels by their texts alone, numbered after the old ones."""

    def search_device(self) -> str:
        """Return the device that label vectors are searched on."""

    def keep_encoder_alone(self) -> Any:
        """Let go of what only training needs."""

    def drop_checkpoint(self) -> None:
        """Remove what `fit` keeps on disk until the model is saved."""

    def build(self) -> None:
        """Make what encodes texts, which loading leaves until it is needed."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters that prediction reads."""

    def to_part(self) -> Part:
        """Return what is saved."""
