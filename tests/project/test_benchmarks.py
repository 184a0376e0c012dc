"""The table of benchmarks names every program and every file of results, and no other."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
HELPERS = {
    *("tree_vs_peers.py", "peers/worker.py", "hybrid/few_rows_worker.py", "hybrid/xr_transformer.py"),
    *("project/traced_command.py", "project/estimator_checks.py"),
    *("serve/generator.py", "serve/plain_service.py"),
}
ROWS = re.findall(
    r"^\| `((?:\.\./)?\w+/\w+\.py)` .*\| `(\w+\.json)`", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE
)
RESULTS = sorted((FOLDER / "results").glob("*.json"))


def test_every_program_has_a_row():
    guarded = (file for file in FOLDER.rglob("*.py") if '__name__ == "__main__"' in file.read_text("utf-8"))
    programs = {file.relative_to(FOLDER).as_posix() for file in guarded} - HELPERS
    programs |= {f"../integrations/{file.name}" for file in (FOLDER.parent / "integrations").glob("*.py")}
    assert {program for program, _ in ROWS} == programs


def test_every_file_of_results_has_a_row():
    assert sorted(results for _, results in ROWS) == [file.name for file in RESULTS]


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.name)
def test_the_commands_of_results_name_programs_that_exist(file):
    command = json.dumps(json.loads(file.read_text("utf-8"))["command"])
    programs = re.findall(r"(?:benchmarks|integrations)/(?:\w+/)?\w+\.py", command)
    assert programs
    assert all((FOLDER.parent / program).exists() for program in programs)
