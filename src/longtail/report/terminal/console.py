"""Building blocks of terminal reports: headings, notes, tables without lines and bars, with all text made harmless."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from longtail.notebook import UNSAFE
from longtail.report.plots.canvas import finite
from longtail.report.terminal.inert import inert
from longtail.report.terminal.unicode_plots import bar

PLAIN = str.maketrans({"–": "-", "…": "...", "“": '"', "”": '"', "✓": "+", "✗": "x", "×": "x"})
BAR = 24  # letters


class Screen(Console):
    """A rich console whose own colours reach the terminal and whose text is inert."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Turn what is printed into segments of text, made inert, and of control codes, which are rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(inert(segment.text), segment.style)

    def on_broken_pipe(self) -> NoReturn:
        """Let the command end quietly; rich would end the program here."""
        raise


def screen(stderr: bool = False) -> Screen:
    """Return the console for stdout or stderr."""
    stream = sys.stderr if stderr else sys.stdout
    file = getattr(stream, "unfiltered", stream)  # what rich writes is inert already, but for its own escapes
    return Screen(file=file, stderr=stderr, highlight=False, soft_wrap=False, markup=False, emoji=False)


def is_plain(console: Console) -> bool:
    """Return whether to write plain letters: in a pipe, or on a terminal without Unicode.

    >>> import io
    >>> is_plain(Console(file=io.StringIO()))
    True
    """
    return not console.is_terminal or console.is_dumb_terminal or not console.encoding.lower().startswith("utf")


def clean(console: Console, value: object) -> str:
    """Return text on one line that cannot command the terminal and that its encoding can write.

    >>> import io
    >>> clean(Console(file=io.StringIO()), "a\\x1b[31mb – c")
    'a\\ufffd[31mb - c'
    """
    out = UNSAFE.sub("\ufffd", str(value).replace("\n", " ").replace("\r", " ").replace("\t", " "))
    if is_plain(console):
        out = out.translate(PLAIN)
    encoding = console.encoding or "utf-8"
    return out.encode(encoding, "replace").decode(encoding)


def say(console: Console, text: object, style: str = "") -> None:
    """Print a line, wrapped at the width of the terminal; nothing if there is no text."""
    if text:
        console.print(text if isinstance(text, Text) else Text(clean(console, text), style=style), highlight=False)


def heading(console: Console, text: str) -> None:
    """Print a heading after an empty line."""
    console.print()
    say(console, text, "bold")


def share_bar(console: Console, share: object) -> Text:
    """Return a bar of a share; a negative one is red, or made of other letters where there is no colour."""
    value = share if finite(share) else 0.0
    drawn = bar(abs(value), BAR, ascii=is_plain(console))
    return Text(drawn.replace("#", "-") if value < 0 else drawn, style="red" if value < 0 else "cyan")


def print_table(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[object]], *, header: bool = True
) -> None:
    """Print a table without lines; the first column and those whose name ends in a blank stand left."""
    table = Table(box=None, pad_edge=False, show_header=header, header_style="dim", padding=(0, 2, 0, 0))
    for number, name in enumerate(columns):
        left = number == 0 or name.endswith(" ")
        table.add_column(Text(clean(console, name)), justify="left" if left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(clean(console, cell)) for cell in row))
    console.print(table, highlight=False)


def print_facts(console: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns under a heading; nothing if there are none."""
    if not rows:
        return
    if title:
        heading(console, title)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(clean(console, name)), Text(clean(console, value)))
    console.print(table, highlight=False)
