"""Build the documentation site and look at it with a browser: in light and in dark colours, and on a phone.

    python benchmarks/project/site.py

Needs the extra `docs`, the Python packages playwright and axe-playwright-python, and Chromium at /usr/bin/chromium. The
site is built with --strict into a temporary folder and served from there. Of every page: links that lead nowhere,
requests to another host, errors of the browser, sideways scrolling at 390 pixels. axe-core looks at one page of each
kind, in light and in dark colours. At last words are searched for, on the served site and in the files themselves.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import ROOT, Facts, make_parser, start_facts, write_results

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
PHONE, DESKTOP = (390, 844), (1280, 900)  # pixels
SEARCHES = {  # what is typed, and the page that must be among the first five pages found
    "omikuji": "performance.html",
    "stop words": "features.html",
    "psndcg_at_k": "reference/metrics.html",
    "overlap auto": "overlap.html",
    "load_bundled": "reference/data.html",
    "exit code": "command-line.html",
    "snowball german": "features.html",
    "impute": "groups.html",
    "witness": "reference/audit.html",
    "checkpoint": "scale.html",
}
FIRST = 5
SEARCH_SAYS = '.md-search-result__meta:has-text("{}")'  # first that its index is read, later how much it found
PATIENCE = 120_000  # milliseconds: a busy machine takes long to read the index of the search
LOOKED_AT = (  # by axe-core; one of each kind of page, and all that are unlike the others
    *("index.html", "tutorials/*.html", "notebooks/*.html", "methods/*.html", "performance.html", "fidelity.html"),
    *("glossary.html", "command-line.html", "reference/index.html", "reference/tagger.html", "reference/metrics.html"),
    *("reference/inside/tree.html", "page.html", "prime.html", "project/changelog.html"),
)
FOREIGN_TAGS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "video": "src"}


def main() -> None:
    args = arguments()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        facts = start_facts(
            args, {}, "mkdocs", "mkdocs-material", "mkdocstrings", "playwright", "axe-playwright-python"
        )
        facts["build"] = build(site)
        pages = html_pages(site)
        facts["pages"] = len(pages)
        facts["links"] = link_facts(site)
        print(f"built in {facts['build']['seconds']} s with {facts['build']['warnings']} warnings: {len(pages)} pages")
        print(f"{facts['links']['checked']} links, {len(facts['links']['dead'])} dead")
        with served(site) as address, sync_playwright() as program:
            browser = program.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            facts["browser"] = f"Chromium {browser.version}"
            facts["phone"] = phone_facts(browser, address, pages)
            print(f"at {PHONE[0]} pixels: {facts['phone']}")
            chosen = [page for page in pages if any(fnmatch(page, pattern) for pattern in LOOKED_AT)]
            facts["axe"] = axe_facts(browser, address, chosen)
            for name in ("light", "dark"):
                print(f"axe-core, {name}: {len(facts['axe'][name]['violations'])} violations")
            facts["search"] = {
                "served": search_facts(browser, f"{address}/index.html"),
                "from_files": search_facts(browser, (site / "index.html").as_uri()),
            }
            print(f"search: {facts['search']}")
            browser.close()
    write_results(facts, args.output)


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    return make_parser(__doc__, "site.json").parse_args()


# --- building ---------------------------------------------------------------------------------------------------------


def build(site: Path) -> Facts:
    """Build the site into a folder; a build that warns ends here."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(done.stderr)
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
    warnings = sum(line.startswith("WARNING") for line in done.stderr.splitlines())
    return {"seconds": round(seconds, 1), "warnings": warnings, "mb": round(size / 1e6, 1)}


def html_pages(site: Path) -> list[str]:
    """Return the addresses of all pages within the site."""
    return sorted(file.relative_to(site).as_posix() for file in site.rglob("*.html") if file.name != "404.html")


# --- links ------------------------------------------------------------------------------------------------------------


class PageLinks(HTMLParser):
    """Collects what a page links to, what it loads, and the places that others can link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        loaded = given.get(FOREIGN_TAGS.get(tag, ""))
        if loaded and given.get("rel") != "canonical":
            self.loads.append(loaded)


def link_facts(site: Path) -> Facts:
    """Return how many links the site has, and those that lead nowhere."""
    hosts = Counter(
        urlsplit(link).netloc
        for page in html_pages(site)
        for link in PageLinks((site / page).read_text("utf-8")).links
        if urlsplit(link).netloc
    )
    checked, dead = dead_links(site)
    return {"checked": checked, "dead": dead, "to_other_hosts": dict(hosts.most_common())}


def dead_links(site: Path) -> tuple[int, list[str]]:
    """Return how many links within the site were looked at, and those that lead to no file or no place of a page."""
    found = {page: PageLinks((site / page).read_text("utf-8")) for page in html_pages(site)}
    dead, checked = [], 0
    for page, of_page in found.items():
        for link in [*of_page.links, *of_page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            file = (site / page).parent / unquote(parts.path) if parts.path else site / page
            file = (file / "index.html" if file.is_dir() else file).resolve()
            target = file.relative_to(site.resolve()).as_posix() if file.is_relative_to(site.resolve()) else ""
            place = unquote(parts.fragment)
            there = file.is_file() and target
            if not there or (place and target in found and place not in found[target].places):
                dead.append(f"{page}: {link}")
    return checked, dead


def foreign_parts(site: Path) -> list[str]:
    """Return what pages would load from other hosts: scripts, styles, pictures, frames."""
    return [
        f"{page}: {part}"
        for page in html_pages(site)
        for part in PageLinks((site / page).read_text("utf-8")).loads
        if urlsplit(part).netloc
    ]


# --- in a browser -----------------------------------------------------------------------------------------------------


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve the site, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Watched:
    """A page of the browser, and what it does that it should not."""

    def __init__(self, browser: Browser, size: tuple[int, int], scheme: str) -> None:
        self.foreign: list[str] = []
        self.errors: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)  # type: ignore[arg-type]
        self.page.on("request", self._see)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    def _see(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob", "file") and parts.hostname != "127.0.0.1":
            self.foreign.append(request.url)


def phone_facts(browser: Browser, address: str, pages: list[str]) -> Facts:
    """Open every page on a phone: is it wider than the screen, and does it ask another host for anything?"""
    watched = Watched(browser, PHONE, "light")
    wide = []
    for page in pages:
        watched.page.goto(f"{address}/{page}")
        size = watched.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        if size[0] > size[1]:
            wide.append(page)
    watched.page.close()
    return {
        "width": PHONE[0],
        "pages": len(pages),
        "wider_than_the_screen": wide,
        "requests_to_other_hosts": sorted(set(watched.foreign)),
        "errors": watched.errors,
    }


def axe_facts(browser: Browser, address: str, pages: list[str]) -> Facts:
    """Let axe-core look at every page, in light and in dark colours."""
    package = importlib.util.find_spec("axe_playwright_python")
    script = (Path(str(package and package.origin)).parent / "axe.min.js").read_text("utf-8")
    facts: Facts = {"width": DESKTOP[0], "pages": pages}
    for scheme in ("light", "dark"):
        watched = Watched(browser, DESKTOP, scheme)
        violations = []
        for page in pages:
            watched.page.goto(f"{address}/{page}")
            watched.page.evaluate(script)
            found = watched.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
            violations += [
                f"{page}: {one['id']} at {' '.join(map(str, node['target']))}"
                for one in found["violations"]
                for node in one["nodes"]
            ]
        facts["version"] = found["testEngine"]["version"]
        facts[scheme] = {"violations": violations, "requests_to_other_hosts": sorted(set(watched.foreign))}
        watched.page.close()
    return facts


def search_facts(browser: Browser, address: str) -> Facts:
    """Type words into the search, and see whether the page that tells of them is among the first found."""
    watched = Watched(browser, DESKTOP, "light")
    home = address.removesuffix("index.html")
    missed = []
    for words, wanted in SEARCHES.items():
        watched.page.goto("about:blank")
        watched.page.goto(address)
        watched.page.click(".md-search__input")
        watched.page.wait_for_selector(SEARCH_SAYS.format("Type to start searching"), timeout=PATIENCE)
        watched.page.keyboard.insert_text(words)
        watched.page.keyboard.press("End")  # a key is what the search waits for
        watched.page.wait_for_selector(SEARCH_SAYS.format("matching document"), timeout=PATIENCE)
        links = watched.page.eval_on_selector_all(
            ".md-search-result__item > .md-search-result__link", "all => all.map(one => one.href)"
        )
        found = list(dict.fromkeys(link.removeprefix(home).partition("?")[0] for link in links))
        if wanted not in found[:FIRST]:
            missed.append({"words": words, "wanted": wanted, "found": found})
    watched.page.close()
    return {
        "searches": len(SEARCHES),
        "missed": missed,
        "requests_to_other_hosts": sorted(set(watched.foreign)),
        "errors": watched.errors,
    }


if __name__ == "__main__":
    main()
