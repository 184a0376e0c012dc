"""Checking certificates: what each proves, with every rounding error accounted for.

- An input x proves that a set can come out: all scores have the right sign. Scores are computed with a bound on their
  error; those that are nearer to 0 are computed exactly.
- Weights u >= 0 on some labels prove the opposite. With s_i = +1 or -1 for on or off and v = sum of u_i s_i w_i,
      r * sum of u_i |w_i|  <=  sum of u_i s_i (w_i . x + b_i)  <=  box * |v|_1 + sum of u_i s_i b_i
  for every x in the box, so no ball is larger than that. Where the right side is below 0 no input exists. Without a
  bias it is above 0 by rounding alone; then it is proved that weights nearby make v exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.linalg import LinAlgError, qr

from longtail.audit.audited_layer import UNIT, AuditedLayer, rounding_bound, row_lengths
from longtail.audit.certificate import Certificate
from longtail.audit.read_weights import BiasLike, LayerLike
from longtail.audit.wave_roots import roots_radius
from longtail.errors import DataError
from longtail.validate import LabelNumbers

UP, DOWN = 1 + 1e-12, 1 - 1e-12  # for the few operations on bounds themselves
MOST_EXACT_SCORES = 20_000
NEARLY = 1e-8
MOST_EXACT_ROWS = 32  # rows of a linear system that is solved exactly


@dataclass(frozen=True)
class Proof:
    """Statement that a certificate proves: `reachable` is True, False or, when it proves neither, None."""

    reachable: bool | None
    radius_at_least: float  # 0 when no input is proved
    radius_at_most: float  # inf when nothing is proved

    @property
    def holds(self) -> bool:
        """Whether the certificate decides the question."""
        return self.reachable is not None


def check_certificate(
    W: LayerLike, labels: LabelNumbers, certificate: Certificate, bias: BiasLike = None, box: float = 1e4
) -> Proof:
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
    layer = AuditedLayer.read(W, bias, box, threshold=certificate.threshold)
    ids = np.unique(np.asarray(labels, dtype=np.int64))
    if ids.size and not 0 <= ids[0] <= ids[-1] < layer.n_labels:
        raise DataError(f"labels must be numbers from 0 to {layer.n_labels - 1}; got {list(labels)!r}.")
    return prove(layer, ids, certificate)


def prove(layer: AuditedLayer, labels: np.ndarray, certificate: Certificate) -> Proof:
    """Return what a certificate proves about a set of labels."""
    signs = layer.signs(labels)
    reachable, low, high = None, 0.0, np.inf
    x = certificate.x
    if x is None and certificate.mix is not None and certificate.mix.shape == (layer.n_labels,):
        x = layer.W.T @ certificate.mix
    if x is not None:
        radius = input_radius(layer, signs, x)
        if radius is not None:
            reachable, low = True, radius
    if certificate.roots is not None:
        radius = roots_radius(layer, labels, certificate.roots)
        if radius is not None:
            reachable, low = True, max(low, radius)
    if certificate.labels is not None and certificate.weights is not None:
        high, impossible = combination_bound(
            layer, signs, certificate.labels, certificate.weights, bound_only=reachable is not None
        )
        if impossible and reachable is None:
            reachable, high = False, min(high, 0.0)
    return Proof(reachable, low, high)


def input_radius(layer: AuditedLayer, signs: np.ndarray, x: np.ndarray) -> float | None:
    """Return the radius of a ball around x that lies in the region, >= 0; None if x does not give the set."""
    d = layer.W.shape[1]
    if x.shape != (d,) or not np.isfinite(x).all():
        return None
    if layer.bias is not None and np.abs(x[: d - layer.threshold]).max() > layer.box:
        return None
    scores = layer.W @ x
    if layer.bias is not None:
        scores += layer.bias
    size = float(row_lengths(x[None])[0])
    inner = layer.lengths if not layer.threshold else np.hypot(layer.lengths, 1.0) * UP
    error = inner * size + (0.0 if layer.bias is None else np.abs(layer.bias))
    error = error * rounding_bound(d + 6) + d * 2.0**-1070
    if layer.column_errors is not None:
        error = error + float(layer.column_errors @ np.abs(x)) * UP
    margins = scores * signs - error
    if float(margins.min()) <= 0:
        unsure = np.flatnonzero(margins <= 0)
        if (scores[unsure] * signs[unsure] < -error[unsure]).any() or unsure.size > MOST_EXACT_SCORES:
            return None
        if layer.column_errors is not None:  # W is not the layer to the last digit: nothing to compute exactly
            return None
        for i in unsure.tolist():
            row, point = layer.dense_row(i), x
            if layer.bias is not None:
                row, point = np.append(row, layer.bias[i]), np.append(x, 1.0)
            if dot_sign(row, point) != signs[i]:
                return None
        return 0.0
    moving = layer.lengths > 0
    radius = float((margins[moving] / layer.lengths[moving]).min()) * DOWN
    largest = float(np.abs(x[: d - layer.threshold]).max())
    if largest > layer.box:  # without a bias the region is a cone: the input may be made smaller
        radius *= layer.box / largest * DOWN
    return radius


def combination_bound(
    layer: AuditedLayer, signs: np.ndarray, rows: np.ndarray, weights: np.ndarray, bound_only: bool = False
) -> tuple[float, bool]:
    """Return an upper bound on the radius of any ball, and whether the set is proved impossible.

    With `bound_only`, for sets that are known to be possible, no time is spent on exact arithmetic.
    """
    fits = rows.ndim == 1 and rows.shape == weights.shape and rows.size > 0 and np.unique(rows).size == rows.size
    if not fits or rows.min() < 0 or rows.max() >= layer.n_labels:
        return np.inf, False
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.max() <= 0:
        return np.inf, False
    A, limits = layer.dense_rows(rows)
    A = A * signs[rows, None]
    m = rows.size
    v = weights @ A
    v_error = (weights @ np.abs(A)) * (rounding_bound(m + 2) * UP) + m * 2.0**-1070
    errors = layer.column_errors
    if errors is not None:
        v_error = v_error + float(weights.sum()) * errors * UP
    most = float(((np.abs(v) + v_error) * limits).sum()) * UP
    b = None
    if layer.bias is not None:
        b = layer.bias[rows] * signs[rows]
        most += float(weights @ b) + float(weights @ np.abs(b)) * rounding_bound(m + 2) * UP
        most += abs(most) * 1e-15
    lengths = float(weights @ layer.lengths[rows])
    bound = most / lengths * (UP if most > 0 else DOWN) if lengths > 0 else np.inf
    if lengths > 0 and most > 0:
        bound *= 1 + rounding_bound(2 * layer.W.shape[1] + 12)  # lengths are rounded up
    if most < 0 or bound_only:
        return bound, most < 0
    v = np.abs(v) + v_error
    if (v > NEARLY * (weights @ np.abs(A)) + 1e-300).any():  # far from balanced: no proof, and no time spent on one
        return bound, False
    if _verified(A, weights, v, b, errors):
        return bound, True
    if errors is not None:
        return bound, False
    tried = 0
    for least in (1e-7, 1e-11, 0.0):  # rows that depend on each other: rounding has left weights where 0 belongs
        used = weights > least * weights.max()
        if used.sum() > tried and balanced(A[used], weights[used], None if b is None else b[used]):
            return bound, True
        tried = int(used.sum())
    return bound, False


def _verified(
    A: np.ndarray, weights: np.ndarray, v: np.ndarray, b: np.ndarray | None, errors: np.ndarray | None = None
) -> bool:
    """Prove that weights near the given ones balance the rows exactly, from an approximate inverse.

    `errors` bounds how far entries of each column of A may be from the layer's own. d rows, scaled by their weights,
    make the matrix B. If R B is near the identity, B is regular, and the change of the weights that removes v is at
    most |R| |v| / (1 - rho) relative to them: below 1 they all stay positive.
    """
    used = weights > 0
    kept = np.abs(A[used]).max(axis=0, initial=0.0) > 0
    A, weights, v, b = A[np.ix_(used, kept)], weights[used], v[kept], None if b is None else b[used]
    errors = None if errors is None else errors[kept]
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
        off = 0.0 if errors is None else np.ldexp(np.outer(errors, weights[chosen]), power) * UP
        R = np.linalg.inv(B)
    except (LinAlgError, ValueError):
        return False
    if not np.isfinite(R).all():
        return False
    eye = np.eye(d)
    rest = np.abs(eye - R @ B) + rounding_bound(d + 4) * (np.abs(R) @ np.abs(B) + eye)
    if errors is not None:
        rest += np.abs(R) @ off * (1 + rounding_bound(d + 4))
    rho = float(rest.sum(axis=1).max()) * UP + d * UNIT
    if not rho < 0.5:
        return False
    change = float((np.abs(R) @ v).max()) * (1 + rounding_bound(d + 4)) / (1 - rho) * UP
    if not change < 1:
        return False
    if b is None:
        return True
    moved = float(np.abs(weights[chosen] * b[chosen]).sum()) * change * UP
    return float(weights @ b) + float(weights @ np.abs(b)) * rounding_bound(m + 2) * UP + moved <= 0


# Exact arithmetic on doubles, where rounding would decide: every double is an integer times a power of two, so sums of
# products are integers after a shift.


def dot_sign(a: np.ndarray, b: np.ndarray) -> int:
    """Return the sign of the dot product of two vectors of doubles, exactly.

    >>> import numpy as np
    >>> dot_sign(np.array([1e16, 1.0, -1e16]), np.ones(3))
    1
    """
    (xs, x_powers), (ys, y_powers) = _integers(a), _integers(b)
    powers = [p + q for p, q in zip(x_powers, y_powers, strict=True)]
    low = min(powers, default=0)
    total = sum(x * y << (p - low) for x, y, p in zip(xs, ys, powers, strict=True) if x and y)
    return (total > 0) - (total < 0)


def _integers(values: np.ndarray) -> tuple[list[int], list[int]]:
    """Return doubles as integers times powers of two: the integers and the exponents."""
    parts, powers = np.frexp(values)
    return np.ldexp(parts, 53).astype(np.int64).tolist(), (powers.astype(np.int64) - 53).tolist()


def balanced(
    A: np.ndarray,  # rows                       (m, d)
    weights: np.ndarray,  # nearly balancing, > 0      (m,)
    b: np.ndarray | None = None,
) -> bool:
    """Say whether weights >= 0, not all 0, exist near the given ones with A' weights = 0 (and b . weights <= 0).

    The system is reduced exactly; the free weights are kept as given and the others follow from them.
    """
    m = A.shape[0]
    if m > MOST_EXACT_ROWS:
        return False
    system = [[Fraction(float(v)) for v in column] for column in A.T]
    order = np.argsort(weights, kind="stable")  # small weights follow from the large ones
    pivots: list[int] = []
    for at in map(int, order):
        row = next((r for r in range(len(pivots), len(system)) if system[r][at]), None)
        if row is None:
            continue
        top = len(pivots)
        system[top], system[row] = system[row], system[top]
        scale = system[top][at]
        system[top] = [v / scale for v in system[top]]
        for r, line in enumerate(system):
            if r != top and line[at]:
                factor = line[at]
                system[r] = [v - factor * w for v, w in zip(line, system[top], strict=True)]
        pivots.append(at)
    exact = [Fraction(float(w)) for w in weights]
    free = [i for i in range(m) if i not in pivots]
    if not free:
        return False
    for r, at in enumerate(pivots):
        exact[at] = -sum((system[r][i] * exact[i] for i in free), Fraction(0))
    if min(exact) < 0 or max(exact) <= 0:
        return False
    return b is None or sum((Fraction(float(v)) * w for v, w in zip(b, exact, strict=True)), Fraction(0)) <= 0
