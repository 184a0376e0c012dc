"""Draw the pictures of docs/audit.md.

The regions of three labels in two dimensions, the share of all label sets that a layer can give by its width (Figure 2,
left, of Grivas et al. 2024), and the radii of real label sets.

python scripts/draw_audit_figures.py [--folder docs]
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail.audit import argmaxable, capacity
from longtail.pipeline.auditing import radius_bins
from longtail.report.plots.audit_plots import radius_plot
from longtail.report.plots.canvas import WIDTH, Scale, drawing, line, linear, path, short_number, standalone, text

LABELS = ("a", "b", "c")
W = np.array([[0.17, 0.98], [-0.94, -0.34], [0.77, -0.64]])
BIAS = np.array([0.3, 0.3, 0.3])
SIDE = 200.0
REACH = 1.0  # of the inputs that are drawn
SHADES = ("s4", "s2", "s3", "s1", "s0", "s5")


def clip(points: list[np.ndarray], normal: np.ndarray, offset: float) -> list[np.ndarray]:
    """Return the part of a polygon where normal . x + offset >= 0."""
    out: list[np.ndarray] = []
    for p, q in zip(points, points[1:] + points[:1], strict=True):
        a, b = float(normal @ p + offset), float(normal @ q + offset)
        if a >= 0:
            out.append(p)
        if a * b < 0:
            out.append(p + (q - p) * (a / (a - b)))
    return out


def panel(left: float, top: float, bias: np.ndarray, title: str) -> list[str]:
    """Draw the plane of inputs with its regions, each with the labels that come out there."""

    def at(p: np.ndarray) -> tuple[float, float]:
        return left + (p[0] / REACH + 1) / 2 * SIDE, top + (1 - p[1] / REACH) / 2 * SIDE

    square = [np.array(p) * REACH for p in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))]
    body, named, never = [text(left, top - 10, title, css="strong")], [], []
    shades = itertools.cycle(SHADES)
    sets = list(itertools.product((0, 1), repeat=3))
    audited = argmaxable(W, sets, bias=bias)
    possible = dict(zip(sets, audited.reachable[audited.set_of_row].tolist(), strict=True))
    for on in sorted(sets, key=sum):
        region = square
        for normal, offset, sign in zip(W, bias, on, strict=True):
            region = clip(region, (2 * sign - 1) * normal, (2 * sign - 1) * offset) if region else region
        name = " ".join(label for label, sign in zip(LABELS, on, strict=True) if sign) or "none"
        if not possible[on]:
            never.append(name)
            continue
        x, y = np.mean([at(p) for p in region], axis=0)
        body.append(path([at(p) for p in region], next(shades), closed=True))
        named.append(text(x, y + 4, name, "middle", "strong"))
    for normal, offset in zip(W, bias, strict=True):
        across = np.array([-normal[1], normal[0]])
        start = -normal * offset / (normal @ normal)
        ends = _ends(start, across)
        body.append(line(*at(ends[0]), *at(ends[1]), "ssoft"))
    told = f"never: {', '.join(f'“{name}”' if name != 'none' else 'no label' for name in never)}"
    return [*body, *named, text(left, top + SIDE + 20, told, css="bad strong")]


def _ends(start: np.ndarray, along: np.ndarray) -> list[np.ndarray]:
    """Return where a line leaves the square."""
    steps = [(side - start[j]) / along[j] for j in (0, 1) if along[j] for side in (-REACH, REACH)]
    inside = [t for t in steps if np.abs(start + t * along).max() <= REACH * (1 + 1e-9)]
    return [start + t * along for t in (min(inside), max(inside))]


def regions() -> str:
    """Return the picture of n = 3, d = 2, without and with a bias."""
    body = panel(6, 30, np.zeros(3), "Without a bias: 6 of 8 sets")
    body += panel(234, 30, BIAS, "With a bias: 7 of 8 sets")
    described = "Three labels in two dimensions: a line for each parts inputs where it is on from those where it is off"
    svg = drawing(262, "Which label sets can come out", described, body)
    return standalone(svg.replace('class="lt"', 'class="lt map"', 1)) + "\n"


def capacities() -> str:
    """Return the picture of the share of all sets of 1,000 labels that can come out, by dimensions: split in two."""
    n, left, right = 1000, 52.0, WIDTH - 14
    at_x = linear(0, n, left, right)
    shares = {d: capacity(n, d).log2_share * np.log10(2) for d in (1, *range(10, n + 1, 10))}
    body = [text(0, 14, f"Share of all label sets of {n:,} labels that d dimensions can give", css="strong small")]
    panels: list[tuple[float, float, Scale, dict[float, str], Callable[[float], float]]] = [
        (30, 120, linear(0, 1, 120, 30), {0: "0%", 0.5: "50%", 1: "100%"}, lambda log: 10**log),
        (150, 290, linear(-300, 0, 290, 150), {p: f"1e{p}" if p else "1" for p in (-300, -200, -100, 0)}, float),
    ]
    for high, low, at_y, marks, value in panels:
        body += [line(left, at_y(v), right, at_y(v), "axis" if at_y(v) == low else "grid") for v in marks]
        body += [text(left - 8, at_y(v) + 4, name, "end", "soft small") for v, name in marks.items()]
        body.append(path([(at_x(d), min(max(at_y(value(log)), high), low)) for d, log in shares.items()], "stroke"))
    body += [text(at_x(d), 306, short_number(d), "middle", "soft small") for d in (0, 250, 500, 750, 1000)]
    body.append(text((left + right) / 2, 323, "dimensions d", "middle", "soft small"))
    told = "; ".join(f"d = {d}: 10^{shares[d]:.1f}" for d in (50, 100, 250, 500, 750))
    return standalone(drawing(330, "Share of label sets that can come out", told, body)) + "\n"


def radii() -> str:
    """Return the picture of the radii of the bundled test sets, for one classifier per label on 16 dimensions."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.linear_model import Ridge

    train, test = lt.data.load_bundled("debtags"), lt.data.load_bundled("debtags", "test")
    words = lt.TfidfFeatures()
    X = sp.csr_matrix(words.fit_transform(train.texts or ()))
    common = np.flatnonzero(train.Y.sum(axis=0) >= 100)
    rows = TruncatedSVD(16, random_state=0).fit_transform(X)
    model = Ridge(alpha=1e-3).fit(rows, 2 * train.Y[:, common].toarray() - 1)
    keep = np.diff(sp.csr_array(test.Y[:, common]).indptr) == np.diff(test.Y.indptr)
    found = argmaxable(model.coef_, test.Y[:, common][keep], bias=model.intercept_)
    print(found)
    return standalone(radius_plot(radius_bins(found), title="Radii of label sets", eps=found.eps)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "docs")
    args = parser.parse_args()
    (args.folder / "regions.svg").write_text(regions(), encoding="utf-8")
    (args.folder / "capacity.svg").write_text(capacities(), encoding="utf-8")
    (args.folder / "audit-radii.svg").write_text(radii(), encoding="utf-8")


if __name__ == "__main__":
    main()
