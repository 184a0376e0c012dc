"""Which label sets a linear output layer can and can never give."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.audit.constraints import Problem
from longtail.audit.dft_witness import dft_witness, find_circle
from longtail.audit.projection import audit_by_projection
from longtail.audit.result import Audit
from longtail.audit.search import Witness, audit_sets, deadline
from longtail.audit.set_lists import LabelSets, distinct_sets
from longtail.errors import DataError
from longtail.kernels import Progress, blocks
from longtail.validate import check_choice, check_real, resolve_jobs

RADII = ("exact", "bound")


def argmaxable(
    W: Any,
    Y: Any,
    bias: Any = None,
    box: float = 1e4,
    eps: float = 1e-8,
    *,
    inputs: Any = None,
    radius: str = "exact",
    seconds: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit the label sets of the rows of Y: which can come out, for some input, and which never?

    A set comes out for an input x if the scores W x + bias are above 0 for its labels and below 0 for all others.

    Parameters
    ----------
    W : weights (n_labels, d): an array, a sparse matrix, a torch layer or tensor, a scikit-learn model, one of our
        estimators that has a linear output layer, an .npz, .npy or .safetensors file.
    Y : label sets, one row each, sparse or dense; what is not 0 is on.
    bias : one number per label; None takes the bias of the layer, if it has one.
    box : inputs are between -box and box. Without a bias it only sets the unit of the radius.
    eps : radius of the ball that makes a set "eps-argmaxable"; 1e-8 as in the paper, 1.0 for robust ones at box 1e4.
    inputs : inputs of the layer (n, d), for example of test rows: what they give is possible without further search.
    radius : "exact" finds the largest ball of every set; "bound" stops at a ball of radius `eps`, which is faster.
    seconds : stop after about this long; sets that were not reached, the largest ones, stay undecided.
    n_jobs : threads; None for all cores. The result does not depend on it.
    progress : called with (done, total).

    A sparse matrix of more than 2,000 columns, such as the weights of word features, is audited without linear
    programs: radii are then lower bounds (`radius_at_most` says so).

    >>> import numpy as np
    >>> W = np.array([[1.0, 0], [0, 1], [-1, -1]])
    >>> audit = argmaxable(W, [[1, 1, 0], [1, 1, 1]])
    >>> audit.verdicts.tolist()
    ['eps-argmaxable', 'not argmaxable']
    >>> audit.radius.round(1).tolist()
    [10000.0, 0.0]
    """
    problem = Problem.make(W, bias, box)
    eps = check_real("eps", eps, low=0, open_low=True)
    check_choice("radius", radius, RADII)
    sets = distinct_sets(Y, problem.n_labels)
    witnesses: dict[str, Witness] = {}
    if inputs is not None:
        witnesses["given input"] = given_inputs(problem, sets, inputs)
    n_jobs, until = resolve_jobs(n_jobs), deadline(seconds)
    if problem.is_sparse:
        outcomes = audit_by_projection(problem, sets, eps, witnesses, until, progress)
    else:
        shift = 0.0 if problem.bias is None else float(problem.bias[0])
        circle = find_circle(problem.W) if problem.bias is None or bool((problem.bias == shift).all()) else None
        if circle is not None:
            width = problem.W.shape[1]
            witnesses["DFT formula"] = lambda members: dft_witness(members, circle, width, problem.box, shift)
        outcomes = audit_sets(problem, sets, eps, radius == "exact", witnesses, n_jobs, progress, until)
    return Audit.make(
        sets,
        outcomes,
        kind="label sets",
        n_labels=problem.n_labels,
        width=problem.W.shape[1],
        has_bias=problem.bias is not None,
        box=problem.box,
        eps=eps,
    )


def given_inputs(problem: Problem, sets: LabelSets, inputs: Any) -> Witness:
    """Return a way to look up an input among the given ones that gives a set."""
    X = np.asarray(inputs.detach().cpu().numpy() if hasattr(inputs, "detach") else inputs)
    if X.ndim != 2 or X.shape[1] != problem.W.shape[1]:
        raise DataError(f"inputs must have {problem.W.shape[1]} columns, as W has; got shape {X.shape}.")
    if X.dtype.kind not in "biuf" or not np.isfinite(X).all():
        raise DataError("inputs must be finite numbers.")
    wanted = {members.tobytes() for members in sets.members}
    found: dict[bytes, np.ndarray] = {}
    for block in blocks(X.shape[0], 64):  # 64 x n_labels scores at a time
        points = X[block].astype(np.float64)
        scores = points @ problem.W.T
        if problem.bias is not None:
            scores += problem.bias
        for x, row in zip(points, scores, strict=True):
            key = np.flatnonzero(row > 0).tobytes()
            if key in wanted and key not in found:
                largest = float(np.abs(x).max(initial=0))
                found[key] = x * (problem.box / largest) if problem.bias is None and largest > 0 else x
    return lambda members: found.get(members.tobytes())
