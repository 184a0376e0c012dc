"""The examples of docs/metrics.md run and give the numbers they claim."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_examples_run_and_are_right():
    names: dict = {}
    claims = 0
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S):
        if "GridSearchCV" in block:  # needs a model
            continue
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102
        for code, claimed in re.findall(r"^(metrics\.\S.*?)\s+# (\d\.\d+)", block, re.M):
            value = eval(code, names)  # noqa: S307
            assert str(value).startswith(claimed) or value == pytest.approx(float(claimed))
            claims += 1
    assert claims == 4
