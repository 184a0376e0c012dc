"""The documentation site: every page is in a menu, every public name in the reference, and no link leads nowhere.

The site itself is built where its builder is installed (the extra `docs`).
"""

import ast
import doctest
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.project.site import PageLinks, dead_links, foreign_parts, html_pages

import longtail as lt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROGRAMS = (
    *("accessible", "code_words", "links", "measured", "navigation", "notebooks", "reference", "option_tables"),
    *("docstrings", "hooks"),
)
BUILDER = ("docstrings", "hooks")  # need what builds the site
CONFIG = (ROOT / "mkdocs.yml").read_text("utf-8")
has_builder = importlib.util.find_spec("mkdocs_autorefs") is not None
needs_builder = pytest.mark.skipif(not has_builder, reason="needs longtail[docs]")


@pytest.fixture(scope="module")
def programs():
    """The programs that prepare pages for the site, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts" / "docs_site"))
        yield {name: importlib.import_module(name) for name in PROGRAMS if has_builder or name not in BUILDER}


@pytest.fixture(scope="module")
def navigation(programs):
    """The navigation of mkdocs.yml."""
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(CONFIG[CONFIG.index("\nnav:\n") :])["nav"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning ends the build."""
    folder = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


# --- menus ------------------------------------------------------------------------------------------------------------


def test_every_page_is_in_a_menu(programs, navigation):
    menus = programs["navigation"].pages_in(programs["navigation"].completed(navigation))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    pages |= set(programs["links"].adopted_files().values()) | set(programs["navigation"].notebook_pages().values())
    assert sorted(pages - set(menus)) == []
    assert len(menus) == len(set(menus)), "a page is in two menus"


def test_menus_name_pages_that_are_there(programs, navigation):
    assert programs["navigation"].missing_pages(navigation) == []


# --- reference --------------------------------------------------------------------------------------------------------


def test_every_public_name_has_its_entry(programs):
    found = {path for path in programs["reference"].arranged() if path.count(".") == 1}
    modules = {name for name in lt.__all__ if type(getattr(lt, name)).__name__ == "module"}
    assert {f"longtail.{name}" for name in lt.__all__ if name not in modules | {"__version__"}} <= found


def test_no_name_has_two_entries(programs):
    reference = programs["reference"]
    entries = [
        path for page in reference.PAGES.glob("*.md") for path in reference.ENTRY.findall(page.read_text("utf-8"))
    ]
    assert len(entries) == len(set(entries))


def test_every_entry_of_the_reference_has_an_example(programs):
    """In its own description, or in an example of the page that shows several names together."""
    reference = programs["reference"]
    without = []
    for path, page in reference.arranged().items():
        home = {n.path: n.home for folder in reference.folders() for n in reference.names_of(folder)}
        module, _, name = home.get(
            path, next((n.home for n in reference.top_names() if n.path == path), path)
        ).rpartition(".")
        node = reference.definitions(reference.file_of(module)).get(name)
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        text = (reference.PAGES / f"{page}.md").read_text("utf-8")
        shown = " ".join(re.findall(r"^```python.*?^```", text, re.M | re.S))
        if ">>> " not in ast.unparse(node) and not re.search(rf"\b{path.rpartition('.')[2]}\b", shown):
            without.append(path)
    assert without == []


# --- the built site ---------------------------------------------------------------------------------------------------


@needs_builder
def test_no_link_leads_nowhere(site):
    checked, dead = dead_links(site)
    assert checked > 5000 and dead == []


@needs_builder
def test_nothing_is_loaded_from_another_host(site):
    assert foreign_parts(site) == []


@needs_builder
def test_every_entry_of_the_reference_is_shown(site, programs):
    places = {page: PageLinks((site / page).read_text("utf-8")).places for page in html_pages(site)}
    for path, page in programs["reference"].arranged().items():
        assert path in places[f"reference/{page}.html"]


@needs_builder
def test_all_options_of_a_command_are_told(site):
    page = (site / "command-line.html").read_text("utf-8")
    assert "All options of <code>train</code>" in page and "All options of <code>review import</code>" in page


@needs_builder
def test_a_mark_stands_for_the_source_of_a_figure(site):
    for page in ("hybrid.html", "tutorials/encoder-and-hybrid.html"):
        text = (site / page).read_text("utf-8")
        assert 'title="hybrid.json: summary.debtags.' in text and "(<code>hybrid.json</code>" not in text
        assert f'href="{"../" * page.count("/")}reproduce.html" title="hybrid.json' in text


@needs_builder
def test_plots_stand_in_the_page_and_take_its_colours(site):
    assert '<span class="plot"><svg' in (site / "performance.html").read_text("utf-8")
    assert '[data-md-color-scheme="slate"]' in (site / "stylesheets" / "plots.css").read_text("utf-8")


@needs_builder
def test_the_search_needs_no_server(site):
    assert (site / "search" / "search_index.js").is_file()
    assert "unpkg.com" not in (site / "index.html").read_text("utf-8")


@needs_builder
def test_what_the_theme_leaves_nameless_has_a_name(site):
    for page in [*html_pages(site), "404.html"]:
        text = (site / page).read_text("utf-8")
        assert 'role="dialog" aria-label="Search"' in text
        assert 'aria-labelledby="__nav' not in text and "<th></th>" not in text


# --- the programs -----------------------------------------------------------------------------------------------------


def test_examples_of_the_programs_are_right(programs):
    assert sum(doctest.testmod(module).failed for module in programs.values()) == 0


def test_a_dead_link_and_a_foreign_part_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#x">.</a><a href="b.html#y">.</a><a href="c.html">.</a>', "utf-8")
    (tmp_path / "b.html").write_text('<p id="x"></p><script src="https://example.org/x.js"></script>', "utf-8")
    assert dead_links(tmp_path) == (3, ["a.html: b.html#y", "a.html: c.html"])
    assert foreign_parts(tmp_path) == ["b.html: https://example.org/x.js"]


def test_a_notebook_is_shown_with_what_its_cells_showed(programs, tmp_path):
    file = tmp_path / "first.ipynb"
    outputs = '[{"output_type": "execute_result", "data": {"text/html": ["<b>card</b>"], "text/plain": ["card"]}}]'
    file.write_text(
        '{"cells": [{"cell_type": "markdown", "source": ["# First\\n", "See [data](../docs/data.md)."]}, '
        f'{{"cell_type": "code", "source": "1 < 2", "outputs": {outputs}}}]}}',
        "utf-8",
    )
    page = programs["notebooks"].notebook_page(file)
    assert "[data](../data.md)" in page and "1 < 2" in page
    assert "<b>card</b>" in programs["notebooks"].with_outputs(page, file)


def test_a_page_that_is_not_there_is_left_out(programs):
    nav = [{"Home": "index.md"}, {"More": ["data.md", "no-such-page.md", {"Below": ["nor-this.md"]}]}]
    assert programs["navigation"].without_missing(nav) == [{"Home": "index.md"}, {"More": ["data.md"]}]
    assert programs["navigation"].missing_pages(nav) == ["no-such-page.md", "nor-this.md"]
