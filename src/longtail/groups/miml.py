"""Deep-MIML as an estimator: labels of rows and of groups, learned from the labels of groups alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.errors import Keyword, ModelError, ParameterError
from longtail.groups.bags import (
    Scale,
    SetShares,
    bags_of,
    bags_of_one,
    checked_bags,
    find_vectors,
    hold_out_bags,
    label_prior,
)
from longtail.groups.schema import LOSSES, SCHEMA
from longtail.kernels import Progress
from longtail.model import MAX_K, Idle, XMCEstimator, allowed_labels, not_fitted, with_finite_scores
from longtail.storage import Part, PartSchema, checked
from longtail.training import checked_training, import_torch, on_device, pick_device
from longtail.validate import (
    LabelNumbers,
    MatrixLike,
    Rows,
    as_labels,
    as_rows,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_widths,
)

if TYPE_CHECKING:
    from longtail.groups.miml_network import DeepMIML
    from longtail.training import Epoch

MASKS: dict[str, dict[str, Any]] = {  # how EAGLE finds the labels' vectors
    "auto": {"assign": "auto"},
    "eagle": {"assign": "argmax"},
    "eagle-0": {"assign": "argmax", "n_iter": 0},
}
ONE_LABEL = ("list", "shares", "sets")  # losses for rows that have one label each


class MIMLClassifier(XMCEstimator):
    """A network that learns which rows of a group have its labels (multi-instance multi-label learning).

    Scores are log-odds. A label that no group has is never predicted. Needs the extra [torch].

    Parameters
    ----------
    concepts : int, default=5
        Concepts per label; a row is scored by the best of them.
    hidden : int or sequence of int, default=256
        Width of the layer before, or of the layers.
    mask : {"auto", "eagle", "eagle-0", "none"}, default="auto"
        Which label vectors of `Eagle` a label's rows are expected near: those of `assign="auto"`, which learns from
        groups without the label too, those as published, or those at its start; "none" for Deep-MIML.
    tau : float, default=1.0
        Sharpness of the mask; 0 for Deep-MIML.
    learn_vectors : bool, default=False
        Whether the label vectors are trained with the rest of the network.
    loss : {"auto", "presence", "counts", "list", "shares", "sets"}, default="auto"
        "presence": the best row of a group has the label. "counts": of a label that a group has c times, the c best
        rows have it and the others do not. "list": a softmax over labels of the best rows' scores, with every entry of
        the group's list of labels as its answer, as in EAGLE's experiments. Where every row has exactly one label,
        "shares": their shares in the group are met; "sets": the same without counts, no row has a label that its group
        lacks. "auto": "counts" if some group has a label more than once, else "presence".
    scaling : {"auto", "center", "standard", "common"}, default="auto"
        "center": means 0, one common scale. "standard": every feature mean 0 and deviation 1. "common": one common
        scale only. "auto": "center" for dense rows and "common" for sparse ones, which keeps them sparse.
    encoder : nn.Module, default=None
        A module in front that is trained too: dense float32 rows in, one row for each out.
    dropout : float, default=0.0
        Dropout after each hidden layer.
    lr : float, default=1e-3
        Learning rate of AdamW.
    weight_decay : float, default=0.0
        Weight decay of AdamW.
    batch_size : int, default=64
        Groups of a batch.
    epochs : int, default=50
        Passes over the groups, at most.
    patience : int, default=5
        Stop after this many epochs without a lower loss on held-out groups, and keep the best weights.
    valid : float, default=0.1
        Share of the groups held out for that; 0 to train all epochs on all groups.
    random_state : int, default=None
        Seed; on a CPU the same seed gives the same model.
    device : str, default=None
        "cpu" or "cuda"; None for a GPU if there is one.

    Attributes
    ----------
    network_ : longtail.nn.DeepMIML
        The trained network.
    label_vectors_ : ndarray of shape (n_labels, n_features), or None
        Label vectors of the mask.
    history_ : list of dict
        Per epoch `epoch`, `loss`, `valid_loss` and whether it was the `best` so far.
    loss_ : str
        The loss that was used.
    scale_ : Scale
        Scaling of the features.

    Examples
    --------
    >>> X = np.eye(4, dtype=np.float32)[[0, 1, 2, 3] * 6]          # pairs of rows are groups
    >>> groups = np.eye(12)[np.arange(24) // 2]
    >>> Y_groups = [[1, 1, 0, 0], [0, 0, 1, 1]] * 6
    >>> model = MIMLClassifier(hidden=16, valid=0, epochs=5, random_state=0, device="cpu")
    >>> model.fit(X, groups, Y_groups).predict_groups(X, groups, k=2).ids[:2].shape  # doctest: +NEEDS_TORCH
    (2, 2)
    """

    kind: ClassVar[str] = SCHEMA.kind
    schema: ClassVar[PartSchema | None] = SCHEMA
    needs: ClassVar[str | None] = "torch"
    prediction_params: ClassVar[tuple[str, ...]] = ("device",)
    shape_params: ClassVar[tuple[str, ...]] = ("concepts", "encoder", "hidden", "learn_vectors", "mask", "tau")

    network_: DeepMIML
    label_vectors_: np.ndarray | None
    history_: list[dict[str, Any]]
    loss_: str
    scale_: Scale

    def __init__(
        self,
        *,
        concepts: int = 5,
        hidden: int | Sequence[int] = 256,
        mask: str = "auto",
        tau: float = 1.0,
        learn_vectors: bool = False,
        loss: str = "auto",
        scaling: str = "auto",
        encoder: Any = None,
        dropout: float = 0.0,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        epochs: int = 50,
        patience: int = 5,
        valid: float = 0.1,
        random_state: Any = None,
        device: str | None = None,
    ) -> None:
        self.concepts = concepts
        self.hidden = hidden
        self.mask = mask
        self.tau = tau
        self.learn_vectors = learn_vectors
        self.loss = loss
        self.scaling = scaling
        self.encoder = encoder
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.valid = valid
        self.random_state = random_state
        self.device = device

    def idle_params(self) -> dict[str, Idle]:
        out: dict[str, Idle] = {}
        if self.mask == "none" or not self.tau:
            why = Keyword("mask", "none") if self.mask == "none" else Keyword("tau", self.tau)
            out |= self._idle_among("learn_vectors", word="with", other=why)
        if not self.valid:
            out |= self._idle_among("patience", word="with", other=Keyword("valid", self.valid))
        return out

    def fit(
        self,
        X: MatrixLike,
        groups: MatrixLike,
        Y_groups: MatrixLike,
        *,
        progress: Progress | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> Self:
        """Train on rows X, their groups (n_rows, n_groups) and the groups' labels (n_groups, n_labels); returns self.

        `Y_groups` holds how often each group has each label, or 1 where that is not known. `progress(done, total)`
        counts the steps of all epochs; `on_epoch` gets loss and validation loss after each, and may ask the model.
        """
        tau, mask = self._masking()
        self._warn_of_idle_params()
        check_widths("hidden", self.hidden)
        valid = check_real("valid", self.valid, low=0, high=0.5)
        loss = check_choice("loss", self.loss, LOSSES)
        torch = import_torch("MIMLClassifier")
        from longtail.groups.miml_network import bag_loss
        from longtail.training import mean_loss_over, train_on_rows

        how, device = checked_training(self, mixed=False), pick_device(self.device)
        rows, members, counts = checked_bags(X, groups, Y_groups, loss)
        self.loss_ = loss if loss != "auto" else ("counts" if bool((counts.data > 1).any()) else "presence")
        self.n_rows_, self.n_features_in_, self.n_labels_ = rows.shape[0], rows.shape[1], counts.shape[1]
        self.label_counts_ = np.bincount(counts.indices, minlength=self.n_labels_).astype(np.int64)
        vars(self).pop("calibration_", None)
        self.scale_ = Scale.learn(rows, self.scaling)
        rows = self.scale_.apply(rows)
        rest, held_out = hold_out_bags(members, counts, valid, how.seed)
        self.label_vectors_ = find_vectors(rows, *rest, MASKS[mask], self.loss_) if tau else None
        with torch.random.fork_rng([]):
            torch.manual_seed(how.seed)
            network = self._network(label_prior(*rest, self.loss_)).to(device)
        self.network_ = network
        self._note_shape()
        sets = SetShares.learn(*rest) if self.loss_ == "sets" else None
        validate = None
        if held_out is not None:
            loss_of = bag_loss(network, rows, *held_out, self.loss_, sets)
            validate = mean_loss_over(loss_of, held_out[0].shape[0], how, device)
        self.history_ = train_on_rows(
            network,
            bag_loss(network, rows, *rest, self.loss_, sets),
            rest[0].shape[0],
            how,
            validate=validate,
            on_step=progress,
            on_epoch=on_epoch,
        )
        if progress is not None:
            progress(1, 1)  # also when stopped early
        return self

    @classmethod
    def small(cls) -> Self:
        return cls(concepts=2, hidden=16, epochs=3)

    def fit_rows(self, X: MatrixLike, Y: MatrixLike, progress: Progress | None = None) -> Self:
        """Train on rows that are groups of their own; returns self."""
        return self.fit(X, bags_of_one(as_rows(X).shape[0]), sp.csr_array(as_labels(Y) > 0), progress=progress)

    def predict_topk(
        self, X: MatrixLike, k: int = 5, *, allow: LabelNumbers | None = None, deny: LabelNumbers | None = None
    ) -> TopK:
        """Return the k best labels of every row, each by itself, with their log-odds, best first.

        `allow` (only these labels) and `deny` (none of these) are lists of label numbers.
        """
        rows = self._check_rows(X)
        return self._ranked(rows, bags_of_one(rows.shape[0]), k, allow, deny)

    def predict_groups(
        self,
        X: MatrixLike,
        groups: MatrixLike,
        k: int = 5,
        *,
        allow: LabelNumbers | None = None,
        deny: LabelNumbers | None = None,
    ) -> TopK:
        """Return the k best labels of every group, a column of `groups` (n_rows, n_groups), with their log-odds."""
        rows = self._check_rows(X)
        return self._ranked(rows, bags_of(rows, groups), k, allow, deny)

    def _why_no_probabilities(self) -> str | None:
        return None  # the network's own, until it is calibrated

    def probabilities(self, topk: TopK) -> TopK:
        """Return the same labels with probabilities in place of scores: calibrated if it is, else the network's own."""
        self._check_fitted()
        if self.calibrated_:
            return super().probabilities(topk)
        chances = np.where(topk.ids >= 0, 1 / (1 + np.exp(-topk.scores.clip(-80, 80))), -np.inf)
        return TopK(topk.ids, chances.astype(np.float32))

    def _ranked(
        self, X: Rows, members: sp.csr_array, k: int, allow: LabelNumbers | None, deny: LabelNumbers | None
    ) -> TopK:
        k = check_integer("k", k, low=1, high=MAX_K)
        may = allowed_labels(self.n_labels_, allow, deny) & (self.label_counts_ > 0)
        import_torch("MIMLClassifier")
        from longtail.groups.miml_network import score_bags

        def rows(numbers: np.ndarray) -> np.ndarray:
            taken = X[numbers]
            return self.scale_.apply(taken if isinstance(taken, np.ndarray) else taken.toarray())

        parts = []
        for scores in score_bags(on_device(self.network_, self.device), rows, members):
            top = TopK.from_scores(np.where(may, scores, -np.inf), k)
            parts.append(with_finite_scores(TopK(np.where(np.isneginf(top.scores), -1, top.ids), top.scores)))
        return TopK.stack(parts) if parts else TopK(np.empty((0, k)), np.empty((0, k)))

    def _masking(self) -> tuple[float, str]:
        """Return tau, 0 without a mask, and the kind of mask."""
        tau = check_real("tau", self.tau, low=0)
        mask = check_choice("mask", self.mask, (*MASKS, "none"))
        return (0.0 if mask == "none" else tau), mask

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_labels_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(X, groups, Y_groups) first.")

    def _network(self, prior: float = 0.25) -> DeepMIML:
        from longtail.groups.miml_network import DeepMIML

        if self.encoder is not None and not isinstance(self.encoder, import_torch("MIMLClassifier").nn.Module):
            raise ParameterError(name="encoder", allowed="a torch module or None", got=self.encoder)
        return DeepMIML(
            self.n_features_in_,
            self.n_labels_,
            concepts=check_integer("concepts", self.concepts, low=1),
            hidden=check_widths("hidden", self.hidden),
            dropout=check_real("dropout", self.dropout, low=0, high=0.99),
            tau=self._masking()[0],
            label_vectors=self.label_vectors_,
            learn_vectors=check_flag("learn_vectors", self.learn_vectors),
            exclusive=self.loss_ in ONE_LABEL,
            learn_bias=self.loss_ != "list",
            encoder=copy.deepcopy(self.encoder),  # the caller's stays as it is
            prior=prior,
        )

    def to_part(self) -> Part:
        if self.encoder is not None:
            raise ModelError(
                f"a MIMLClassifier with an encoder of your own ({type(self.encoder).__name__}) cannot be saved, since "
                "loading runs no code; give what the encoder returns as X instead."
            )
        self._check_shape()
        arrays = {name: value.cpu().numpy() for name, value in self.network_.state_dict().items()}
        arrays |= {"label_counts": self.label_counts_, "shift": self.scale_.shift, "factor": self.scale_.factor}
        params = {name: value for name, value in self.saved_params().items() if name not in ("device", "encoder")}
        if not isinstance(self.hidden, int):
            params["hidden"] = np.asarray(self.hidden).tolist()
        facts = {"n_rows": self.n_rows_, "loss_": self.loss_, "history": self.history_}
        return Part(self.kind, {**params, **facts}, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        import_torch("MIMLClassifier")
        from longtail.bottleneck import load_weights

        part = checked(part, SCHEMA)
        params = dict(part.params)
        n_rows, loss, history = (params.pop(name) for name in ("n_rows", "loss_", "history"))
        model = cls(**params)
        arrays = dict(part.arrays)
        model.label_counts_, shift, factor = (part.array(name) for name in ("label_counts", "shift", "factor"))
        for name in ("label_counts", "shift", "factor"):
            del arrays[name]
        model.scale_ = Scale(shift, factor)
        model.n_rows_, model.n_features_in_, model.n_labels_ = int(n_rows), shift.size, model.label_counts_.size
        model.loss_, model.history_ = loss, history
        model.label_vectors_ = np.array(part.array("vectors")) if model._masking()[0] else None
        network = model._network()
        load_weights(network, arrays)
        model.network_ = network.to(pick_device(model.device))
        model._note_shape()
        return model
