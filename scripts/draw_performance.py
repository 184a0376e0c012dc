"""Draw the pictures of docs/performance.md from the files of results.

    python scripts/draw_performance.py [--folder docs]

For each data set: the label tree beside PECOS, Omikuji and napkinXC (`tree_vs_peers.json`), the hybrid beside its
experts and other programs (`hybrid.json`, `hybrid_peers.json`); the server under load (`serve_load.json`); growth with
rows and labels (`growth.json`, `search_growth.json`). The same results give the same bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from longtail.report.plots.canvas import WIDTH, drawing, short_number, standalone, text
from panels import ROOT, Bar, Facts, Place, Series, bar_panel, legend, line_panel, paragraphs, results

METHODS = {  # as they stand in the results, with the names in the pictures
    "longtail": "longtail",
    "longtail-fast": "longtail, fast",
    "pecos": "PECOS",
    "parabel": "Omikuji Parabel",
    "bonsai": "Omikuji Bonsai",
    "napkinxc": "napkinXC",
    "longtail-3": "longtail, 3 trees",
    "parabel-3": "Parabel, 3 trees",
    "bonsai-3": "Bonsai, 3 trees",
}
ROW, NAMES = 16.0, 112.0
HYBRID = {"hybrid": "hybrid", "alone: prototypes": "prototypes alone", "alone: classifier": "classifier alone"}
HYBRID |= {"alone: tree": "label tree alone", "alone: neighbours": "neighbours alone", "alone: names": "names alone"}
PEERS = {"annif-tuned": "Annif, tuned", "annif-neural": "Annif, neural"}
PEERS |= {"encoder-one-vs-all": "encoder, one-vs-all", "xr-transformer": "XR-Transformer"}


def rounded(value: float) -> str:
    """Return a number as it stands behind a bar."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def peers(data: str) -> str:
    """Return the label tree beside its peers on one data set: what it finds and what it costs."""
    facts = results("tree_vs_peers.json")
    cells = facts["summary"][data]
    methods = [method for method in METHODS if cells.get(method, {}).get("status") == "ok"]

    def bars(value: Callable[[Facts], float], shown: Callable[[float], str]) -> list[Bar]:
        return [
            Bar(METHODS[m], value(cells[m]), shown(value(cells[m])), "dot" if m.startswith("longtail") else "bar")
            for m in methods
        ]

    panels: list[tuple[str, bool, list[Bar]]] = [
        ("P@1, %", False, bars(lambda c: c["accuracy"]["p@1"], lambda v: f"{v:.1f}")),
        ("P@5, %", False, bars(lambda c: c["accuracy"]["p@5"], lambda v: f"{v:.1f}")),
        ("PSP@5, %", False, bars(lambda c: c["accuracy"]["psp@5"], lambda v: f"{v:.1f}")),
        ("training, seconds", True, bars(lambda c: c["train_seconds"], rounded)),
        ("batch, µs a row", True, bars(lambda c: c["batch_us_per_row"], rounded)),
        ("one row, µs", True, bars(lambda c: c["single_p50_us"], rounded)),
        ("model, MB", True, bars(lambda c: c["model_bytes"] / 1e6, rounded)),
        ("peak memory, MB", True, bars(lambda c: c["peak_bytes"] / 1e6, rounded)),
    ]
    high = 18 + ROW * len(methods) + 20
    body = []
    for number, (title, log, rows) in enumerate(panels):
        top, wide = number // 2 * high, number % 2 == 0
        place = Place(0, top + 8, 286, high) if wide else Place(294, top + 8, WIDTH - 294, high)
        values = [bar.value or 0.0 for bar in rows]
        low = 0.0 if log else max(0.0, min(values) - 0.35 * (max(values) - min(values)) - 0.5)
        body += bar_panel(place, title, rows, names=NAMES if wide else 0.0, low=low, log=log, step=ROW)
    height = 8 + high * ((len(panels) + 1) // 2)
    notes = (
        "Costs on logarithmic scales: less is better.",
        "P@k and PSP@k: more is better; their bars do not begin at 0.",
    )
    body += paragraphs(0, height, notes, "soft small")
    told = "; ".join(f"{METHODS[m]}: P@1 {cells[m]['accuracy']['p@1']:.1f}" for m in methods)
    return drawing(height + 22, f"The label tree and its peers on {data}", told, body)


def hybrid(data: str) -> str:
    """Return P@1 and P@5 of the hybrid, its experts and other programs on one data set."""
    ours, theirs = results("hybrid.json")["summary"][data], results("hybrid_peers.json")["runs"].get(data, {})
    rows: list[tuple[str, Facts, str]] = [
        (name, ours[key], "dot" if key == "hybrid" else "dot2") for key, name in HYBRID.items() if key in ours
    ]
    rows += [(name, theirs[key], "bar") for key, name in PEERS.items() if key in theirs]
    body = []
    for number, measure in enumerate(("p@1", "p@5")):
        bars = [Bar(name, cell[measure], f"{cell[measure]:.1f}", css) for name, cell, css in rows]
        place = Place(0, 8, 296, 0) if number == 0 else Place(304, 8, WIDTH - 304, 0)
        body += bar_panel(place, f"{measure.upper()}, %", bars, names=122.0 if number == 0 else 0.0)
    height = 42 + ROW * len(rows)
    body += legend(0, height, [("dot", "the hybrid"), ("dot2", "its experts"), ("bar", "other programs")])
    told = "; ".join(f"{name}: P@1 {cell['p@1']:.1f}" for name, cell, _ in rows)
    return drawing(height + 8, f"The hybrid on {data}", told, body)


def serving() -> str:
    """Return the load that servers bear: texts a second and the time to an answer."""
    servers = results("serve_load.json")["servers"]
    servers_shown = (("longtail", "longtail", "dot"), ("plain", "plain service", "bar"), ("annif", "Annif", "bar"))
    cases = [case for case in servers["longtail"] if isinstance(servers["longtail"][case], dict)]
    body = [
        text(88, 12, "texts a second", css="soft small"),
        text(262, 12, "99 of 100 answered within, ms", css="soft small"),
    ]
    y = 20.0
    for case in cases:
        measures = (("texts_per_second", Place(0, y, 256, 0), 84.0), ("p99_ms", Place(262, y, WIDTH - 262, 0), 0.0))
        for measure, place, width in measures:
            bars = [
                Bar(name, servers[key][case][measure], rounded(servers[key][case][measure]), css)
                for key, name, css in servers_shown
            ]
            title = case.replace("1 connections", "1 connection") if width else ""
            body += bar_panel(place, title, bars, names=width, log=True)
        y += 78
    y += 8
    body.append(text(0, y, "Logarithmic scales. Two processes of each server on two cores.", css="soft small"))
    return drawing(y + 8, "Servers under load", "Texts a second and the slowest answers", body)


def decades(low: float, high: float) -> dict[float, str]:
    """Return marks for a logarithmic axis that holds all values."""
    marks = [m * 10.0**p for p in range(-3, 9) for m in (1, 2, 5)]
    first = max(mark for mark in marks if mark <= low)
    last = min(mark for mark in marks if mark >= high)
    inside = [mark for mark in marks if first <= mark <= last]
    powers = [mark for mark in inside if f"{mark:e}"[0] == "1"]
    shown = powers if len(powers) >= 3 else inside
    return {mark: short_number(mark) if mark in shown else "" for mark in sorted({first, last, *shown})}


def growth() -> str:
    """Return time and memory against rows and labels."""
    cells = list(results("growth.json")["cells"].values())
    search = results("search_growth.json")["runs"]
    rows = sorted((cell for cell in cells if cell["labels"] == 30_000), key=lambda cell: cell["rows"])
    labels = sorted((cell for cell in cells if cell["rows"] == 200_000), key=lambda cell: cell["labels"])

    def panel(number: int, title: str, series: Sequence[Series]) -> list[str]:
        xs = [x for one in series for x, _ in one.points]
        ys = [y for one in series for _, y in one.points]
        place = Place(226 * (number % 2), 4 + 140 * (number // 2), 212, 126)
        return line_panel(place, title, series, decades(min(xs), max(xs)), decades(min(ys), max(ys)), logs=(True, True))

    def one(cells: Sequence[Facts], by: str, key: str, unit: float = 1.0) -> list[Series]:
        return [Series(key, [(float(cell[by]), cell[key] / unit) for cell in cells])]

    now = [(float(name.split()[0]), found["cpu_us_per_row"]) for name, found in search["now"].items()]
    body = panel(0, "training, s, by rows", one(rows, "rows", "train_seconds"))
    body += panel(1, "training, s, by labels", one(labels, "labels", "train_seconds"))
    body += panel(2, "peak memory, MB, by rows", one(rows, "rows", "peak_bytes", 1e6))
    body += panel(3, "peak memory, MB, by labels", one(labels, "labels", "peak_bytes", 1e6))
    body += panel(4, "prediction, µs a row, by rows", one(rows, "rows", "predict_cpu_us_per_row"))
    body += panel(5, "prediction, µs a row, by labels", [Series("search of today", now)])
    note = "Logarithmic scales. By rows: 30,000 labels; by labels: 200,000 rows."
    body.append(text(0, 430, note, css="soft small"))
    return drawing(438, "Growth with rows and labels", "Training, memory and prediction", body)


def pictures() -> dict[str, Callable[[], str]]:
    """Return what is drawn, by the name of its file."""
    trees = results("tree_vs_peers.json")["summary"]
    hybrids = [data for data in results("hybrid.json")["summary"] if " " not in data]  # without other settings
    return {
        **{f"performance-{data}": partial(peers, data) for data in trees},
        **{f"performance-hybrid-{data}": partial(hybrid, data) for data in hybrids},
        "performance-serving": serving,
        "performance-growth": growth,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, draw in pictures().items():
        (args.folder / f"{name}.svg").write_text(standalone(draw()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
