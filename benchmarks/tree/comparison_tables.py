"""The comparison on the terminal: accuracy, costs and ratios per data set, then the goals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.tree.compared_methods import METHODS
from benchmarks.tree.summary import ratios

WIDTH = 140  # letters, where the output is not a terminal
QUIET = 0.2  # cores that other programs may use before times are called rough
Facts = dict[str, Any]
ACCURACY = ("p@1", "p@3", "p@5", "ndcg@5", "psp@1", "psp@3", "psp@5")
# heading, value, format; less is better in all
COSTS: list[tuple[str, Callable[[Facts], float], str]] = [
    ("train s", lambda f: f["train_seconds"], ",.2f"),
    ("CPU s", lambda f: f["train_cpu_seconds"], ",.2f"),
    ("batch µs/row", lambda f: f["batch_us_per_row"], ",.1f"),
    ("one row p50 µs", lambda f: f["single_p50_us"], ",.0f"),
    ("p99 µs", lambda f: f["single_p99_us"], ",.0f"),
    ("model MB", lambda f: f["model_bytes"] / 1e6, ",.2f"),
    ("peak MB", lambda f: f["peak_bytes"] / 1e6, ",.0f"),
    ("added in training", lambda f: f["added_bytes"] / 1e6, ",.0f"),
    ("load s", lambda f: f["load_seconds"], ",.3f"),
]


def console() -> Console:
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=WIDTH)


def show(facts: Facts, out: Console) -> None:
    """Print everything that was measured."""
    for name, methods in facts["summary"].items():
        (rows, features, labels), (test_rows, *_) = facts["data"][name]["train"], facts["data"][name]["test"]
        shape = f"{rows:,} training rows, {test_rows:,} test rows, {features:,} features, {labels:,} labels"
        out.print(f"\n[bold]{name}[/bold]: {shape}", highlight=False)
        ended = {method: facts_of for method, facts_of in methods.items() if facts_of["status"] == "ok"}
        _accuracy(ended, out)
        _costs(ended, out)
        for method, facts_of in methods.items():
            if facts_of["status"] != "ok":
                out.print(
                    f"{METHODS[method].title}: {facts_of['status']} ({facts_of['message']})", style="red", markup=False
                )
        _ratios(methods, out)
        busy = [facts_of["others_cores"] for facts_of in ended.values() if facts_of["others_cores"] is not None]
        if busy and max(busy) > QUIET:
            out.print(f"Other programs used up to {max(busy):.1f} cores meanwhile: times are rough.", style="red")
    _goals(facts["verdicts"], out)


def _table(columns: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=number == 0)
    return table


def _cell(text: str, best: bool) -> Text:
    return Text(f"{text}*" if best else f"{text} ", style="bold" if best else "")


def _accuracy(methods: dict[str, Facts], out: Console) -> None:
    table = _table(["accuracy, % (* best; ± over runs)", *(name.upper().replace("NDCG", "nDCG") for name in ACCURACY)])
    best = {name: max(f["accuracy"][name] for f in methods.values()) for name in ACCURACY} if methods else {}
    for method, facts in methods.items():
        cells = []
        for name in ACCURACY:
            value, sd = facts["accuracy"][name], facts["accuracy_sd"][name]
            cells.append(_cell(f"{value:.2f}" + ("" if sd is None else f"±{sd:.2f}"), value == best[name]))
        table.add_row(f"{METHODS[method].title} ({facts['runs']})", *cells)
    out.print(table, highlight=False)


def _costs(methods: dict[str, Facts], out: Console) -> None:
    table = _table(["costs, medians (* best)", *(name for name, _, _ in COSTS)])
    best = [min(value(f) for f in methods.values()) for _, value, _ in COSTS] if methods else []
    for method, facts in methods.items():
        values = [value(facts) for _, value, _ in COSTS]
        cells = [_cell(format(v, how), v == least) for v, least, (_, _, how) in zip(values, best, COSTS, strict=True)]
        table.add_row(METHODS[method].title, *cells)
    out.print(table, highlight=False)


def _ratios(methods: dict[str, Facts], out: Console) -> None:
    rows = ratios(methods)
    if not rows:
        return
    costs = list(dict.fromkeys(row["cost"] for row in rows))
    table = _table(["best peer / longtail", *costs])
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [f"{row['ratio']:.2f}x ({row['peer']})" for row in rows if row["method"] == method]
        table.add_row(METHODS[method].title, *cells)
    out.print(table, highlight=False)


def _goals(verdicts: list[Facts], out: Console) -> None:
    out.print("\n[bold]Goals[/bold]")
    table = _table(["data", "goal ", "found", "beside", "reached"])
    table.columns[1].justify = "left"
    for row in verdicts:
        reached = {True: "yes", False: "NO", None: "-"}[row["reached"]]
        if "ratio" in row:
            value, beside = f"{row['ratio']:.2f}x", row["peer"]
        elif "difference" in row:
            beside = f"{row['peer']} {row['peer_value']:.2f}" if "peer" in row else ""
            value = f"{row['value']:.2f} ({row['difference']:+.2f})"
        else:
            value, beside = "not measured", ""
        style = {"yes": "green", "NO": "red", "-": "dim"}[reached]
        table.add_row(row["data"], row["goal"], value, beside, Text(reached, style=style))
    out.print(table, highlight=False)
    count = [row["reached"] for row in verdicts]
    out.print(f"{count.count(True)} of {len(count)} goals reached, {count.count(None)} not measured", highlight=False)
