"""Labels with more than one leaf slot, on a page and on the terminal: complete, and harmless whatever they hold."""

from __future__ import annotations

import copy
import io
import re

import pytest
from rich.console import Console

from longtail.report import evaluation_page
from longtail.report.terminal.label_terminal import show_label
from longtail.report.tree_sentences import slots_sentence

HOSTILE = "</bdi><script>alert(1)</script><img src=x onerror=alert(2)>\"'\x00\ud800\u202e"
TERMINAL_HOSTILE = "\x1b]0;title\x07\x1b[2J[red]x[/red]\n\ud800"


def place(number: int, name: str = "label") -> dict:
    return {
        "tree": 0,
        "leaf": number,
        "path": [number],
        "labels": 5,
        "neighbours": [{"label": f"{name} {number}.{i}", "uses": 9 - i} for i in range(4)],
        "words": [{"word": f"word{number}{i}", "pull": 1.0} for i in range(3)],
        "heavier": [{"word": f"heavy{number}", "weight": 1.0, "elsewhere": 0.5}],
    }


@pytest.fixture
def splits() -> dict:
    listed = [
        {"label": f"split {i}", "rows": 100 - i, "unlike": 1.2, "slots": [place(10 * i + j) for j in range(2)]}
        for i in range(15)
    ]
    by_slots = [{"slots": 1, "labels": 100}, {"slots": 2, "labels": 50}]
    return {"labels": 150, "several": 50, "by_slots": by_slots, "trees": 1, "listed": listed}


@pytest.fixture
def label() -> dict:
    places = [{**place(i), "rows": 30 + i, "texts": [text(i, j) for j in range(2)]} for i in range(2)]
    return {
        "label": "belt",
        "rows": 1061,
        "trees": 1,
        "overlap": 2,
        "split_positives": False,
        "slots": places,
        "data": {"name": "senses", "rows": 4000, "rows_with_label": 61},
    }


def text(i: int, j: int) -> dict:
    told = f"text {i}.{j} " + "and more " * 40
    return {"row": 10 * i + j, "id": None, "text": told, "score": -0.1, "elsewhere": -1.0}


def shown(facts: dict, **options) -> str:
    console = Console(file=io.StringIO(), width=80, **options)
    show_label(console, facts)
    return console.file.getvalue()


def test_the_page_lists_every_split_label_with_its_places(splits):
    html = evaluation_page({"splits": splits})
    plain = re.sub(r"<[^>]+>", " ", html)
    assert "50 of 150 labels (33%) stand in several clusters" in plain and "These are the 15 with the most" in plain
    for found in splits["listed"]:
        assert found["label"] in plain
        for at in found["slots"]:
            assert ", ".join(n["label"] for n in at["neighbours"]) in plain
            assert "words: " + ", ".join(w["word"] for w in at["words"]) in plain
    assert 'class="wide tall"' in html and "first of" not in plain
    assert "first of 3 trees" in evaluation_page({"splits": {**splits, "trees": 3}})


@pytest.mark.parametrize("found", [None, {}, {"labels": 3, "several": 0, "listed": []}])
def test_without_split_labels_there_is_no_section(found):
    assert "several clusters" not in re.sub(r"<style>.*?</style>", "", evaluation_page({"splits": found}), flags=re.S)


def test_the_page_escapes_names_and_words(splits):
    facts = copy.deepcopy(splits)
    for found in facts["listed"]:
        found["label"] = HOSTILE
        found["slots"][0]["neighbours"][0]["label"] = HOSTILE
        found["slots"][0]["words"][0]["word"] = HOSTILE
    html = evaluation_page({"splits": facts})
    assert "<script>alert" not in html and "<img" not in html and "\x00" not in html
    html.encode("utf-8", "strict") if "\ud800" not in html else pytest.fail("half a surrogate pair on the page")


def test_the_terminal_shows_places_words_and_texts(label):
    out = shown(label)
    plain = " ".join(out.split())
    assert plain.startswith("belt has two leaf slots in the tree. 1,061 training rows have it.")
    for at in label["slots"]:
        assert "beside " + ", ".join(n["label"] for n in at["neighbours"]) in plain
        assert "words that lead here: " + ", ".join(w["word"] for w in at["words"]) in plain
    assert "30 of 61 rows come here:" in plain and "- row 10: text 1.0 and more" in plain
    assert "heavy" not in plain and all(len(line) <= 80 for line in out.splitlines())
    assert "weighs more here: heavy1" in shown({**label, "split_positives": True})


def test_ids_stand_for_row_numbers_and_rows_without_text_are_named(label):
    label["slots"][0]["texts"] = [{"row": 7, "id": "doc-7", "text": None}, {"row": 1234, "id": None, "text": None}]
    out = shown(label)
    assert "- doc-7\n" in out and "- row 1,234\n" in out


def test_the_terminal_is_not_commanded_by_names(label):
    facts = copy.deepcopy(label)
    facts["label"] = TERMINAL_HOSTILE
    for at in facts["slots"]:
        at["neighbours"][0]["label"] = at["words"][0]["word"] = at["texts"][0]["text"] = TERMINAL_HOSTILE
        at["texts"][1]["id"] = TERMINAL_HOSTILE
    for options in ({}, {"force_terminal": True, "no_color": True}):
        out = shown(facts, **options)
        assert "\x1b]" not in out and "\x1b[2J" not in out and "\x07" not in out and "[red]x[/red]" in out


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"slots": [{"tree": 0}], "rows": 2}, "belt has one leaf slot in the tree. 2 training rows have it."),
        ({"slots": [{"tree": 0}] * 7, "rows": 1}, "belt has 7 leaf slots in the tree. One training row has it."),
        ({"slots": [{"tree": 0}], "rows": 0}, "No training row has it, so it is never suggested."),
        ({"trees": 2, "slots": [{"tree": 0}, {"tree": 1}]}, "belt has one leaf slot in each of the 2 trees."),
        ({"trees": 2, "slots": [{"tree": 0}, {"tree": 1}, {"tree": 1}]}, "has 1 and 2 leaf slots in the 2 trees."),
    ],
)
def test_how_many_places(label, change, sentence):
    assert sentence in slots_sentence({**label, **change})


def test_an_ensemble_has_a_heading_for_every_tree(label):
    both = [{**found, "tree": tree} for tree in (0, 1) for found in label["slots"]]
    out = shown({**label, "trees": 2, "slots": both})
    assert "Tree 1\n" in out and "Tree 2\n" in out and out.count("beside") == 4


def test_facts_without_data_or_words(label):
    bare = {**label, "data": None, "slots": [{"tree": 0, "neighbours": [], "words": []}]}
    assert shown(bare).split("\n\n")[1] == "1  alone in its cluster\n"
