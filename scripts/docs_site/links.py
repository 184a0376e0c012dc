"""Links between pages and the rest of the repository, rewritten for the site.

Pages are read in a plain view of the repository too, so they link to files as these lie there. On the site a link to a
file that has become a page leads to that page, and a link to any other file outside docs/ to the project's address.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
HOME = "https://github.com/longtail-xmc/longtail"
# files outside docs/ that become pages of the site
ADOPTED = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/how-to-contribute.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "SECURITY.md": "project/reporting.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "fuzz/README.md": "project/fuzzers.md",
    "notebooks/README.md": "notebooks/index.md",
    "integrations/annif/README.md": "project/annif.md",
    "src/longtail/data/files/README.md": "project/bundled-data.md",
    "README.md": "index.md",  # which says the same
}
FENCE = re.compile(
    r"^(?P<indent> *)(?P<marks>```+|~~~+)(?P<words>[^\n`]*)\n(?P<text>.*?)^ *(?P=marks)[ \t]*$", re.M | re.S
)
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s]+)(?P<after>(?: \"[^\"\n]*\")?\))")


def adopted_files() -> dict[str, str]:
    """Return the files outside docs/ that become pages and are there, each with its place on the site."""
    return {file: page for file, page in ADOPTED.items() if page != "index.md" and (ROOT / file).is_file()}


def outside_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a page in their order, each with whether it is a block of code."""
    at = 0
    for found in FENCE.finditer(text):
        yield text[at : found.start()], False
        yield found[0], True
        at = found.end()
    yield text[at:], False


def site_links(text: str, source: str) -> str:
    """Return a page with its links as the site needs them; `source` is the page's place in the repository.

    >>> site_links("[terms](../LICENSE), [new](../CHANGELOG.md), [data](data.md)", "docs/index.md")
    '[terms](https://github.com/longtail-xmc/longtail/blob/main/LICENSE), [new](project/changelog.md), [data](data.md)'
    """
    return "".join(
        piece
        if code
        else LINK.sub(lambda found: found["before"] + moved(found["target"], source) + found["after"], piece)
        for piece, code in outside_fences(text)
    )


def moved(target: str, source: str) -> str:
    """Return one link as the site needs it."""
    path, mark, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return target
    file = os.path.normpath(PurePosixPath(source).parent / path)
    if file.startswith(".."):
        return target
    page = place_on_site(file)
    if page is None:
        return f"{HOME}/{'tree' if (ROOT / file).is_dir() else 'blob'}/main/{file}{mark}{anchor}"
    here = place_on_site(source) or source
    return os.path.relpath(page, PurePosixPath(here).parent) + mark + anchor


def place_on_site(file: str) -> str | None:
    """Return where a file of the repository stands on the site; None if it is no part of it."""
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    if file.startswith("notebooks/") and file.endswith(".ipynb"):
        return file.removesuffix(".ipynb") + ".md"
    return ADOPTED.get(file)


def plain_fences(text: str) -> str:
    """Return a page whose blocks of code name their language alone; other words, as `no-run`, are for tests."""

    def plain(found: re.Match[str]) -> str:
        words = found["words"].split()
        language = words[0] if words else ""
        indent, marks = found["indent"], found["marks"]
        return f"{indent}{marks}{language}\n{found['text']}{indent}{marks}"

    return FENCE.sub(plain, text)
