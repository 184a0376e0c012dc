"""The leaf slots of one label on the terminal: its neighbours in each, the words and the texts that lead there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from longtail.facts import LabelFacts, SlotFacts, SlotTextFacts
from longtail.report.formatting import count
from longtail.report.people import for_people
from longtail.report.terminal.console import clean, say
from longtail.report.terminal.tree_terminal import WIDEST, fitted, joined
from longtail.report.tree_sentences import heavier_words, neighbours, rows_sentence, slots_sentence, word_list

INDENT = "   "
TEXT_LINES = 2  # lines of a text


def show_label(console: Console, facts: LabelFacts) -> None:
    """Print the leaf slots of a label in the tree (facts from `pipeline.label_facts`).

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> slot = {"tree": 0, "labels": 3, "neighbours": [{"label": "judo"}], "words": [{"word": "black"}]}
    >>> show_label(console, {"label": "belt", "rows": 12, "trees": 1, "slots": [slot]})
    >>> print(console.file.getvalue())
    belt has one leaf slot in the tree. 12 training rows have it.
    <BLANKLINE>
    1  beside judo
       words: black
    """
    facts = for_people(facts)
    say(console, slots_sentence(facts))
    say(console, facts.get("id"), "dim")
    data = facts.get("data")
    if data and not data["rows_with_label"]:
        say(console, f"No row of {data.get('name') or 'the data'} has it.")
    trees = int(facts.get("trees") or 1)
    for tree in range(trees):
        slots = [slot for slot in facts["slots"] if slot.get("tree", 0) == tree]
        for number, slot in enumerate(slots, 1):
            console.print()
            if trees > 1 and number == 1:
                say(console, f"Tree {tree + 1}", "bold")
            for at, (line, style) in enumerate(_lines(console, facts, slot, len(slots))):
                head = f"{number:<{len(INDENT)}}" if at == 0 else INDENT
                say(console, Text.assemble((head, "bold"), (line, style)))


def _lines(console: Console, facts: LabelFacts, slot: SlotFacts, n_slots: int) -> Iterator[tuple[str, str]]:
    """Return the lines of one leaf slot with their styles."""
    width, dots = min(console.width, WIDEST) - len(INDENT), clean(console, "…")
    told = [clean(console, name) for name in neighbours(slot)]
    for line in joined([f"beside {told[0]}", *told[1:]] if told else ["alone in its cluster"], width, dots):
        yield line, ""
    words = word_list(slot)
    if words:
        lead = "words that lead here: " if n_slots > 1 else "words: "
        for line in joined([lead + words[0], *words[1:]], width, dots):
            yield clean(console, line), "cyan"
    if n_slots > 1 and facts.get("split_positives") and slot.get("heavier"):
        yield fitted(clean(console, "weighs more here: " + ", ".join(heavier_words(slot))), width, dots), "dim"
    data = facts.get("data")
    if slot.get("rows") is not None and data and data["rows_with_label"]:
        yield rows_sentence(slot, data["rows_with_label"], n_slots), "dim"
        for text in slot.get("texts") or []:
            yield from _text(console, text, width, dots)


def _text(console: Console, row: SlotTextFacts, width: int, dots: str) -> Iterator[tuple[str, str]]:
    """Return the beginning of a text, or the number of a row without one."""
    name = f"row {count(row['row'])}" if row.get("id") is None else str(row["id"])
    if row.get("text") is None:
        yield fitted(clean(console, f"- {name}"), width, dots), "dim"
        return
    told = clean(console, f"{name}: {str(row['text'])[: width * (TEXT_LINES + 1)]}")
    for at, line in enumerate(textwrap.wrap(told, width - 2, max_lines=TEXT_LINES, placeholder=f" {dots}")):
        yield ("  " if at else "- ") + fitted(line, width - 2, dots), "dim"
