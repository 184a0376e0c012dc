"""A treemap as SVG text: boxes as large as their sizes, each with as many of its names as fit.

Boxes are laid out in rows so that they come out as square as they can (squarified). Every box is a drawing of its own
inside the drawing, which cuts off what does not fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from longtail.notebook import escape

FONT = 12.0
LINE = 15.0  # from one line of text to the next
EDGE = 6.0  # between the edge of a box and its text
LEAST_WIDTH, LEAST_HEIGHT = 34.0, 20.0  # a smaller box stays without text
LEAST_WITH_CELLS = 70.0  # a lower box shows names only
LEAST_NAMED = 52.0  # a narrower cell stays without a name
STRONG = ' class="strong"'
LEAST_CELL = 12.0  # units of area, on average; where cells would be smaller, none are drawn
NARROW, SLIM, BROAD = frozenset("iljI.,:;'|!()[]/ "), frozenset("tfr-"), frozenset("mwMW@%")


class Cell(NamedTuple):
    """A small box inside a box; it gets a name only if it is large enough."""

    size: float
    shade: int
    names: Sequence[str] = ()
    note: str = ""  # shown when the pointer rests on the cell


@dataclass(frozen=True)
class Box:
    """One box of a treemap, as large as its size."""

    size: float
    names: Sequence[str]  # the most important first
    shade: int | None = None  # 0 (pale) to 5, the classes s0 to s5 of plot.css; None for clusters that are not listed
    note: str = ""  # shown when the pointer rests on the box
    cells: Sequence[Cell] = ()


@dataclass(frozen=True)
class Area:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def squarified(sizes: Sequence[float], area: Area) -> list[Area]:
    """Return one rectangle per size, in proportion; sizes are above 0, the largest first.

    >>> squarified([2, 1, 1], Area(0, 0, 4, 2))
    [Area(x=0, y=0.0, width=2.0, height=2.0), Area(x=2.0, y=0.0, width=2.0, height=1.0), Area(...)]
    """
    x, y, width, height = area.x, area.y, area.width, area.height
    unit = width * height / (sum(sizes) or 1.0)
    left, out = [size * unit for size in sizes], []
    while left:
        side = min(width, height)
        n = 1
        while n < len(left) and _worst(left[: n + 1], side) <= _worst(left[:n], side):
            n += 1  # one more box makes this row squarer
        row, left = left[:n], left[n:]
        thick = sum(row) / side if side > 0 else 0.0
        along = 0.0
        for size in row:
            length = size / thick if thick > 0 else 0.0
            out.append(Area(x, y + along, thick, length) if width >= height else Area(x + along, y, length, thick))
            along += length
        if width >= height:
            x, width = x + thick, max(width - thick, 0.0)
        else:
            y, height = y + thick, max(height - thick, 0.0)
    return out


def _worst(row: Sequence[float], side: float) -> float:
    """Return how far the longest box of a row is from a square."""
    total = sum(row)
    if side <= 0 or total <= 0 or min(row) <= 0:
        return math.inf
    return max(side * side * max(row) / total**2, total**2 / (side * side * min(row)))


def treemap(
    boxes: Sequence[Box], *, width: float, height: float, title: str, description: str, css: str = "", legend: str = ""
) -> str:
    """Return the drawing of some boxes, with a legend below it if one is given.

    >>> svg = treemap([Box(3, ["fruit"], 0), Box(1, ["cars"], 1)], width=400, height=200, title="A", description="B")
    >>> svg.count("<rect") == 2 and "fruit" in svg
    True
    """
    kept = sorted((box for box in boxes if box.size > 0), key=lambda box: -box.size)
    areas = squarified([box.size for box in kept], Area(0.0, 0.0, width, height))
    body = "".join(_drawn(box, area) for box, area in zip(kept, areas, strict=True))
    whole = height + (24 if legend else 0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{escape(f"lt map {css}".strip())}" '
        f'viewBox="0 0 {width:g} {whole:g}" role="img" aria-label="{escape(title)}"><desc>{escape(description)}</desc>'
        f'{body}<g transform="translate(0 {height + 10:g})">{legend}</g></svg>'
    )


def shades_legend(name: str, marks: Sequence[str]) -> str:
    """Return a row of shades with what each means."""
    at = letters(name) + 8
    out = [f'<text x="0" y="11" class="soft">{escape(name)}</text>']
    for shade, mark in enumerate(marks):
        out.append(f'<rect x="{at:.1f}" y="1" width="12" height="12" rx="2" class="s{shade}"/>')
        out.append(f'<text x="{at + 16:.1f}" y="11" class="soft">{escape(mark)}</text>')
        at += 24 + letters(mark)
    return "".join(out)


def _drawn(box: Box, area: Area) -> str:
    width, height = area.width - 2, area.height - 2  # a gap between boxes
    if width < 1 or height < 1:
        return ""
    roomy = min(width, height) >= LEAST_WITH_CELLS and 0.4 * width * height >= LEAST_CELL * len(box.cells)
    held = roomy and bool(box.cells)
    kind = "rest" if box.shade is None else "held" if held else f"s{box.shade}"
    parts = [f"<title>{escape(box.note)}</title>" if box.note else ""]
    parts.append(f'<rect width="{width:.1f}" height="{height:.1f}" rx="3" class="{kind}"/>')
    lines = _lines(box.names, Area(0.0, 0.0, width, height * (0.42 if held else 1.0)))
    parts += lines
    if held:
        top = 11 + len(lines) * LINE
        parts += _cells(box.cells, Area(3.0, top, width - 6, height - top - 3))
    where = f'x="{area.x + 1:.1f}" y="{area.y + 1:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f"<svg {where}>{''.join(parts)}</svg>"


def _lines(names: Sequence[str], area: Area) -> list[str]:
    """Return as many names as an area has room for, line by line, the first one strong."""
    if area.width < LEAST_WIDTH or area.height < LEAST_HEIGHT or not names:
        return []
    strong, others = filled(names, area.width - 2 * EDGE, max(1, int((area.height - 5) / LINE)))
    x, y = area.x + EDGE, area.y + 3 + FONT
    return [
        f'<text x="{x:.1f}" y="{y + number * LINE:.1f}"{STRONG if number < len(strong) else ""}>{escape(line)}</text>'
        for number, line in enumerate([*strong, *others])
    ]


def _cells(cells: Sequence[Cell], area: Area) -> list[str]:
    """Return the cells, those without a note as one path per shade, and the names of those that have room for them."""
    kept = sorted((cell for cell in cells if cell.size > 0), key=lambda cell: -cell.size)
    paths: dict[int, list[str]] = {}
    named, noted = [], []
    for cell, a in zip(kept, squarified([cell.size for cell in kept], area), strict=True):
        width, height = max(a.width - 0.8, 0.3), max(a.height - 0.8, 0.3)
        outline = f"M{a.x:.1f} {a.y:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z"
        if cell.note:
            noted.append(f'<path d="{outline}" class="s{cell.shade}"><title>{escape(cell.note)}</title></path>')
        else:
            paths.setdefault(cell.shade, []).append(outline)
        if width >= LEAST_NAMED:
            named += _lines(cell.names, Area(a.x, a.y, width, height))
    drawn = [f'<path d="{"".join(steps)}" class="s{shade}"/>' for shade, steps in sorted(paths.items())]
    return drawn + noted + ([f'<g class="small">{"".join(named)}</g>'] if named else [])


def filled(names: Sequence[str], room: float, most: int) -> tuple[list[str], list[str]]:
    """Return lines no wider than the room: those of the first name, then those of the others, as many as fit.

    >>> filled(["games", "chess", "go", "poker"], 72, 3)
    (['games'], ['chess, go,', 'poker'])
    """
    strong = wrapped(names[0], room / 1.1, 1 if most < 3 else 2)
    lines: list[str] = []
    rest = [" ".join(str(name).split()) for name in names[1:]]
    while rest and len(strong) + len(lines) < most:
        line, taken = rest[0], 1
        while taken < len(rest) and letters(f"{line}, {rest[taken]},") <= room:
            line, taken = f"{line}, {rest[taken]}", taken + 1
        rest = rest[taken:]
        lines.append(cut(line + ("," if rest else ""), room))
    if rest and lines and not lines[-1].endswith("…"):
        lines[-1] = cut(lines[-1] + " …", room)
    return strong, lines


def wrapped(name: str, room: float, most: int) -> list[str]:
    """Return a name on as few lines as it needs, at most some; broken after blanks, dashes, slashes and colons.

    >>> wrapped("restoration of customs duties", 130, 2)
    ['restoration of', 'customs duties']
    """
    lines = [""]
    for piece in re.findall(r"[^\s/:-]+[\s/:-]*|[\s/:-]+", " ".join(str(name).split())):
        if lines[-1] and len(lines) < most and letters((lines[-1] + piece).rstrip()) > room:
            lines.append("")
        lines[-1] += piece
    return [cut(line, room) for line in lines]


def letters(text: str) -> float:
    """Return about how wide a text is drawn; rather too wide, so that names are shortened and not clipped."""
    return FONT * sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> float:
    """Return the width of a letter in units of the font size."""
    if letter in NARROW:
        return 0.34
    if letter in SLIM:
        return 0.42
    if letter in BROAD or ord(letter) > 0x2E7F:
        return 0.97
    return 0.72 if letter.isupper() else 0.62


def cut(text: str, room: float) -> str:
    """Return a text cut with an ellipsis to the room there is.

    >>> cut("a very long name", 60)
    'a very l…'
    """
    plain = " ".join(str(text).split())
    if letters(plain) <= room:
        return plain
    while plain and letters(plain + "…") > room:
        plain = plain[:-1]
    return plain.rstrip(" ,.:-") + "…"
