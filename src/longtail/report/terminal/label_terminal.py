"""The places of one label on the terminal: its neighbours in each, the words and the texts that lead there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from longtail.report.formatting import count
from longtail.report.html.overlap_section import how_often, neighbours, places_sentence, words
from longtail.report.terminal.console import clean, say
from longtail.report.terminal.tree_terminal import WIDEST, fitted, joined

Facts = Mapping[str, Any]
INDENT = "   "
TEXT_LINES = 2  # lines of a text


def show_label(console: Console, facts: Facts) -> None:
    """Print where a label stands in the tree (facts from `pipeline.label_facts`).

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> place = {"tree": 0, "labels": 3, "neighbours": [{"label": "judo"}], "words": [{"word": "black"}]}
    >>> show_label(console, {"label": "belt", "rows": 12, "trees": 1, "places": [place]})
    >>> print(console.file.getvalue())
    belt has one place in the tree. 12 training rows have it.
    <BLANKLINE>
    1  beside judo
       words: black
    """
    say(console, places_sentence(facts))
    data = facts.get("data")
    if data and not data["rows_with_label"]:
        say(console, f"No row of {data.get('name') or 'the data'} has it.")
    trees = int(facts.get("trees") or 1)
    for tree in range(trees):
        found = [place for place in facts["places"] if place.get("tree", 0) == tree]
        for number, place in enumerate(found, 1):
            console.print()
            if trees > 1 and number == 1:
                say(console, f"Tree {tree + 1}", "bold")
            for at, (line, style) in enumerate(_lines(console, facts, place, len(found))):
                head = f"{number:<{len(INDENT)}}" if at == 0 else INDENT
                say(console, Text.assemble((head, "bold"), (line, style)))


def _lines(console: Console, facts: Facts, place: Facts, n_places: int) -> Iterator[tuple[str, str]]:
    """Return the lines of one place with their styles."""
    room, dots = min(console.width, WIDEST) - len(INDENT), clean(console, "…")
    told = [clean(console, name) for name in neighbours(place)]
    for line in joined([f"beside {told[0]}", *told[1:]] if told else ["alone in its cluster"], room, dots):
        yield line, ""
    several = n_places > 1
    if words(place):
        lead = "words that lead here: " if several else "words: "
        for line in joined([lead + words(place)[0], *words(place)[1:]], room, dots):
            yield clean(console, line), "cyan"
    if several and facts.get("split_positives") and place.get("heavier"):
        yield fitted(clean(console, "weighs more here: " + ", ".join(words(place, "heavier"))), room, dots), "dim"
    if place.get("rows") is not None and (facts.get("data") or {}).get("rows_with_label"):
        yield how_often(facts, place, several), "dim"
        for text in place.get("texts") or []:
            yield from _text(console, text, room, dots)


def _text(console: Console, found: Facts, room: int, dots: str) -> Iterator[tuple[str, str]]:
    """Return the beginning of a text, or the number of a row without one."""
    name = f"row {count(found['row'])}" if found.get("id") is None else str(found["id"])
    if found.get("text") is None:
        yield fitted(clean(console, f"- {name}"), room, dots), "dim"
        return
    told = clean(console, f"{name}: {str(found['text'])[: room * (TEXT_LINES + 1)]}")
    for at, line in enumerate(textwrap.wrap(told, room - 2, max_lines=TEXT_LINES, placeholder=f" {dots}")):
        yield ("  " if at else "- ") + fitted(line, room - 2, dots), "dim"
