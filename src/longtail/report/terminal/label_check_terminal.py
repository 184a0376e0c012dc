"""Label checks on the terminal: one short table for each kind of finding."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from longtail.facts import CheckCountFacts, LabelCheckFacts, SuspectFacts
from longtail.report.formatting import count, plural
from longtail.report.terminal.console import heading, print_table, say

TEXT_LETTERS = 40
NAMES_SHOWN = 4
NONE: CheckCountFacts = {"wrong": 0, "missing": 0, "duplicates": 0, "unlearned": 0, "synonyms": 0}


def show_label_check(console: Console, facts: LabelCheckFacts, *, shown: int = 10) -> None:
    """Print what a label check found, at most `shown` of each kind.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> show_label_check(console, {"rows": 4, "labels": 2, "pairs": 5, "folds": 2, "counts": {"wrong": 0}})
    >>> "4 rows" in console.file.getvalue()
    True
    """
    counts = facts.get("counts", NONE)
    say(console, facts.get("title"), "bold")
    told = f"{plural(facts.get('rows', 0), 'row')}, {plural(facts.get('labels', 0), 'label')}"
    say(console, f"{told}, {count(facts.get('pairs', 0))} labels of rows, in {facts.get('folds')} folds.")
    wrong, missing = facts.get("wrong") or [], facts.get("missing") or []
    _suspects(console, "Labels that look wrong", wrong, counts.get("wrong"), shown)
    _suspects(console, "Labels that look missing", missing, counts.get("missing"), shown)
    body: list[list[object]]
    body = [
        [", ".join(map(str, d["rows"][:NAMES_SHOWN])), d["kind"], _some(d["differing"]), _short(d["text"])]
        for d in (facts.get("duplicates") or [])[:shown]
    ]
    title = "The same text with different labels"
    _table(console, title, ["rows", "kind ", "labels only some have ", "text "], body, counts.get("duplicates"))
    body = [[u["label"], count(u["rows"]), u["reason"]] for u in (facts.get("unlearned") or [])[:shown]]
    _table(console, "Labels that no model learns", ["label", "rows", "why "], body, counts.get("unlearned"))
    body = [
        [*y["labels"], f"{y['cosine']:.2f}", count(y["together"]), f"{y['expected']:.1f}", y["reason"]]
        for y in (facts.get("synonyms") or [])[:shown]
    ]
    columns = ["label", "and ", "cosine", "together", "by chance", "why "]
    _table(console, "Labels that may mean the same", columns, body, counts.get("synonyms"))


def _suspects(console: Console, title: str, rows: Sequence[SuspectFacts], total: int | None, shown: int) -> None:
    """Print labels of rows that look wrong or missing."""
    body = [
        [s["id"] or s["row"], s["label"], f"{s['probability']:.2f}", f"{s['usual']:.2f}", _short(s["text"])]
        for s in rows[:shown]
    ]
    _table(console, title, ["row", "label ", "probability", "usual", "text "], body, total)


def _table(
    console: Console, title: str, columns: Sequence[str], body: Sequence[Sequence[object]], total: int | None
) -> None:
    """Print a table under a heading with the number of all; nothing if it is empty."""
    if body:
        heading(console, f"{title}: {count(total or len(body))}")
        print_table(console, columns, body)


def _short(text: str | None) -> str:
    """Return the beginning of a text."""
    return "" if text is None else text if len(text) <= TEXT_LETTERS else text[: TEXT_LETTERS - 1] + "…"


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many there are besides."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
