"""Small pieces of HTML that notebooks show for an object, with every text escaped.

Datasets and predictions are below the report in the order of folders, so what they show of themselves cannot be one
of its templates.

>>> fact_card("Dataset", [("rows", "2"), ("name", "<b>")])
'<div><b>Dataset</b><table>...<td ...>&lt;b&gt;</td></tr></tbody></table></div>'
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

# Characters XML forbids (control characters, lone surrogates) and those that reverse the text around them.
UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
NAME = ' style="text-align:left;white-space:nowrap;padding-right:1em"'
LEFT, RIGHT = ' style="text-align:left"', ' style="text-align:right;padding-left:1em"'


def escape(text: object) -> str:
    """Return text that is inert in HTML and SVG: markup escaped, forbidden characters replaced.

    >>> escape("<script>")
    '&lt;script&gt;'
    """
    return html.escape(UNSAFE.sub("\ufffd", str(text)), quote=True)


def fact_card(title: object, facts: Sequence[tuple[str, object]], note: object = "") -> str:
    """Return a title, named values below each other, and a note."""
    return _card(title, "", [[name, value] for name, value in facts], (NAME, LEFT), note)


def table_card(title: object, columns: Sequence[str], rows: Sequence[Sequence[object]], note: object = "") -> str:
    """Return a title, a table whose first column is text and whose others are numbers, and a note."""
    styles = (NAME, *[RIGHT] * (len(columns) - 1))
    head = "".join(f"<th{style}>{escape(name)}</th>" for name, style in zip(columns, styles, strict=True))
    return _card(title, f"<thead><tr>{head}</tr></thead>", rows, styles, note)


def _card(title: object, head: str, rows: Sequence[Sequence[object]], styles: Sequence[str], note: object) -> str:
    lines = [
        "<tr>" + "".join(f"<td{style}>{escape(cell)}</td>" for cell, style in zip(row, styles, strict=True)) + "</tr>"
        for row in rows
    ]
    below = f"<small>{escape(note)}</small>" if note else ""
    return f"<div><b>{escape(title)}</b><table>{head}<tbody>{''.join(lines)}</tbody></table>{below}</div>"
