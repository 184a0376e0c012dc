"""The terminal: the same numbers within 80 columns, plain in a pipe, harmless whatever the names."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from longtail.report.terminal.evaluation import show_comparison, show_dataset, show_evaluation
from longtail.report.terminal.model_terminal import show_explanation, show_inspection

HOSTILE = "\x1b]0;title\x07\x1b[2J[red]x[/red]\n\ud800"


def printed(show, facts, *, terminal: bool = False, width: int = 80) -> str:
    colours = "256" if terminal else None
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=colours)
    show(console, facts)
    return console.file.getvalue()


def test_an_evaluation_fits_80_columns_and_shows_the_numbers(facts):
    out = printed(show_evaluation, facts)
    assert max(len(line) for line in out.splitlines()) <= 80
    for row in facts["evaluation"]["metrics"].values():
        assert f"{100 * row['value']:.2f}" in out
    for b in facts["evaluation"]["frequency"]["bins"]:
        if b["precision"] is not None:
            assert f"{100 * b['precision']:.1f}" in out
    for shown in ("Of the 5 suggestions per text", "label 3", "1,234", "62.5", "drinks  87%", "+0.71", "12 s"):
        assert shown in out


def test_a_pipe_gets_plain_letters(facts, comparison_facts):
    for show, given in ((show_evaluation, facts), (show_comparison, comparison_facts)):
        out = printed(show, given)
        assert "\x1b" not in out
        assert out.isascii()


def test_a_terminal_gets_colours_and_blocks(facts):
    out = printed(show_evaluation, facts, terminal=True)
    assert "\x1b[" in out and "█" in out


def test_no_color_is_honoured(facts, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    show_evaluation(console, facts)
    assert "\x1b[32m" not in console.file.getvalue() and "\x1b[36m" not in console.file.getvalue()


def test_a_comparison_shows_both_sides(comparison_facts):
    out = printed(show_comparison, comparison_facts)
    row = comparison_facts["comparison"]["metrics"]["p@3"]
    line = next(line for line in out.splitlines() if line.startswith("P@3"))
    values = [f"{100 * row[key]:.2f}" for key in ("a", "b")] + [f"{100 * row['difference']:+.2f}"]
    assert line.split()[1:4] == values and f"{row['p_value']:.4f}" in line
    assert max(len(line) for line in out.splitlines()) <= 80


def test_a_difference_stands_on_its_side_of_zero():
    rows = {
        "p@1": {"a": 0.5, "b": 0.6, "difference": 0.1, "low": 0.05, "high": 0.15},
        "r@1": {"a": 0.5, "b": 0.4, "difference": -0.1, "low": -0.15, "high": -0.05},
    }
    lines = printed(show_comparison, {"comparison": {"ks": [1], "metrics": rows}}).splitlines()
    head = next(line for line in lines if line.startswith("percent"))
    zero = head.rindex("0  ")
    assert next(line for line in lines if line.startswith("P@1")).rindex("o") > zero
    assert next(line for line in lines if line.startswith("R@1")).rindex("o") < zero


def test_the_longest_words_bar_is_the_strongest():
    words = [{"word": "wine", "weight": 0.8}, {"word": "car", "weight": -0.2}]
    path = [{"level": 0, "node": 3, "margin": 0.5, "typical": ["food", "bread"]}]
    said = {"label": "drinks", "score": 1.25, "words": words, "path": path}
    facts = {"text": "Wine in a car", "predicted": [said]}
    out = printed(show_explanation, facts)
    assert "*Wine* in a *car*" in out and "1.250" in out and "  in +0.50  food, bread" in out
    lines = [line.split() for line in out.splitlines() if line.startswith(("  wine", "  car"))]
    bars = {line[0]: line[-1] for line in lines}
    assert bars == {"wine": "#" * 24, "car": "-" * 6}


def test_a_dataset_and_a_model_are_shown(facts):
    out = printed(show_dataset, facts["data"])
    assert "rows" in out and "120" in out and "labels per row" in out
    files = [{"name": "tree.safetensors", "bytes": 1500, "ok": False, "problem": "is missing"}]
    out = printed(show_inspection, {"title": "model", "kind": "tagger.v1", "model": facts["model"], "files": files})
    for shown in ("tagger.v1", "overlap", "1.25 MB", "tree.safetensors", "1.5 kB", "no", "is missing"):
        assert shown in out


def test_words_are_marked_at_their_places():
    words = [{"word": "read+ing", "weight": 0.5, "spans": [[2, 9]]}, {"word": "a", "weight": 0.1, "spans": []}]
    out = printed(show_explanation, {"text": "a reading in a room", "labels": [{"label": "x", "words": words}]})
    assert out.splitlines()[0] == "a *reading* in a room"


def test_an_inspection_shows_metrics_arrays_and_the_tail():
    facts = {
        "labels": 3,
        "label_counts": [900, 30, 1],
        "held_out": {"rows": 50, "metrics": {"p@1": {"value": 0.8123, "low": 0.79, "high": 0.83}}},
        "parts": {"tree": {"kind": "tree.v1", "arrays": {"weights": {"shape": [1200, 30], "dtype": "float32"}}}},
        "files": {"tree.safetensors": {"bytes": 1500, "sha256": "0123456789abcdef" * 4}},
    }
    out = printed(show_inspection, facts)
    for shown in ("3 labels, 900 rows down to 1", "81.23", "79.0-83.0", "1,200 x 30 float32", "1.5 kB"):
        assert shown in out
    assert "0123456789abcdef\n" in out.replace(" ", "") and "0123456789abcdef0" not in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_long_names_of_models_do_not_break_the_table(comparison_facts):
    comparison_facts["names"] = {"a": "models/one/with-a-long-name", "b": "models/two/with-a-long-name"}
    out = printed(show_comparison, comparison_facts)
    assert "a: models/one/with-a-long-name; b: models/two/with-a-long-name" in " ".join(out.split())
    assert all(line.split()[0] != "to" for line in out.splitlines() if line.strip())
    assert max(len(line) for line in out.splitlines()) <= 80


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_names_cannot_command_the_terminal(facts, terminal):
    facts["title"] = facts["labels"][0]["label"] = facts["examples"][0]["text"] = HOSTILE
    facts["examples"][0]["predicted"][0]["label"] = HOSTILE
    facts["examples"][0]["predicted"][0]["words"][0]["word"] = HOSTILE
    out = printed(show_evaluation, facts, terminal=terminal)
    assert "\x1b]" not in out and "\x1b[2J" not in out and "\x07" not in out
    assert "[red]x[/red]" in out.replace("\n", "")


def test_a_terminal_without_unicode_is_served(facts):
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    facts["labels"][0]["label"] = "café"
    console = Console(file=raw, width=80)
    show_evaluation(console, facts)
    raw.flush()
    assert b"caf?" in raw.buffer.getvalue()


def test_empty_facts_print_nothing_and_do_not_fail():
    for show in (show_evaluation, show_comparison, show_inspection, show_explanation, show_dataset):
        assert printed(show, {}).strip() == ""
