"""A network with a narrow output layer, which may be one that can give every small label set."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.bottleneck.dft import SPACINGS, check_arithmetic
from longtail.bottleneck.plan import estimate_network
from longtail.bottleneck.schema import ENCODERS, HEADS, SCHEMA, STOP_ON
from longtail.data import Dataset, TopK, split_random
from longtail.errors import GuaranteeWarning, Keyword, ModelError, ParameterError
from longtail.facts import ModelFacts
from longtail.kernels import Progress
from longtail.model import (
    MAX_K,
    EpochReport,
    Estimate,
    Explanation,
    Idle,
    LabelCircle,
    LinearLayer,
    RowClassifier,
    Shape,
    allowed_labels,
    clone,
    with_finite_scores,
)
from longtail.storage import Part, PartSchema, checked
from longtail.text import unit_rows
from longtail.training import checked_training, import_torch, on_device, pick_device, threads_for
from longtail.validate import (
    Json,
    Rows,
    as_dense,
    as_labels,
    as_rows,
    as_sparse,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_same_rows,
    check_width,
    check_widths,
)

if TYPE_CHECKING:
    from longtail.bottleneck.network import LabelNetwork
    from longtail.training import Epoch, RowTraining

DENSE_ABOVE = 0.2  # share of entries that are not zero, from which rows are multiplied as dense ones
FEWEST_TO_VALIDATE = 20  # rows


class BottleneckClassifier(RowClassifier):
    """A network that scores all labels through few dimensions, with a guarantee on the label sets it can give.

    Scores are log-odds. Labels without a training row are never predicted. Weights in `Y` are ignored: a label is there
    or not. Needs the extra [torch].

    Parameters
    ----------
    head : {"dft", "bottleneck"}, default="dft"
        "dft": labels on a circle, so that every set of at most k labels can come out for some output of the encoder,
        if that has 2k + 1 + width numbers at least (`fit` warns where it has fewer); "bottleneck": the usual low-rank
        layer, for which most sets cannot, whatever the input (see `longtail.audit`).
    k : int, default=50
        Size of the label sets that "dft" guarantees; fewer than 2k + 1 labels get the largest k they allow.
    width : int, default=64
        Trained dimensions of the output layer; "dft" has them besides its 2k + 1 fixed ones.
    order : {"cooccurrence"}, ndarray of shape (n_labels,) or None, default="cooccurrence"
        Positions of the labels on the circle of "dft": "cooccurrence" makes labels that come together neighbours,
        which makes the regions of real label sets larger; None keeps their order; or the position of each label.
    spacing : {"even", "learned"}, default="even"
        Distances between neighbours on the circle of "dft": all the same, or learned; the guarantee is kept.
    arithmetic : {"float64", "double-double"}, default=None
        Numbers in which the output layer of "dft" computes; None for 32 bits. The guarantee is one of real numbers, and
        a set whose region is tiny may need more digits to come out: see `longtail.nn.DFTOutput`.
    encoder : {"mlp", "linear"} or torch module, default="mlp"
        The layers before the output layer: "mlp" with ReLU and dropout, "linear" without, or a torch module that takes
        dense float32 rows.
    hidden : int or list of int, default=256
        Width of the encoder's layer, or of each of its layers; not used with a module.
    dropout : float, default=0.5
        Share of the encoder's outputs left out at each training step; not used with a module.
    lr : float, default=2e-3
        Learning rate of AdamW; on sparse rows SparseAdam, without decay, trains the encoder's first layer.
    weight_decay : float, default=0.0
        Weight decay of AdamW.
    batch_size : int, default=64
        Rows per training step.
    epochs : int, default=50
        Passes over the rows, at most.
    patience : int, default=10
        Stop after this many epochs that are no better on the validation rows, and keep the best weights. With
        stop_on="precision" they count from the first epoch on that ranks labels better than their frequency does.
    stop_on : {"precision", "loss"}, default="precision"
        What makes an epoch better: a higher mean of precision at 1, 3 and 5, or a lower loss. The loss is a mean over
        all labels; with few rows and many rare labels it is lowest long before the ranking is at its best.
    valid : float, default=0.1
        Share of the rows held out for that, unless `fit` is given some; 0 to train all epochs on all rows.
    normalize : bool, default=True
        Scale every row to length 1 first, at training and prediction.
    checkpoint : str or Path, default=None
        Folder in which an unfinished training is kept; the same call again goes on where it ended.
    checkpoint_minutes : float, default=10.0
        Time between two checkpoints.
    device : {"cpu", "cuda"}, default=None
        Where to train; None for a GPU if there is one.
    random_state : int, Generator or RandomState, default=None
        Seed; on a CPU the same seed gives the same model.
    n_jobs : int, default=None
        Threads on a CPU; None for torch's own choice.

    Attributes
    ----------
    network_ : nn.Module
        The trained network.
    guaranteed_ : int
        Every set of so many labels can come out of the output layer; 0 if there is no guarantee.
    history_ : list of dict
        Per epoch `epoch`, `loss`, `valid_loss`, `valid_precision` (with stop_on="precision") and whether it was the
        `best` so far.
    prior_precision_ : float or None
        Mean precision at 1, 3 and 5 on the validation rows of the labels that are most frequent in training, given to
        every row; None without validation rows. `fit` warns when the trained network is no better.

    Examples
    --------
    >>> X, Y = np.eye(6).repeat(10, axis=0), np.eye(6).repeat(10, axis=0)
    >>> model = BottleneckClassifier(k=2, width=4, hidden=16, lr=0.05, valid=0, device="cpu")
    >>> model.fit(X, Y).predict_topk(np.eye(6)[:2], k=1).ids.ravel()  # doctest: +NEEDS_TORCH
    array([0, 1], dtype=int32)
    >>> model.guaranteed_  # doctest: +NEEDS_TORCH
    2
    """

    kind: ClassVar[str] = SCHEMA.kind
    schema: ClassVar[PartSchema | None] = SCHEMA
    needs: ClassVar[str | None] = "torch"
    has_epochs: ClassVar[bool] = True
    trained_twice: ClassVar[bool] = False  # a second training gives another network, with scores of another scale
    tagger_method: ClassVar[str | None] = "dft"
    prediction_params: ClassVar[tuple[str, ...]] = ("arithmetic", "device", "n_jobs", "normalize")
    shape_params: ClassVar[tuple[str, ...]] = ("encoder", "head", "hidden", "k", "spacing", "width")

    network_: LabelNetwork
    history_: list[dict[str, Any]]
    prior_precision_: float | None
    dense_: bool

    def __init__(
        self,
        *,
        head: str = "dft",
        k: int = 50,
        width: int = 64,
        order: Any = "cooccurrence",
        spacing: str = "even",
        arithmetic: str | None = None,
        encoder: Any = "mlp",
        hidden: int | Sequence[int] = 256,
        dropout: float = 0.5,
        lr: float = 2e-3,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        epochs: int = 50,
        patience: int = 10,
        stop_on: str = "precision",
        valid: float = 0.1,
        normalize: bool = True,
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 10.0,
        device: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.head = head
        self.k = k
        self.width = width
        self.order = order
        self.spacing = spacing
        self.arithmetic = arithmetic
        self.encoder = encoder
        self.hidden = hidden
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.stop_on = stop_on
        self.valid = valid
        self.normalize = normalize
        self.checkpoint = checkpoint
        self.checkpoint_minutes = checkpoint_minutes
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def idle_params(self) -> dict[str, Idle]:
        out: dict[str, Idle] = {}
        if self.head == "bottleneck":
            names = ("k", "order", "spacing", "arithmetic")
            out |= self._idle_among(*names, word="with", other=Keyword("head", "bottleneck"))
        if isinstance(self.encoder, str) and self.encoder == "linear":
            out |= self._idle_among("dropout", word="with", other=Keyword("encoder", "linear"))
        if not self.valid:
            out |= self._idle_among("patience", "stop_on", word="with", other=Keyword("valid", self.valid))
        if self.checkpoint is None:
            out |= self._idle_among("checkpoint_minutes", word="without", other=Keyword("checkpoint"))
        return out

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        progress: Progress | None = None,
        X_valid: Any = None,
        Y_valid: Any = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> Self:
        """Train on rows X and labels Y; returns self.

        `X_valid`, `Y_valid`: rows that decide when to stop, instead of a share of X. `progress(done, total)` counts
        the steps of all epochs; `on_epoch` gets the loss, and loss and precision on the validation rows, after each.
        """
        check_flag("normalize", self.normalize)
        stop_on = check_choice("stop_on", self.stop_on, STOP_ON)
        valid = check_real("valid", self.valid, low=0, high=0.5)
        import_torch()
        from longtail.bottleneck.network import make_network
        from longtail.bottleneck.train import fit_labels, prior_precision

        counting = () if X_valid is None else ("patience", "stop_on")
        self._warn_of_idle_params("k", "order", *counting)  # who compares both heads sets the former for both
        how, device = self._training(), pick_device(self.device)
        X, Y = self._begin_fit(X, Y)
        self.dense_ = bool(np.count_nonzero(_values(X)) >= DENSE_ABOVE * X.shape[0] * X.shape[1])
        X = self._as_trained(X)
        held = self._given(X_valid, Y_valid)
        if held is None and valid and self.n_rows_ >= FEWEST_TO_VALIDATE:
            rows, out = split_random(Y, test_size=max(1, round(valid * self.n_rows_)), random_state=how.seed)
            held, X, Y = (X[out], Y[out]), X[rows], Y[rows]
        start = {"prior": self._first_probability(Y), "order": self._circle_positions(Y), "seed": how.seed}
        network = make_network(**self._layers(), **start).to(device)
        self._warn_of_narrow_encoder(network)
        with threads_for(self.n_jobs, network, how.batch_size):
            self.history_ = fit_labels(network, X, Y, held, how, stop_on=stop_on, on_step=progress, on_epoch=on_epoch)
        self.prior_precision_ = None if held is None else prior_precision(Y, held[1])
        self._warn_below_prior()
        if progress is not None:
            progress(1, 1)  # also when stopped early
        self.network_ = network
        self._note_shape()
        return self

    def fit_rows_in_epochs(self, X: Any, Y: Any, progress: Progress | None, report: EpochReport) -> Self:
        import_torch()
        from longtail.training import epoch_record

        return self.fit(X, Y, progress=progress, on_epoch=lambda epoch: report(epoch_record(epoch)))

    def _first_probability(self, Y: sp.csr_array) -> float:
        """Return the probability of every label at the start: that of labels on average; never 0 or 1."""
        return float(np.clip(Y.nnz / (Y.shape[0] * Y.shape[1]), 1e-7, 0.9))

    @property
    def best_epoch_(self) -> int:
        """Number of the epoch whose weights were kept: the best one, or the last without validation rows."""
        self._check_fitted()
        return next((epoch["epoch"] for epoch in reversed(self.history_) if epoch.get("best")), len(self.history_))

    def _warn_below_prior(self) -> None:
        """Warn where the trained network ranks labels no better than their frequency in training does."""
        precisions = [epoch["valid_precision"] for epoch in self.history_ if "valid_precision" in epoch]
        if not self.prior_precision_ or not precisions or max(precisions) > self.prior_precision_:
            return
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"the network is no better than naming the most frequent labels for every row: on validation rows it "
            f"reaches {max(precisions):.1%} (mean of P@1, P@3, P@5), and they {self.prior_precision_:.1%}; train for "
            "more epochs, with a larger lr, or on more rows.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _warn_of_narrow_encoder(self, network: LabelNetwork) -> None:
        """Warn where the encoder returns fewer numbers than the guarantee of "dft" takes."""
        head = network.head
        k = getattr(head, "k", 0)
        if k and head.in_features < head.width:
            least = f"2k + 1 + width = {head.width}"
            ways = "hidden larger" if isinstance(self.encoder, str) else "the encoder wider"
            warnings.warn(
                f"no label set is guaranteed: the encoder returns {head.in_features} numbers, and every set of k={k} "
                f"labels takes {least}; make {ways}, or k or width smaller.",
                GuaranteeWarning,
                stacklevel=3,
            )

    def _training(self) -> RowTraining:
        minutes = check_real("checkpoint_minutes", self.checkpoint_minutes, low=0)
        return checked_training(self, checkpoint=self.checkpoint, checkpoint_minutes=minutes)

    def _layers(self) -> dict[str, Any]:
        """Return what decides the shape of the network."""
        sizes = check_widths("hidden", self.hidden)
        if not sizes:
            raise ParameterError(name="hidden", problem="must be a width or a list of at least one; got an empty one.")
        if isinstance(self.encoder, str):
            check_choice("encoder", self.encoder, ENCODERS)
        return {
            "n_features": self.n_features_in_,
            "n_labels": self.n_labels_,
            "head": check_choice("head", self.head, HEADS),
            "k": check_integer("k", self.k, low=1),
            "width": check_integer("width", self.width, low=0 if self.head == "dft" else 1),
            "encoder": self.encoder,
            "hidden": sizes,
            "dropout": check_real("dropout", self.dropout, low=0, high=0.99),
            "normalized": self.normalize,
            "sparse_rows": not self.dense_,
            "spacing": check_choice("spacing", self.spacing, SPACINGS),
            "arithmetic": check_arithmetic(self.arithmetic),
        }

    def _circle_positions(self, Y: sp.csr_array) -> Any:
        """Return the position of each label on the circle, or None to keep their order."""
        if self.order is None or self.head != "dft":
            return None
        if not isinstance(self.order, str):
            return self.order
        check_choice("order", self.order, ("cooccurrence",))
        from longtail.bottleneck.label_order import circle_order

        return circle_order(Y)

    def _as_trained(self, X: Rows) -> Rows:
        """Return rows in the form the network was trained on, scaled as then."""
        if self.dense_:
            X = X if isinstance(X, np.ndarray) else as_dense(X.toarray())
        else:
            X = as_sparse(X)
        return unit_rows(X) if check_flag("normalize", self.normalize) else X

    def _given(self, X: Any, Y: Any) -> tuple[Rows, sp.csr_array] | None:
        """Return the validation rows and labels that were given, checked."""
        if X is None and Y is None:
            return None
        if X is None or Y is None:
            raise ParameterError("X_valid and Y_valid must be given together.")
        X, Y = as_rows(X, "X_valid"), as_labels(Y, "Y_valid")
        check_same_rows(X, Y, "X_valid", "Y_valid")
        check_width(X, self.n_features_in_, "X_valid")
        check_width(Y, self.n_labels_, "Y_valid", "labels")
        return self._as_trained(X), Y

    @property
    def guaranteed_(self) -> int:
        """How many labels a set may have so that it can surely come out; 0 if there is no guarantee."""
        self._check_fitted()
        return int(getattr(self.network_.head, "guaranteed", 0))

    def output_weights(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the weights of the output layer (n_labels, dimensions) and its bias or None, float64, for audits."""
        self._check_fitted()
        return self.network_.head.output_weights()

    def label_circle(self) -> LabelCircle | None:
        """Return the circle of labels of a DFT layer, by which an audit knows its fixed weights exactly; else None."""
        self._check_fitted()
        return self.network_.head.label_circle()

    def output_layer(self) -> LinearLayer:
        return LinearLayer(*self.output_weights(), guaranteed=self.guaranteed_, circle=self.label_circle())

    def effective_params(self) -> dict[str, Any]:
        params = super().effective_params()
        if params["head"] == "dft":
            params["k"] = min(params["k"], max((self.n_labels_ - 1) // 2, 0))
            params["arithmetic"] = params["arithmetic"] or "float32"
            return params
        return {name: value for name, value in params.items() if name not in ("k", "order", "spacing", "arithmetic")}

    def describe(self) -> ModelFacts:
        trained: ModelFacts = {"epochs": self.history_, "best_epoch": self.best_epoch_}
        return {**super().describe(), **trained, "prior_precision": self.prior_precision_}

    @classmethod
    def describe_saved(cls, part: Part) -> Json:
        return {"epochs": part.params["history"], "prior_precision": part.params.get("prior_precision")}

    def estimate_fit(self, data: Dataset, shape: Shape, probe: bool) -> Estimate:
        return estimate_network(data, shape, self, probe)

    def imputing_model(self) -> BottleneckClassifier:
        return clone(self).set_params(checkpoint=None)  # it is for the training that follows

    def predict_topk(self, X: Any, k: int = 5, *, allow: Any = None, deny: Any = None) -> TopK:
        """Return the k best labels of every row with their log-odds, best first.

        `allow` (only these labels) and `deny` (none of these) are lists of label numbers.
        """
        X = self._as_trained(self._check_rows(X))
        k = check_integer("k", k, low=1, high=MAX_K)
        never = ~allowed_labels(self.n_labels_, allow, deny) | (self.label_counts_ == 0)
        ids = np.full((X.shape[0], k), -1, dtype=np.int32)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        used = min(k, self.n_labels_)
        torch = import_torch()
        from longtail.bottleneck.train import ROWS_AT_ONCE, score_blocks

        self._apply_arithmetic()
        network = on_device(self.network_, self.device)
        with threads_for(self.n_jobs, network, ROWS_AT_ONCE):
            for at, block_scores in score_blocks(network, X):
                mask = torch.from_numpy(never).to(block_scores.device)
                best = torch.topk(block_scores.masked_fill(mask, -torch.inf), used, dim=1)
                ids[at, :used], scores[at, :used] = best.indices.cpu().numpy(), best.values.cpu().numpy()
        ids[np.isneginf(scores)] = -1
        order = np.lexsort((ids, -scores), axis=1)  # equal scores: the lower label first
        top = TopK(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1))
        return with_finite_scores(top)

    def _apply_arithmetic(self) -> None:
        """Let the output layer compute as the parameter says now."""
        if hasattr(self.network_.head, "arithmetic"):
            self.network_.head.arithmetic = check_arithmetic(self.arithmetic)

    def explain(self, X: Any, labels: Any) -> list[Explanation]:
        """Return for the one row X, per label, what each of its features adds to the score.

        A network with ReLU is linear around a row: each feature counts with its slope there, and the bias is the rest.
        With the linear encoder that is so everywhere.
        """
        ids, values = self._one_row(X, self.normalize)
        wanted = self._explainable(labels)
        torch = import_torch()
        row = np.zeros((1, self.n_features_in_), dtype=np.float32)
        row[0, ids] = values
        out = []
        self._apply_arithmetic()
        network = on_device(self.network_, self.device).eval()
        with threads_for(self.n_jobs, network, 1):
            x = torch.from_numpy(row).to(next(network.parameters()).device).requires_grad_()
            scores = network(x)[0]
            for label in wanted:
                slopes = torch.autograd.grad(scores[label], x, retain_graph=True)[0][0].cpu().numpy()
                added = [(int(f), float(slopes[f]) * float(v)) for f, v in zip(ids, values, strict=True)]
                added.sort(key=lambda pair: -abs(pair[1]))
                margin = float(scores[label].detach())
                rest = margin - sum(weight for _, weight in added)
                out.append(Explanation(label, margin, margin, rest, added, []))
        return out

    def saved_params(self) -> dict[str, Any]:
        out = super().saved_params()
        for name in ("checkpoint", "checkpoint_minutes", "device"):  # of a machine, not of the model
            del out[name]
        for name in ("order", "hidden"):
            if out[name] is not None and not isinstance(out[name], str | int):
                out[name] = np.asarray(out[name]).tolist()
        return out

    def to_part(self) -> Part:
        if not isinstance(self.encoder, str):
            raise ModelError(
                f"a BottleneckClassifier whose encoder is a module of your own ({type(self.encoder).__name__}) cannot "
                f"be saved, since loading runs no code; use one of {list(ENCODERS)}, or give what it returns as X."
            )
        self._check_shape()
        arrays = {name: value.cpu().numpy() for name, value in self.network_.state_dict().items()}
        arrays["label_counts"] = self.label_counts_
        facts: Json = {"n_rows": self.n_rows_, "n_features": self.n_features_in_, "dense": self.dense_}
        facts |= {"history": self.history_, "prior_precision": self.prior_precision_}
        return Part(self.kind, {**self.saved_params(), **facts}, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        import_torch()
        from longtail.bottleneck.network import load_weights, make_network

        part = checked(part, SCHEMA)
        params = dict(part.params)
        facts = {name: params.pop(name) for name in ("n_rows", "n_features", "dense", "history")}
        prior_precision = params.pop("prior_precision", None)  # models of before have none
        model = cls(**params)
        model.prior_precision_ = prior_precision
        model.label_counts_ = part.array("label_counts")
        model.n_rows_, model.n_features_in_ = facts["n_rows"], facts["n_features"]
        model.n_labels_, model.dense_, model.history_ = model.label_counts_.size, facts["dense"], facts["history"]
        network = make_network(**model._layers(), order=part.arrays.get("head.order"))
        load_weights(network, {name: a for name, a in part.arrays.items() if name != "label_counts"})
        model.network_ = network.to(pick_device(model.device))
        model._note_shape()
        return model


def _values(X: Rows) -> np.ndarray:
    return X if isinstance(X, np.ndarray) else X.data
