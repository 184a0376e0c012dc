"""Rankings: classes that can never win, and sets that can never be the top k of an inner product.

A set is on top for an input x if some threshold has all its scores above and all others below. With the threshold as
one more input, that is the question of `argmaxable` again. The radius is that of the largest ball of inputs which one
threshold serves, so every input in the ball ranks the set on top.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.audit.constraints import Problem
from longtail.audit.result import Audit
from longtail.audit.search import Witness, audit_sets, deadline
from longtail.audit.set_lists import LabelSets, listed_sets
from longtail.errors import DataError
from longtail.kernels import Progress
from longtail.validate import check_choice, check_real, resolve_jobs

RADII = ("bound", "exact")


def winnable(
    W: Any,
    bias: Any = None,
    box: float = 1e4,
    eps: float = 1e-8,
    *,
    radius: str = "bound",
    seconds: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit the classes of a softmax or argmax layer: which can have the highest score for some input?

    Set number i of the result is class i. "argmaxable" reads: can win.

    >>> import numpy as np
    >>> corners_and_middle = np.array([[0.0, 3], [3, 0], [-3, -3], [0.1, 0.1]])
    >>> winnable(corners_and_middle).verdicts.tolist()
    ['eps-argmaxable', 'eps-argmaxable', 'eps-argmaxable', 'not argmaxable']
    """
    problem = Problem.make(W, bias, box, threshold=True)
    n = problem.n_labels
    if n < 2:
        raise DataError("W must have at least 2 classes; got 1.")
    classes = LabelSets([np.array([i]) for i in range(n)], np.arange(n), np.ones(n, dtype=np.int64))
    return _audit(problem, classes, "classes", eps, radius, deadline(seconds), n_jobs, progress)


def retrievable(
    W: Any,
    sets: Any,
    bias: Any = None,
    box: float = 1e4,
    eps: float = 1e-8,
    *,
    radius: str = "bound",
    seconds: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit sets of rows of W (label or document vectors): which can be exactly the top k by inner product?

    `sets` is a list of lists of row numbers, or a matrix, sparse or dense, with one row per set.

    >>> import numpy as np
    >>> on_a_line = np.array([[1.0], [2.0], [3.0]])
    >>> retrievable(on_a_line, [[1, 2], [0, 2]]).verdicts.tolist()
    ['eps-argmaxable', 'not argmaxable']
    """
    problem = Problem.make(W, bias, box, threshold=True)
    found = listed_sets(sets, problem.n_labels)
    for members in found.members:
        if not 0 < members.size < problem.n_labels:
            raise DataError(
                f"sets must have at least one row of W and not all {problem.n_labels}; got one of {members.size}."
            )
    return _audit(problem, found, "top sets", eps, radius, deadline(seconds), n_jobs, progress)


def _audit(
    problem: Problem,
    sets: LabelSets,
    kind: str,
    eps: float,
    radius: str,
    until: float,
    n_jobs: int | None,
    progress: Progress | None,
) -> Audit:
    eps = check_real("eps", eps, low=0, open_low=True)
    check_choice("radius", radius, RADII)
    witnesses: dict[str, Witness] = {"own direction": lambda members: own_direction(problem, members)}
    outcomes = audit_sets(problem, sets, eps, radius == "exact", witnesses, resolve_jobs(n_jobs), progress, until)
    return Audit.make(
        sets,
        outcomes,
        kind=kind,
        n_labels=problem.n_labels,
        width=problem.W.shape[1] - 1,
        has_bias=problem.bias is not None,
        box=problem.box,
        eps=eps,
    )


def own_direction(problem: Problem, members: np.ndarray) -> np.ndarray | None:
    """Return the sum of the set's own vectors with the middle threshold, if it ranks the set on top."""
    vectors = problem.W[:, :-1]
    x = vectors[members].sum(axis=0)
    largest = float(np.abs(x).max())
    if largest == 0:
        return None
    x *= problem.box / largest
    scores = vectors @ x
    if problem.bias is not None:
        scores += problem.bias
    lowest = scores[members].min()
    scores[members] = -np.inf
    highest = scores.max()
    return np.append(x, -(lowest / 2 + highest / 2)) if lowest > highest else None
