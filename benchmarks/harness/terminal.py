"""Plain tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    """Return a table; the first `left` columns are aligned to the left, the others to the right.

    >>> print(table(["data", "P@1"], [["eurlex-4k", "83.54"]]))
      data         P@1
      eurlex-4k  83.54
    """
    cells = [[str(cell) for cell in row] for row in [headings, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    lines = []
    for row in cells:
        aligned = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(aligned).rstrip())
    return "\n".join(lines)


def show_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> None:
    """Print a table below its title, after an empty line."""
    print(f"\n{title}\n{table(headings, rows, left)}", flush=True)
