"""What docs/fidelity.md says is in the code and in the files of results."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fidelity.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
OVERLAP = json.loads((ROOT / "benchmarks" / "results" / "disentangle.json").read_text("utf-8"))["summary"]


def test_the_tables_of_overlap_are_those_of_the_results():
    """A row is: data, model, P@1/3/5, gain, PSP@1/3/5, times of training and prediction, seeds."""
    checked = 0
    for data, model, *shown in (row for row in ROWS if len(row) == 7 and row[0] in OVERLAP["published"]):
        cell = OVERLAP["published"][data].get(model)
        if cell is None:
            continue
        found = ["/".join(f"{cell[f'{kind}@{k}']:.1f}" for k in (1, 3, 5)) for kind in ("p", "psp")]
        gain = "/".join(f"{cell[f'p@{k} gain']:+.1f}" for k in (1, 3, 5)) if model != "XR-Linear" else ""
        times = f"{cell.get('train times', 1):.1f}x / {cell.get('predict times', 1):.1f}x"
        assert shown == [found[0], gain, found[1], times, str(cell["seeds"])], (data, model)
        checked += 1
    assert checked > 30


def test_the_table_of_joined_labels_is_that_of_the_results():
    """A row is: data, how many labels were joined and how, gains of P@5 of four models, seeds."""

    def shown_gain(cell: dict | None) -> str:
        if not cell:
            return "–"
        spread = cell.get("p@5 gain sd")
        return f"{cell['p@5 gain']:+.2f}" + (f" ± {spread:.2f}" if spread else "")

    models = ("published λ=2", "overlap 2", "overlap 2, split positives", "auto")
    checked = 0
    for data, joined, *shown in (row for row in ROWS if len(row) == 7 and row[0] in OVERLAP["fused"]):
        cells = OVERLAP["fused"][data].get(joined)
        if cells is None:
            continue
        assert shown[:4] == [shown_gain(cells.get(model)) for model in models], (data, joined)
        checked += 1
    assert checked == 30


def test_the_names_on_the_page_exist():
    """Python names below longtail, settings, files of code, tests, benchmarks and results."""
    folders = ("src/longtail", "benchmarks", "tests", "scripts", "docs")
    code = "\n".join(
        file.read_text("utf-8")
        for folder in folders[:4]
        for file in (ROOT / folder).rglob("*.py")
        if file.name != Path(__file__).name
    )
    files = {file.name for folder in folders for file in (ROOT / folder).rglob("*.*")}
    for span in set(re.findall(r"`([^`\n]+)`", PAGE)):
        path = re.fullmatch(r"[\w/.-]*?([\w-]+\.(?:py|json|svg|md))", span)
        name = re.match(r"(?:\w+\.)*(\w+)(?=\(|=|$)", span)
        if path:
            assert path[1] in files or path[1] == "NAME.json", span
        elif name and not re.fullmatch(r"[\d.]+", span):
            assert re.search(rf"\b{re.escape(name[1])}\b", code), span
