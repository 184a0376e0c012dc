"""A treemap as SVG: boxes within boxes, as large as their values, with as much of their names as they have room for.

Rows of boxes are laid out so that boxes come out as square as they can (squarified). Every box is a drawing of its own
inside the drawing, which cuts off what does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longtail.report.canvas import escape

FONT = 12.0
LINE = 15.5  # from one line of text to the next
HEAD = 19.0  # of a box with boxes inside
EDGE = 6.0  # between the edge of a box and its text
GAP = 3.0  # around boxes inside a box
LEAST_WIDTH, LEAST_HEIGHT = 30.0, 18.0  # a smaller box stays without text
TINTS = 6
NARROW, WIDE = frozenset("iljtfrI.,:;'|!()[]-/ "), frozenset("mwMWQGOD@%&")


@dataclass(frozen=True)
class Box:
    """One box: its size, its names (the first is the most important), what the pointer finds, and boxes inside it."""

    value: float
    names: Sequence[str]
    note: str = ""
    tint: int = 0  # from 0, pale, to TINTS - 1
    inside: Sequence[Box] = ()
    rest: bool = False  # stands for several that have no room


@dataclass(frozen=True)
class Area:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    def shrunk(self, edge: float, head: float = 0.0) -> Area:
        """Return the rectangle without an edge and without a strip at its top."""
        width, height = self.width - 2 * edge, self.height - edge - (head or edge)
        return Area(self.x + edge, self.y + (head or edge), max(width, 0.0), max(height, 0.0))


def squarified(values: Sequence[float], area: Area) -> list[Area]:
    """Return one rectangle per value, in proportion; values come largest first and are above 0.

    >>> squarified([2, 1, 1], Area(0, 0, 4, 2))[0]
    Area(x=0.0, y=0.0, width=2.0, height=2.0)
    """
    out: list[Area] = []
    x, y, width, height = float(area.x), float(area.y), float(area.width), float(area.height)
    unit = width * height / (sum(values) or 1.0)
    sizes, at = [value * unit for value in values], 0
    while at < len(sizes):
        side = min(width, height)
        count, worst = 0, math.inf
        while at + count < len(sizes):  # add to the row as long as that makes its boxes squarer
            row = sizes[at : at + count + 1]
            thick = sum(row) / side if side else 0.0
            now = max((max(thick / (s / thick), (s / thick) / thick) if s and thick else math.inf) for s in row)
            if count and now > worst:
                break
            count, worst = count + 1, now
        row = sizes[at : at + count]
        thick = sum(row) / side if side else 0.0
        offset = 0.0
        for size in row:
            along = size / thick if thick else 0.0
            upright = width >= height  # the row is a column at the left edge
            place = (x, y + offset, thick, along) if upright else (x + offset, y, along, thick)
            out.append(Area(*place))
            offset += along
        x, y, width, height = (x + thick, y, width - thick, height) if width >= height else (
            x, y + thick, width, height - thick
        )  # fmt: skip
        at += count
    return out


def treemap(boxes: Sequence[Box], *, width: float, height: float, title: str, description: str, css: str = "") -> str:
    """Return the drawing of boxes, each with the boxes inside it.

    >>> svg = treemap([Box(3, ["fruit"]), Box(1, ["cars"])], width=400, height=200, title="Tree", description="two")
    >>> svg.count("<rect") == 2 and "fruit" in svg
    True
    """
    body = "".join(_level(boxes, Area(0, 0, width, height), 0))
    name = f"lt map {css}".strip()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(title)}"><desc>{escape(description)}</desc>{body}</svg>'
    )


def _level(boxes: Sequence[Box], area: Area, depth: int) -> Iterator[str]:
    kept = sorted((box for box in boxes if box.value > 0), key=lambda box: (box.rest, -box.value))
    for box, place in zip(kept, squarified([box.value for box in kept], area), strict=True):
        yield _box(box, place, depth)


def _box(box: Box, area: Area, depth: int) -> str:
    gap = 1.0 if depth == 0 else 0.5
    width, height = area.width - 2 * gap, area.height - 2 * gap
    if width <= 0.5 or height <= 0.5:
        return ""
    kind = "rest" if box.rest else "group" if box.inside else f"t{box.tint}"
    parts = [f"<title>{escape(box.note)}</title>" if box.note else ""]
    parts.append(f'<rect width="{width:.1f}" height="{height:.1f}" rx="{3 if depth == 0 else 2}" class="{kind}"/>')
    inner = Area(0, 0, width, height).shrunk(GAP, HEAD)
    if box.inside and inner.width >= LEAST_WIDTH and inner.height >= LEAST_HEIGHT:
        parts += _text([" · ".join(box.names)], width, HEAD + 6)
        parts += _level(box.inside, inner, depth + 1)
    else:
        parts += _text(box.names, width, height)
    return (
        f'<svg x="{area.x + gap:.1f}" y="{area.y + gap:.1f}" width="{width:.1f}" height="{height:.1f}">'
        + "".join(parts)
        + "</svg>"
    )


def _text(names: Sequence[str], width: float, height: float) -> list[str]:
    """Return the names as lines: the first strong on a line of its own, the others as many as there is room for."""
    room = width - 2 * EDGE
    if width < LEAST_WIDTH or height < LEAST_HEIGHT or not names:
        return []
    lines = filled(names, room, max(1, int((height - 4) / LINE)))
    y = 2 + FONT if height < 2 * LINE else 4 + FONT
    return [
        f'<text x="{EDGE:g}" y="{y + i * LINE:.1f}"{"" if i else " class=" + chr(34) + "strong" + chr(34)}>'
        f"{escape(line)}</text>"
        for i, line in enumerate(lines)
    ]


def filled(names: Sequence[str], room: float, most: int) -> list[str]:
    """Return lines no wider than the room: the first name, then the others, several to a line where they fit.

    >>> filled(["games", "chess", "go", "poker"], 70, 3)
    ['games', 'chess, go,', 'poker']
    """
    lines = [cut(names[0], room)]
    at, rest = 1, list(names[1:])
    while rest and at < most:
        line = ""
        while rest and letters(line + rest[0] + ",") <= room:
            line += rest.pop(0) + (", " if rest else "")
        if not line:
            line = cut(rest.pop(0), room) if len(lines) < most else ""
        lines.append(line.rstrip())
        at += 1
    if rest and len(lines) > 1:
        lines[-1] = cut(lines[-1].rstrip(",") + ", …", room) if not lines[-1].endswith("…") else lines[-1]
    return lines


def letters(text: str) -> float:
    """Return about how wide a text is drawn."""
    wide = sum(0.33 if c in NARROW else 0.9 if c in WIDE or ord(c) > 0x2E7F else 0.68 if c.isupper() else 0.58 for c in text)
    return FONT * wide


def cut(text: object, room: float) -> str:
    """Return a text cut with an ellipsis to the room there is."""
    plain = " ".join(str(text).split())
    if letters(plain) <= room:
        return plain
    while plain and letters(plain + "…") > room:
        plain = plain[:-1]
    return plain.rstrip(" ,.:-") + "…"
