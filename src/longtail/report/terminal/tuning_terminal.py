"""A search for settings on the terminal: the best trials, and what the best is worth beside the defaults."""

from __future__ import annotations

from rich.console import Console

from longtail.facts import TuningFacts
from longtail.report.terminal.console import print_table, say
from longtail.report.tuning_rows import best_sentence, trial_table


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
    columns, rows = trial_table(facts, shown)
    print_table(console, columns, rows)
    say(console, best_sentence(facts))
