"""Run the notebooks anew and store what their cells show, as `make notebooks` does.

    python scripts/run_notebooks.py              # all
    python scripts/run_notebooks.py 1 3          # those whose names begin with 1 and 3

Each runs in a new process and in an empty folder, which is removed afterwards.
"""

from __future__ import annotations

import argparse
import difflib
import html
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
PLAIN = 600  # letters that are kept of what stands for a card where a notebook shows no HTML
WORDS_THAT_STAY, NUMBERS_THAT_STAY = 0.95, 0.95  # shares, from which on a reader sees the same


def executed(file: Path, seconds: int = 600) -> Any:
    """Return a notebook with what its cells show when they are run; an error in a cell is raised."""
    notebook = nbformat.read(file, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=seconds, resources={"metadata": {"path": folder}}).execute()
    return cleaned(notebook)


def cleaned(notebook: Any) -> Any:
    """Return a notebook without what changes with every run, such as times; what stands for cards is kept short."""
    for cell in notebook.cells:
        cell.metadata = {}
        joined: list[Any] = []
        for output in cell.get("outputs", ()):
            if joined and output.output_type == "stream" and joined[-1].get("name") == output.name:
                joined[-1].text += output.text
                continue
            joined.append(output)
            if "text/html" in output.get("data", {}):
                told = output.data["text/plain"]
                output.data["text/plain"] = told if len(told) <= PLAIN else told[:PLAIN] + " …"
        if cell.cell_type == "code":
            cell.outputs = joined
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def shown_texts(cell: Any) -> list[str]:
    """Return the words that each output of a cell shows to a reader."""
    texts = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            texts.append(output.text)
        elif output.output_type == "error":
            texts.append(f"{output.ename}: {output.evalue}")
        else:
            page = output.data.get("text/html")
            texts.append(output.data["text/plain"] if page is None else words_of(page))
    return texts


def words_of(page: str) -> str:
    """Return the text of a piece of HTML, without its style and its drawings.

    >>> words_of("<style>p{}</style><p>a &lt; b</p><svg><text>7</text></svg>")
    'a < b'
    """
    kept = re.sub(r"<(style|svg)\b.*?</\1>", " ", page, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", kept)).split())


def looks_the_same(stored: str, new: str) -> bool:
    """Say whether a reader would see no difference: nearly all words are the same, and nearly all numbers close.

    >>> looks_the_same("P 84.5 of 2,513 rows", "P 84.4 of 2,513 rows")
    True
    >>> looks_the_same("P 84.5 of 2,513 rows", "P 61.0 of 2,513 rows")
    False
    """
    before, now = (NUMBER.sub("#", text).split() for text in (stored, new))
    if difflib.SequenceMatcher(None, before, now, autojunk=False).ratio() < WORDS_THAT_STAY:
        return False
    pairs = list(zip(*([float(one.replace(",", "")) for one in NUMBER.findall(text)] for text in (stored, new))))
    close = sum(abs(a - b) <= 0.1 * max(abs(a), abs(b)) + 0.05 for a, b in pairs)
    return not pairs or close >= NUMBERS_THAT_STAY * len(pairs)


def changes(stored: Any, new: Any) -> list[str]:
    """Return in a sentence each what a reader would see otherwise in a notebook that was run anew."""
    out = []
    for number, (before, after) in enumerate(zip(stored.cells, new.cells, strict=True)):
        old, found = shown_texts(before), shown_texts(after)
        if len(old) != len(found):
            out.append(f"cell {number} has {len(old)} stored outputs and shows {len(found)}.")
            continue
        out += [
            f"cell {number} shows {b[:300]!r}; stored is {a[:300]!r}."
            for a, b in zip(old, found)
            if not looks_the_same(a, b)
        ]
    return out


def main() -> None:
    """Run the notebooks that were asked for, and store them."""
    parser = argparse.ArgumentParser(description="Run the notebooks and store what their cells show.")
    parser.add_argument("names", nargs="*", help="first letters of their file names; all without")
    asked = tuple(parser.parse_args().names)
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        if asked and not file.name.startswith(asked):
            continue
        started = time.perf_counter()
        nbformat.write(executed(file), file)
        took = time.perf_counter() - started
        print(f"{file.name}: {took:.0f} s, {file.stat().st_size / 1e3:.0f} kB", file=sys.stderr)


if __name__ == "__main__":
    main()
