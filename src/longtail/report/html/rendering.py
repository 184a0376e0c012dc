"""Render templates into self-contained pages and write them to files.

A page loads nothing from anywhere. Jinja2 escapes every value; only our own CSS, script and plots, and the facts as
JSON, are put in as they are. As a second lock the page's own policy allows no script but its own, by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from longtail._version import __version__
from longtail.data import replacing
from longtail.errors import DataError, ParameterError
from longtail.notebook import UNSAFE
from longtail.report.plots.canvas import plot_style

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")
View = dict[str, object]  # what a template shows


class Figure(NamedTuple):
    """A plot with a caption that says what it shows."""

    caption: str
    note: str
    svg: str  # made by `longtail.report.plots`, which escapes every text


class Tile(NamedTuple):
    """A number shown large, with its name above and a small text below."""

    name: str
    value: str | None
    small: str = ""


class FactBlock(NamedTuple):
    """Named values under a heading."""

    heading: str
    rows: Sequence[tuple[str, str]]


def render_page(template: str, title: str, facts: Mapping[str, Any], **view: object) -> str:
    """Return a whole page; the facts travel with it as JSON under the id `facts`."""
    script = (TEMPLATES / "page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = plot_style() + (TEMPLATES / "page.css").read_text("utf-8")
    frame = {"style": style, "script": script, "digest": digest, "facts_json": embed(facts), "version": __version__}
    return render(template, title=title, command=facts.get("command"), **frame, **view)


def render(template: str, **view: object) -> str:
    """Return a template filled with values, every one of them escaped."""
    return environment().get_template(template).render(**view)


@cache
def environment() -> Environment:
    """Return the Jinja2 environment; Jinja2 is imported when the first page is made."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_without_unsafe,
    )
    made.filters["headings"] = headings
    return made


def headings(body: str) -> list[tuple[str, str]]:
    """Return id and heading of every section of a rendered page that has an id, for its contents list.

    >>> headings('<section id="labels"><h2>Label &amp; label</h2>')
    [('labels', 'Label & label')]
    """
    found = re.findall(r'<section id="([a-z0-9-]+)">\s*<h2>(.*?)</h2>', str(body), re.DOTALL)
    return [(id, html.unescape(re.sub(r"<[^>]*>", "", heading))) for id, heading in found]


def embed(facts: Any) -> str:
    """Return facts as JSON that cannot end the script element it is in; what is not finite becomes null.

    >>> embed({"label": "</script>", "value": float("nan")})
    '{"label": "\\\\u003c/script\\\\u003e", "value": null}'
    """
    raw = json.dumps(_plain(facts), allow_nan=False)
    return raw.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def write_page(path: str | Path, page: str) -> Path:
    """Write a page in one step: a crash leaves the old file or the new one."""
    path = Path(path)
    if path.is_dir():
        raise ParameterError(f"the report must be a file; {path} is a folder.")
    if not path.absolute().parent.is_dir():
        raise ParameterError(f"the report cannot be written to {path}: the folder {path.parent} does not exist.")
    try:
        with replacing(path) as file:
            file.write(page.encode("utf-8", "replace"))
    except DataError as error:
        raise ParameterError(f"the report cannot be written: {error}") from error
    return path


def _without_unsafe(value: object) -> object:
    """Replace the characters that XML forbids or that reverse text; runs on every value before it is escaped."""
    return value if hasattr(value, "__html__") else UNSAFE.sub("\ufffd", str(value))


def _plain(value: Any) -> Any:
    """Return nested facts with JSON's own types only."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)
