"""The templates: values are escaped everywhere, missing ones are noticed, and a notebook shows objects harmlessly."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from jinja2 import UndefinedError

import longtail as lt
from longtail.data import Dataset, TopK
from longtail.model import Explanation
from longtail.report import explanation_html
from longtail.report.html.rendering import TEMPLATES, environment, render

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'\x00\ud800\u202e"
OURS = {"base.html": ["style", "facts_json", "script"], "macros.html": ["plot.svg"], "tree.html": ["drawing"]}


def test_only_our_own_plots_style_script_and_json_are_not_escaped():
    assert environment().autoescape is True
    for file in TEMPLATES.glob("*.html"):
        source = file.read_text("utf-8")
        assert re.findall(r"(\S+?)\s*\|\s*safe", source) == OURS.get(file.name, []), file.name
        assert len(re.findall(r"\bsafe\b", source)) == len(OURS.get(file.name, [])), file.name
        assert "autoescape" not in source and "Markup" not in source
    for file in TEMPLATES.parent.rglob("*.py"):
        assert "Markup" not in file.read_text("utf-8"), file.name


def test_a_value_that_a_template_does_not_get_is_noticed():
    with pytest.raises(UndefinedError):
        render("tree.html", tree={})


def test_text_that_xml_forbids_is_replaced_in_every_value():
    html = explanation_html({"text": HOSTILE, "predicted": [{"label": HOSTILE, "words": []}]})
    assert "\x00" not in html and "\u202e" not in html and html.count("\ufffd") == 6
    html.encode("utf-8")


def shown_objects():
    data = Dataset.from_lists([HOSTILE, "a"], [[HOSTILE], ["b"]], name=HOSTILE)
    top = TopK(np.array([[3, -1], [1, 0]]), np.array([[0.5, -np.inf], [2.0, 1.0]]))
    words = [{"word": HOSTILE, "weight": 0.5}, {"word": "img", "weight": -0.25}]
    explained = {"text": HOSTILE, "predicted": [{"label": HOSTILE, "probability": 0.9, "words": words}]}
    return {
        "dataset": (data._repr_html_(), ("2", "rows", "alert(1)")),
        "topk": (top._repr_html_(), ("3 (0.5)", "2 rows, 2 labels each")),
        "explanation": (Explanation(7, 0.5, 1.0, 0.25, [(3, 0.75)], [])._repr_html_(), ("Label 7", "+0.750")),
        "unfitted": (lt.Tagger("ova")._repr_html_(), ("ova", "not fitted")),
        "text": (explanation_html(explained), ("90%", "+0.50", "<mark")),
    }


@pytest.mark.parametrize("name", ["dataset", "topk", "explanation", "unfitted", "text"])
def test_a_notebook_shows_objects_and_runs_nothing(name):
    html, wanted = shown_objects()[name]
    assert "<script" not in html and "<img" not in html and "\x00" not in html and "\u202e" not in html
    for part in wanted:
        assert part in html
    for tag in re.findall(r"<(\w+)", html):
        assert html.count(f"<{tag}>") + html.count(f"<{tag} ") == html.count(f"</{tag}>"), tag


def test_a_fitted_tagger_and_its_explanation_are_shown():
    tagger = lt.Tagger(calibrate=0, random_state=0).fit(["red apple", "blue car"] * 5, [["fruit"], ["vehicle"]] * 5)
    assert "<td" in tagger._repr_html_() and "10" in tagger._repr_html_() and "tagger.save" in tagger._repr_html_()
    explained = tagger.explain("an apple", k=1)
    assert set(explained) == {"text", "predicted"} and "<mark" in explained._repr_html_()


def test_the_report_imports_jinja_and_rich_only_when_they_are_needed():
    code = (
        "import sys, longtail.report; from longtail.report import evaluation_page, audit_page\n"
        "print('jinja2' in sys.modules or 'rich' in sys.modules)\n"
        "evaluation_page({}); print('jinja2' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "True"]
