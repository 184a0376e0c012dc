"""Make the pictures of docs/page.md: a server on the bundled data, and a browser that looks at every view.

    python scripts/make_screenshots.py [FOLDER]

Needs the extra `serve`, the Python package playwright, and /usr/bin/chromium. Models are trained on a part
of the bundled data, and reviewed by made-up people: the pictures show the page, not how good a model is.
"""

from __future__ import annotations

import csv
import io
import itertools
import random
import socket
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import Browser, FilePayload, Page, sync_playwright

import longtail as lt
from longtail.review import NewItem, ReviewStore
from longtail.serve import ServeSettings, create_app
from make_debtags_skos import BASE, debtags_vocabulary

WIDTH = 1000  # of a picture, in pixels
LARGEST = 150_000  # bytes
TEXT = (
    "An editor for the terminal, written in C, with syntax highlighting for a hundred languages.\n\n"
    "It opens files of many gigabytes at once, undoes everything, and can be scripted in Python. A graphical version "
    "for GNOME with the same key bindings is in a package of its own; plugins check the spelling and talk to version "
    "control systems such as Git."
)


def make_models(folder: Path) -> dict[str, Path]:
    """Train a model on a half of the bundled data, and a smaller one to compare it with."""
    data, vocabulary = lt.data.load_bundled("debtags"), debtags_vocabulary()
    large = lt.Tagger("tree", random_state=0).fit_dataset(data.take(slice(None, None, 2)), vocabulary=vocabulary)
    small = lt.Tagger("ova", random_state=0).fit_dataset(data.take(slice(1, None, 16)), vocabulary=vocabulary)
    return {"debtags": large.save(folder / "debtags"), "debtags-small": small.save(folder / "debtags-small")}


def add_rows(path: Path) -> ReviewStore:
    """Make a review file of test rows; some of their labels are given."""
    store = ReviewStore(path, create=True, control=0.3, twice=0.5)
    data = lt.data.load_bundled("debtags", "test")
    texts, numbers = data.texts or (), range(0, 3000, 20)
    store.add_items(
        NewItem(texts[i], [BASE + name for name in data.labels_of(i)[:2]], id=(data.ids or ())[i]) for i in numbers
    )
    return store


def review(store: ReviewStore) -> None:
    """Let two made-up people review for a month; they go by the true labels, and err now and then."""
    draw, data = random.Random(0), lt.data.load_bundled("debtags", "test")
    true = {id: {BASE + name for name in data.labels_of(i)} for i, id in enumerate(data.ids or ())}
    with store.reading() as db:
        ids = [id for (id,) in db.execute("SELECT id FROM items ORDER BY number")]
    for row, id in enumerate(ids[:100]):
        for who in ("ada", "grace")[: 2 if row % 2 else 1]:
            for tag in store.item(id).suggestions[:6]:
                right = (tag.label in true[id] or (tag.probability or 0) > 0.6) ^ (draw.random() < 0.08)
                store.decide(id, tag.label, "accept" if right else "reject", who)
            store.finish(id, who)
    start = datetime.now(UTC) - timedelta(days=28)
    with store.writing() as db:  # as if it had taken four weeks, without the week-ends
        numbers = [number for (number,) in db.execute("SELECT number FROM decisions ORDER BY number")]
        for place, number in enumerate(numbers):
            at = start + timedelta(days=28 * place / len(numbers))
            at -= timedelta(days=max(0, at.weekday() - 4))
            db.execute("UPDATE decisions SET at = ? WHERE number = ?", (at.isoformat(timespec="milliseconds"), number))


def serve(settings: ServeSettings) -> tuple[uvicorn.Server, str]:
    """Run a server on a thread; returns it and its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level="warning", lifespan="on", ws="none"))
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{listening.getsockname()[1]}"


def save_picture(page: Page, path: Path) -> None:
    """Save what is shown as a PNG, small enough for a repository."""
    page.screenshot(path=path)
    print(f"{path}: {path.stat().st_size:,} bytes")
    if path.stat().st_size > LARGEST:
        sys.exit(f"{path} is larger than {LARGEST:,} bytes.")


def open_view(browser: Browser, address: str, view: str, **how: Any) -> Page:
    """Open a view in a window of its own."""
    how.setdefault("viewport", {"width": 1280, "height": 860})
    scale = min(1.0, WIDTH / how["viewport"]["width"])
    page = browser.new_context(locale="en-GB", device_scale_factor=scale, **how).new_page()
    page.goto(f"{address}/#/{view}")
    page.wait_for_selector(f"main.view-{view}")
    return page


def write_text(page: Page, tag: str) -> None:
    """Write the example, and look at one of its tags."""
    page.fill(".paper-text", TEXT)
    page.wait_for_selector(".behind")
    page.wait_for_timeout(500)
    found = page.locator(f'.tag-head:has(.tag-name:text-is("{tag}"))')
    found.evaluate("one => one.focus({ preventScroll: true })")


def take_pictures(browser: Browser, address: str, out: Path) -> None:
    """Look at all views: most in light colours, one in dark ones, one on a phone."""
    page = open_view(browser, address, "try")
    write_text(page, "Editing")
    save_picture(page, out / "page-try.png")
    page.evaluate("location.hash = '#/compare'")
    page.wait_for_selector(".pairs li")
    save_picture(page, out / "page-compare.png")
    page = open_view(browser, address, "try", viewport={"width": 390, "height": 844}, color_scheme="dark")
    write_text(page, "Graphical User Interface")
    save_picture(page, out / "page-phone.png")
    page = open_view(browser, address, "labels")
    page.get_by_role("treeitem", name="Games and Amusement").locator(".tree-row").click()
    page.get_by_role("treeitem", name="Role-playing").first.locator(".tree-row").click()
    page.wait_for_selector(".label-detail .rows-line")
    save_picture(page, out / "page-labels.png")
    page = open_view(browser, address, "review")
    page.wait_for_selector(".candidate")
    for key in "ar":
        page.keyboard.press(key)
    page.wait_for_timeout(600)
    save_picture(page, out / "page-review.png")
    page = open_view(browser, address, "dashboard", color_scheme="dark")
    page.wait_for_selector(".figure")
    page.wait_for_timeout(800)
    save_picture(page, out / "page-dashboard.png")
    page = open_view(browser, address, "batch")
    data = lt.data.load_bundled("debtags", "test")
    written = io.StringIO()
    lines = zip(data.ids or (), itertools.cycle(["main", "contrib"]), data.texts or ())
    csv.writer(written).writerows([("id", "component", "description"), *lines])
    table = FilePayload(name="packages.csv", mimeType="text/csv", buffer=written.getvalue().encode())
    page.set_input_files("main input[type=file]", [table])
    page.wait_for_selector(".preview")
    save_picture(page, out / "page-batch.png")
    page = open_view(browser, address, "models")
    page.wait_for_selector(".update .button")
    save_picture(page, out / "page-models.png")


def main() -> None:
    """Make all pictures."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "images")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        models = make_models(Path(scratch))
        store = add_rows(Path(scratch) / "reviews.db")
        server, address = serve(ServeSettings(models, reviews=store.path, log_requests=False))
        with store.reading() as db:
            while db.execute("SELECT COUNT(*) FROM items WHERE digest = ''").fetchone()[0]:
                time.sleep(0.2)
        review(store)
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            take_pictures(browser, address, out)
            browser.close()
        server.should_exit = True


if __name__ == "__main__":
    main()
