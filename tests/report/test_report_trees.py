"""The label tree on a page and on the terminal: true sizes, names that fit, harmless whatever they are."""

from __future__ import annotations

import copy
import io
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from longtail.report import evaluation_page
from longtail.report.html.tree_sections import tree_section
from longtail.report.plots.treemap import Area, Box, cut, filled, letters, squarified, treemap, wrapped
from longtail.report.terminal.model_terminal import show_explanation
from longtail.report.terminal.tree_terminal import show_tree

HOSTILE = "</svg></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'\x00\ud800\u202e"
TERMINAL_HOSTILE = "\x1b]0;title\x07\x1b[2J[red]x[/red]\n\ud800"
SVG = "{http://www.w3.org/2000/svg}"
sizes = st.lists(st.integers(1, 10_000), min_size=1, max_size=60).map(lambda found: sorted(found, reverse=True))


def cluster(level: int, number: int, labels: int, uses: int, above: int | None = None, clusters: int = 0) -> dict:
    name = f"label {level}.{number}"
    return {
        "level": level,
        "cluster": number,
        "above": above,
        "clusters": clusters,
        "labels": labels,
        "uses": uses,
        "share": uses / 1000,
        "typical": [{"label": f"{name}.{i}", "uses": 9 - i} for i in range(4)],
        "words": [{"word": f"word{number}", "weight": 1.5}],
        "rest": None,
    }


@pytest.fixture
def facts() -> dict:
    first = {**cluster(0, 0, 50, 700, clusters=6), "rest": {"clusters": 4, "labels": 30, "uses": 100}}
    first["inside"] = [[12, 400], [8, 200], [10, 50], [8, 30], [7, 15], [5, 5]]
    inside = [cluster(1, 0, 12, 400, 0), cluster(1, 1, 8, 200, 0)]
    listed = [first, *inside, cluster(0, 1, 40, 200), cluster(0, 2, 3, 0)]
    listed[-1]["typical"] = []
    level = {"fewest_labels": 3, "most_labels": 50}
    return {
        "tree": 0,
        "trees": 1,
        "labels": 113,
        "uses": 1000,
        "rows": 600,
        "depth": 2,
        "levels": [{"clusters": 5, "listed": 3, **level}, {"clusters": 9, "listed": 2, **level}],
        "clusters": listed,
        "rest": {"clusters": 2, "labels": 20, "uses": 100},
    }


# --- the drawing ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(sizes, st.integers(50, 1000), st.integers(50, 1000))
def test_boxes_fill_the_area_in_proportion_and_do_not_overlap(found, width, height):
    places = squarified(found, Area(0, 0, width, height))
    for size, place in zip(found, places, strict=True):
        assert place.width * place.height == pytest.approx(size / sum(found) * width * height, rel=1e-6)
        assert place.x > -1e-6 and place.x + place.width < width + 1e-6
        assert place.y > -1e-6 and place.y + place.height < height + 1e-6
    for i, a in enumerate(places):
        for b in places[i + 1 :]:
            wide = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
            high = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
            assert min(wide, high) < 1e-6


def test_equal_boxes_are_about_square():
    for place in squarified([1] * 24, Area(0, 0, 600, 400)):
        assert 0.5 < place.width / place.height < 2


@settings(max_examples=80, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=8), st.integers(30, 300), st.integers(1, 8))
def test_names_fit_their_box(found, room, most):
    strong, lines = filled(found, room, most)
    assert 1 <= len(strong) + len(lines) <= max(most, 2)
    assert all(letters(line) <= room + letters("…") for line in [*strong, *lines])
    assert all(letters(line) <= room + letters("…") for line in wrapped(found[0], room, 2))


def test_long_names_are_cut_and_wrapped():
    assert cut("restoration of customs duties", 70).endswith("…")
    assert wrapped("a::b", 500, 2) == ["a::b"]
    assert wrapped("works-with-format::html", 90, 2) == ["works-with-", "format::html"]


def test_a_drawing_is_xml_with_one_box_per_cluster():
    svg = treemap(
        [Box(3, ["a"], 1, "note & more"), Box(2, ["b"], None), Box(0, ["gone"], 0)],
        width=300,
        height=200,
        title="t",
        description="d",
    )
    root = ET.fromstring(svg)
    assert [box.get("class") for box in root.iter(f"{SVG}rect")] == ["s1", "rest"]
    assert root.find(f"{SVG}svg/{SVG}title").text == "note & more" and "gone" not in svg


def test_tiny_boxes_stay_without_text():
    boxes = [Box(300, ["large"], 1), Box(4, ["tiny"], 1, "tiny one"), Box(4, ["tiny"], 1, "another")]
    svg = treemap(boxes, width=300, height=200, title="t", description="d")
    assert ">large<" in svg and ">tiny<" not in svg and "tiny one" in svg and "another" in svg


# --- the section ------------------------------------------------------------------------------------------------------


def test_the_section_draws_and_lists_the_clusters(facts):
    html = evaluation_page({"tree": facts})
    drawings = re.findall(r'<svg xmlns="[^"]*" class="lt map (\w+)".*?</svg>(?=<svg xmlns|</figure>)', html, re.S)
    assert drawings == ["desk", "phone"]
    plain = re.sub(r"<[^>]+>", " ", html)
    assert "its 113 labels into 5 clusters, and inside them into 9" in plain
    assert "5 clusters; the one around “label 0.0.0” has 70% of all uses" in plain
    for shown in ("label 0.1.0, label 0.1.1", "words: word1", "6 clusters", "… and 4 more", "2 more clusters"):
        assert shown in plain
    assert "labels without training rows" in plain
    assert "50 labels in 6 clusters, used 700 times (70.0% of all uses)" in plain


def test_boxes_are_as_large_as_clusters_have_labels_and_shaded_by_use(facts):
    html = evaluation_page({"tree": facts})
    svg = ET.fromstring(re.search(r'<svg xmlns="[^"]*" class="lt map desk".*?</svg>(?=<svg xmlns)', html, re.S).group())
    boxes = [(float(b.get("width")) + 2, float(b.get("height")) + 2, b) for b in svg.findall(f"{SVG}svg")]
    area = {b.find(f"{SVG}title").text.splitlines()[0].split(",")[0]: w * h for w, h, b in boxes}
    assert area["label 0.0.0"] / area["label 0.1.0"] == pytest.approx(50 / 40, rel=0.01)
    shades = {b.find(f"{SVG}title").text.split(",")[0]: b.find(f"{SVG}rect").get("class") for _, _, b in boxes}
    assert shades["label 0.1.0"] == "s1"  # 200 uses of 40 labels
    cells = [path.get("d").count("M") for path in svg.iter(f"{SVG}path")]
    assert sum(cells) == 6


def test_clusters_inside_are_named_where_there_is_room(facts):
    assert ">label 1.0.0<" in evaluation_page({"tree": facts})
    facts["clusters"][0]["inside"] = [[1, 1]] * 400
    assert ">label 1.0.0<" not in evaluation_page({"tree": facts})


def test_the_same_shades_mean_the_same_in_the_legend(facts):
    html = evaluation_page({"tree": facts})
    legend = re.findall(r'height="12" rx="2" class="s(\d)"/><text[^>]*>([^<]+)<', html)
    marks = ["under 3", "3+", "10+", "30+", "100+", "300+"]
    assert [(int(shade), mark) for shade, mark in legend] == list(enumerate(marks)) * 2


@pytest.mark.parametrize("missing", [None, {}, {"clusters": []}, {"levels": [{"clusters": 1}], "labels": 3}])
def test_without_several_clusters_there_is_no_section(missing):
    assert "How the labels are grouped" not in evaluation_page({"tree": missing})


def test_one_cluster_is_no_section_but_levels_of_one_are_skipped(facts):
    single = {**facts, "clusters": [cluster(0, 0, 5, 10)], "levels": [{"clusters": 1}]}
    assert tree_section(single) is None
    deeper = [{**found, "level": found["level"] + 1} for found in facts["clusters"]]
    chain = {**facts, "clusters": [cluster(0, 0, 113, 1000, clusters=5), *deeper], "rest": None}
    chain["levels"] = [{"clusters": 1}, *facts["levels"]]
    assert "into 5 clusters, and inside them into 9" in tree_section(chain)["lead"]


def test_hostile_names_are_inert_on_the_page(facts):
    facts["clusters"][0]["typical"][0]["label"] = facts["clusters"][1]["typical"][0]["label"] = HOSTILE
    facts["clusters"][0]["words"][0]["word"] = HOSTILE
    html = evaluation_page({"tree": facts})
    assert "<img" not in html and html.count("<script") == 2 and "\x00" not in html and "\u202e" not in html
    for svg in re.findall(r'<svg xmlns="[^"]*" class="lt map.*?</svg>(?=<svg xmlns|</figure>)', html, re.S):
        ET.fromstring(svg)
    html.encode("utf-8")


def test_examples_show_the_way_to_each_label():
    path = [
        {"level": 0, "node": 2, "margin": 1.25, "typical": ["games", "toys"]},
        {"level": 1, "node": 7, "margin": -0.5, "typical": [HOSTILE]},
    ]
    said = {"label": "chess", "probability": 0.9, "words": [{"word": "king", "weight": 0.4}], "path": path}
    html = evaluation_page({"examples": [{"text": "a king", "predicted": [said, {"label": "go", "path": []}]}]})
    plain = re.sub(r"<[^>]+>", "", html)
    assert "in games, toys\u00a0+1.25 › " in plain and "\u00a0-0.50" in plain
    assert html.count('class="path"') == 1 and "<img" not in html
    assert "clusters of labels a suggestion was found in" in plain


# --- the terminal -----------------------------------------------------------------------------------------------------


def printed(show, facts: dict, *, terminal: bool = False, width: int = 80) -> str:
    colours = "256" if terminal else None
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=colours)
    show(console, facts)
    return console.file.getvalue()


def test_the_terminal_shows_the_branches_in_plain_letters(facts):
    out = printed(show_tree, facts)
    assert out.isascii() and "\x1b" not in out
    body = [line.rstrip() for line in out.splitlines()]
    at = next(i for i, line in enumerate(body) if line.lstrip().startswith("uses"))
    assert body[at + 1 :] == [
        " 70.0%      50  label 0.0.0, label 0.0.1, label 0.0.2, label 0.0.3",
        "                words: word0",
        " 40.0%      12  |- label 1.0.0, label 1.0.1, label 1.0.2, label 1.0.3",
        " 20.0%       8  |- label 1.1.0, label 1.1.1, label 1.1.2, label 1.1.3",
        "                `- ... and 4 more, with 30 labels",
        " 20.0%      40  label 0.1.0, label 0.1.1, label 0.1.2, label 0.1.3",
        "                words: word1",
        "  0.0%       3  labels without training rows",
        "                words: word2",
        "                ... and 2 more, with 20 labels",
    ]
    assert "used 1,000 times in 600 training rows" in " ".join(out.split())


def test_the_last_branch_ends_and_colours_are_for_terminals(facts):
    facts["clusters"][0]["rest"] = None
    assert "`- label 1.1.0" in printed(show_tree, facts)
    out = printed(show_tree, facts, terminal=True)
    assert "└─ " in out and "├─ " in out and "\x1b[" in out


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("terminal", [False, True])
def test_any_names_fit_the_terminal(facts, width, terminal):
    facts["clusters"][0]["typical"] = [{"label": "x" * 300}, {"label": "数据" * 40}, {"label": "ok"}]
    facts["clusters"][1]["typical"] = [{"label": f"name {i}"} for i in range(60)]
    facts["clusters"][0]["words"] = [{"word": "w" * 200}]
    out = re.sub(r"\x1b\[[\d;]*m", "", printed(show_tree, facts, terminal=terminal, width=width))
    assert max(cell_len(line.rstrip()) for line in out.splitlines()) <= width
    assert "name 59" in out


def test_hostile_names_cannot_command_the_terminal(facts):
    facts["clusters"][0]["typical"][0]["label"] = TERMINAL_HOSTILE
    facts["clusters"][0]["words"][0]["word"] = TERMINAL_HOSTILE
    path = [{"level": 0, "node": 0, "margin": 0.1, "typical": [TERMINAL_HOSTILE]}]
    for show, given_facts in ((show_tree, facts), (show_explanation, {"labels": [{"label": "a", "path": path}]})):
        for terminal in (False, True):
            out = printed(show, copy.deepcopy(given_facts), terminal=terminal)
            assert "\x1b]" not in out and "\x1b[2J" not in out and "\x07" not in out and "[red]x" in out


def test_an_explanation_names_the_clusters_below_the_words():
    path = [
        {"level": 0, "node": 0, "margin": 1.0, "typical": ["games"]},
        {"level": 1, "node": 4, "margin": -0.25, "typical": ["chess", "go" * 100]},
    ]
    said = {"label": "chess", "score": -0.5, "words": [{"word": "king", "weight": 0.4}], "path": path}
    lines = printed(show_explanation, {"text": "a king", "predicted": [said]}).rstrip().splitlines()
    assert lines[-2].rstrip() == "  in +1.00  games" and lines[-1].startswith("     -0.25  chess, gogo")
    assert len(lines[-1]) <= 80 and lines[-3].split()[0] == "king"


def test_no_facts_print_nothing():
    assert printed(show_tree, {}) == ""
