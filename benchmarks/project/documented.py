"""Every measured table and figure of the pages: where it stands, and the program that makes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.harness.program import ROOT

FENCE = re.compile(r"^```.*?^```[ \t]*$", re.M | re.S)
HEADING = re.compile(r"^(#+) (.*)$", re.M)
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
CITED = re.compile(r"\b([a-z][a-z0-9_]*\.json)\b")
MEASURED_ROW = re.compile(r"^\|.*\d[.,]\d.*\|$", re.M)
PAGE_OF_THIS = "reproduce.md"
PAINTERS = {  # of many pictures, by how their names begin
    "docs/images/": "scripts/make_screenshots.py",
    "docs/methods/": "scripts/draw_methods.py",
    "docs/performance-": "scripts/draw_performance.py",
}


@dataclass(frozen=True)
class Program:
    """A row of the table in benchmarks/README.md: a program, what it needs, how long it takes, what it writes."""

    file: str
    needs: str
    takes: str
    writes: str

    @property
    def command(self) -> str:
        """The command without its options."""
        folder = "" if self.file.startswith("../") else "benchmarks/"
        return f"python {folder}{self.file.removeprefix('../')}"


@dataclass(frozen=True)
class Shown:
    """What a section of a page shows, and where it comes from.

    Attributes
    ----------
    page, heading : str
        Path from the root of the repository, and the text of the heading.
    what : str
        "table", "figures in the text", or the name of a picture.
    source : str
        A file of results, or the program that draws a picture.
    """

    page: str
    heading: str
    what: str
    source: str


@cache
def programs() -> dict[str, Program]:
    """Return the programs by the name of their file of results."""
    text = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `((?:\.\./)?\w+/\w+\.py)` \|(.*)\|$", text, re.M)
    cells = {file: [cell.strip() for cell in rest.split(" | ")] for file, rest in rows}
    return {
        re.findall(r"`(\w+\.json)`", writes)[0]: Program(file, needs, takes, writes)
        for file, (_, needs, takes, writes) in cells.items()
    }


def pages() -> list[Path]:
    """Return README.md and the pages below docs that are written by hand, but the one this list stands on."""
    docs = ROOT / "docs"
    found = sorted(page for page in docs.rglob("*.md") if docs / "reference" not in page.parents)
    return [ROOT / "README.md", *(page for page in found if page.name != PAGE_OF_THIS)]


def shown() -> list[Shown]:
    """Return every measured table, figure in the text and picture, in the order of the pages."""
    return [entry for page in pages() for entry in _of_page(page)]


def _of_page(page: Path) -> Iterator[Shown]:
    name = page.relative_to(ROOT).as_posix()
    above: dict[int, tuple[str, ...]] = {}  # by level of heading: the results that are named below it
    for heading, level, text in _sections(FENCE.sub("", page.read_text("utf-8"))):
        above = {other: named for other, named in above.items() if other < level}
        named = tuple(file for file in dict.fromkeys(CITED.findall(text)) if file in programs())
        above[level] = named
        measured = len(MEASURED_ROW.findall(text)) > 1
        inherited = next((above[other] for other in sorted(above, reverse=True) if above[other]), ())
        for source in named or (inherited if measured else ()):
            yield Shown(name, heading, "table" if measured else "figures in the text", source)
        for picture in PICTURE.findall(text):
            if "://" not in picture:
                yield Shown(name, heading, Path(picture).name, maker(page.parent / picture))


def _sections(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield heading, its level and the text below it, of every section."""
    found = list(HEADING.finditer(text))
    for place, match in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        yield match[2], len(match[1]), text[match.end() : end]


def maker(picture: Path) -> str:
    """Return the file of results whose program draws a picture, or else the file that names it."""
    inside = picture.resolve().relative_to(ROOT).as_posix()
    for results, program in programs().items():
        if f"`{inside}`" in program.writes:
            return results
    for beginning, painter in PAINTERS.items():
        if inside.startswith(beginning):
            return painter
    for source in _sources():
        if picture.name in source.read_text("utf-8"):
            return source.relative_to(ROOT).as_posix()
    return "drawn by hand"


@cache
def _sources() -> tuple[Path, ...]:
    found = (file for folder in ("scripts", "benchmarks") for file in sorted((ROOT / folder).rglob("*.py")))
    return tuple(file for file in found if file.name != "documented.py")


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as a view of the repository makes it.

    >>> anchor("What you get, and why")
    'what-you-get-and-why'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
