"""The notebooks run, and what is stored in them is what they show; the third needs torch."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="needs the dev extra")
pytest.importorskip("ipykernel", reason="needs the dev extra")

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
REQUEST = re.compile(r"<(?:script|link|iframe|img|object|form)\b|@import|url\(|\b(?:src|href|action)\s*=|\bon\w+\s*=")
each_notebook = pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "scripts" / "run_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cells(file):
    return json.loads(file.read_text("utf-8"))["cells"]


def outputs(file):
    return [output for cell in cells(file) for output in cell.get("outputs", ())]


def test_there_are_three():
    assert [file.name[0] for file in NOTEBOOKS] == ["1", "2", "3"]


@each_notebook
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_notebook_runs_and_shows_what_is_stored(file, runner):
    if "import torch" in file.read_text("utf-8"):
        pytest.importorskip("torch")
    seen = runner.changes(runner.nbformat.read(file, as_version=4), runner.executed(file))
    assert not seen, f"{file.name} shows something else than is stored; `make notebooks` stores it. {' '.join(seen)}"


def test_what_a_reader_would_notice_is_noticed(runner):
    stored = runner.nbformat.read(NOTEBOOKS[0], as_version=4)
    assert runner.changes(stored, stored) == []
    other = runner.nbformat.read(NOTEBOOKS[0], as_version=4)
    at, cell = next((i, cell) for i, cell in enumerate(other.cells) if cell.get("outputs"))
    page = cell.outputs[0].data["text/html"]
    cell.outputs[0].data["text/html"] = re.sub(r"\d,\d\d\d", "9,999", page)
    assert runner.changes(stored, other)[0].startswith(f"cell {at} shows")
    cell.outputs = []
    assert runner.changes(stored, other) == [f"cell {at} has 1 stored outputs and shows 0."]


@each_notebook
def test_every_cell_was_run_and_none_failed(file):
    run = [cell for cell in cells(file) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in run] == list(range(1, len(run) + 1))
    assert not [out for out in outputs(file) if out["output_type"] == "error" or out.get("name") == "stderr"]
    assert sum("text/html" in out.get("data", {}) for out in outputs(file)) >= 3  # cards


@each_notebook
def test_cards_ask_no_other_host_and_run_nothing(file):
    for output in outputs(file):
        page = "".join(output.get("data", {}).get("text/html", ""))
        assert not REQUEST.search(re.sub(r">[^<]*<", "><", page)), page[:300]  # of the markup, not of its texts
        assert not page or output["data"]["text/plain"]  # where a notebook shows no HTML


@each_notebook
def test_links_lead_to_files(file):
    for cell in cells(file):
        for target in LINK.findall("".join(cell["source"])) if cell["cell_type"] == "markdown" else ():
            assert (file.parent / target).is_file(), f"{file.name}: {target}"


@each_notebook
def test_nothing_of_the_machine_is_stored(file):
    text = file.read_text("utf-8")
    assert len(text) < 600_000
    assert not re.search(r"/home/|/root/|/tmp/|site-packages|ipykernel_", text)
