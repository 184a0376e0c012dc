"""The three audits of a linear output layer: of label sets, of classes, and of the top k of a ranking.

A set of labels is on top for an input x if some threshold has all its scores above and all others below. With the
threshold as one more input, `winnable` and `retrievable` ask the question of `argmaxable` again. Their radius is that
of the largest ball of inputs which one threshold serves, so every input in the ball ranks the set on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.certificate_search import SetAudit, WitnessFinder, audit_sets, deadline
from longtail.audit.dft_witness import dft_witness, find_circle
from longtail.audit.label_sets import LabelSets, distinct_sets, listed_sets
from longtail.audit.on_engine import AuditsElsewhere
from longtail.audit.projection import audit_by_projection
from longtail.audit.read_weights import BiasLike, LayerLike, transposed_hint
from longtail.audit.result import Audit
from longtail.engine import in_use
from longtail.errors import DataError
from longtail.kernels import Progress, blocks
from longtail.validate import LabelNumbers, MatrixLike, check_choice, check_real, resolve_jobs

RADII = ("exact", "bound")


def argmaxable(
    W: LayerLike,
    Y: MatrixLike,
    bias: BiasLike = None,
    box: float = 1e4,
    eps: float = 1e-8,
    *,
    inputs: object = None,
    radius: str = "exact",
    seconds: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit the label sets of the rows of Y: which can come out, for some input, and which never?

    A set comes out for an input x if the scores W x + bias are above 0 for its labels and below 0 for all others.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_labels, d), layer, model, str or Path
        Weights, one row per label: an array, a torch layer or tensor, a scikit-learn model, one of our estimators that
        has a linear output layer, an .npz, .npy or .safetensors file.
    Y : array-like or sparse matrix of shape (n_rows, n_labels)
        Label sets, one row each; what is not 0 is on.
    bias : array-like of shape (n_labels,), default=None
        One number per label; None takes the bias of the layer, if it has one.
    box : float, default=1e4
        Inputs are between -box and box. Without a bias it only sets the unit of the radius.
    eps : float, default=1e-8
        Radius of the ball that makes a set "eps-argmaxable"; 1e-8 as in the paper, 1.0 for robust ones at box 1e4.
    inputs : array-like or tensor of shape (n, d), default=None
        Inputs of the layer, for example of test rows: what they give is possible without further search.
    radius : {"exact", "bound"}, default="exact"
        "exact" finds the largest ball of every set; "bound" stops at a ball of radius `eps`, which is faster.
    seconds : float, default=None
        Stop after about this long; sets that were not reached, the largest ones, stay undecided.
    n_jobs : int, default=None
        Threads; None for all cores. The result does not depend on it.
    progress : callable, default=None
        Called with (done, total).

    Returns
    -------
    audit : Audit
        Verdict, radius and certificate of every distinct set. A sparse matrix of more than 2,000 columns, such as the
        weights of word features, is audited without linear programs: radii are then lower bounds (`radius_at_most`
        says so).

    >>> import numpy as np
    >>> W = np.array([[1.0, 0], [0, 1], [-1, -1]])
    >>> audit = argmaxable(W, [[1, 1, 0], [1, 1, 1]])
    >>> audit.verdicts.tolist()
    ['eps-argmaxable', 'not argmaxable']
    >>> audit.radius.round(1).tolist()
    [10000.0, 0.0]
    """
    layer = AuditedLayer.read(W, bias, box)
    eps = check_real("eps", eps, low=0, open_low=True)
    exact = check_choice("radius", radius, RADII) == "exact"
    try:
        sets = distinct_sets(Y, layer.n_labels)
    except DataError as error:
        if hint := transposed_hint(getattr(Y, "shape", (0,))[-1], *layer.W.shape):
            raise DataError(f"{error}{hint}") from error
        raise
    witnesses: dict[str, WitnessFinder] = {}
    if inputs is not None:
        witnesses["given input"] = witnesses_among(inputs, layer, sets)
    n_jobs, until = resolve_jobs(n_jobs), deadline(seconds)
    if layer.is_sparse:
        audits = audit_by_projection(layer, sets, eps, witnesses, until, progress)
    else:
        by_formula = witnesses_by_formula(layer)
        if by_formula is not None:
            witnesses["DFT formula"] = by_formula
        elsewhere = _elsewhere(layer, eps, exact, witnesses)
        audits = audit_sets(layer, sets, eps, exact, witnesses, n_jobs, progress, until, elsewhere)
    return Audit.collect(layer, sets, audits, kind="label sets", eps=eps)


def winnable(
    W: LayerLike,
    bias: BiasLike = None,
    box: float = 1e4,
    eps: float = 1e-8,
    *,
    radius: str = "bound",
    seconds: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit the classes of a softmax or argmax layer: which can have the highest score for some input?

    Parameters are those of `argmaxable`. Set number i of the result is class i. "argmaxable" reads: can win.

    >>> import numpy as np
    >>> corners_and_middle = np.array([[0.0, 3], [3, 0], [-3, -3], [0.1, 0.1]])
    >>> winnable(corners_and_middle).verdicts.tolist()
    ['eps-argmaxable', 'eps-argmaxable', 'eps-argmaxable', 'not argmaxable']
    """
    layer = AuditedLayer.read(W, bias, box, threshold=True)
    n = layer.n_labels
    if n < 2:
        raise DataError("W must have at least 2 classes; got 1.")
    classes = LabelSets([np.array([i]) for i in range(n)], np.arange(n), np.ones(n, dtype=np.int64))
    return _audit_ranking(layer, classes, "classes", eps, radius, deadline(seconds), n_jobs, progress)


def retrievable(
    W: LayerLike,
    sets: MatrixLike | Iterable[LabelNumbers],
    bias: BiasLike = None,
    box: float = 1e4,
    eps: float = 1e-8,
    *,
    radius: str = "bound",
    seconds: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit sets of rows of W (label or document vectors): which can be exactly the top k by inner product?

    `sets` is a list of lists of row numbers, or a matrix, sparse or dense, with one row per set; the other parameters
    are those of `argmaxable`.

    >>> import numpy as np
    >>> on_a_line = np.array([[1.0], [2.0], [3.0]])
    >>> retrievable(on_a_line, [[1, 2], [0, 2]]).verdicts.tolist()
    ['eps-argmaxable', 'not argmaxable']
    """
    layer = AuditedLayer.read(W, bias, box, threshold=True)
    top_sets = listed_sets(sets, layer.n_labels)
    for members in top_sets.members:
        if not 0 < members.size < layer.n_labels:
            raise DataError(
                f"sets must have at least one row of W and not all {layer.n_labels}; got one of {members.size}."
            )
    return _audit_ranking(layer, top_sets, "top sets", eps, radius, deadline(seconds), n_jobs, progress)


def _audit_ranking(
    layer: AuditedLayer,
    sets: LabelSets,
    kind: str,
    eps: float,
    radius: str,
    until: float,
    n_jobs: int | None,
    progress: Progress | None,
) -> Audit:
    """Audit which sets can be on top of a ranking."""
    eps = check_real("eps", eps, low=0, open_low=True)
    exact = check_choice("radius", radius, RADII) == "exact"
    witnesses: dict[str, WitnessFinder] = {"own direction": lambda members: own_direction(layer, members)}
    elsewhere = _elsewhere(layer, eps, exact, witnesses)
    audits = audit_sets(layer, sets, eps, exact, witnesses, resolve_jobs(n_jobs), progress, until, elsewhere)
    return Audit.collect(layer, sets, audits, kind=kind, eps=eps)


def _elsewhere(
    layer: AuditedLayer, eps: float, exact: bool, witnesses: dict[str, WitnessFinder]
) -> Callable[[list[np.ndarray], float], list[SetAudit]] | None:
    """Return the function that audits sets on the engine in use, where that is not this process."""
    engine = in_use()
    if engine is None or engine.in_process:
        return None
    there = AuditsElsewhere(layer, engine, eps, exact)
    return lambda sets, until: there.audit(sets, witnesses, until)


def witnesses_among(inputs: object, layer: AuditedLayer, sets: LabelSets) -> WitnessFinder:
    """Return a way to look up, among given inputs, one that produces a set."""
    X = np.asarray(inputs.detach().cpu().numpy() if hasattr(inputs, "detach") else inputs)
    if X.ndim != 2 or X.shape[1] != layer.W.shape[1]:
        raise DataError(f"inputs must have {layer.W.shape[1]} columns, as W has; got shape {X.shape}.")
    if X.dtype.kind not in "biuf" or not np.isfinite(X).all():
        raise DataError("inputs must be finite numbers.")
    wanted = {members.tobytes() for members in sets.members}
    input_of: dict[bytes, np.ndarray] = {}
    for block in blocks(X.shape[0], 64):  # 64 x n_labels scores at a time
        points = X[block].astype(np.float64)
        scores = points @ layer.W.T
        if layer.bias is not None:
            scores += layer.bias
        for x, row in zip(points, scores, strict=True):
            key = np.flatnonzero(row > 0).tobytes()
            if key in wanted and key not in input_of:
                largest = float(np.abs(x).max(initial=0))
                input_of[key] = x * (layer.box / largest) if layer.bias is None and largest > 0 else x
    return lambda members: input_of.get(members.tobytes())


def witnesses_by_formula(layer: AuditedLayer) -> WitnessFinder | None:
    """Return the formula for inputs where W is nearly a DFT matrix and all biases are the same; None elsewhere."""
    if layer.circle is not None:  # it has exact certificates, and needs no guesses
        return None
    shift = 0.0 if layer.bias is None else float(layer.bias[0])
    circle = find_circle(layer.W) if layer.bias is None or bool((layer.bias == shift).all()) else None
    if circle is None:
        return None
    return lambda members: dft_witness(members, circle, layer.W.shape[1], layer.box, shift)


def own_direction(layer: AuditedLayer, members: np.ndarray) -> np.ndarray | None:
    """Return the sum of the set's own vectors with the middle threshold, if it ranks the set on top."""
    vectors = layer.W[:, :-1]
    x = vectors[members].sum(axis=0)
    largest = float(np.abs(x).max())
    if largest == 0:
        return None
    x *= layer.box / largest
    scores = vectors @ x
    if layer.bias is not None:
        scores += layer.bias
    lowest = scores[members].min()
    scores[members] = -np.inf
    highest = scores.max()
    return np.append(x, -(lowest / 2 + highest / 2)) if lowest > highest else None
