"""A search for settings on the terminal: the best trials, and what the best is worth beside the defaults."""

from __future__ import annotations

from rich.console import Console

from longtail.facts import TuningFacts
from longtail.report.formatting import count, duration
from longtail.report.terminal.console import print_table, say


def show_tuning(console: Console, facts: TuningFacts, *, shown: int = 10) -> None:
    """Print the best trials of a search, at most `shown`, and the defaults.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=100)
    >>> trial = {"number": 0, "settings": {}, "scores": [0.5], "score": 0.5, "seconds": 1.0}
    >>> facts = {"method": "ova", "metric": "p@1", "rows": 100, "held_out_rows": 10, "round_rows": [90]}
    >>> show_tuning(console, {**facts, "default_score": 0.5, "trials": [trial], "seed": 0})
    >>> "The defaults are best: 50.0%." in console.file.getvalue()
    True
    """
    trials, rows = facts["trials"], facts["round_rows"]
    listed = [t for i, t in enumerate(trials) if i < shown or t["number"] == 0]
    heads = [f"{count(n)} rows" for n in rows]
    table = [
        [
            str(trial["number"]),
            ", ".join(f"{name}={value}" for name, value in trial["settings"].items()) or "defaults",
            *(f"{100 * score:.1f}" for score in trial["scores"]),
            *([""] * (len(rows) - len(trial["scores"]))),
            duration(trial["seconds"]),
        ]
        for trial in listed
    ]
    print_table(console, ["trial", "settings ", *heads, "time"], table)
    say(console, best_sentence(facts))


def best_sentence(facts: TuningFacts) -> str:
    """Return in one sentence what the best settings are worth on the rows held out."""
    best, usual = facts["trials"][0], facts["default_score"]
    if best["number"] == 0:
        return f"The defaults are best: {100 * usual:.1f}%."
    gain = 100 * (best["score"] - usual)
    return (
        f"Best: trial {best['number']}, {facts['metric']} {100 * best['score']:.1f}% on "
        f"{count(facts['held_out_rows'])} rows held out, {gain:.1f} points above the defaults. "
        "The best of many looks better here than on new rows."
    )
