"""The parts that plots are made of: scales with readable ticks, and SVG elements with escaped text.

Colours are CSS variables, so that one drawing is readable on a light and on a dark page. Plots are drawn 440
units wide: two stand side by side on a desk, one fills a phone, and the type stays readable on both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeGuard

from longtail.notebook import STYLE, Html, escape, h

WIDTH = 440.0
FONT = 13.0
LETTER = 0.64 * FONT  # width of a letter; generous, so that names are shortened rather than clipped
HEADROOM = 1e-9

COLOURS, RULES = (Path(__file__).with_name(name) for name in ("colours.css", "plot.css"))

Scale = Callable[[float], float]


def shorten(text: object, width: float) -> str:
    """Return the text, cut with an ellipsis to a width in drawing units.

    >>> shorten("a very long label name", 80)
    'a very l…'
    """
    text, letters = " ".join(str(text).split()), max(int(width / LETTER), 2)
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def width_of(texts: Sequence[object], *, low: float = 0.0, high: float = WIDTH) -> float:
    """Return the drawing width the longest text needs, within [low, high]."""
    return min(max([len(str(t)) * LETTER for t in texts] + [low]), high)


def finite(value: object) -> TypeGuard[float]:
    """Return whether a fact is a number that can be drawn.

    >>> finite(0.5), finite(None), finite(float("nan"))
    (True, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Return the scale that maps [low, high] to [start, end]."""
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """Return the scale that maps [low, high] to [start, end] by powers; values below `low` land on it."""
    inner = linear(math.log(low), math.log(high), start, end)
    return lambda value: inner(math.log(max(value, low)))


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers that cover [low, high].

    >>> ticks(0.0, 0.83)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if high <= low:
        high = low + 1.0
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * (1 - HEADROOM))
    first, last = math.floor(low / step + HEADROOM), math.ceil(high / step - HEADROOM)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(i * step, digits) for i in range(first, last + 1)]


def log_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Return round numbers inside [low, high]: powers of ten, with 2 and 5 between where there is room.

    >>> log_ticks(1, 1000)
    [1.0, 10.0, 100.0, 1000.0]
    >>> log_ticks(1, 30)
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    powers = range(math.floor(math.log10(low) + HEADROOM), math.ceil(math.log10(high) - HEADROOM) + 1)
    fine = [m * 10.0**p for p in powers for m in (1, 2, 5) if low * 0.999 <= m * 10.0**p <= high * 1.001]
    coarse = [10.0**p for p in powers if low * 0.999 <= 10.0**p <= high * 1.001]
    return fine if len(fine) <= about or len(coarse) < 2 else coarse[:: 1 + len(coarse) // (about + 1)]


def short_number(value: float) -> str:
    """Return a count as it stands on an axis.

    >>> short_number(1500), short_number(2_000_000), short_number(5)
    ('1.5k', '2M', '5')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:g}" if value == int(value) or abs(value) < 1 else f"{value:.3g}"


def text(x: float, y: float, value: object, anchor: str = "start", css: str = "") -> str:
    """Return a text element; `anchor` is start, middle or end."""
    name = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{name}>{escape(value)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """Return a line element."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"/>'


def box(x: float, y: float, width: float, height: float, css: str, note: object = "") -> str:
    """Return a rectangle; `note` is shown when the pointer rests on it."""
    inner = f"<title>{escape(note)}</title>" if note else ""
    size = f'width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} rx="1.5" class="{css}">{inner}</rect>'


def dot(x: float, y: float, css: str, note: object = "", radius: float = 4.0) -> str:
    """Return a point; `note` is shown when the pointer rests on it."""
    inner = f"<title>{escape(note)}</title>" if note else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{css}">{inner}</circle>'


def path(points: Sequence[tuple[float, float]], css: str, *, closed: bool = False) -> str:
    """Return a line through the points, or the area they enclose."""
    steps = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{steps}{" Z" if closed else ""}" class="{css}"/>' if points else ""


class Drawing(str):
    """A finished drawing as SVG text, which a notebook shows in colours that suit its theme."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the drawing with the style that it has in notebooks."""
        style = Html(f"<style>{STYLE}{plot_rules()}</style>")
        return h("div", style, h("figure", Html(self)), class_="longtail")


def drawing(height: float, title: str, description: str, body: Sequence[str]) -> Drawing:
    """Return the finished SVG with its accessible title and description."""
    return Drawing(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lt" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title><desc>{escape(description)}</desc>'
        + "".join(body)
        + "</svg>"
    )


def plot_style() -> str:
    """Return the CSS of the plots and the colours."""
    return COLOURS.read_text("utf-8") + plot_rules()


def plot_rules() -> str:
    """Return the CSS of the plots without colours."""
    return RULES.read_text("utf-8")


def standalone(svg: str) -> str:
    """Return a drawing that carries its own style, fit for an .svg file of its own."""
    head, rest = svg.split(">", 1)
    return f"{head}><style>{plot_style()}</style>{rest}"
