"""Imports point one way: down the list of rooms in the design."""

import ast
from pathlib import Path

import pytest

import longtail

ROOT = Path(longtail.__file__).parent
LAYERS = [
    {"storage", "validate", "errors", "_version"},
    {"kernels"},
    {"data"},
    {"features"},
    {"aggregate"},
    {"partition"},
    {"nn"},
    {"models"},
    {"audit", "metrics"},
    {"report"},
    {"pipeline", "checks"},
    {"cli", "serve"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
# within the lowest layer, errors stand below the rest
LOWEST = {"_version": 0, "errors": 0, "validate": 1, "storage": 1}


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(file: Path) -> list[tuple[int, str]]:
    out = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            out += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno} imports relatively"
            out.append((node.lineno, node.module or ""))
            if node.module == "longtail":
                out += [(node.lineno, f"longtail.{alias.name}") for alias in node.names]
    return out


FILES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.name not in ("__init__.py", "__main__.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(file):
    own = room_of("longtail." + ".".join(file.relative_to(ROOT).with_suffix("").parts))
    assert own in LEVEL, f"{own} is no room of the design"
    for line, module in imports(file):
        if not module.startswith("longtail") or module == "longtail":
            continue
        other = room_of(module)
        if other == own:
            continue
        assert other in LEVEL, f"{file.name}:{line} imports the unknown room {other}"
        lower = LEVEL[other] < LEVEL[own] or (LEVEL[other] == LEVEL[own] == 0 and LOWEST[other] < LOWEST[own])
        beside = LEVEL[other] == LEVEL[own] and {own, other} == {"pipeline", "checks"} and own == "checks"
        assert lower or beside, f"{file.name}:{line}: {own} may not import {other}"


def test_no_room_for_odds_and_ends():
    assert not [p for p in ROOT.rglob("*") if p.stem in ("utils", "util", "helpers", "common", "misc")]


def test_nothing_pickles_evaluates_or_asserts():
    for file in ROOT.rglob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Assert), f"{file}:{node.lineno} asserts"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), f"{file}:{node.lineno} runs code"
        assert not {"pickle", "joblib", "dill", "cloudpickle"} & {m.split(".")[0] for _, m in imports(file)}, file
