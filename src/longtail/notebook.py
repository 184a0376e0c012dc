"""Pieces of HTML that notebooks show for an object: built by `h`, which escapes every text that is not built by it.

Every folder may use them, since they stand below all others. What is shown needs no network and no script, and takes
the colours of its text from the notebook, so that it is legible on light and on dark themes. Where a notebook drops the
style, tables, marks and folds are left.

>>> h("p", "a < b", h("b", "bold"), title='"')
'<p title="&quot;">a &lt; b<b>bold</b></p>'
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

Facts = TypeVar("Facts")

# Characters XML forbids (control characters, lone surrogates) and those that reverse the text around them.
UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")

# Greys and tones of middle brightness: text takes the colour around it, everything else can be told on black and white.
STYLE = """
.longtail{--ink:currentColor;--soft:color-mix(in srgb,currentColor 74%,transparent);--line:#8888;--grid:#8884;
--paper:transparent;--panel:#8882;--accent:#3f83d6;--band:#3f83d633;--bar:#3f83d666;--second:#c9781f;--good:#2a9d6b;
--bad:#d9564a;max-width:62rem;line-height:1.45;font-variant-numeric:tabular-nums;overflow-x:auto;padding:.2em 0}
div.longtail p{margin:.25em 0;max-width:46rem}
div.longtail .title{font-weight:600}
div.longtail .soft,div.longtail .title small{color:var(--soft);font-weight:400}
div.longtail small{font-size:.87em}
div.longtail table{border-collapse:collapse;margin:.35em 0;border:0;font-size:.95em;width:auto;table-layout:auto}
div.longtail :is(th,td){text-align:left;vertical-align:top;padding:.2em 1.3em .2em 0;border:0;
border-bottom:1px solid var(--grid);background:none;max-width:34rem;white-space:normal;overflow-wrap:anywhere;
font-weight:400;line-height:1.45}
div.longtail thead th{color:var(--soft);font-size:.9em;vertical-align:bottom}
div.longtail tbody tr{background:none}
div.longtail :is(th,td).n{text-align:right;white-space:nowrap}
div.longtail :is(th,td).name{white-space:nowrap;overflow-wrap:normal}
div.longtail .meter{display:inline-block;width:6em;height:.6em;margin-right:.6em;background:var(--panel);
border-radius:2px;vertical-align:baseline;overflow:hidden}
div.longtail .meter>span{display:block;height:100%;background:var(--accent)}
div.longtail mark{color:inherit;border-radius:3px;padding:.05em .2em;background:rgba(63,131,214,.3)}
div.longtail mark.against{background:rgba(217,86,74,.3);text-decoration:underline dotted}
div.longtail .text{white-space:pre-line;overflow-wrap:anywhere;margin:.4em 0 .6em}
div.longtail .words>span{display:inline-block;margin-right:.8em}
div.longtail ul{list-style:none;margin:0;padding:0}
div.longtail li{margin:.1em 0;padding:0}
div.longtail details{margin:.15em 0}
div.longtail details>:not(summary){margin-left:1.1em}
div.longtail summary{cursor:pointer;display:list-item}
div.longtail code{font-size:.93em;background:none;padding:0;color:inherit}
div.longtail figure{margin:.5em 0;width:27rem;max-width:100%}
div.longtail figcaption{margin-bottom:.4em}
div.longtail .plots{display:flex;flex-wrap:wrap;gap:.4em 2.5em;align-items:flex-start}
"""


class Html(str):
    """HTML in which every text has been escaped; made by `h`."""

    __slots__ = ()


def escape(text: object) -> str:
    """Return text that is inert in HTML and SVG: markup escaped, forbidden characters replaced.

    >>> escape("<script>")
    '&lt;script&gt;'
    """
    return html.escape(UNSAFE.sub("\ufffd", str(text)), quote=True)


def h(tag: str, *children: object, **attributes: object) -> Html:
    """Return an element; children and attributes are escaped unless they were made by this function.

    An attribute that is None is left out, one that is True has no value; `class_` is the attribute class.

    >>> h("details", h("summary", "<b>"), class_="c", open=True, title=None)
    '<details class="c" open><summary>&lt;b&gt;</summary></details>'
    """
    told = "".join(
        f" {name.rstrip('_')}" if value is True else f' {name.rstrip("_")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{told}>{join(children)}</{tag}>")


def join(children: Iterable[object], between: str = "") -> Html:
    """Return pieces one after the other, with a text between them; what is None is left out.

    >>> join([h("b", "a"), "&", None], ", ")
    '<b>a</b>, &amp;'
    """
    parts = [child if isinstance(child, Html) else escape(child) for child in children if child is not None]
    return Html(escape(between).join(parts))


def card(title: object, *body: object, note: object = "", style: str = "") -> Html:
    """Return what a notebook shows for an object: a title with a soft note beside it, and the body below.

    `style` is more CSS, for drawings.
    """
    beside = h("small", " ", note) if note else None
    head = h("p", title, beside, class_="title")
    return h("div", Html(f"<style>{STYLE}{style}</style>"), head, *body, class_="longtail")


def facts(rows: Iterable[tuple[object, object]]) -> Html:
    """Return named values below each other."""
    cells = ((h("td", name, class_="name soft"), h("td", value)) for name, value in rows)
    return h("table", h("tbody", *(h("tr", *pair) for pair in cells)), class_="facts")


def table(columns: Sequence[object], rows: Iterable[Sequence[object]], numbers: Sequence[int] = ()) -> Html:
    """Return a table; columns whose positions are in `numbers` are set to the right, one without a name has no heading.

    >>> table(["", "rows"], [])
    '<table class="rows"><thead><tr><td></td><th>rows</th></tr></thead><tbody></tbody></table>'
    """
    css = ["n" if at in numbers else None for at in range(len(columns))]
    heads = (h("th" if name else "td", name, class_=c) for name, c in zip(columns, css, strict=True))
    head = h("thead", h("tr", *heads))
    body = (h("tr", *(h("td", cell, class_=c) for cell, c in zip(row, css, strict=True))) for row in rows)
    return h("table", head if any(columns) else None, h("tbody", *body), class_="rows")


def meter(share: float, text: object = "", *, bad: bool = False) -> Html:
    """Return a bar for a share from 0 to 1, and a text behind it; a bar for something bad is red.

    >>> meter(0.5, "50%")
    '<span class="meter"><span style="width:50%"></span></span>50%'
    """
    width = 100 * min(max(share, 0.0), 1.0) if share == share else 0.0
    drawn = h("span", style=f"width:{width:.3g}%{';background:var(--bad)' if bad else ''}")
    return join([h("span", drawn, class_="meter"), text])


def fold(summary: object, *body: object, open: bool = False) -> Html:
    """Return what is shown when a reader opens its summary."""
    return h("details", h("summary", summary), *body, open=open)


def fact_card(title: object, rows: Sequence[tuple[str, object]], note: object = "") -> Html:
    """Return a title with a note beside it, and named values below each other."""
    return card(title, facts(rows), note=note)


def table_card(title: object, columns: Sequence[str], rows: Sequence[Sequence[object]], note: object = "") -> Html:
    """Return a title with a note beside it, and a table whose first column is text and whose others are numbers."""
    return card(title, table(columns, rows, range(1, len(columns))), note=note)


def shown_as(kind: type[dict[str, Any]], facts: Facts) -> Facts:
    """Return facts as a dictionary of a kind that a notebook shows as a card."""
    return cast(Facts, kind(cast(dict[str, Any], facts)))


def shortened(text: object, letters: int) -> str:
    """Return a text on one line, cut to so many letters.

    >>> shortened("one  two three", 8)
    'one two…'
    """
    told = " ".join(str(text)[: 4 * letters].split())
    return told if len(told) <= letters else told[: letters - 1].rstrip() + "…"
