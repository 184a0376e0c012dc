"""Monitoring on the terminal: the verdict, a table of all comparisons, and what is new."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from longtail.facts import MonitorFacts
from longtail.report.monitor_tables import (
    VERDICT_COLUMNS,
    monitor_headline,
    monitor_sentence,
    monitor_tables,
    verdict_rows,
)
from longtail.report.terminal.console import clean, heading, print_table, say

TEXT_LETTERS = 60
STYLES = {"steady": "green", "watch": "yellow", "changed": "bold red"}


def show_monitor(console: Console, facts: MonitorFacts, *, shown: int = 10) -> None:
    """Print how a batch of rows differs from the reference; lists have at most `shown` entries.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> show_monitor(console, {"verdict": "steady", "rows": 40, "reference_rows": 200})
    >>> "40 rows without labels, compared with 200 rows" in console.file.getvalue()
    True
    """
    verdict, comparisons = facts.get("verdict", ""), facts.get("comparisons") or []
    say(console, facts.get("title"), "bold")
    say(console, monitor_headline(facts), STYLES.get(verdict, ""))
    say(console, monitor_sentence(facts))
    if comparisons:
        console.print()
        rows: list[list[object]] = []
        for row, one in zip(verdict_rows(comparisons), comparisons, strict=True):
            rows.append([row[0], Text(clean(console, row[1]), style=STYLES[one["verdict"]]), *row[2:]])
        print_table(console, VERDICT_COLUMNS, rows)
    off = [one for one in comparisons if one["verdict"] != "steady"]
    if off:
        heading(console, "What is different")
        told: set[str] = set()
        for one in off:  # advice that several comparisons share is told once
            say(console, f"- {one['sentence']} {'' if one['advice'] in told else one['advice']}".rstrip())
            told.add(one["advice"])
    for table in [] if verdict == "steady" else monitor_tables(facts, shown, TEXT_LETTERS):
        heading(console, table.title)
        print_table(console, table.columns, table.rows)
    if facts.get("not_compared"):
        console.print()
        for sentence in facts["not_compared"]:
            say(console, sentence, "dim")
    if facts.get("advice"):
        heading(console, f"What to do: {facts['advice']}")
