"""What the theme's HTML lacks for those who hear a page or use it without a mouse.

The theme gives names to its menus that are empty where a section has a page of its own, and none to its search.
Markdown makes a heading of every cell in the first line of a table, also of an empty one.
"""

from __future__ import annotations

import re

MENU = re.compile(
    r'(?P<start><nav class="md-nav"[^>]*?) aria-labelledby="[^"]*"'
    r'(?P<between>[^>]*>\s*<label class="md-nav__title"[^>]*>\s*<span class="md-nav__icon md-icon"></span>)'
    r"(?P<title>[^<]*)(?=</label>)"
)
DIALOG = '<div class="md-search" data-md-component="search" role="dialog"'
EMPTY_HEADING = re.compile(r"<th(?P<attributes>[^>]*)>\s*</th>")


def with_names(page: str) -> str:
    """Return a page whose search and whose menus have a name.

    >>> with_names('<nav class="md-nav" aria-labelledby="n_label"><label class="md-nav__title" for="n">'
    ...            '<span class="md-nav__icon md-icon"></span> Data </label>')[:41]
    '<nav class="md-nav" aria-label="Data"><la'
    >>> with_names('<div class="md-search" data-md-component="search" role="dialog">')
    '<div class="md-search" data-md-component="search" role="dialog" aria-label="Search">'
    """

    def named(found: re.Match[str]) -> str:
        return f'{found["start"]} aria-label="{found["title"].strip()}"{found["between"]}{found["title"]}'

    return MENU.sub(named, page).replace(DIALOG, f'{DIALOG} aria-label="Search"')


def with_plain_corners(page: str) -> str:
    """Return the HTML of a page in which empty cells of tables are no headings.

    >>> with_plain_corners('<tr><th></th><th style="text-align: right;"></th><th>rows</th></tr>')
    '<tr><td></td><td style="text-align: right;"></td><th>rows</th></tr>'
    """
    return EMPTY_HEADING.sub(r"<td\g<attributes>></td>", page)
