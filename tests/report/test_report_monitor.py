"""Monitoring on page and terminal: verdicts, what is new, hostile words, missing facts."""

import io

import pytest
from rich.console import Console

import longtail as lt
from longtail.report import monitor_page, show_monitor

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def facts():
    texts, labels = ["red apple here", "old car there"] * 100, [["fruit"], ["vehicle"]] * 100
    tagger = lt.Tagger("ova", random_state=0, calibrate=0.3).fit(texts, labels)
    strange = [f"ganz neue Wörter w{i}" for i in range(80)]
    return tagger.monitor(strange, [["fruit", HOSTILE]] * 80)


def printed(facts, **how):
    console = Console(file=io.StringIO(), width=80)
    show_monitor(console, facts, **how)
    return console.file.getvalue()


def test_the_terminal_says_what_changed_and_what_to_do(facts):
    said = printed(facts, shown=2)
    assert "Changed: these rows are not like" in said and "80 rows, compared with 60 rows held out" in said
    assert "Unknown words" in said and "ganz" in said and "What to do: " in said
    assert "neue" in said and "wörter" not in said  # two words are shown
    for one in facts["comparisons"]:
        assert one["title"] in said


def test_the_page_shows_the_same_and_runs_no_word_of_the_data(facts):
    page = monitor_page(facts)
    assert "Changed: these rows" in page and "New words" in page and "<svg" in page
    assert HOSTILE not in page and "&lt;script&gt;alert(1)" in page
    assert page.count("<figure>") == 5  # words, length, probability, labels per row, calibration


def test_names_stand_before_ids():
    change = {"label": "http://x/1", "name": "cats", "rows": 9, "share": 0.9, "reference_share": 0.0, "times": None}
    said = printed({"verdict": "watch", "rows": 10, "labels_more": [change]})
    assert "cats (http://x/1)" in said and "90.0" in said


def test_facts_may_be_missing():
    assert "10 rows without labels" in printed({"rows": 10})
    assert "<h1>Monitoring</h1>" in monitor_page({})
