"""A small model behind a real server, and a real browser: what the tests of the page share."""

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")
playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python")

import longtail as lt
from longtail.serve import ServeSettings, create_app
from longtail.vocabulary import Concept

expect = playwright.expect
CHROMIUM = Path("/usr/bin/chromium")
BASE = "http://ex.org/"
EVIL = '<img src=x onerror="window.hacked=1">cheese'
FORMULA = '=HYPERLINK("http://evil.example")'
TOPICS = {
    "animals": {
        "cats": "cat kitten purring whiskers meow",
        "dogs": "dog puppy barking leash kennel",
        "birds": "bird feathers nest singing wings",
        "fish": "fish fins scales aquarium swimming",
    },
    "vehicles": {
        "cars": "car engine driving motorway tyres",
        "ships": "ship harbour sailing anchor captain",
        "bicycles": "bicycle pedals cycling saddle bell",
        "trains": "train railway station platform locomotive",
    },
    "food": {
        "bread": "bread flour baking oven crust",
        "fruit": "apple orchard pear cherry juice",
        "evil": "cheese milk dairy rind cellar",
        "formula": "equation algebra theorem proof number",
    },
}
N_LABELS = sum(map(len, TOPICS.values()))
NAMES = {
    "cats": {"en": "Cats", "de": "Katzen"},
    "evil": {"en": EVIL},
    "formula": {"en": FORMULA},
}
CAT_TEXT = "A kitten with long whiskers was purring in the garden."


def vocabulary() -> lt.Vocabulary:
    """Return a vocabulary of two levels, with a label whose name is markup and one whose name is a formula."""
    concepts = [Concept(BASE + top, {"en": top.title()}, notation=top) for top in TOPICS]
    for top, below in TOPICS.items():
        for label in below:
            names = NAMES.get(label, {"en": label.title()})
            others = {"en": ("felines",)} if label == "cats" else {}
            concepts.append(Concept(BASE + label, names, others, notation=label, broader=(BASE + top,)))
    return lt.Vocabulary(concepts, language="en", name="things")


def rows(n: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Return texts of one or two labels each, made of the words of these labels and a few others."""
    draw = random.Random(seed)
    words = {label: text.split() for below in TOPICS.values() for label, text in below.items()}
    texts, labels = [], []
    for _ in range(n):
        chosen = draw.sample(sorted(words), draw.choice([1, 1, 2]))
        said = [word for label in chosen for word in draw.sample(words[label], 3)]
        said += draw.sample(["the", "a", "old", "new", "some", "many", "of", "and"], 4)
        draw.shuffle(said)
        texts.append(" ".join(said))
        labels.append([BASE + label for label in chosen])
    return texts, labels


def save_models(folder: Path) -> dict[str, Path]:
    """Train and save two models: one of many rows, one of few."""
    found = {}
    for name, n in (("things", 600), ("small", 60)):
        tagger = lt.Tagger("ova", random_state=0).fit(*rows(n), vocabulary=vocabulary())
        found[name] = tagger.save(folder / name)
    return found


@contextlib.contextmanager
def serving(settings: ServeSettings) -> Iterator[str]:
    """Run a server on a thread; yields its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level="warning", lifespan="on", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


@contextlib.contextmanager
def chromium() -> Iterator["playwright.Browser"]:
    """Run a browser; skips where there is none."""
    if not CHROMIUM.exists():
        pytest.skip("needs /usr/bin/chromium")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, address: str, view: str = "try", **how) -> Iterator["playwright.Page"]:
    """Open a view in a fresh browser window; at the end nothing may have gone wrong in it."""
    how.setdefault("locale", "en-GB")
    how.setdefault("viewport", {"width": 1280, "height": 860})
    context = browser.new_context(**how)
    context.set_default_timeout(15_000)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    page.goto(f"{address}/#/{view}")
    page.wait_for_selector(f"main.view-{view.split('/')[0]}, main .sign-in")
    yield page
    hacked = page.evaluate("window.hacked")
    context.close()
    assert not wrong and hacked is None, wrong


def go(page, view: str) -> None:
    """Go to another view."""
    page.evaluate(f"location.hash = '#/{view}'")
    page.wait_for_selector(f"main.view-{view}")


def complaints(page) -> list[str]:
    """Return what axe-core finds wrong with what is shown."""
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [f"{one['id']}: {one['help']} at {[node['target'] for node in one['nodes']]}" for one in found]


def is_wider_than_screen(page) -> bool:
    """Say whether a page must be moved sideways."""
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
