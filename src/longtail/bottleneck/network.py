"""A network from rows to label scores: an encoder, then an output layer."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longtail.bottleneck.output_layers import BottleneckOutput, DFTOutput, OutputLayer
from longtail.errors import GuaranteeWarning, ModelError, ParameterError
from longtail.training import SparseRows

N_TRIED = 2  # rows by which the width of an encoder is found


class SparseLinear(nn.Module):
    """A linear layer that takes sparse rows, or dense ones.

    `spread` is the standard deviation of its weights at the start. With `sparse`, it is trained on sparse rows: only
    the features of a batch get a gradient, and only their weights change.

    >>> layer = SparseLinear(3, 2)
    >>> row = SparseRows(torch.tensor([0, 2]), torch.tensor([0]), torch.tensor([1.0, 0.5]))
    >>> bool(torch.allclose(layer(row), layer(torch.tensor([[1.0, 0.0, 0.5]]))))
    True
    """

    def __init__(self, in_features: int, out_features: int, spread: float = 1.0, sparse: bool = False) -> None:
        super().__init__()
        self.sparse = sparse
        self.weight: nn.Parameter = nn.Parameter(spread * torch.randn(in_features, out_features))
        self.bias: nn.Parameter = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Tensor | SparseRows) -> Tensor:
        """Return (n_rows, out_features)."""
        if not isinstance(x, SparseRows):
            return x @ self.weight + self.bias
        sums = nn.functional.embedding_bag(
            x.ids, self.weight, x.offsets, per_sample_weights=x.values, mode="sum", sparse=self.sparse
        )
        return sums + self.bias


class LabelNetwork(nn.Module):
    """An encoder from rows to features, and an output layer from features to label scores."""

    def __init__(self, encoder: nn.Module, head: OutputLayer) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    @property
    def takes_sparse(self) -> bool:
        """Whether the encoder takes sparse rows as they are."""
        return isinstance(self.encoder, nn.Sequential) and isinstance(self.encoder[0], SparseLinear)

    def forward(self, x: Tensor | SparseRows) -> Tensor:
        """Return the scores (n_rows, n_labels); the output layer never computes in half precision.

        Scores of -7 would be known to within 0.03 there, and most labels of a row are decided far from 0.
        """
        features = self.encoder(x)
        with torch.autocast(features.device.type, enabled=False):
            return self.head(features.float())


def make_layers(
    kind: str, n_features: int, hidden: Sequence[int], dropout: float, spread: float, sparse: bool
) -> tuple[nn.Module, int]:
    """Return an encoder and the width of what it returns: "linear", or "mlp" with ReLU and dropout after each layer.

    >>> make_layers("mlp", 100, [32, 16], 0.1, 1.0, False)[1]
    16
    """
    layers: list[nn.Module] = []
    for number, width in enumerate(hidden):
        first = number == 0
        layers.append(
            SparseLinear(n_features, width, spread, sparse) if first else nn.Linear(hidden[number - 1], width)
        )
        if kind == "mlp":
            layers += [nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers), hidden[-1]


def output_width(encoder: nn.Module, n_features: int, row: str = "row") -> int:
    """Return how many columns a module returns for rows of `n_features` columns; `row` is their name in errors."""
    device = next((p.device for p in encoder.parameters()), torch.device("cpu"))
    training = encoder.training
    try:
        with torch.no_grad():
            rows = encoder.eval()(torch.zeros(N_TRIED, n_features, device=device))
    except (RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(
            name="encoder", problem=f"must take rows of {n_features} features; it says: {error}"
        ) from error
    finally:
        encoder.train(training)
    if not isinstance(rows, Tensor) or rows.ndim != 2 or rows.shape[0] != N_TRIED:
        got = tuple(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
        problem = f"must give one row per {row}, (n_{row}s, width); for {N_TRIED} it gave {got}."
        raise ParameterError(name="encoder", problem=problem)
    return int(rows.shape[1])


def make_head(
    kind: str,
    in_features: int,
    n_labels: int,
    *,
    k: int,
    width: int,
    order: np.ndarray | None,
    prior: float,
    spacing: str = "even",
    arithmetic: str | None = None,
) -> OutputLayer:
    """Return an output layer with `width` trained dimensions; a circle takes three labels, and 2k + 1 of them.

    Whether the encoder is wide enough for a guarantee is for the caller to say.
    """
    if kind == "bottleneck" or n_labels < 3:
        return BottleneckOutput(in_features, n_labels, max(width, 1), prior=prior)
    how: dict[str, Any] = {"order": order, "prior": prior, "spacing": spacing, "arithmetic": arithmetic}
    k = min(k, (n_labels - 1) // 2)
    if in_features >= 2 * k + 1 + width:
        return DFTOutput(in_features, n_labels, k, width, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        return DFTOutput(in_features, n_labels, k, width, **how)


def make_network(
    n_features: int,
    n_labels: int,
    *,
    head: str,
    k: int,
    width: int,
    encoder: str | nn.Module,
    hidden: Sequence[int],
    dropout: float,
    normalized: bool,
    sparse_rows: bool,
    order: Any = None,
    prior: float = 0.5,
    spacing: str = "even",
    arithmetic: str | None = None,
    seed: int = 0,
) -> LabelNetwork:
    """Return a network with random weights from a seed; an encoder that is a module is copied and keeps its weights.

    >>> sizes = {"k": 3, "width": 4, "hidden": [16], "dropout": 0.1}
    >>> make_network(20, 50, head="dft", encoder="mlp", normalized=True, sparse_rows=True, **sizes).head
    DFTOutput(
      in_features=16, n_labels=50, width=11, k=3, slack=4
      (projection): Linear(in_features=16, out_features=11, bias=True)
    )
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        if isinstance(encoder, str):
            # a word that few rows have should start as nothing rather than as noise; dense features all occur often
            spread = 0.01 if sparse_rows else 1.0 if normalized else n_features**-0.5
            body, size = make_layers(encoder, n_features, hidden, dropout, spread, sparse_rows)
        elif isinstance(encoder, nn.Module):
            body, size = copy.deepcopy(encoder), output_width(encoder, n_features)
        else:
            raise ParameterError(name="encoder", allowed="'mlp', 'linear' or a torch module", got=encoder)
        how: dict[str, Any] = {"order": order, "prior": prior, "spacing": spacing, "arithmetic": arithmetic}
        return LabelNetwork(body, make_head(head, size, n_labels, k=k, width=width, **how))


def load_weights(network: LabelNetwork, arrays: dict[str, np.ndarray]) -> None:
    """Give a network the weights that were saved of one of the same shape."""
    state = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    if not all(bool(torch.isfinite(value).all()) for value in state.values()):
        raise ModelError("the weights of the network are damaged: some are not finite.")
    try:
        network.load_state_dict(state)
    except (RuntimeError, ParameterError) as error:
        raise ModelError("the weights of the network are damaged: they do not fit its layers.") from error
    network.eval()
