"""Simulate when it pays to assign the labels of groups to rows: the two simulations of the EAGLE paper (Figure 6).

    python benchmarks/groups/eagle_simulation.py [--seeds 20] [--figure FILE.svg]

1000 rows of 10 features in groups of 10; 5 outputs. Regression: a group's centre has spread 1, its rows spread σ₂
about it, and the group's outputs come in unknown order. Classification: rows lie about the vectors of 5 labels; the
larger σ₂, the more the rows of a group have one label. `sums` learns from the sums over groups (no assignment);
`assigned` gives every output to the row of its group that fits the first model best; `ours` (classification) is
`Eagle(assign="auto")`. All are relative to learning from known correspondences: 1 is perfect.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail.groups import Eagle
from longtail.report.plots.canvas import WIDTH, dot, drawing, line, linear, standalone, text, ticks

Lines = dict[str, dict[str, list[float]]]  # name -> sigma -> mean and standard deviation
N, D, L, G = 1000, 10, 5, 10  # rows, features, outputs, rows of a group
SIGMAS = (0.0, 0.1, 1.0, 5.0, 10.0)
SPREAD = 0.5  # of a row about its label's vector; with the paper's 0.1 labels are told apart without a mistake
STYLES = {"sums": ("stroke2", "dot2"), "assigned": ("stroke", "dot"), "ours": ("sgood", "good")}


def solve(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return least-squares B of Z = X B, (d, l)."""
    return np.linalg.lstsq(X, Z, rcond=None)[0]


def by_sums(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return B learned from the sums over groups."""
    return solve(X.reshape(-1, G, X.shape[1]).sum(axis=1), Z.reshape(-1, G, Z.shape[1]).sum(axis=1))


def assigned(X: np.ndarray, Z: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Give every output to the row of its group whose prediction is nearest, and learn again."""
    chosen = np.empty_like(X)
    for low in range(0, X.shape[0], G):
        rows, outputs = X[low : low + G], Z[low : low + G]
        distance = ((outputs[:, None] - (rows @ B)[None]) ** 2).sum(axis=2)  # (outputs, rows)
        chosen[low : low + G] = rows[distance.argmin(axis=1)]
    return solve(chosen, Z)


def regression(sigma: float, rng: np.random.Generator) -> dict[str, float]:
    """Return the root mean square error of B against that of known correspondences."""
    centres = np.repeat(rng.standard_normal((N // G, D)), G, axis=0)
    X = centres + sigma * rng.standard_normal((N, D))
    B = rng.standard_normal((D, L))
    B /= np.linalg.norm(B, 2)
    Z = X @ B + rng.standard_normal((N, L))
    known = np.sqrt(((solve(X, Z) - B) ** 2).mean())
    sums = by_sums(X, Z)
    return {
        "sums": float(np.sqrt(((sums - B) ** 2).mean()) / known),
        "assigned": float(np.sqrt(((assigned(X, Z, sums) - B) ** 2).mean()) / known),
    }


def classification(sigma: float, rng: np.random.Generator) -> dict[str, float]:
    """Return the share of wrong labels on new rows against that of known correspondences (0.1 % at least)."""
    vectors = rng.standard_normal((L, D))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    main = rng.integers(L, size=N // G)
    chances = np.ones((N // G, L))
    chances[np.arange(N // G), main] += np.exp(sigma) - 1
    chances /= chances.sum(axis=1, keepdims=True)
    truth = np.concatenate([rng.choice(L, size=G, p=p) for p in chances])

    def rows(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = vectors[labels] + SPREAD * rng.standard_normal((labels.size, D))
        return X, np.eye(L)[(X @ vectors.T).argmax(axis=1)]

    X, Z = rows(truth)
    X_new, Z_new = rows(rng.integers(L, size=5000))

    def error(B: np.ndarray) -> float:
        return float(((X_new @ B).argmax(axis=1) != Z_new.argmax(axis=1)).mean())

    groups = np.repeat(np.eye(N // G), G, axis=0)
    sums = by_sums(X, Z)
    imputed = Eagle(assign="auto").fit_transform(X, groups, groups.T @ Z).toarray()
    known = max(error(solve(X, Z)), 1e-3)
    models = {"sums": sums, "assigned": assigned(X, Z, sums), "ours": solve(X, imputed)}
    return {name: max(error(B), 1e-3) / known for name, B in models.items()}


def plot(results: dict[str, Lines]) -> str:
    """Draw both simulations, one above the other, as one SVG."""
    body, top = [], 30.0
    for title, lines in results.items():
        high = max(mean for points in lines.values() for mean, _ in points.values())
        marks = ticks(0.0, high)
        at_y = linear(marks[0], marks[-1], top + 150, top)
        at_x = linear(0, len(SIGMAS) - 1, 60, WIDTH - 110)
        body.append(text(0, top - 14, title, css="strong"))
        for mark in marks:
            body += [line(40, at_y(mark), WIDTH - 90, at_y(mark), "grid")]
            body += [text(34, at_y(mark) + 4, f"{mark:g}", "end", "soft small")]
        body += [text(at_x(i), top + 168, f"{s:g}", "middle", "soft small") for i, s in enumerate(SIGMAS)]
        for number, (name, points) in enumerate(lines.items()):
            stroke, spot = STYLES[name]
            xy = [(at_x(i), at_y(points[f"{s:g}"][0])) for i, s in enumerate(SIGMAS)]
            body += [line(*a, *b, stroke) for a, b in itertools.pairwise(xy)]
            notes = [f"{name}: {mean:.2f}" for mean, _ in points.values()]
            body += [dot(x, y, spot, note) for (x, y), note in zip(xy, notes, strict=True)]
            body += [dot(WIDTH - 70, top + 20 * number + 8, spot)]
            body += [text(WIDTH - 60, top + 20 * number + 12, name, css="small")]
        top += 220
    return standalone(drawing(top - 20, "Assigning against not assigning", "relative error by σ₂", body))


Simulation = Callable[[float, np.random.Generator], dict[str, float]]
SIMULATIONS: dict[str, Simulation] = {
    "regression, relative RMS": regression,
    "classification, relative error": classification,
}


def simulate(simulation: Simulation, n_seeds: int) -> Lines:
    """Return mean and standard deviation over seeds, for every way and every sigma."""
    lines: Lines = {}
    for sigma in SIGMAS:
        runs = [simulation(sigma, np.random.default_rng([seed, int(10 * sigma)])) for seed in range(n_seeds)]
        for name in runs[0]:
            values = [run[name] for run in runs]
            summary = [round(float(np.mean(values)), 3), round(float(np.std(values)), 3)]
            lines.setdefault(name, {})[f"{sigma:g}"] = summary
    return lines


def main() -> None:
    parser = make_parser(__doc__, "eagle_simulation.json")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds, counted from 0")
    parser.add_argument("--figure", type=Path, help="file for a drawing of the results")
    args = parser.parse_args()
    results = {title: simulate(simulation, args.seeds) for title, simulation in SIMULATIONS.items()}
    for title, lines in results.items():
        rows = [[name, *(f"{m:.2f} ± {sd:.2f}" for m, sd in points.values())] for name, points in lines.items()]
        show_table(title, ["", *(f"σ₂ = {s:g}" for s in SIGMAS)], rows)
    write_results(start_facts(args, {"results": results}), args.output)
    if args.figure:
        args.figure.write_text(plot(results), encoding="utf-8")


if __name__ == "__main__":
    main()
