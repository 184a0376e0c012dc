"""Docstrings as griffe reads them: examples under a heading of their own, comments of facts as their descriptions."""

from __future__ import annotations

import re
from typing import Any

import griffe

UNDERLINE = re.compile(r"-{3,}")
BESIDE = re.compile(r"  # (?!type:|noqa|fmt:)([^#\"']+)$")
ABOVE = re.compile(r"\s*# (?!---|type:|noqa|fmt:)(.+)")


class Docstrings(griffe.Extension):
    """Prepares docstrings for the parser of numpydoc.

    In longtail an example stands at the end of a docstring, often without a heading; the parser would take it for text
    or for a part of the section before.
    """

    def on_object(self, *, obj: griffe.Object, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = with_examples_heading(obj.docstring.value)

    def on_attribute(self, *, attr: griffe.Attribute, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Make the comment beside a constant or a field of facts, or above it, its description."""
        described = isinstance(attr.parent, griffe.Module) or attr.path.startswith("longtail.facts.")
        if attr.docstring is None and described and attr.lineno is not None:
            words = comment_at(attr.module.lines, attr.lineno, attr.endlineno or attr.lineno)
            if words:
                attr.docstring = griffe.Docstring(words, parent=attr)


def comment_at(lines: list[str], first: int, last: int) -> str:
    """Return the comment of a statement, made a sentence: beside its last line, or on the line above it.

    >>> comment_at(["# the most there may be", "LIMIT = 3"], 2, 2), comment_at(["A = '#'"], 1, 1)
    ('The most there may be.', '')
    """
    beside = BESIDE.search(lines[last - 1])
    above = ABOVE.fullmatch(lines[first - 2]) if first > 1 else None
    words = beside[1] if beside else above[1] if above else ""
    return words and words[0].upper() + words[1:].rstrip(".") + "."


def with_examples_heading(text: str) -> str:
    """Return a docstring in which every example stands in a section "Examples".

    >>> with_examples_heading("Return one more.\\n\\n>>> more(1)\\n2").splitlines()[2:]
    ['Examples', '--------', '>>> more(1)', '2']
    """
    out: list[str] = []
    section = ""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if UNDERLINE.fullmatch(below) and line:
            section = line
        if line.startswith(">>> ") and section != "Examples":
            section = "Examples"
            out += ["Examples", "--------"] if not out or not out[-1] else ["", "Examples", "--------"]
        out.append(line)
    return "\n".join(out)
