"""Imports point one way, down the list of folders in the design, and enter a folder by its front door."""

import ast
from pathlib import Path

import pytest

import longtail
from longtail._front_door import stub_names

ROOT = Path(longtail.__file__).parent
LAYERS = [  # from the ground up; docs/contributing.md says what each is for
    {"_version", "_front_door", "errors", "notebook"},
    {"validate"},
    {"storage"},
    {"kernels"},
    {"engine"},
    {"facts"},
    {"data"},
    {"vocabulary"},
    {"model"},
    {"text"},
    {"name_matches"},
    {"planning"},
    {"training"},
    {"encoder"},
    {"one_vs_all"},
    {"tree"},
    {"bottleneck"},
    {"prime"},
    {"hybrid"},
    {"groups"},
    {"audit", "metrics"},
    {"decisions", "label_check", "monitoring"},
    {"report"},
    {"pipeline"},
    {"tuning"},
    {"checks", "nn"},
    {"review"},
    {"serve"},
    {"cli"},
]
LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}
FILES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.name not in ("__init__.py", "__main__.py"))


def imports(file: Path) -> list[tuple[int, str, tuple[str, ...]]]:
    """Return line, module and imported names of every import of a file."""
    out: list[tuple[int, str, tuple[str, ...]]] = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            out += [(node.lineno, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno} imports relatively"
            out.append((node.lineno, node.module or "", tuple(alias.name for alias in node.names)))
    return out


def offered(folder: str) -> set[str]:
    """Return the names that a folder's front door offers; those of a single file are all that it defines."""
    return set(stub_names(ROOT / folder / "__init__.pyi"))


@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down_and_enter_by_the_front_door(file):
    own = file.relative_to(ROOT).with_suffix("").parts[0]
    assert own in LEVEL, f"{own} is no folder of the design"
    for line, module, names in imports(file):
        where = f"{file.relative_to(ROOT)}:{line}"
        if module == "longtail":
            assert own in ("cli", "checks") and set(names) <= set(longtail.__all__), f"{where} imports {names}"
        if not module.startswith("longtail."):
            continue
        other, *below = module.split(".")[1:]
        if other == own:
            continue
        assert other in LEVEL, f"{where} imports the unknown folder {other}"
        assert LEVEL[other] < LEVEL[own], f"{where}: {own} may not import {other}"
        assert not below, f"{where} reaches past the front door of {other}; add what it needs to {other}/__init__.pyi"
        if (ROOT / other).is_dir():
            assert set(names) <= offered(other), f"{where}: {other} does not offer {set(names) - offered(other)}"


def _assigns(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


@pytest.mark.parametrize("stub", sorted(ROOT.rglob("__init__.pyi")), ids=lambda p: p.parent.name)
def test_every_name_at_a_front_door_is_there_and_none_hides_a_module(stub):
    for name, module in stub_names(stub).items():
        home = stub.parent / Path(*module.split("."))
        text = home.with_suffix(".py").read_text("utf-8")
        defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        defined |= {node.id for node in ast.walk(ast.parse(text)) if _assigns(node)}
        assert name in defined, f"{stub}: {module} does not define {name}"
        assert not (stub.parent / f"{name}.py").exists() and not (stub.parent / name).is_dir(), f"{name} hides a module"


def test_no_folder_for_odds_and_ends():
    assert not [p for p in ROOT.rglob("*") if p.stem in ("utils", "util", "helpers", "common", "misc")]


def test_nothing_pickles_evaluates_or_asserts():
    for file in ROOT.rglob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Assert), f"{file}:{node.lineno} asserts"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), f"{file}:{node.lineno} runs code"
        assert not {"pickle", "joblib", "dill", "cloudpickle"} & {m.split(".")[0] for _, m, _ in imports(file)}, file


@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_kernels_are_compiled_by_our_decorator(file):
    for line, module, names in imports(file):
        if module.split(".")[0] == "numba" and file.name != "compilation.py":
            assert not {"jit", "njit", "vectorize", "guvectorize"} & set(names), f"{file}:{line}: use longtail.kernels"
