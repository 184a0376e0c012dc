"""TF-IDF words and a trained encoder side by side: rows for the label tree and other linear models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.encoder import Encoder, open_encoder
from longtail.errors import ParameterError
from longtail.model import Transformer, clone, not_fitted
from longtail.prime.estimator import Prime
from longtail.prime.schema import PRIME_FEATURES_SCHEMA
from longtail.prime.tree_stage import column_names
from longtail.storage import Part, PartSchema, checked
from longtail.text import TfidfFeatures, as_texts, hstack_rows, unit_rows
from longtail.validate import check_real

TFIDF, ENCODER = "tfidf.", "encoder."


class PrimeFeatures(Transformer):
    """Turn texts into sparse rows: TF-IDF and, to the right of it, the vectors of a trained `Prime`.

    A label tree on these rows should keep small weights (`threshold=0`): those of dense features are small.

    Parameters
    ----------
    prime : Prime
        A fitted model; it is not trained again.
    tfidf : TfidfFeatures, default=None
        How words are counted; None for `TfidfFeatures()`.
    weight : float, default=2.0
        How much the encoder's columns count beside the words' (see `longtail.text.hstack_rows`).

    Attributes
    ----------
    tfidf_ : TfidfFeatures
        The fitted words.
    encoder_ : object with a method `encode`
        The trained encoder.
    n_features_ : int
        Columns of the rows.

    Examples
    --------
    >>> small = {"width": 16, "layers": 1, "heads": 2}
    >>> prime = Prime(small, epochs=1, device="cpu", random_state=0)
    >>> texts, Y = ["red apple", "old car"] * 5, [[1, 0], [0, 1]] * 5
    >>> _ = prime.fit(texts, Y, ["apple", "car"])  # doctest: +NEEDS_TORCH
    >>> PrimeFeatures(prime).fit_transform(texts).shape  # four words, 16 columns  # doctest: +NEEDS_TORCH
    (10, 20)
    """

    encoder_: Encoder
    tfidf_: Any | TfidfFeatures
    kind: ClassVar[str] = PRIME_FEATURES_SCHEMA.kind
    schema: ClassVar[PartSchema] = PRIME_FEATURES_SCHEMA
    n_features_: int
    _saved: Part

    def __init__(self, prime: Any, *, tfidf: Any = None, weight: float = 2.0) -> None:
        self.prime = prime
        self.tfidf = tfidf
        self.weight = weight

    def __sklearn_clone__(self) -> PrimeFeatures:
        """The trained encoder is a given, not something to be learned: a clone has the same."""
        return type(self)(self.prime, tfidf=None if self.tfidf is None else clone(self.tfidf), weight=self.weight)

    def fit(self, texts: Sequence[str], y: Any = None) -> Self:
        """Learn the vocabulary; returns self."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Sequence[str], y: Any = None) -> sp.csr_array:
        """Learn the vocabulary and return one row per text."""
        if not isinstance(self.prime, Prime):
            raise ParameterError(name="prime", allowed="a fitted Prime", got=self.prime)
        check_real("weight", self.weight, low=0)
        texts = as_texts(texts)
        words = clone(self.tfidf) if self.tfidf is not None else TfidfFeatures()
        counted = words.fit_transform(texts)
        dense = self.prime.encode(texts)
        self.tfidf_, self.encoder_ = words, self.prime.encoder_
        self.n_features_ = int(counted.shape[1] + dense.shape[1])
        return hstack_rows(counted, dense, self.weight)

    def transform(self, texts: Sequence[str]) -> sp.csr_array:
        """Return one row per text."""
        self._check_fitted()
        texts = as_texts(texts)
        counted = self.tfidf_.transform(texts)
        if not texts:
            return sp.csr_array((0, self.n_features_), dtype=np.float32)
        return hstack_rows(counted, unit_rows(self._encoder().encode(texts)), self.weight)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the terms, then a name for every column of the encoder."""
        self._check_fitted()
        return column_names(self.tfidf_, self.n_features_)

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """Return where a text has which terms, as (start, end, column); the encoder's columns have none."""
        self._check_fitted()
        return self.tfidf_.locate(text)

    def build(self) -> None:
        """Make the encoder, which loading leaves until it is needed."""
        self._encoder()

    def to_part(self) -> Part:
        """Return what is saved: the words' part and the encoder's."""
        self._check_fitted()
        words = self.tfidf_.to_part()
        encoder = self._saved if hasattr(self, "_saved") else self.prime.encoder_part()
        params: dict[str, Any] = {"weight": float(self.weight), "n_features": self.n_features_}
        params |= {"tfidf": [words.kind, words.params], "encoder": [encoder.kind, encoder.params]}
        arrays = {f"{TFIDF}{name}": array for name, array in words.arrays.items()}
        arrays |= {f"{ENCODER}{name}": array for name, array in encoder.arrays.items()}
        return Part(self.kind, params, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Make the features from what was saved of them; the encoder is made when the first text comes."""
        part = checked(part, PRIME_FEATURES_SCHEMA)
        made = cls(None, weight=float(part.params["weight"]))
        made.n_features_ = part.params["n_features"]
        made.tfidf_ = TfidfFeatures.from_part(_inner(part, "tfidf", TFIDF))
        made._saved = _inner(part, "encoder", ENCODER)
        return made

    def _encoder(self) -> Encoder:
        if not hasattr(self, "encoder_"):
            self.encoder_ = open_encoder(self._saved)
        return self.encoder_

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(texts) first.")


def _inner(part: Part, name: str, prefix: str) -> Part:
    kind, params = part.params[name]
    return part.inner(prefix, kind, params)
