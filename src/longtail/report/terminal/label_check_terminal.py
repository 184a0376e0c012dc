"""Label checks on the terminal: one short table for each kind of finding."""

from __future__ import annotations

from rich.console import Console

from longtail.facts import LabelCheckFacts
from longtail.report.formatting import count
from longtail.report.label_check_tables import NOTHING_FOUND, check_sentence, check_tables
from longtail.report.terminal.console import heading, print_table, say

TEXT_LETTERS = 40


def show_label_check(console: Console, facts: LabelCheckFacts, *, shown: int = 10) -> None:
    """Print what a label check found, at most `shown` of each kind.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> show_label_check(console, {"rows": 4, "labels": 2, "pairs": 5, "folds": 2})
    >>> "4 rows" in console.file.getvalue(), "Nothing found." in console.file.getvalue()
    (True, True)
    """
    say(console, facts.get("title"), "bold")
    say(console, check_sentence(facts))
    tables = check_tables(facts, shown, TEXT_LETTERS)
    if not tables:
        say(console, NOTHING_FOUND)
    for table in tables:
        heading(console, f"{table.title}: {count(table.total)}")
        say(console, table.means, "dim")
        print_table(console, table.columns, table.rows)
