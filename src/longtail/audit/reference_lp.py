"""Chebyshev centre of a label region by HiGHS: the reference, and the second opinion when our own solver gets stuck.

`highspy` is used if it is installed (extra `audit`), else the HiGHS that comes with scipy.
"""

from __future__ import annotations

import importlib.util
import threading
from typing import TYPE_CHECKING

import numpy as np

from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.time_left import TimeLeft

if TYPE_CHECKING:
    import highspy

TOLERANCE = 1e-10
MOST_ROUNDS = 200


def has_highspy() -> bool:
    """Say whether the package highspy is installed."""
    return importlib.util.find_spec("highspy") is not None


def solve_with_all_rows(layer: AuditedLayer, labels: np.ndarray) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """Solve one linear program with the rows of all labels; returns as `solve_by_row_generation` does.

    >>> import numpy as np
    >>> x, r, rows, weights = solve_with_all_rows(AuditedLayer.read(np.eye(2), box=1), np.array([0]))
    >>> x.tolist(), round(r, 9)
    ([1.0, -1.0], 1.0)
    """
    signs = layer.signs(labels)
    x, r, weights = _solve(layer.lp_rows * signs[:, None], layer.lp_offsets * signs, TimeLeft())
    return _answer(layer, x, r, np.arange(layer.n_labels), weights)


def solve_by_row_generation(
    layer: AuditedLayer, labels: np.ndarray, rows: np.ndarray, time_left: TimeLeft | None = None
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """Solve the linear program of a few rows, adding the violated ones until none is left.

    Returns (x, r, rows, weights) in units of the layer: a centre, its radius and multipliers of the rows. When the time
    is over they are what there is by then.
    """
    time_left = TimeLeft() if time_left is None else time_left
    signs = layer.signs(labels)
    d = layer.lp_rows.shape[1]
    batch = 4 * (d + 1)
    rows = np.unique(np.concatenate([rows[rows >= 0], labels[: d + 1], [0]])).astype(np.int64)
    for _ in range(MOST_ROUNDS):
        A = layer.lp_rows[rows] * signs[rows, None]
        x, r, weights = _solve(A, layer.lp_offsets[rows] * signs[rows], time_left)
        slack = (layer.lp_rows @ x + layer.lp_offsets) * signs - r
        slack[rows] = 0
        worst = np.argsort(slack, kind="stable")[:batch]
        worst = worst[slack[worst] < -TOLERANCE]
        if worst.size == 0 or time_left.is_over:
            break
        rows = np.union1d(rows, worst)
    return _answer(layer, x, r, rows, weights)


def _answer(
    layer: AuditedLayer, x: np.ndarray, r: float, rows: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """Return a solution in units of the layer, with the rows whose multiplier is not 0."""
    used = weights > 0
    return x * layer.limits, r * layer.box, rows[used], layer.unscaled_weights(rows[used], weights[used])


def _solve(A: np.ndarray, offsets: np.ndarray, time_left: TimeLeft) -> tuple[np.ndarray, float, np.ndarray]:
    """Maximise r with A x + offsets >= r and |x| <= 1; returns x, r and the multipliers, whose sum is 1."""
    n, d = A.shape
    # The last column is r. It may be negative: then no input gives the set, and the multipliers prove it.
    table = np.column_stack([-A, np.ones(n)])
    x, duals = _highspy(table, offsets, time_left) if has_highspy() else _scipy(table, offsets, time_left)
    return np.clip(x[:d], -1, 1), float(x[d]), np.maximum(duals, 0)


def _highspy(table: np.ndarray, upper: np.ndarray, time_left: TimeLeft) -> tuple[np.ndarray, np.ndarray]:
    """Return solution and multipliers of max r subject to table @ (x, r) <= upper, by highspy."""
    import highspy

    n, columns = table.shape
    solver = highspy.Highs()
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "solver": "simplex",
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, n
    lp.col_cost_ = np.concatenate([np.zeros(columns - 1), [-1.0]])
    lp.col_lower_ = np.concatenate([np.full(columns - 1, -1.0), [-highspy.kHighsInf]])
    lp.col_upper_ = np.concatenate([np.ones(columns - 1), [highspy.kHighsInf]])
    lp.row_lower_, lp.row_upper_ = np.full(n, -highspy.kHighsInf), upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.arange(0, n * columns + 1, columns, dtype=np.int32)
    lp.a_matrix_.index_ = np.tile(np.arange(columns, dtype=np.int32), n)
    lp.a_matrix_.value_ = table.ravel()
    solver.passModel(lp)
    _run_until(solver, time_left)
    solution = solver.getSolution()
    if len(solution.col_value) != columns or len(solution.row_dual) != n:  # stopped before it had any
        return np.zeros(columns), np.zeros(n)
    return np.array(solution.col_value), -np.array(solution.row_dual)


def _run_until(solver: highspy.Highs, time_left: TimeLeft) -> None:
    """Run the solver in a thread of its own, so that signals are handled meanwhile; it ends when the time is over."""

    def look(event: highspy.highs.HighsCallbackEvent) -> None:
        if time_left.is_over:
            event.interrupt()

    solver.cbSimplexInterrupt += look
    thread = threading.Thread(target=solver.run, daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        time_left.stop()
        thread.join()
        raise


def _scipy(table: np.ndarray, upper: np.ndarray, time_left: TimeLeft) -> tuple[np.ndarray, np.ndarray]:
    """Return the same by the HiGHS that comes with scipy."""
    from scipy.optimize import linprog

    n, columns = table.shape
    cost = np.concatenate([np.zeros(columns - 1), [-1.0]])
    bounds = [(-1.0, 1.0)] * (columns - 1) + [(None, None)]
    options = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}
    if time_left.seconds < np.inf:
        options["time_limit"] = time_left.seconds
    solution = linprog(cost, A_ub=table, b_ub=upper, bounds=bounds, method="highs-ds", options=options)
    if solution.x is None:
        return np.zeros(columns), np.zeros(n)
    return solution.x, -solution.ineqlin.marginals
