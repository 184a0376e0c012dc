"""Models and explanations on the terminal: what a model holds, and the words behind each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from longtail.facts import ExplanationFacts, MetricFacts, SuggestionFacts, tail_points
from longtail.report.expert_sentences import expert_sentences
from longtail.report.fact_rows import confidence, marked_parts, metric_grid, missed, strongest, suggestions
from longtail.report.formatting import fact_text, flat_rows, percent, percent_range
from longtail.report.people import for_people
from longtail.report.terminal.console import (
    clean,
    heading,
    is_plain,
    print_facts,
    print_table,
    say,
    share_bar,
)
from longtail.report.terminal.tree_terminal import path_lines
from longtail.report.terminal.unicode_plots import tail_sparkline

WORDS_SHOWN = 8  # behind one label
TEXT_SHOWN = 800  # letters of an explained text
DIGEST_SHOWN = 16  # letters: enough to tell two files apart


def show_inspection(console: Console, facts: Mapping[str, Any]) -> None:
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
        show_tail(console, tail_points(facts["label_counts"]))
    for key, value in rest.items():
        name, records = str(key).replace("_", " ").capitalize(), _records(value)
        if records:
            heading(console, name)
            _show_records(console, records)
        elif isinstance(value, Mapping) and key not in single:
            metrics = value.get("metrics")
            print_facts(console, name, flat_rows({k: v for k, v in value.items() if k != "metrics" or not metrics}))
            if isinstance(metrics, Mapping):
                show_metrics(console, metrics)


def show_explanation(console: Console, facts: ExplanationFacts) -> None:
    """Print a text with its telling words marked and, for each suggestion, the words behind it as bars."""
    facts = for_people(facts)
    predicted = suggestions(facts)
    if facts.get("text"):
        say(console, marked_text(console, str(facts["text"]), predicted, TEXT_SHOWN))
    shown = [(suggestion, strongest(suggestion, WORDS_SHOWN)) for suggestion in predicted]
    most = max([abs(word["weight"]) for _, words in shown for word in words] + [1e-12])
    for suggestion, words in shown:
        console.print()
        head = Text.assemble((clean(console, suggestion.get("label", "")), "bold"), f"  {confidence(suggestion)}")
        if suggestion.get("id"):
            head.append(f"  {clean(console, suggestion['id'])}", style="dim")
        judged = judgement(console, suggestion)
        say(console, head.append("  ").append_text(judged) if judged else head)
        for line in expert_sentences(suggestion):
            say(console, f"  {clean(console, line)}")
        body = []
        for word in words:
            drawn = share_bar(console, word["weight"] / most)
            body.append([f"  {word['word']}", f"{word['weight']:+.2f}", drawn])
        if body:
            print_table(console, ["", "", " "], body, header=False)
        for line in path_lines(console, suggestion, "  "):
            say(console, line, "dim")
    if missed(facts):
        console.print()
        say(console, "Missed: " + ", ".join(missed(facts)), "dim")


def show_metrics(console: Console, metrics: Mapping[str, MetricFacts]) -> None:
    """Print every metric at every k, with its interval."""
    ks, grid = metric_grid(metrics)
    body = [[row["name"], *(_with_interval(cell) for cell in row["at_k"])] for row in grid]
    if body:
        print_table(console, ["percent", *(f"at {k}" for k in ks)], body)


def show_tail(console: Console, tail: Sequence[Sequence[int]]) -> None:
    """Print the long tail of labels, (rank, count) pairs, as one line."""
    first, last = tail[0], tail[-1]
    drawn = tail_sparkline(tail, 40, ascii=is_plain(console))
    note = f"  {last[0]:,} labels, {first[1]:,} rows down to {last[1]:,}"
    say(console, Text.assemble((drawn, "cyan"), (note, "dim")))


def marked_text(console: Console, text: str, predicted: Sequence[SuggestionFacts], letters: int) -> Text:
    """Return the beginning of a text with the words behind its suggestions in colour, or between stars."""
    parts, most = marked_parts(text, predicted)
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


def judgement(console: Console, suggestion: SuggestionFacts) -> Text:
    """Return whether a suggestion is right, where that is known."""
    right = suggestion.get("correct")
    if right is None:
        return Text()
    return Text(clean(console, "✓ right" if right else "✗ wrong"), style="green" if right else "red")


def _with_interval(row: MetricFacts) -> str:
    value, interval = percent(row.get("value")), percent_range(row)
    return f"{value}  {interval:>9}" if interval else value


def _records(value: Any) -> list[dict[str, Any]]:
    """Return a list of records, or a mapping of names to simple records, as a list; anything else as an empty one."""
    if isinstance(value, list) and all(isinstance(row, Mapping) for row in value):
        return [dict(row) for row in value]
    if not isinstance(value, Mapping) or not all(isinstance(row, Mapping) for row in value.values()):
        return []
    nested = any(isinstance(cell, Mapping | list) for row in value.values() for cell in row.values())
    return [] if nested else [{"name": name, **row} for name, row in value.items()]


def _show_records(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    columns = list(dict.fromkeys(str(name) for row in records for name in row if row[name] is not None))
    body = []
    for row in records:
        cells = [fact_text(name, row[name]) if row.get(name) is not None else "" for name in columns]
        body.append([cell[:DIGEST_SHOWN] if name == "sha256" else cell for name, cell in zip(columns, cells)])
    words = [any(isinstance(row.get(name), str) for row in records) for name in columns]
    print_table(console, [name.replace("_", " ") + " " * word for name, word in zip(columns, words)], body)
