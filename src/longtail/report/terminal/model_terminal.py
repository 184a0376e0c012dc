"""A model and its reasons on the terminal: what is in it, and the words behind each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from longtail.report import fact_rows as reading
from longtail.report.formatting import flat_rows, percent, show, span
from longtail.report.terminal.console import (
    clean,
    heading,
    is_plain,
    print_bar,
    print_facts,
    print_table,
    say,
)
from longtail.report.terminal.tree_terminal import path_lines
from longtail.report.terminal.unicode_plots import tail_sparkline

Facts = Mapping[str, Any]
WORDS_SHOWN = 8  # behind one label
TEXT_SHOWN = 800  # letters of an explained text
DIGEST_SHOWN = 16  # letters: enough to tell two files apart


def show_inspection(console: Console, facts: Facts) -> None:
    """Print nested facts about a model: groups of facts as lists, records (such as files) as tables.

    `label_counts`, how often each label occurs, is drawn as the long tail it is.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> show_inspection(console, {"method": "tree", "files": {"labels.jsonl": {"bytes": 2000}}})
    >>> print(console.file.getvalue())
    method  tree
    <BLANKLINE>
    Files
    name          bytes
    labels.jsonl   2 kB
    """
    say(console, facts.get("title"), "bold")
    rest = {key: value for key, value in facts.items() if key not in ("title", "label_counts")}
    single = {k: v for k, v in rest.items() if k == "libraries" or not (isinstance(v, Mapping) or _records(v))}
    print_facts(console, "", flat_rows(single))
    if facts.get("label_counts"):
        show_tail(console, reading.tail_points(facts["label_counts"]))
    for key, value in rest.items():
        name, records = str(key).replace("_", " ").capitalize(), _records(value)
        if records:
            heading(console, name)
            _show_records(console, records)
        elif isinstance(value, Mapping) and key not in single:
            found = value.get("metrics")
            print_facts(console, name, flat_rows({k: v for k, v in value.items() if k != "metrics" or not found}))
            if isinstance(found, Mapping):
                show_metrics(console, found)


def show_explanation(console: Console, facts: Facts) -> None:
    """Print a text with its telling words marked and, for each suggestion, the words behind it as bars.

    Keys: `text` and `labels` or `predicted`, each with `label`, `score` or `probability`, `words` (of `word`,
    `weight` and perhaps `spans`), perhaps `path` (clusters of the label tree, each with `margin` and `typical` labels)
    and `correct`; and perhaps `true`.
    """
    predicted = reading.suggestions(facts)
    if facts.get("text"):
        say(console, marked_text(console, str(facts["text"]), predicted, TEXT_SHOWN))
    shown = [(p, reading.strongest(p, WORDS_SHOWN)) for p in predicted]
    most = max([abs(word["weight"]) for _, words in shown for word in words] + [1e-12])
    for p, words in shown:
        console.print()
        head = Text.assemble((clean(console, p.get("label", "")), "bold"), f"  {reading.confidence(p)}")
        judged = judgement(console, p)
        say(console, head.append("  ").append_text(judged) if judged else head)
        body = []
        for word in words:
            drawn = print_bar(console, word["weight"] / most)
            body.append([f"  {word['word']}", f"{word['weight']:+.2f}", drawn])
        if body:
            print_table(console, ["", "", " "], body, header=False)
        for line in path_lines(console, p, "  "):
            say(console, line, "dim")
    gone = reading.missed(facts)
    if gone:
        console.print()
        say(console, "Missed: " + ", ".join(gone), "dim")


def show_metrics(console: Console, metrics: Facts) -> None:
    """Print every metric at every k, with its interval."""
    ks, grid = reading.metric_grid(metrics)
    body = [[name, *(_with_span(cell) for cell in cells)] for name, _, cells in grid]
    if body:
        print_table(console, ["percent", *(f"at {k}" for k in ks)], body)


def show_tail(console: Console, tail: Sequence[Sequence[int]]) -> None:
    """Print the long tail of labels, (rank, count) pairs, as one line."""
    first, last = tail[0], tail[-1]
    drawn = tail_sparkline(tail, 40, ascii=is_plain(console))
    note = f"  {first[1]:,} rows down to {last[1]:,}, {last[0]:,} labels"
    say(console, Text.assemble((drawn, "cyan"), (note, "dim")))


def marked_text(console: Console, text: str, predicted: Sequence[Facts], letters: int) -> Text:
    """Return the beginning of a text with the words behind its suggestions in colour, or between stars."""
    parts, most = reading.marked_parts(text, predicted)
    out, left = Text(), letters
    for part, weight in parts:
        if left <= 0:
            break
        if len(part) > left:
            part = part[:left].rsplit(" ", 1)[0] + " …"
        left -= len(part)
        if weight is None:
            out.append(clean(console, part))
        elif is_plain(console):
            out.append(f"*{clean(console, part)}*")
        else:
            strong = "bold " if abs(weight) > most / 2 else ""
            out.append(clean(console, part), style=strong + ("green" if weight > 0 else "red"))
    return out


def judgement(console: Console, predicted: Facts) -> Text:
    """Return whether a suggestion is right, where that is known."""
    right = predicted.get("correct")
    if right is None:
        return Text()
    return Text(clean(console, "✓ right" if right else "✗ wrong"), style="green" if right else "red")


def _with_span(row: Facts) -> str:
    return f"{percent(row.get('value'))}  {span(row):>9}" if span(row) else percent(row.get("value"))


def _records(value: Any) -> list[dict[str, Any]]:
    """Return a list of records, or a mapping of names to simple records, as a list; anything else as an empty one."""
    if isinstance(value, list) and all(isinstance(row, Mapping) for row in value):
        return [dict(row) for row in value]
    if not isinstance(value, Mapping) or not all(isinstance(row, Mapping) for row in value.values()):
        return []
    nested = any(isinstance(cell, Mapping | list) for row in value.values() for cell in row.values())
    return [] if nested else [{"name": name, **row} for name, row in value.items()]


def _show_records(console: Console, records: Sequence[Facts]) -> None:
    columns = list(dict.fromkeys(str(name) for row in records for name in row if row[name] is not None))
    body = []
    for row in records:
        cells = [show(name, row[name]) if row.get(name) is not None else "" for name in columns]
        body.append([cell[:DIGEST_SHOWN] if name == "sha256" else cell for name, cell in zip(columns, cells)])
    words = [any(isinstance(row.get(name), str) for row in records) for name in columns]
    print_table(console, [name.replace("_", " ") + " " * word for name, word in zip(columns, words)], body)
