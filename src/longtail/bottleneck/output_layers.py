"""Output layers for many labels: the usual low-rank one, and one by which every small label set can come out.

Both project the encoder's features to a few dimensions and score all labels from there; both can be audited, since
`weight()` returns the weights (n_labels, width) that multiply what `project` returns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longtail.bottleneck import double_double as dd
from longtail.bottleneck.dft import SPACINGS, check_arithmetic, dft_matrix, wave_roots
from longtail.bottleneck.dft_scores import circle_scores
from longtail.bottleneck.wave_input import wave_with_roots
from longtail.errors import GuaranteeWarning, ParameterError
from longtail.model import LabelCircle
from longtail.validate import check_choice, check_flag, check_integer, check_real

# The fixed weights are of the order 1 / sqrt(n), and optimisers move all inputs alike, so that the wave hardly moves.
# Its inputs are therefore multiplied by this times sqrt(n). On held-out rows (`gain_tuning` in bottleneck.json) 0.1 was
# better than no factor on eurlex57k and level on pubmed-mesh; larger ones were worse.
GAIN = 0.1
ROUNDING = 10 * np.finfo(np.float64).eps  # per row or column: a singular value below so much of the largest counts as 0
LEAST_GAP = 0.1  # of the mean distance between neighbours: positions then stay in order whatever is learned


class OutputLayer(nn.Module):
    """Base of the output layers: an affine projection to `width` dimensions, and an optional bias per label."""

    def __init__(self, in_features: int, n_labels: int, width: int, bias: bool) -> None:
        super().__init__()
        self.in_features: int = check_integer("in_features", in_features, low=1)
        self.n_labels: int = check_integer("n_labels", n_labels, low=1)
        self.width: int = check_integer("width", width, low=1)
        self.projection: nn.Linear = nn.Linear(self.in_features, self.width)
        self.bias: nn.Parameter | None = nn.Parameter(torch.zeros(self.n_labels)) if check_flag("bias", bias) else None

    def project(self, x: Tensor) -> Tensor:
        """Return the vectors (..., width) that the weights multiply.

        They stay in single precision under autocast: the projection costs little, and the region of inputs that
        gives a label set may be thinner than the steps of half precision.
        """
        with torch.autocast(x.device.type, enabled=False):
            return self.projection(x.to(self.projection.weight.dtype))

    def weight(self) -> Tensor:
        """Return the weights (n_labels, width), labels in the order of the scores."""
        raise NotImplementedError

    @property
    def is_onto(self) -> bool:
        """Whether the projection can return every vector: its rank is `width`, which takes as many columns."""
        return self.in_features >= self.width and _rank(self._affine()[0]) == self.width

    def label_circle(self) -> LabelCircle | None:
        """Return the circle along which the first columns of `output_weights` are waves, exactly; None without one."""
        return None

    def output_weights(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return weights as float64 and the bias or None, for audits: those of the whole layer.

        If the projection can return every vector, they are (n_labels, width) and multiply what `project` returns:
        learned weights as they are, fixed ones rounded from their formula to 64 bits, not to 32. If it cannot, they are
        multiplied with the projection, (n_labels, rank of the projection), and rounded to 64 bits.
        """
        weights = self._exact_weights()
        bias = None if self.bias is None else _float64(self.bias)
        if self.is_onto:
            return weights, bias
        matrix, offsets = self._affine()
        rank = _rank(matrix)
        if 0 < rank < self.in_features:
            left, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
            matrix = left[:, :rank] * sizes[:rank]
        return weights @ matrix, weights @ offsets + (0.0 if bias is None else bias)

    def _exact_weights(self) -> np.ndarray:
        """Return the weights (n_labels, width) in double precision."""
        return _float64(self.weight())

    def _affine(self) -> tuple[np.ndarray, np.ndarray]:
        """Return matrix (width, in_features) and offsets (width,) of what `project` does, in double precision."""
        return _float64(self.projection.weight), _float64(self.projection.bias)

    @property
    def n_parameters(self) -> int:
        """How many numbers are trained."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, n_labels={self.n_labels}, width={self.width}"


class BottleneckOutput(OutputLayer):
    """Score labels through a bottleneck: an affine projection to `width` dimensions, then one weight row per label.

    When `width` is far below `n_labels`, most label sets cannot come out, whatever the input;
    `longtail.audit.argmaxable(layer, Y)` finds which.

    Parameters
    ----------
    in_features : int
        Columns of the input.
    n_labels : int
        Scores per row.
    width : int
        Dimensions of the bottleneck.
    bias : bool, default=False
        Whether one more number is learned per label.
    prior : float, default=None
        Probability of every label at the start, about; None starts at 1/2. It sets the bias or, without one, a first
        column of weights that starts as ones.

    Attributes
    ----------
    n_parameters : int
        Numbers that are trained.

    Examples
    --------
    >>> layer = BottleneckOutput(8, 100, 5)
    >>> layer(torch.ones(2, 8)).shape, layer.weight().shape, layer.n_parameters
    (torch.Size([2, 100]), torch.Size([100, 5]), 545)
    """

    def __init__(
        self, in_features: int, n_labels: int, width: int, *, bias: bool = False, prior: float | None = None
    ) -> None:
        super().__init__(in_features, n_labels, width, bias)
        self.scores: nn.Linear = nn.Linear(self.width, self.n_labels, bias=False)
        if prior is not None:
            self._start_at(_logit(prior))

    def _start_at(self, score: float) -> None:
        with torch.no_grad():
            if self.bias is not None:
                self.bias.fill_(score)
                return
            # ones, not 1 / sqrt(n): the optimiser then moves this column as gently as the others
            self.scores.weight[:, 0] = 1.0
            self.projection.bias.zero_()
            self.projection.bias[0] = score

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (..., n_labels)."""
        return nn.functional.linear(self.project(x), self.scores.weight, self.bias)

    def weight(self) -> Tensor:
        """Return the weights (n_labels, width)."""
        return self.scores.weight


class DFTOutput(OutputLayer):
    """Score labels so that every set of at most `k` labels can come out, with 2k + 1 dimensions and few parameters.

    The labels stand on a circle and the projected input is a wave along it with frequencies up to `k`: it can be
    above zero on any `k` runs of neighbours and below zero elsewhere. The wave is a fixed matrix, applied by FFT;
    `slack` adds learned dimensions, which makes the regions larger and keeps the guarantee.

    Parameters
    ----------
    in_features : int
        Columns of the input; at least 2k + 1 + slack, or nothing is guaranteed, and a warning says so: in place of a
        layer that reads fewer, replace it and the one before it.
    n_labels : int
        Scores per row; at least 2k + 1.
    k : int
        Number of labels of which every set can come out.
    slack : int, default=0
        Learned dimensions besides the fixed ones.
    order : sequence of int, default=None
        Position of each label on the circle, a permutation of 0..n_labels-1, such as
        `longtail.bottleneck.circle_order(Y)` returns; None keeps the order of the labels.
    bias : bool, default=False
        Whether one more number is learned per label.
    prior : float, default=None
        Probability of every label at the start, about, one number for all; None for k / n_labels. The mean number of
        labels per row over n_labels is closer to the truth.
    spacing : {"even", "learned"}, default="even"
        Distances between neighbours on the circle: all the same, or learned, each at least a tenth of that. The
        guarantee does not depend on them; learned ones cost a product with n_labels x (2k + 1) numbers.
    arithmetic : {"float64", "double-double"}, default=None
        Numbers in which the projection and the wave are computed; None for those of the layer's weights. The guarantee
        is one of real numbers: 32 bits cannot hold the inputs that give many of the sets, 64 bits lose some of 20
        labels, and two 64-bit numbers in place of each ("double-double", slow) hold all, up to 10,000 labels and k = 20
        at least.

    Attributes
    ----------
    guaranteed : int
        `k`, if the projection can return every vector of its 2k + 1 + slack dimensions, as it can unless `in_features`
        is smaller or training made its rows dependent; else 0. Every set of so many labels comes out for some input,
        a vector of any numbers; which of these the layers before this one can hand on is not looked at.
    is_onto : bool
        Whether the projection can return every vector.
    n_parameters : int
        Numbers that are trained.

    Examples
    --------
    >>> layer = DFTOutput(16, 100, k=3, slack=2)
    >>> layer(torch.ones(2, 16)).shape, layer.weight().shape, layer.n_parameters, layer.guaranteed
    (torch.Size([2, 100]), torch.Size([100, 9]), 353, 3)
    """

    order: Tensor | None
    inverse: Tensor | None
    gains: Tensor

    def __init__(
        self,
        in_features: int,
        n_labels: int,
        k: int,
        slack: int = 0,
        *,
        order: Sequence[int] | np.ndarray | Tensor | None = None,
        bias: bool = False,
        prior: float | None = None,
        spacing: str = "even",
        arithmetic: str | None = None,
    ) -> None:
        n, k = check_integer("n_labels", n_labels, low=1), check_integer("k", k, low=1)
        learned = check_choice("spacing", spacing, SPACINGS) == "learned"
        arithmetic = check_arithmetic(arithmetic)
        slack = check_integer("slack", slack, low=0)
        if 2 * k + 1 > n:
            raise ParameterError(name="k", allowed=f"at most {(n - 1) // 2} for {n} labels, so that 2k + 1 <= n", got=k)
        start = _logit(k / n if prior is None else prior)
        positions = None if order is None else _permutation(order, n)
        super().__init__(in_features, n, 2 * k + 1 + slack, bias)
        self.k = k
        self.arithmetic = arithmetic
        self.gaps: nn.Parameter | None = nn.Parameter(torch.zeros(n)) if learned else None
        self.slack: nn.Parameter | None = nn.Parameter(torch.empty(n, slack)) if slack else None
        self.register_buffer("order", positions)
        self.register_buffer("inverse", None if positions is None else torch.argsort(positions), persistent=False)
        self.register_load_state_dict_post_hook(_refresh)
        gain = GAIN * math.sqrt(n)
        self.register_buffer("gains", torch.tensor([gain] * (2 * k + 1) + [1.0] * slack))
        with torch.no_grad():
            if self.slack is not None:
                nn.init.uniform_(self.slack, -1 / math.sqrt(slack), 1 / math.sqrt(slack))
            # the first column of the fixed weights is 1 / sqrt(n)
            self.projection.weight[: 2 * k + 1] /= math.sqrt(2 * k + 1)  # so that their sum starts no larger than one
            self.projection.bias.zero_()
            self.projection.bias[0] = math.sqrt(n) / gain * start
        if self.in_features < self.width:
            warnings.warn(
                f"a DFT layer with in_features={self.in_features} cannot give every set of k={k} labels: that takes "
                f"2k + 1 + slack = {self.width}; make the layer before it wider, or k or slack smaller.",
                GuaranteeWarning,
                stacklevel=2,
            )

    @property
    def guaranteed(self) -> int:
        """The largest number of labels of which every set can come out; 0 if the projection cannot return all."""
        return self.k if self.is_onto else 0

    def project(self, x: Tensor) -> Tensor:
        """Return the vectors (..., width) that the weights multiply, in the layer's precision, never below single."""
        if self.arithmetic is None:
            return super().project(x) * self.gains
        with torch.autocast(x.device.type, enabled=False):
            weight, bias = self.projection.weight.double(), self.projection.bias.double()
            return nn.functional.linear(x.double(), weight, bias) * self.gains.double()

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (..., n_labels), of the type of the layer's weights."""
        projected, low = self.project(x), None
        if self.arithmetic == "double-double":
            with torch.no_grad():
                exact = dd.linear(dd.pair(x.double()), self.projection.weight.double(), self.projection.bias.double())
                exact = dd.multiply(exact, dd.pair(self.gains))
            projected, low = projected + (exact.high - projected).detach(), exact.low
        scores = self.scores(projected, low)
        return scores if self.arithmetic is None else scores.to(self.projection.weight.dtype)

    def scores(self, x: Tensor, low: Tensor | None = None) -> Tensor:
        """Return the scores (..., n_labels) of vectors that `project` returns, in their own type.

        `low`, for "double-double", is added to x where x alone has too few digits.
        """
        wave, rest = x.split([2 * self.k + 1, self.width - 2 * self.k - 1], dim=-1)
        scores = self._wave_scores(wave)
        if self.arithmetic == "double-double":
            with torch.no_grad():
                below = torch.zeros_like(wave) if low is None else low[..., : 2 * self.k + 1]
                exact = dd.circle_scores(dd.Pair(wave.double(), below.double()), self.positions(), self.n_labels)
            scores = scores + (exact.high - scores).detach()
        if self.slack is not None:
            offsets = None if self.bias is None else self.bias.to(rest.dtype)
            return scores + nn.functional.linear(rest, self.slack.to(rest.dtype), offsets)
        return scores if self.bias is None else scores + self.bias.to(scores.dtype)

    def _wave_scores(self, wave: Tensor) -> Tensor:
        """Return the scores of the wave alone (..., n_labels)."""
        if self.gaps is None:
            return circle_scores(wave, self.n_labels, self.order, self.inverse)
        angles = self.positions()[:, None] * (
            torch.arange(1, self.k + 1, device=wave.device) * (2 * math.pi / self.n_labels)
        )
        waves = torch.stack([torch.cos(angles), torch.sin(angles)], dim=-1).flatten(1) * math.sqrt(2)
        with torch.autocast(wave.device.type, enabled=False):
            columns = waves.to(wave.dtype)
            return (wave[..., :1] + wave[..., 1:] @ columns.T) / math.sqrt(self.n_labels)

    def positions(self) -> Tensor:
        """Return the position of every label on the circle, from 0 to below n_labels: float64 (n_labels,)."""
        if self.gaps is None:
            steps = torch.arange(self.n_labels, dtype=torch.float64, device=self.projection.weight.device)
        else:
            share = LEAST_GAP + (1 - LEAST_GAP) * self.n_labels * torch.softmax(self.gaps.double(), dim=0)
            steps = torch.cumsum(share, dim=0) - share
        return steps if self.order is None else steps[self.order]

    def weight(self) -> Tensor:
        """Return the weights (n_labels, width): the fixed columns, then the slack, in the layer's own precision.

        Rounded to 32 bits, the fixed columns no longer give every set of k labels. An audit takes `output_weights`.
        """
        fixed = torch.from_numpy(self._fixed_weights()).to(self.projection.weight)
        return fixed if self.slack is None else torch.cat([fixed, self.slack], dim=1)

    def label_circle(self) -> LabelCircle | None:
        return self._circle() if self.is_onto else None

    def _circle(self) -> LabelCircle:
        """Return the circle along which the fixed weights are waves."""
        positions = self.positions().detach().cpu().numpy()
        return LabelCircle(self.n_labels, self.k, positions.astype(np.int64) if self.gaps is None else positions)

    def _exact_weights(self) -> np.ndarray:
        fixed = self._fixed_weights()
        return fixed if self.slack is None else np.hstack([fixed, _float64(self.slack)])

    def _affine(self) -> tuple[np.ndarray, np.ndarray]:
        gains, (matrix, offsets) = _float64(self.gains), super()._affine()
        return gains[:, None] * matrix, gains * offsets

    def _fixed_weights(self) -> np.ndarray:
        """Return the fixed columns in double precision."""
        return dft_matrix(self.n_labels, self.k, self._circle().positions)

    def input_for(self, labels: Sequence[int] | np.ndarray, size: float = 1e4) -> dd.Pair:
        """Return what `project` would have to return for exactly these labels to come out, by a formula.

        64 bits are too few for many sets, so it is always a pair of vectors (width,), float64, whose sum is the input.
        `.high` alone is the input to 64 bits, which layers of every arithmetic take: `layer.scores(pair.high)`; with
        "double-double", `layer.scores(*pair)` is exact. `size` is that of the largest entry. The labels must form at
        most k runs on the circle.

        >>> layer = DFTOutput(8, 200, 3, arithmetic="double-double")
        >>> torch.nonzero(layer.scores(*layer.input_for([10, 12, 14])) > 0).ravel().tolist()
        [10, 12, 14]
        >>> layer.input_for([10, 12, 14]).high.shape
        torch.Size([7])
        """
        members = np.unique(np.asarray(labels, dtype=np.int64))
        if members.size and not 0 <= members[0] <= members[-1] < self.n_labels:
            raise ParameterError(name="labels", allowed=f"numbers from 0 to {self.n_labels - 1}", got=list(labels))
        circle = self._circle()
        roots = wave_roots(circle, members)
        if roots is None:
            raise ParameterError(name="labels", problem=f"form more than k = {self.k} runs on the circle of labels.")
        on_inside = members.size > 0 and np.searchsorted(roots, circle.positions[members[0]]) % 2 == 1
        wave = wave_with_roots(roots, self.n_labels, self.k)
        sign = -1.0 if on_inside or members.size == 0 else 1.0
        scale = sign * size / float(wave.high.abs().max())
        wave = dd.multiply(wave, dd.pair(torch.tensor(scale, dtype=torch.float64)))
        slack = (0, self.width - 2 * self.k - 1)
        return dd.Pair(nn.functional.pad(wave.high, slack), nn.functional.pad(wave.low, slack))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, k={self.k}, slack={self.width - 2 * self.k - 1}"


def _float64(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().cpu().numpy()


def _rank(matrix: np.ndarray) -> int:
    """Return how many rows of a matrix are independent for certain, whatever their lengths; 0 if some are not finite.

    >>> _rank(np.array([[1.0, 2.0], [2.0, 4.0]])), _rank(np.array([[1.0, 0.0], [0.0, 1e-30]]))
    (1, 2)
    """
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        return 0
    sizes = np.linalg.svd(matrix / np.where(largest > 0, largest, 1.0), compute_uv=False)
    return int(np.count_nonzero(sizes > ROUNDING * max(matrix.shape) * sizes[0]))


def _logit(prior: Any) -> float:
    if isinstance(prior, list | tuple) or getattr(prior, "ndim", 0) > 0:
        many = len(prior)
        allowed = "one number for all labels, such as the mean number of labels per row over n_labels"
        raise ParameterError(name="prior", problem=f"must be {allowed}; got {many} numbers.")
    p = check_real("prior", prior, low=0, high=1, open_low=True)
    if p == 1:
        raise ParameterError(name="prior", problem="must be a number above 0 and below 1; got 1.0.")
    return math.log(p / (1 - p))


def _permutation(order: Any, n: int) -> Tensor:
    """Return the positions of the labels on the circle as int64, checked."""
    positions = order.detach().cpu().numpy() if isinstance(order, Tensor) else np.asarray(order)
    if positions.shape != (n,) or positions.dtype.kind not in "iu":
        got = f"{positions.dtype} of shape {positions.shape}"
        raise ParameterError(
            name="order", problem=f"must be {n} integers, the place of each label on the circle; got {got}."
        )
    if not np.array_equal(np.sort(positions), np.arange(n)):
        wrong = _wrong_position(positions, n)
        raise ParameterError(name="order", problem=f"must name each place from 0 to {n - 1} once; got {wrong}.")
    return torch.from_numpy(positions.astype(np.int64))


def _wrong_position(positions: np.ndarray, n: int) -> str:
    outside = positions[(positions < 0) | (positions >= n)]
    if outside.size:
        return f"place {outside[0]}"
    return f"place {np.flatnonzero(np.bincount(positions) > 1)[0]} more than once"


def _refresh(layer: Any, _: Any) -> None:
    """After other weights were loaded: check their order and find its inverse."""
    if layer.order is not None:
        positions = _permutation(layer.order, layer.n_labels)
        layer.inverse = torch.argsort(positions).to(layer.order.device)
