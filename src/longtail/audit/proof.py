"""What a certificate proves, with every rounding error accounted for; the search for certificates is elsewhere.

- An input x proves that a set can come out: all scores have the right sign. Scores are computed with a bound on their
  error; those that are nearer to 0 are computed exactly.
- Weights u >= 0 on some labels prove the opposite. With s_i = +1 or -1 for on or off and v = sum of u_i s_i w_i,
      r * sum of u_i |w_i|  <=  sum of u_i s_i (w_i . x + b_i)  <=  box * |v|_1 + sum of u_i s_i b_i
  for every x in the box, so no ball is larger than that. Where the right side is below 0 no input exists. Without a
  bias it is above 0 by rounding alone; then it is proved that weights nearby make v exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, qr

from longtail.audit.certificate import Certificate
from longtail.audit.constraints import UNIT, Problem, gamma, lengths_of
from longtail.audit.exact import balanced, dot_sign
from longtail.errors import DataError

UP, DOWN = 1 + 1e-12, 1 - 1e-12  # for the few operations on bounds themselves
MOST_EXACT_SCORES = 20_000
NEARLY = 1e-8


@dataclass(frozen=True)
class Proof:
    """What a certificate proves: `reachable` is True, False or, when it proves neither, None."""

    reachable: bool | None
    radius_at_least: float  # 0 when no input is proved
    radius_at_most: float  # inf when nothing is proved

    @property
    def holds(self) -> bool:
        """Whether the certificate decides the question."""
        return self.reachable is not None


def check_certificate(W: Any, labels: Any, certificate: Certificate, bias: Any = None, box: float = 1e4) -> Proof:
    """Check a certificate for the set of `labels`, from the weights alone.

    >>> import numpy as np
    >>> W = np.array([[1.0, 0], [0, 1], [-1, -1]])
    >>> check_certificate(W, [0, 1], Certificate(x=np.array([1.0, 1.0]))).reachable
    True
    >>> nothing_off = Certificate(labels=np.array([0, 1, 2]), weights=np.ones(3))
    >>> check_certificate(W, [0, 1, 2], nothing_off).reachable
    False
    """
    if not isinstance(certificate, Certificate):
        raise DataError(f"certificate must be a Certificate; got {type(certificate).__name__}.")
    certificate = certificate.as_arrays()
    problem = Problem.make(W, bias, box, threshold=certificate.threshold)
    ids = np.unique(np.asarray(labels, dtype=np.int64))
    if ids.size and not 0 <= ids[0] <= ids[-1] < problem.n_labels:
        raise DataError(f"labels must be numbers from 0 to {problem.n_labels - 1}; got {list(labels)!r}.")
    return prove(problem, ids, certificate)


def prove(problem: Problem, labels: np.ndarray, certificate: Certificate) -> Proof:
    """Return what a certificate proves about a set of labels."""
    signs = problem.signs(labels)
    reachable, low, high = None, 0.0, np.inf
    x = certificate.x
    if x is None and certificate.mix is not None and certificate.mix.shape == (problem.n_labels,):
        x = problem.W.T @ certificate.mix
    if x is not None:
        found = input_radius(problem, signs, x)
        if found is not None:
            reachable, low = True, found
    if certificate.labels is not None and certificate.weights is not None:
        high, impossible = combination_bound(
            problem, signs, certificate.labels, certificate.weights, bound_only=reachable is not None
        )
        if impossible and reachable is None:
            reachable, high = False, min(high, 0.0)
    return Proof(reachable, low, high)


def input_radius(problem: Problem, signs: np.ndarray, x: np.ndarray) -> float | None:
    """Return the radius of a ball around x that lies in the region, >= 0; None if x does not give the set."""
    d = problem.W.shape[1]
    if x.shape != (d,) or not np.isfinite(x).all():
        return None
    if problem.bias is not None and np.abs(x[: d - problem.threshold]).max() > problem.box:
        return None
    scores = problem.W @ x
    if problem.bias is not None:
        scores += problem.bias
    size = float(lengths_of(x[None])[0])
    inner = problem.lengths if not problem.threshold else np.hypot(problem.lengths, 1.0) * UP
    error = inner * size + (0.0 if problem.bias is None else np.abs(problem.bias))
    error = error * gamma(d + 6) + d * 2.0**-1070
    margins = scores * signs - error
    if float(margins.min()) <= 0:
        unsure = np.flatnonzero(margins <= 0)
        if (scores[unsure] * signs[unsure] < -error[unsure]).any() or unsure.size > MOST_EXACT_SCORES:
            return None
        for i in unsure:
            row, point = problem.W[[i]].toarray()[0] if problem.is_sparse else problem.W[i], x
            if problem.bias is not None:
                row, point = np.append(row, problem.bias[i]), np.append(x, 1.0)
            if dot_sign(row, point) != signs[i]:
                return None
        return 0.0
    moving = problem.lengths > 0
    radius = float((margins[moving] / problem.lengths[moving]).min()) * DOWN
    largest = float(np.abs(x[: d - problem.threshold]).max())
    if largest > problem.box:  # without a bias the region is a cone: the input may be made smaller
        radius *= problem.box / largest * DOWN
    return radius


def combination_bound(
    problem: Problem, signs: np.ndarray, rows: np.ndarray, weights: np.ndarray, bound_only: bool = False
) -> tuple[float, bool]:
    """Return an upper bound on the radius of any ball, and whether the set is proved impossible.

    With `bound_only`, for sets that are known to be possible, no time is spent on exact arithmetic.
    """
    fits = rows.ndim == 1 and rows.shape == weights.shape and rows.size > 0 and np.unique(rows).size == rows.size
    if not fits or rows.min() < 0 or rows.max() >= problem.n_labels:
        return np.inf, False
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.max() <= 0:
        return np.inf, False
    A, limits = problem.some_rows(rows)
    A = A * signs[rows, None]
    m = rows.size
    v = weights @ A
    v_error = (weights @ np.abs(A)) * (gamma(m + 2) * UP) + m * 2.0**-1070
    most = float(((np.abs(v) + v_error) * limits).sum()) * UP
    b = None
    if problem.bias is not None:
        b = problem.bias[rows] * signs[rows]
        most += float(weights @ b) + float(weights @ np.abs(b)) * gamma(m + 2) * UP
        most += abs(most) * 1e-15
    lengths = float(weights @ problem.lengths[rows])
    bound = most / lengths * (UP if most > 0 else DOWN) if lengths > 0 else np.inf
    if lengths > 0 and most > 0:
        bound *= 1 + gamma(2 * problem.W.shape[1] + 12)  # lengths are rounded up
    if most < 0 or bound_only:
        return bound, most < 0
    v = np.abs(v) + v_error
    if (v > NEARLY * (weights @ np.abs(A)) + 1e-300).any():  # far from balanced: no proof, and no time spent on one
        return bound, False
    if _verified(A, weights, v, b):
        return bound, True
    tried = 0
    for least in (1e-7, 1e-11, 0.0):  # rows that depend on each other: rounding has left weights where 0 belongs
        used = weights > least * weights.max()
        if used.sum() > tried and balanced(A[used], weights[used], None if b is None else b[used]):
            return bound, True
        tried = int(used.sum())
    return bound, False


def _verified(A: np.ndarray, weights: np.ndarray, v: np.ndarray, b: np.ndarray | None) -> bool:
    """Prove that weights near the given ones balance the rows exactly, from an approximate inverse.

    d rows, scaled by their weights, make the matrix B. If R B is near the identity, B is regular, and the change of the
    weights that removes v is at most |R| |v| / (1 - rho) relative to them: below 1 they all stay positive.
    """
    used = weights > 0
    kept = np.abs(A[used]).max(axis=0, initial=0.0) > 0
    A, weights, v, b = A[np.ix_(used, kept)], weights[used], v[kept], None if b is None else b[used]
    m, d = A.shape
    if d == 0:  # constant labels: no score above 0 where it should be
        return b is not None and bool((b <= 0).all())
    if m <= d:
        return False
    B = (A * weights[:, None]).T  # (d, m)
    power = -int(np.frexp(np.abs(B).max())[1])  # scaling by a power of two is exact
    B, v = np.ldexp(B, power), np.ldexp(v, power)
    try:
        chosen = np.sort(qr(B, mode="r", pivoting=True)[1][:d])
        B = np.ascontiguousarray(B[:, chosen])
        R = np.linalg.inv(B)
    except (LinAlgError, ValueError):
        return False
    if not np.isfinite(R).all():
        return False
    eye = np.eye(d)
    rest = np.abs(eye - R @ B) + gamma(d + 4) * (np.abs(R) @ np.abs(B) + eye)
    rho = float(rest.sum(axis=1).max()) * UP + d * UNIT
    if not rho < 0.5:
        return False
    change = float((np.abs(R) @ v).max()) * (1 + gamma(d + 4)) / (1 - rho) * UP
    if not change < 1:
        return False
    if b is None:
        return True
    moved = float(np.abs(weights[chosen] * b[chosen]).sum()) * change * UP
    return float(weights @ b) + float(weights @ np.abs(b)) * gamma(m + 2) * UP + moved <= 0
