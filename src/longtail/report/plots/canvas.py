"""The drawing board of the plots: escaped text, scales with readable ticks, and the SVG elements in use.

Colours are CSS variables, so that one drawing is readable on a light and on a dark page. Plots are drawn 440
units wide: two stand side by side on a desk, one fills a phone, and the type stays readable on both.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence
from typing import TypeGuard

WIDTH = 440.0
FONT = 13.0
LETTER = 0.64 * FONT  # width of a letter; generous, so that names are shortened rather than clipped
HEADROOM = 1e-9
# Characters XML forbids (control characters, lone surrogates) and those that reverse the text around them.
UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")

COLOURS = """
:root { --ink: #1b1f27; --soft: #5a6374; --line: #d9dee7; --grid: #e8ebf1; --paper: #ffffff; --panel: #f6f7fa;
  --accent: #2462b5; --band: #2462b526; --second: #a8580b; --bar: #b9c7dd; --good: #17784d; --bad: #b3372b;
  --mark: 36,98,181; --unmark: 179,55,43 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaf0; --soft: #a2abbd; --line: #353c4a; --grid: #2a303c; --paper: #14171d; --panel: #1c2029;
    --accent: #7db0f7; --band: #7db0f730; --second: #eaa55c; --bar: #3d4a63; --good: #5ecb98; --bad: #f28b7d;
    --mark: 125,176,247; --unmark: 242,139,125 }
}
"""

STYLE = """
svg.lt { display: block; width: 100%; height: auto; overflow: visible;
  font: 13px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; font-variant-numeric: tabular-nums }
.lt text { fill: var(--ink); unicode-bidi: isolate }
.lt .soft { fill: var(--soft) }
.lt .small { font-size: 11.5px }
.lt .strong { font-weight: 600 }
.lt .grid { stroke: var(--grid) }
.lt .axis { stroke: var(--line) }
.lt .zero { stroke: var(--soft); stroke-dasharray: 4 3 }
.lt .stroke { stroke: var(--accent); stroke-width: 2; fill: none }
.lt .stroke2 { stroke: var(--second); stroke-width: 2; fill: none; stroke-dasharray: 6 3 }
.lt .dot { fill: var(--accent) }
.lt .dot2 { fill: var(--second) }
.lt .band { fill: var(--band) }
.lt .bar { fill: var(--bar) }
.lt .good { fill: var(--good) }
.lt .bad { fill: var(--bad) }
.lt .sgood { stroke: var(--good); stroke-width: 2 }
.lt .sbad { stroke: var(--bad); stroke-width: 2 }
.lt .ssoft { stroke: var(--soft); stroke-width: 2 }
.lt .hollow { fill: var(--paper); stroke: var(--soft); stroke-width: 2 }
svg.map { font-size: 12px }
.map .held { fill: var(--panel); stroke: var(--line) }
.map .rest { fill: var(--grid) }
.map .s0, .map .s1, .map .s2, .map .s3, .map .s4, .map .s5 { fill: var(--accent) }
.map .s0 { fill-opacity: .08 }
.map .s1 { fill-opacity: .15 }
.map .s2 { fill-opacity: .23 }
.map .s3 { fill-opacity: .32 }
.map .s4 { fill-opacity: .42 }
.map .s5 { fill-opacity: .54 }
"""

Scale = Callable[[float], float]


def escape(text: object) -> str:
    """Return text that is inert in HTML and SVG: markup escaped, forbidden characters replaced.

    >>> escape("<script>")
    '&lt;script&gt;'
    """
    return html.escape(UNSAFE.sub("\ufffd", str(text)), quote=True)


def shorten(text: object, width: float) -> str:
    """Return the text cut with an ellipsis to a width in drawing units.

    >>> shorten("a very long label name", 80)
    'a very l…'
    """
    text, letters = " ".join(str(text).split()), max(int(width / LETTER), 2)
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def width_of(texts: Sequence[object], *, low: float = 0.0, high: float = WIDTH) -> float:
    """Return the drawing width the longest text needs, within [low, high]."""
    return min(max([len(str(t)) * LETTER for t in texts] + [low]), high)


def finite(value: object) -> TypeGuard[float]:
    """Say whether a fact is a number one can draw.

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


def drawing(height: float, title: str, description: str, body: Sequence[str]) -> str:
    """Return the finished SVG with its accessible title and description."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lt" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title><desc>{escape(description)}</desc>'
        + "".join(body)
        + "</svg>"
    )


def standalone(svg: str) -> str:
    """Return a drawing that carries its own style, fit for an .svg file of its own."""
    head, rest = svg.split(">", 1)
    return f"{head}><style>{COLOURS}{STYLE}</style>{rest}"
