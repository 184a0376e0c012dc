"""The pictures of the pages are those of the files of results, and can be read by everybody."""

import importlib
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SCRIPTS = {"draw_performance": DOCS}  # with the folders that they draw into
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Return every picture as it is drawn now, by the place of its file."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        for name, folder in SCRIPTS.items():
            fresh = tmp_path_factory.mktemp(name)
            patch.setattr("sys.argv", [name, "--folder", str(fresh)])
            importlib.import_module(name).main()
            found |= {folder / file.name: file.read_bytes() for file in fresh.iterdir()}
    return found


def test_redrawing_gives_the_same_bytes(drawn):
    """After new results or a new style of plots: python scripts/draw_performance.py; python scripts/draw_methods.py."""
    stale = [file.name for file, bytes_now in drawn.items() if not file.exists() or file.read_bytes() != bytes_now]
    assert not stale


def test_pages_show_every_picture_and_say_what_it_shows(drawn):
    shown = {}
    for page in DOCS.rglob("*.md"):
        for alt, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+\.svg)\)", page.read_text("utf-8")):
            shown[(page.parent / target).resolve()] = alt
    assert {file for file in drawn if len(shown.get(file.resolve(), "")) < 20} == set()


def test_pictures_have_a_title_and_colours_for_light_and_dark(drawn):
    for file, content in drawn.items():
        root = ElementTree.fromstring(content)
        assert root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc"), file.name
        assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or ""), file.name


def test_nothing_is_drawn_outside_a_picture(drawn):
    for file, content in drawn.items():
        root = ElementTree.fromstring(content)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for one in root.iter(f"{SVG}text"):
            letters = 5.6 * len("".join(one.itertext()))  # about the width of small letters
            x, y = float(one.attrib["x"]), float(one.attrib["y"])
            left = x - {"start": 0, "middle": 0.5, "end": 1}[one.attrib["text-anchor"]] * letters
            if not any(one in group for group in root.iter(f"{SVG}g")):  # a group is turned
                assert left >= -8 and left + letters <= width + 8 and 0 <= y <= height, (file.name, one.text)
