"""Figures of the docs: where each is measured stands behind a small mark, which leads to the page of all commands.

In the source it is written after the figure, (`hybrid.json`, `summary.yso-titles.hybrid.p@1`), and the tests compare.
"""

from __future__ import annotations

import re
from html import escape, unescape

SOURCE = re.compile(r"\s*\(<code>(?P<file>[a-z_]+\.json)</code>,\s+<code>(?P<key>[^<]+)</code>\)")
COMMANDS = "reproduce.html"


def with_marks(html: str, page: str) -> str:
    """Return the HTML of a page, which will be the file `page`, with marks in place of the sources of figures.

    >>> with_marks("8 times (<code>speed.json</code>, <code>ratios.one</code>).", "guides/a.html")
    ... # doctest: +NORMALIZE_WHITESPACE
    '8 times<a class="measured" href="../reproduce.html" title="speed.json: ratios.one"
    aria-label="measured: speed.json, ratios.one"></a>.'
    """
    way = "../" * page.count("/") + COMMANDS

    def mark(found: re.Match[str]) -> str:
        file, key = found["file"], escape(unescape(" ".join(found["key"].split())))
        return f'<a class="measured" href="{way}" title="{file}: {key}" aria-label="measured: {file}, {key}"></a>'

    return SOURCE.sub(mark, html)
