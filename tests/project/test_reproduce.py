"""Every table and figure of the pages has a program that makes it, and results are compared as the page says."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.project import agreement, documented, reproduce

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduce.md").read_text("utf-8")
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "reproduce.json").read_text("utf-8"))


def test_every_measured_table_and_figure_has_a_program():
    for entry in documented.shown():
        known = entry.source in documented.programs() or (ROOT / entry.source).is_file()
        assert known, f"{entry.page}, {entry.heading}: nothing says what makes {entry.what}"


def test_the_page_lists_every_source():
    missing = {entry.source for entry in documented.shown()} - set(re.findall(r"[\w/]+\.(?:json|py)", PAGE))
    assert not missing, "run python benchmarks/project/reproduce.py --page"


def test_the_page_says_what_was_run():
    made = reproduce.agreement_lines(RESULTS)
    assert "\n".join(made) in PAGE, "run python benchmarks/project/reproduce.py --page"


def test_the_list_can_be_read_without_running_anything():
    said = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "project" / "reproduce.py", "--list"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "python benchmarks/tree/vs_peers.py" in said and "data A B C D" in said


@pytest.mark.parametrize("rerun", reproduce.RERUNS, ids=lambda rerun: rerun.results)
def test_what_runs_again_has_a_program_and_stored_results(rerun):
    assert rerun.results in documented.programs() and (ROOT / "benchmarks" / "results" / rerun.results).exists()
    assert rerun.data == ("data" in documented.programs()[rerun.results].needs)


def test_all_together_fit_into_an_hour():
    assert sum(rerun.minutes for rerun in reproduce.RERUNS) <= 60


def test_programs_that_cannot_run_are_left_with_a_reason(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--minutes", "3"])
    args = reproduce.options()
    args.data = None
    chosen, left = reproduce.choose(args)
    assert sum(rerun.minutes for rerun in chosen) <= 3
    assert left["tree_updates.json"] == "needs data" and left["fft_output.json"] == "needs torch"


@pytest.mark.parametrize(
    ("path", "stored", "found", "agrees"),
    [
        ("results / a / p@1 / mean", 83.5, 83.3, True),
        ("results / a / p@1 / mean", 83.5, 83.1, False),
        ("train_seconds", 2.0, 5.9, True),
        ("train_seconds", 2.0, 6.1, False),
        ("peak_mb", 100, 140, True),
        ("peak_mb", 100, 160, False),
        ("found", 425, 426, False),
        ("relative error", 0.5, 0.509, True),
        ("relative error", 0.5, 0.52, False),
        ("same_bytes", True, False, False),
    ],
)
def test_values_are_compared_by_what_they_are(path, stored, found, agrees):
    def nested(value):
        for key in reversed(path.split(" / ")):
            value = {key: value}
        return value

    out = agreement.compare(nested(stored), nested(found))
    assert (out["compared"], out["agree"]) == (1, int(agrees))
    assert [entry["found"] for entry in out["disagree"]] == ([] if agrees else [found])


def test_parts_that_were_not_measured_again_do_not_count():
    stored = {"command": "a", "summary": {"a": {"p@1": 50.0}, "peer": {"p@1": 40.0}}, "runs": [1]}
    found = {"command": "b", "summary": {"a": {"p@1": 50.1}}, "runs": [2]}
    out = agreement.compare(stored, found, parts=("summary",))
    assert (out["compared"], out["agree"], out["not_measured_again"]) == (1, 1, 1)
