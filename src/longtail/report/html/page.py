"""The frame of a self-contained HTML page: style, a short script for tables, the facts as JSON, safe writing.

A page loads nothing from anywhere. Text is escaped by default and only `Markup` is passed through; as a second
lock the page's own policy allows no script but its own, by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longtail.data import replacing
from longtail.errors import DataError, ParameterError
from longtail.report.html.style import CSS, SCRIPT
from longtail.report.plots.canvas import COLOURS, STYLE, escape


class Markup(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def safe(value: object) -> str:
    """Return a value as HTML: markup as it is, anything else escaped.

    >>> safe("a < b"), safe(Markup("<b>a</b>"))
    ('a &lt; b', '<b>a</b>')
    """
    return str(value) if isinstance(value, Markup) else escape(value)


def element(tag: str, *parts: object, css: str = "") -> Markup:
    """Return one HTML element around the parts.

    >>> element("p", "1 < 2")
    '<p>1 &lt; 2</p>'
    """
    name = f' class="{escape(css)}"' if css else ""
    return Markup(f"<{tag}{name}>{''.join(safe(part) for part in parts)}</{tag.split()[0]}>")


def section(heading: str, lead: str, *parts: object) -> Markup:
    """Return a section, or nothing when all its parts are empty."""
    kept = [part for part in parts if part]
    if not kept:
        return Markup()
    return element("section", element("h2", heading), element("p", lead, css="lead") if lead else "", *kept)


def figure(caption: str, note: str, svg: str) -> Markup:
    """Return a plot with what one sees in it as its caption."""
    return element("figure", element("figcaption", element("h3", caption), element("p", note)), Markup(svg))


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    css: str = "",
    apart: Sequence[int] = (),
    tall: bool = False,
) -> Markup:
    """Return a table whose first column names the row and whose other columns are aligned right.

    A column whose name ends in a blank is text and stays left. Rows whose number is in `apart` begin a new group.
    A `tall` table scrolls in a window of its own.
    """
    right = ["" if i == 0 or name.endswith(" ") else "n" for i, name in enumerate(columns)]
    head = element("tr", *(element('th scope="col"', name.strip(), css=right[i]) for i, name in enumerate(columns)))
    body = []
    for number, row in enumerate(rows):
        first = element('th scope="row"', element("bdi", row[0]))
        cells = [element("td", cell, css=right[i]) for i, cell in enumerate(row) if i]
        body.append(element("tr", first, *cells, css="apart" if number in apart else ""))
    title = element("caption", caption) if caption else ""
    inner = element("table", title, element("thead", head), element("tbody", *body), css=css)
    return element("div", inner, css="wide tall" if tall else "wide")


def definitions(rows: Sequence[tuple[str, object]]) -> Markup:
    """Return names and values as a list of facts, or nothing when there are none."""
    parts = [part for name, value in rows for part in (element("dt", name), element("dd", value))]
    return element("dl", *parts, css="facts") if parts else Markup()


def page(title: str, parts: Sequence[object], facts: Any) -> str:
    """Return the whole page; the facts travel with it as JSON under the id `facts`."""
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{COLOURS}{CSS}{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(safe(part) for part in parts if part)
        + f'\n</main>\n<script type="application/json" id="facts">{embed(facts)}</script>\n'
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def embed(facts: Any) -> str:
    """Return facts as JSON that cannot end the script element it stands in; what is not finite becomes null.

    >>> embed({"label": "</script>", "value": float("nan")})
    '{"label": "\\\\u003c/script\\\\u003e", "value": null}'
    """
    raw = json.dumps(_plain(facts), allow_nan=False)
    return raw.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def write_page(path: str | Path, html: str) -> Path:
    """Write a page in one step: a crash leaves the old file or the new one."""
    path = Path(path)
    if path.is_dir():
        raise ParameterError(f"the report must be a file; {path} is a folder.")
    if not path.absolute().parent.is_dir():
        raise ParameterError(f"the report cannot be written to {path}: the folder {path.parent} does not exist.")
    try:
        with replacing(path) as file:
            file.write(html.encode("utf-8", "replace"))
    except DataError as error:
        raise ParameterError(f"the report cannot be written: {error}") from error
    return path


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)
