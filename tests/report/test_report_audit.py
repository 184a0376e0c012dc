"""Audits on the terminal and on a page: the same facts, harmless text, nothing lost."""

import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from rich.console import Console

from longtail.audit import argmaxable
from longtail.report.audit_sentences import (
    advice,
    audit_headline,
    capacity_sentence,
    radii_sentence,
    reason,
    unknown_sentence,
)
from longtail.report.html.audit_page import audit_page
from longtail.report.plots.audit_plots import radius_plot, radius_text, size_plot
from longtail.report.terminal.audit_terminal import show_audit

NAMES = ["<script>alert(1)</script>", "b", "c", "\x1b[31md"]


@pytest.fixture
def audit_facts():
    W = np.array([[1.0, 0], [0, 1], [-1, -1], [-1, 1]])
    Y = ((np.arange(16)[:, None] >> np.arange(4)) & 1).astype(float)
    found = argmaxable(W, Y)
    facts = found.facts(NAMES)
    return {
        "title": "a & b",
        "audit": facts,
        "layer": {"source": "x.npz", "n_labels": 4, "width": 2, "bias": False},
        "radii": {"edges": [1.0, 10.0, 100.0], "counts": [3, 5], "zero": 1},
        "sizes": [
            {"smallest": 0, "largest": 0, "sets": 1, "impossible": 1, "undecided": 0, "median_radius": None},
            {"smallest": 2, "largest": 4, "sets": 9, "impossible": 1, "undecided": 2, "median_radius": 3.5},
        ],
        "unknown": {"labels": 5, "rows": 7, "sets": 6, "listed": [{"label": "z", "rows": 3}]},
        "command": "longtail audit x",
    }


def shown(facts):
    console = Console(file=io.StringIO(), width=80)
    show_audit(console, facts)
    return console.file.getvalue()


def test_the_terminal_shows_what_the_page_shows(audit_facts):
    out, page = shown(audit_facts), audit_page(audit_facts)
    assert "\x1b" not in out and all(len(line) <= 80 for line in out.splitlines())
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    for words in (
        "8 of 16 combinations of labels (50.0%)",
        "Possible, but hardest",
        "eps-argmaxable",
        "in 6 more combinations",
    ):
        assert words in " ".join(out.split()) and words in page
    assert re.search(r"10 - 100 +5 +#+", out)
    assert shown({}) == "" and audit_page({})


def test_plots_are_well_formed(audit_facts):
    for svg in (radius_plot(audit_facts["radii"], title="a < b"), size_plot(audit_facts["sizes"], title="x")):
        root = ET.fromstring(svg)
        assert root.tag.endswith("svg") and root.find("{*}desc").text
    assert radius_plot({}, title="x") == "" == size_plot([], title="x")


def test_words():
    assert (
        radius_text(0) == "0"
        and radius_text(3.2e-7) == "3.2e-7"
        and radius_text(12_000.0) == "12k"
        and radius_text(float("inf")) == "–"
    )
    assert audit_headline({}) == "" and audit_headline({"data": {}, "audit": {}}) == ""
    assert audit_headline({"data": {"rows": 3}}) == "No combination of labels of the data could be audited."
    counts = {"eps-argmaxable": 3, "argmaxable": 0, "not argmaxable": 0, "undecided": 1}
    told = audit_headline({"audit": {"kind": "label sets", "n_sets": 4, "n_rows": 4, "sets": counts, "rows": counts}})
    assert told == "3 of 4 combinations of labels can be assigned, each for some input. 1 could not be decided."
    many = {"on": list("abcde"), "off": list("fghi")}
    assert reason({}) == "" and "9 labels contradict" in reason({"conflict": many})
    assert unknown_sentence({}) == "" and radii_sentence({}).startswith("Radius")
    wide = {"n_labels": 5, "width": 9, "log10_share": 0.0, "log10_sets": 1.5}
    assert capacity_sentence({"capacity": wide}).endswith("if the rows of the weights are independent.")
    assert "only 4 of them are" in capacity_sentence({"capacity": wide, "position": {"rank": 4}})
    large = {"n_labels": 1000, "width": 9, "log10_share": -280.2, "log10_sets": 20.8, "sets": None}
    assert "about 10^21 of the 10^301 sets" in capacity_sentence({"capacity": large})


def test_reasons_and_advice_are_words_that_people_know():
    assert reason({"conflict": {"on": ["a", "b"], "off": ["c"]}}) == "a and b are never assigned together without c"
    assert reason({"conflict": {"on": ["a"], "off": ["b", "c"]}}) == "a is never assigned without b or c"
    assert reason({"conflict": {"on": [], "off": ["b", "c"]}}) == "b and c: one of them is always assigned"
    assert reason({"conflict": {"on": [], "off": ["b"]}}) == "b is always assigned"
    narrow = {"width": 8, "n_labels": 500}
    row = {"labels": ["a"], "conflict": {"on": ["a"], "off": ["b"]}}
    audit = {"kind": "label sets", "sets": {"not argmaxable": 1, "undecided": 1}, "impossible": [row]}
    unknown = {"labels": 1, "rows": 2, "sets": 1, "listed": []}
    told = advice({"audit": audit, "layer": narrow, "unknown": unknown})
    assert len(told) == 5 and "8 numbers" in told[1] and "never assigned without another one" in told[2]
    assert not re.search(r"argmax|radius|dimension|simplex|ball", " ".join(told))
    assert advice({"audit": {"sets": {"not argmaxable": 0}}, "layer": narrow}) == []


def test_the_page_of_an_audit_keeps_its_terms_in_a_fold(audit_facts):
    page = audit_page(audit_facts)
    first, fold = page.split('<details class="fold">', 1)
    first = first[first.index("<main>") :]
    assert not re.search(r"argmax|radius|dimension", first) and "eps-argmaxable" in fold
    assert re.findall(r'href="#([a-z]+)"', first) == ["never", "unknown", "advice", "details"]
