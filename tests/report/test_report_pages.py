"""The pages: valid, self-contained, inert, complete, and without sections for facts that are missing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from longtail.errors import ParameterError
from longtail.report import comparison_page, evaluation_page, write_page

VOID = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\x00\ud800\u202e"


class Reader(HTMLParser):
    """Checks that tags are balanced and collects elements, tables and visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.rows: list[list[str]] = []
        self.headings: list[str] = []
        self.text = ""
        self.json = ""
        self.feed(html)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "h2":
            self.headings.append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "script":
            if self.tags[-1][1].get("id") == "facts":
                self.json += data
            return
        if "style" in self.stack:
            return
        self.text += data
        if "td" in self.stack or "th" in self.stack:
            self.rows[-1][-1] += data
        if "h2" in self.stack:
            self.headings[-1] += data


@pytest.fixture
def pages(facts, comparison_facts):
    return {"evaluation": evaluation_page(facts), "comparison": comparison_page(comparison_facts)}


def test_pages_are_balanced_and_load_nothing(pages):
    for html in pages.values():
        found = Reader(html)
        assert not {"link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in found.tags}
        assert not [a for _, attributes in found.tags for a in attributes if a == "src" or a.startswith("on")]
        assert all(attributes["href"].startswith("#") for _, attributes in found.tags if "href" in attributes)
        urls = set(re.findall(r"https?://[^\s\"'<>]+", html))
        assert urls <= {"http://www.w3.org/2000/svg"}
        assert "url(" not in html and "@import" not in html
        assert all(f"<{tag}" in html for tag in ("title", "main", "h1"))


def test_the_facts_travel_with_the_page(facts, pages):
    assert json.loads(Reader(pages["evaluation"]).json) == facts


def test_the_headline_says_it_in_plain_words(facts):
    metrics = facts["evaluation"]["metrics"]
    text = Reader(evaluation_page(facts)).text
    assert f"Of the 5 suggestions per text, {5 * metrics['p@5']['value']:.1f} are right on average" in text
    assert f"the first one is right {100 * metrics['p@1']['value']:.0f}% of the time" in text


def test_the_metrics_table_shows_the_facts_and_nothing_else(facts):
    found = Reader(evaluation_page(facts))
    table = {row[0].split("share")[0]: row[1:] for row in found.rows if row and re.match(r"(P|R)share", row[0])}
    for name, key in (("P", "p"), ("R", "r")):
        for cell, k in zip(table[name], (1, 3, 5), strict=True):
            row = facts["evaluation"]["metrics"][f"{key}@{k}"]
            assert cell == f"{100 * row['value']:.2f}{100 * row['low']:.1f}–{100 * row['high']:.1f}"


def test_every_part_of_the_facts_is_shown(facts):
    found = Reader(evaluation_page(facts))
    rows = [tuple(row) for row in found.rows]
    assert ("label 3", "1,234", "17", "62.5", "41.8", "–") in rows
    for b in facts["evaluation"]["calibration"]["bins"]:
        if b["count"]:
            shown = (f"{b['count']:,}", f"{100 * b['mean_probability']:.1f}", f"{100 * b['share_right']:.1f}")
            assert any(row[1:] == shown for row in rows)
    for band in facts["evaluation"]["bands"]:
        value = band["metrics"]["p@5"]["value"]
        if band["labels"] and value is not None:
            row = next(r for r in rows if r[0].startswith(band["name"]))
            assert row[1] == str(band["labels"]) and row[2].startswith(f"{100 * value:.1f}")
    for shown in ("87%", "✓ right", "+0.71", "-0.33", "Missed", "roads", "1.25 MB", "12 s", "overlap"):
        assert shown in found.text
    assert facts["command"] in found.text


def test_marked_words_keep_the_text(facts):
    html = evaluation_page(facts)
    marks = re.findall(r"<mark [^>]*>(.*?)</mark>", html)
    assert marks == ["wine", "car"]
    assert "Red wine and a car" in Reader(html).text


@pytest.mark.parametrize(
    ("key", "heading"),
    [
        ("labels", "Label by label"),
        ("examples", "Examples"),
        ("evaluation", "How good are the suggestions?"),
    ],
)
def test_a_missing_part_leaves_its_section_out(facts, key, heading):
    assert heading in Reader(evaluation_page(facts)).headings
    del facts[key]
    assert heading not in Reader(evaluation_page(facts)).headings


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("calibration", "Can the probabilities be trusted?"),
        ("metrics", "share of the first k suggestions that are right"),
        ("frequency", "How often suggestions are right, by how often the label occurs in training|Labels seen"),
        ("by_place", "The first suggestion is right"),
    ],
)
def test_a_missing_part_of_the_evaluation_is_left_out(facts, key, shown):
    assert re.search(shown, Reader(evaluation_page(facts)).text)
    facts["evaluation"][key] = None
    assert not re.search(shown, Reader(evaluation_page(facts)).text)
    del facts["evaluation"][key]
    assert not re.search(shown, Reader(evaluation_page(facts)).text)


def test_no_facts_at_all_still_make_a_page():
    for make in (evaluation_page, comparison_page):
        assert Reader(make({})).headings == []


def test_hostile_names_are_inert(facts, comparison_facts):
    facts["title"] = facts["command"] = facts["data"]["name"] = facts["model"]["method"] = HOSTILE
    facts["labels"][0]["label"] = HOSTILE
    words = [{"word": "script", "weight": 1.0}, {"word": HOSTILE, "weight": 2.0}]
    facts["examples"][0] = {
        "text": HOSTILE,
        "true": [HOSTILE + "2"],
        "predicted": [{"label": HOSTILE, "score": 1.0, "words": words}],
    }
    comparison_facts["a"] = {"name": HOSTILE}
    comparison_facts["b"] = HOSTILE
    for html, given in ((evaluation_page(facts), facts), (comparison_page(comparison_facts), comparison_facts)):
        found = Reader(html)
        assert [a.get("id") for tag, a in found.tags if tag == "script"] == ["facts", None]
        assert "img" not in {tag for tag, _ in found.tags}
        assert not [a for _, attributes in found.tags for a in attributes if a.startswith("on")]
        assert "alert(1)" in found.text
        assert "\x00" not in html and "\u202e" not in html
        assert json.loads(found.json) == given
        html.encode("utf-8")


def test_the_policy_allows_only_the_own_script(pages):
    import base64
    import hashlib

    html = pages["evaluation"]
    script = re.search(r"<script>(.*?)</script>", html, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html and "default-src 'none'" in html


def test_what_is_not_finite_is_shown_as_missing():
    metrics = {"p@1": {"value": float("nan"), "low": None, "high": None}, "r@1": {"value": 0.5}}
    html = evaluation_page({"evaluation": {"ks": [1], "metrics": metrics}})
    found = Reader(html)
    assert "nan" not in found.text.lower() and "50.00" in found.text
    assert json.loads(found.json)["evaluation"]["metrics"]["p@1"]["value"] is None


def test_a_comparison_shows_both_sides_and_the_difference(comparison_facts):
    found = Reader(comparison_page(comparison_facts))
    row = comparison_facts["comparison"]["metrics"]["ndcg@3"]
    shown = next(r for r in found.rows if r and r[0] == "nDCG@3")
    assert shown[1:4] == [f"{100 * row['a']:.2f}", f"{100 * row['b']:.2f}", f"{100 * row['difference']:+.2f}"]
    assert shown[5] == f"{row['p_value']:.4f}"
    assert "ova" in found.text and "tree" in found.text


def test_a_page_is_written_in_one_step(tmp_path, pages):
    path = tmp_path / "out.html"
    path.write_text("old")
    assert write_page(path, pages["evaluation"]) == path
    assert path.read_text("utf-8") == pages["evaluation"]
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]


def test_a_page_that_cannot_be_written_is_told_in_one_sentence(tmp_path):
    with pytest.raises(ParameterError, match="is a folder"):
        write_page(tmp_path, "x")
    with pytest.raises(ParameterError, match="does not exist"):
        write_page(tmp_path / "no" / "out.html", "x")
