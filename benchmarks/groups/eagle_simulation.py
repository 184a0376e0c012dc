"""Simulate when it pays to assign the labels of groups to rows (Figure 6 of the EAGLE paper), and its Theorems 3 and 4.

    python benchmarks/groups/eagle_simulation.py [--seeds 20] [--figure FILE.svg]

1000 rows of 10 features in groups of 10; 5 outputs. Regression: a group's centre has spread 1, its rows spread σ₂
about it, and the group's outputs come in unknown order. Classification: rows lie about the vectors of 5 labels; the
larger σ₂, the more the rows of a group have one label. `sums` learns from the sums over groups (no assignment);
`assigned` gives every output to the row of its group that fits the first model best; `ours` (classification) is
`Eagle(assign="auto")`. All are relative to learning from known correspondences: 1 is perfect. In classification rows
are spread 0.5 about their label's vector and, as in the paper, 0.1; there hardly any label is wrong, so that the error
of the outputs (root mean square) is shown as well.

Theorem 3: rows about the vectors of 20 labels, groups of 3 rows; the estimator of Equation 2 found exactly, by trying
every choice of rows, against the theorem's bound. Theorem 4: one step of Algorithm 1 from vectors at many distances,
against the bound on the next vector and the condition under which it is to be nearer.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import rounded
from benchmarks.harness.terminal import show_table
from longtail.groups import Eagle
from longtail.report.plots.canvas import WIDTH, dot, drawing, line, linear, standalone, text, ticks

Lines = dict[str, dict[str, list[float]]]  # name -> sigma -> mean and standard deviation
N, D, L, G = 1000, 10, 5, 10  # rows, features, outputs, rows of a group
SIGMAS = (0.0, 0.1, 1.0, 5.0, 10.0)
SPREAD, PAPER_SPREAD = 0.5, 0.1  # of a row about its label's vector
NOISES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # length of the noise of a row, for the theorems
N_LABELS, N_GROUPS, GROUP, WIDTH_OF_ROWS = 20, 50, 3, 32
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
    return _classification(sigma, rng, SPREAD)[0]


def classification_as_published(sigma: float, rng: np.random.Generator) -> dict[str, float]:
    """Return the same with the paper's spread."""
    return _classification(sigma, rng, PAPER_SPREAD)[0]


def outputs_as_published(sigma: float, rng: np.random.Generator) -> dict[str, float]:
    """Return the root mean square error of the outputs on new rows, with the paper's spread."""
    return _classification(sigma, rng, PAPER_SPREAD)[1]


def _classification(sigma: float, rng: np.random.Generator, spread: float) -> tuple[dict[str, float], dict[str, float]]:
    """Return the errors of labels and of outputs on new rows, against those of known correspondences."""
    vectors = rng.standard_normal((L, D))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    main = rng.integers(L, size=N // G)
    chances = np.ones((N // G, L))
    chances[np.arange(N // G), main] += np.exp(sigma) - 1
    chances /= chances.sum(axis=1, keepdims=True)
    truth = np.concatenate([rng.choice(L, size=G, p=p) for p in chances])

    def rows(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = vectors[labels] + spread * rng.standard_normal((labels.size, D))
        return X, np.eye(L)[(X @ vectors.T).argmax(axis=1)]

    X, Z = rows(truth)
    X_new, Z_new = rows(rng.integers(L, size=5000))

    def error(B: np.ndarray) -> float:
        return max(float(((X_new @ B).argmax(axis=1) != Z_new.argmax(axis=1)).mean()), 1e-3)

    def rms(B: np.ndarray) -> float:
        return float(np.sqrt(((X_new @ B - Z_new) ** 2).mean()))

    groups = np.repeat(np.eye(N // G), G, axis=0)
    sums, known = by_sums(X, Z), solve(X, Z)
    imputed = Eagle(assign="auto").fit_transform(X, groups, groups.T @ Z).toarray()
    models = {"sums": sums, "assigned": assigned(X, Z, sums), "ours": solve(X, imputed)}
    return (
        {name: error(B) / error(known) for name, B in models.items()},
        {name: rms(B) / rms(known) for name, B in models.items()},
    )


# --- Theorems 3 and 4 -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelledGroups:
    """Groups of rows of unit length, one row about the vector of each of their labels, and what Definition 2 names."""

    vectors: np.ndarray  # (N_LABELS, width), unit
    labels: np.ndarray  # (N_GROUPS, GROUP), the labels of each group's rows
    rows: np.ndarray  # (N_GROUPS, GROUP, width), unit
    separation: float  # δ: the least distance of two labels' vectors
    overlap: float  # q: the largest share of a label's groups that another label has too

    @classmethod
    def draw(cls, noise: float, rng: np.random.Generator) -> LabelledGroups:
        """Draw labels, groups and rows with a noise of about this length."""
        vectors = rng.standard_normal((N_LABELS, WIDTH_OF_ROWS))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        labels = np.stack([rng.choice(N_LABELS, size=GROUP, replace=False) for _ in range(N_GROUPS)])
        rows = vectors[labels] + noise / np.sqrt(WIDTH_OF_ROWS) * rng.standard_normal((*labels.shape, WIDTH_OF_ROWS))
        rows /= np.linalg.norm(rows, axis=2, keepdims=True)
        apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2) + 9 * np.eye(N_LABELS)
        has = (labels[:, :, None] == np.arange(N_LABELS)).any(axis=1).astype(float)
        times = has.sum(axis=0)
        both = has.T @ has / np.maximum(np.minimum(times[:, None], times[None]), 1)
        np.fill_diagonal(both, 0)
        return cls(vectors, labels, rows, float(apart.min()), float(both.max()))

    def of(self, label: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the rows of a label's groups, which row of each is the label's own, and f, the largest noise."""
        mine = (self.labels == label).any(axis=1)
        rows, own = self.rows[mine], (self.labels[mine] == label).argmax(axis=1)
        noise = rows[np.arange(own.size), own] - self.vectors[label]
        return rows, own, float(np.linalg.norm(noise, axis=1).max(initial=0.0))


def exact_vector(rows: np.ndarray) -> np.ndarray:
    """Return the estimator of Equation 2, by trying every choice of one row per group: the longest sum of rows."""
    sums = np.zeros((1, rows.shape[2]))
    for group in rows:
        sums = (sums[:, None] + group[None]).reshape(-1, rows.shape[2])
    best = sums[(sums**2).sum(axis=1).argmax()]
    return best / np.linalg.norm(best)


def theorem_three(noise: float, rng: np.random.Generator) -> list[dict[str, float]]:
    """Return, for labels in 4 to 8 groups, the cosine of estimator and truth, the bound and what Eagle finds."""
    data = LabelledGroups.draw(noise, rng)
    groups = np.repeat(np.eye(N_GROUPS), GROUP, axis=0)
    has = (data.labels[:, :, None] == np.arange(N_LABELS)).any(axis=1).astype(float)
    X = data.rows.reshape(-1, WIDTH_OF_ROWS)
    eagle = Eagle(threshold=0.0, n_jobs=1).fit(X, groups, has).label_vectors_.toarray()
    out = []
    for label in range(N_LABELS):
        rows, own, f = data.of(label)
        if 4 <= own.size <= 8:
            rest = 1 - data.overlap - 2 * f / data.separation
            r = 1 / rest - 1 if rest > 0 else np.inf
            found = exact_vector(rows)
            out.append(
                {
                    "cosine": float(data.vectors[label] @ found),
                    "bound": float(1 - r * f - (np.sqrt(2) * r + 2) * f**2) if rest > 0 else -np.inf,
                    "eagle": float(data.vectors[label] @ eagle[label]),
                }
            )
    return out


def theorem_four(noise: float, rng: np.random.Generator) -> list[dict[str, float]]:
    """Return, for steps from vectors at many distances, the next cosine with the truth, the bound and the condition."""
    data, out = LabelledGroups.draw(noise, rng), []
    for label in range(N_LABELS):
        rows, own, f = data.of(label)
        for away in np.linspace(0, 2, 9) if own.size >= 4 else ():
            truth = data.vectors[label]
            now = truth + away * rng.standard_normal(WIDTH_OF_ROWS) / np.sqrt(WIDTH_OF_ROWS)
            now /= np.linalg.norm(now)
            chosen = (rows @ now).argmax(axis=1)
            good = float((chosen == own).mean())  # α
            after = rows[np.arange(own.size), chosen].sum(axis=0)
            before = float(truth @ now)
            condition = good > 0 and before <= 1 - 2 * ((1 - f / 2) / good - 1) ** 2
            bound = good + (1 - good) * (before - float(np.linalg.norm(truth - now))) - f
            out.append(
                {
                    "before": before,
                    "after": float(truth @ after / np.linalg.norm(after)),
                    "bound": bound,
                    "printed condition": float(condition),
                    "nearer by the bound": float(bound >= before),
                }
            )
    return out


def check_theorem_three(n_seeds: int) -> Facts:
    """Return, by noise, how near the estimator comes to the truth, and how often the bound says something and holds."""
    out: Facts = {}
    for noise in NOISES:
        runs = [run for seed in range(n_seeds) for run in theorem_three(noise, np.random.default_rng([seed, 3]))]
        told = [run for run in runs if run["bound"] > -1]
        facts: dict[str, Any] = {
            "cosine": np.mean([run["cosine"] for run in runs]),
            "cosine of Eagle": np.mean([run["eagle"] for run in runs]),
            "bound": np.mean([run["bound"] for run in told]) if told else -1.0,
            "bound above -1, percent": 100 * len(told) / len(runs),
            "bound broken": sum(run["cosine"] < run["bound"] - 1e-9 for run in runs),
        }
        out[f"{100 * noise:g}%"] = rounded(facts) | {"labels": len(runs)}
    return out


def check_theorem_four(n_seeds: int) -> Facts:
    """Return, by noise, how far a step leads, how often the bound is broken, and how often a step led away."""
    out: Facts = {}
    for noise in NOISES:
        runs = [run for seed in range(n_seeds) for run in theorem_four(noise, np.random.default_rng([seed, 4]))]
        printed = [run for run in runs if run["printed condition"]]
        implied = [run for run in runs if run["nearer by the bound"]]
        facts: dict[str, Any] = {
            "before": np.mean([run["before"] for run in runs]),
            "after": np.mean([run["after"] for run in runs]),
            "bound": np.mean([run["bound"] for run in runs]),
            "bound broken": sum(run["after"] < run["bound"] - 1e-9 for run in runs),
            "steps by the printed condition": len(printed),
            "of these farther": sum(run["after"] < run["before"] - 1e-9 for run in printed),
            "steps that the bound makes nearer": len(implied),
            "of those farther": sum(run["after"] < run["before"] - 1e-9 for run in implied),
        }
        out[f"{100 * noise:g}%"] = rounded(facts) | {"steps": len(runs)}
    return out


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
    "classification as published, relative error": classification_as_published,
    "classification as published, relative RMS of outputs": outputs_as_published,
}
DRAWN = (
    "regression, relative RMS",
    "classification, relative error",
    "classification as published, relative RMS of outputs",
)


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
    theorems = {"theorem 3": check_theorem_three(args.seeds), "theorem 4": check_theorem_four(args.seeds)}
    for title, noises in theorems.items():
        show_table(
            title, ["noise", *next(iter(noises.values()))], [[n, *facts.values()] for n, facts in noises.items()]
        )
    write_results(start_facts(args, {"results": results, **theorems}), args.output)
    if args.figure:
        args.figure.write_text(plot({title: results[title] for title in DRAWN}), encoding="utf-8")


if __name__ == "__main__":
    main()
