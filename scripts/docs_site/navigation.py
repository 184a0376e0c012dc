"""The navigation of the site: that of mkdocs.yml, with what its open sections hold and without what is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import reference
from links import ROOT, adopted_files

DOCS, NOTEBOOKS = ROOT / "docs", ROOT / "notebooks"
OPEN_FOLDERS = {"Tutorials": "tutorials", "Explanations": "methods"}  # their pages need not be listed
INSIDE = "Inside longtail"


def completed(nav: list[Any]) -> list[Any]:
    """Return the navigation that the site has."""
    complete = []
    for section in nav:
        [(title, items)] = section.items()
        if isinstance(items, list):
            listed = set(pages_in(items))
            items = [*items, *(page for page in unlisted_pages(title) if page not in listed)]
            if title == "Reference":
                items.append({INSIDE: ["reference/inside/index.md", *inside_entries()]})
            if title == "Notebooks":
                about = [page for page in adopted_files().values() if page == "notebooks/index.md"]
                items += [page for page in (*about, *notebook_pages().values()) if page not in listed]
        complete.append({title: items})
    return without_missing(complete)


def unlisted_pages(title: str) -> list[str]:
    """Return the pages that a section has because they are in its folder."""
    folder = OPEN_FOLDERS.get(title)
    return [f"{folder}/{page.name}" for page in sorted((DOCS / folder).glob("*.md"))] if folder else []


def inside_entries() -> list[dict[str, str]]:
    """Return the entries of the pages that are made for folders."""
    return [{f"longtail.{name}": f"reference/inside/{name}.md"} for name in reference.inside_pages()]


def notebook_pages() -> dict[Path, str]:
    """Return the notebooks, in the order of their names, each with its page."""
    return {file: f"notebooks/{file.stem}.md" for file in sorted(NOTEBOOKS.glob("*.ipynb"))}


def pages_in(items: Any) -> list[str]:
    """Return the pages that a part of the navigation lists.

    >>> pages_in([{"Home": "index.md"}, {"More": ["a.md", {"Below": ["b.md"]}]}])
    ['index.md', 'a.md', 'b.md']
    """
    if isinstance(items, str):
        return [items]
    below = items.values() if isinstance(items, dict) else items
    return [page for item in below for page in pages_in(item)]


def is_there(page: str) -> bool:
    """Say whether a page can be shown: it is in docs/, or made from another file."""
    made = {*adopted_files().values(), *notebook_pages().values()}
    return page.startswith("reference/inside/") or page in made or (DOCS / page).is_file()


def missing_pages(items: Any) -> list[str]:
    """Return the pages that the navigation names and that are not there."""
    return [page for page in pages_in(items) if not is_there(page)]


def without_missing(items: list[Any]) -> list[Any]:
    """Return a part of the navigation without pages that are not there, and without sections that have none."""
    kept: list[Any] = []
    for item in items:
        if isinstance(item, str):
            kept += [item] if is_there(item) else []
            continue
        [(title, below)] = item.items()
        rest = without_missing([below] if isinstance(below, str) else below)
        if rest:
            kept.append({title: rest[0] if isinstance(below, str) else rest})
    return kept
