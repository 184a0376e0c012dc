"""The label tree on the terminal: one line per cluster, and below it the clusters inside, indented by branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from longtail.facts import RestFacts, SuggestionFacts, TreeFacts
from longtail.report.formatting import count, number_range, percent
from longtail.report.people import for_people
from longtail.report.terminal.console import clean, is_plain, say
from longtail.report.tree_sentences import Family, label_names, nested, path_steps, tree_sentence, word_list

WIDEST = 120  # letters; longer lines are hard to read
FORKS, PLAIN_FORKS = ("├─ ", "└─ ", "│  "), ("|- ", "`- ", "|  ")
Line = tuple[str, str, str, str]  # numbers, branch, text, style


def show_tree(console: Console, facts: TreeFacts) -> None:
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
    facts = for_people(facts)
    if not facts.get("clusters"):
        return
    used = f" They are used {count(facts.get('uses'))} times in {count(facts.get('rows'))} training rows."
    say(console, tree_sentence(facts) + used)
    levels = [level for level in facts["levels"] if "most_labels" in level]
    for number, level in enumerate(levels if len(levels) > 1 else [], 1):
        labels = number_range(level["fewest_labels"], level["most_labels"])
        say(console, f"Level {number}: {count(level['clusters'])} clusters of {labels} labels.", "dim")
    console.print()
    widest = max([6, *(len(count(cluster["labels"]) or "") for cluster in facts["clusters"])])
    head = f"{{:>6}}  {{:>{widest}}}"
    say(console, head.format("uses", "labels"), "dim")
    family, width = nested(facts["clusters"]), min(console.width, WIDEST)
    for numbers, branch, text, style in _family(console, family, facts.get("rest"), "", 0, head, width):
        say(console, Text.assemble((numbers, "cyan"), "  ", (branch, "dim"), (text, style)))


def path_lines(console: Console, suggestion: SuggestionFacts, indent: str) -> list[str]:
    """Return the clusters on the way to a label, one line each: the margin and the typical labels."""
    out = []
    for number, (margin, typical) in enumerate(path_steps(suggestion)):
        head = f"{indent}{'in' if number == 0 else '  '} {margin}  "
        space = min(console.width, WIDEST) - len(head)
        out.append(head + fitted(clean(console, typical), space, clean(console, "…")))
    return out


def _family(
    console: Console, family: Sequence[Family], rest: RestFacts | None, bars: str, level: int, head: str, width: int
) -> Iterator[Line]:
    """Return the lines of sibling clusters, each followed by those below it, and of those that are not listed."""
    fork, end, bar = PLAIN_FORKS if is_plain(console) else FORKS
    blank = " " * len(head.format("", ""))
    for number, (cluster, below) in enumerate(family):
        ends = number == len(family) - 1 and rest is None
        before = bars + (end if ends else fork) if level else ""
        after = bars + ("   " if ends else bar) if level else ""
        space = width - len(blank) - 2 - len(before)
        numbers = head.format(f"{percent(cluster.get('share'), 1)}%", count(cluster["labels"]))
        for line in joined([clean(console, name) for name in label_names(cluster)], space, clean(console, "…")):
            yield numbers, before, line, "" if level else "bold"
            numbers, before = blank, after
        if level == 0 and word_list(cluster):
            told = clean(console, "words: " + ", ".join(word_list(cluster)))
            yield blank, after, fitted(told, space, clean(console, "…")), "dim"
        if below:
            yield from _family(console, below, cluster.get("rest"), after, level + 1, head, width)
        elif cluster.get("clusters"):
            yield blank, after, f"{count(cluster['clusters'])} clusters", "dim"
    if rest:
        text = clean(console, f"… and {count(rest['clusters'])} more, with {count(rest['labels'])} labels")
        yield blank, bars + end if level else "", text, "dim"


def joined(parts: Sequence[str], space: int, dots: str) -> list[str]:
    """Return parts joined by commas, on lines no wider than the width."""
    lines = [""]
    for number, part in enumerate(parts):
        more = part + ("," if number < len(parts) - 1 else "")
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(more) > space:
            lines.append("")
        lines[-1] = fitted(f"{lines[-1]} {more}".strip(), space, dots)
    return lines


def fitted(text: str, space: int, dots: str) -> str:
    """Return a text cut to the width, with dots where something is missing."""
    return text if cell_len(text) <= space else set_cell_size(text, max(space - len(dots), 0)).rstrip() + dots
