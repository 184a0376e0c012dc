"""Notebooks as pages: their text, their code, and what they showed when they were run and saved."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from links import site_links

MARK = '<div class="notebook-output" data-number="{}"></div>'  # stands in the Markdown for what a cell showed
COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def notebook_page(file: Path) -> str:
    """Return a notebook as Markdown; the place of every output is marked."""
    cells = json.loads(file.read_text("utf-8"))["cells"]
    pieces = []
    for number, cell in enumerate(cells):
        source = "".join(cell["source"]).strip("\n")
        if cell["cell_type"] == "markdown":
            pieces.append(site_links(source, f"notebooks/{file.name}"))
        elif cell["cell_type"] == "code" and source:
            pieces.append(f"````{'console' if source.startswith('!') else 'python'}\n{source}\n````")
            if cell.get("outputs"):
                pieces.append(MARK.format(number))
    taken = f"[Download this notebook]({file.name}) to run it yourself."
    return "\n\n".join([*pieces[:1], taken, *pieces[1:]]) + "\n"


def with_outputs(page: str, file: Path) -> str:
    """Return the HTML of a notebook's page with what its cells showed."""
    for number, cell in enumerate(json.loads(file.read_text("utf-8"))["cells"]):
        shown = "".join(output_html(output) for output in cell.get("outputs", ()))
        page = page.replace(MARK.format(number), f'<div class="notebook-output">{shown}</div>' if shown else "")
    return page


def output_html(output: dict[str, Any]) -> str:
    """Return one output of a cell as HTML, in the richest form that it was saved in.

    >>> output_html({"output_type": "stream", "name": "stdout", "text": ["a < b\\n"]})
    '<pre><code>a &lt; b</code></pre>'
    """
    if output["output_type"] == "stream":
        return as_text(output["text"])
    if output["output_type"] == "error":
        return as_text(f"{output['ename']}: {output['evalue']}")
    data = output["data"]
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return "".join(data[kind])
    if "image/png" in data:
        return f'<img alt="what the cell draws" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    return as_text(data.get("text/plain", ""))


def as_text(text: str | list[str]) -> str:
    """Return text as it stands on a page."""
    shown = COLOURS.sub("", "".join(text)).strip("\n")
    return f"<pre><code>{html.escape(shown, quote=False)}</code></pre>" if shown else ""
