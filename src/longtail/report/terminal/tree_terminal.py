"""The label tree on the terminal: one line per cluster, with what is below it behind branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from longtail.report.formatting import count, number_range, percent
from longtail.report.html.tree_section import Family, lead, names, nested, steps, words
from longtail.report.terminal.console import clean, is_plain, say

Facts = Mapping[str, Any]
WIDEST = 120  # letters; longer lines are hard to read
FORKS, PLAIN_FORKS = ("├─ ", "└─ ", "│  "), ("|- ", "`- ", "|  ")
Line = tuple[str, str, str, str]  # numbers, branch, text, style


def show_tree(console: Console, facts: Facts) -> None:
    """Print a label tree: for each listed cluster its share of all uses, its labels, their names and telling words.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> size = {"labels": 3, "uses": 9, "share": 0.5, "rest": None}
    >>> a = {"level": 0, "clusters": 0, **size, "typical": [{"label": "chess"}], "words": [{"word": "play"}]}
    >>> show_tree(console, {"labels": 6, "uses": 18, "rows": 9, "levels": [{"clusters": 1}], "clusters": [a]})
    >>> print(console.file.getvalue())
    All 6 labels are in one cluster. They are used 18 times in 9 training rows.
    <BLANKLINE>
      uses  labels
     50.0%       3  chess
                    words: play
    """
    if not facts.get("clusters"):
        return
    used = f" They are used {count(facts.get('uses'))} times in {count(facts.get('rows'))} training rows."
    say(console, lead(facts) + used)
    several = [level for level in facts["levels"] if "most_labels" in level]
    for number, level in enumerate(several if len(several) > 1 else [], 1):
        labels = number_range(level["fewest_labels"], level["most_labels"])
        say(console, f"Level {number}: {count(level['clusters'])} clusters of {labels} labels.", "dim")
    console.print()
    widest = max([6, *(len(count(found["labels"]) or "") for found in facts["clusters"])])
    head = f"{{:>6}}  {{:>{widest}}}"
    say(console, head.format("uses", "labels"), "dim")
    family, width = nested(facts["clusters"]), min(console.width, WIDEST)
    for numbers, branch, text, style in _family(console, family, facts.get("rest"), "", 0, head, width):
        say(console, Text.assemble((numbers, "cyan"), "  ", (branch, "dim"), (text, style)))


def path_lines(console: Console, predicted: Facts, indent: str) -> list[str]:
    """Return the clusters on the way to a label, one line each: the margin and the typical labels."""
    way = steps(predicted)
    out = []
    for number, (margin, typical) in enumerate(way):
        head = f"{indent}{'in' if number == 0 else '  '} {margin}  "
        room = min(console.width, WIDEST) - len(head)
        out.append(head + fitted(clean(console, typical), room, clean(console, "…")))
    return out


def _family(
    console: Console, family: Sequence[Family], rest: Facts | None, bars: str, level: int, head: str, width: int
) -> Iterator[Line]:
    """Return the lines of some siblings, each followed by those below it, and of what is not listed of them."""
    fork, end, bar = PLAIN_FORKS if is_plain(console) else FORKS
    blank = " " * len(head.format("", ""))
    for number, (found, below) in enumerate(family):
        ends = number == len(family) - 1 and rest is None
        before = bars + (end if ends else fork) if level else ""
        after = bars + ("   " if ends else bar) if level else ""
        room = width - len(blank) - 2 - len(before)
        numbers = head.format(f"{percent(found.get('share'), 1)}%", count(found["labels"]))
        for line in joined([clean(console, name) for name in names(found)], room, clean(console, "…")):
            yield numbers, before, line, "" if level else "bold"
            numbers, before = blank, after
        if level == 0 and words(found):
            told = clean(console, "words: " + ", ".join(words(found)))
            yield blank, after, fitted(told, room, clean(console, "…")), "dim"
        if below:
            yield from _family(console, below, found.get("rest"), after, level + 1, head, width)
        elif found.get("clusters"):
            yield blank, after, f"{count(found['clusters'])} clusters", "dim"
    if rest:
        text = clean(console, f"… and {count(rest['clusters'])} more, with {count(rest['labels'])} labels")
        yield blank, bars + end if level else "", text, "dim"


def joined(parts: Sequence[str], room: int, dots: str) -> list[str]:
    """Return parts joined by commas, on lines no wider than the room."""
    lines = [""]
    for number, part in enumerate(parts):
        more = part + ("," if number < len(parts) - 1 else "")
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(more) > room:
            lines.append("")
        lines[-1] = fitted(f"{lines[-1]} {more}".strip(), room, dots)
    return lines


def fitted(text: str, room: int, dots: str) -> str:
    """Return a text cut to the room, with dots where something is missing."""
    return text if cell_len(text) <= room else set_cell_size(text, max(room - len(dots), 0)).rstrip() + dots
