"""What MkDocs calls while it builds the site (`hooks` of mkdocs.yml): pages that are made, links, plots.

Pages in docs/ stay plain Markdown that reads well in a view of the repository. Here they are fitted to the site.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath

import reference
from accessible import with_names, with_plain_corners
from code_words import with_line_breaks
from formulas import with_formulas
from links import ROOT, adopted_files, plain_fences, site_links
from measured import with_marks
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from navigation import completed, notebook_pages
from notebooks import notebook_page, with_outputs
from option_tables import with_option_tables

PLOTS = ROOT / "src" / "longtail" / "report" / "plots"
ICON = ROOT / "src" / "longtail" / "serve" / "page" / "icon.svg"
WELCOME = "index.md"
# pages for those who change longtail; the search shows them after those for its users
FOUND_LATER = ("reference/inside/", "contributing.md", "project/how-to-contribute.md", "project/changelog.md")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation."""
    config.nav = completed(config.nav or [])
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what is not in docs/: other files of the repository, pages of the reference, the style of plots."""
    for file, page in adopted_files().items():
        files.append(File.generated(config, page, content=site_links((ROOT / file).read_text("utf-8"), file)))
    for notebook, page in notebook_pages().items():
        files.append(File.generated(config, page, content=notebook_page(notebook)))
        files.append(File.generated(config, f"notebooks/{notebook.name}", content=notebook.read_text("utf-8")))
    for folder, text in reference.inside_pages().items():
        files.append(File.generated(config, f"reference/inside/{folder}.md", content=text))
    files.append(File.generated(config, "reference/inside/index.md", content=inside_index()))
    files.append(File.generated(config, "stylesheets/plots.css", content=plot_style()))
    files.append(File.generated(config, "images/icon.svg", content=ICON.read_text("utf-8")))
    return files


def inside_index() -> str:
    """Return the page above the pages of the folders."""
    return (
        "# Inside longtail\n\nMost programs need only the names of the pages before. These are what longtail's "
        "folders offer each other, for those\nwho [change or extend it](../../contributing.md).\n\n"
        + reference.folder_list()
        + "\n"
    )


def plot_style() -> str:
    """Return the style of plots, whose dark colours follow the switch of the site and not the system."""
    style = "".join(file.read_text("utf-8") for file in sorted(PLOTS.glob("*.css")))
    dark = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root (\{.*?\})\s*\}", re.S)
    return dark.sub(r'[data-md-color-scheme="slate"] \1', style)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fit the text of a page to the site."""
    uri = page.file.src_uri
    if uri == "command-line.md":
        markdown = with_option_tables(markdown)
    if uri == "reference/index.md":
        markdown = markdown.replace(reference.LIST_MARK, reference.name_list())
    if uri.startswith("reference/"):
        markdown = reference.with_levels(markdown)
    if uri == WELCOME:
        page.meta["hide"] = ["navigation", "toc"]
    if uri.startswith(FOUND_LATER):
        page.meta["search"] = {"boost": 0.001}  # a word of a title counts a thousandfold
    if page.file.generated_by is None:
        markdown = site_links(markdown, f"docs/{uri}")
    return plain_fences(with_formulas(markdown))


IMAGE = re.compile(r'(?<!">)<img alt="(?P<alt>[^"]*)" src="(?P<source>[^":]+)"\s*/?>')


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Set plots into the page itself, so that their colours follow it; marks tell where figures are measured."""

    def picture(found: re.Match[str]) -> str:
        source = os.path.normpath(PurePosixPath(page.file.dest_uri).parent / found["source"])
        file = ROOT / "docs" / source
        if file.suffix == ".svg" and file.is_file():
            drawing = file.read_text("utf-8")
            if '<svg xmlns="http://www.w3.org/2000/svg" class="lt' in drawing:
                return f'<span class="plot">{re.sub("<style>.*?</style>", "", drawing, flags=re.S)}</span>'
        return f'<a class="picture" href="{found["source"]}">{found[0]}</a>'

    html = with_marks(IMAGE.sub(picture, html), page.file.dest_uri)
    html = with_plain_corners(with_line_breaks(html))
    notebooks = {uri: file for file, uri in notebook_pages().items()}
    notebook = notebooks.get(page.file.src_uri)
    return with_outputs(html, notebook) if notebook else html


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Give names to what the theme puts around every page."""
    return with_names(output)


def on_post_template(output: str, *, template_name: str, config: MkDocsConfig) -> str:
    """Give names to the same on the page that is shown where there is none."""
    return with_names(output) if template_name == "404.html" else output
