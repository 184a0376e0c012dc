"""What all tests share: property tests draw the same examples every time, and a slow machine is no failure."""

import ast
import importlib.util
from pathlib import Path

import pytest
from hypothesis import settings

from longtail._front_door import stub_names
from longtail.cli import main

settings.register_profile("longtail", deadline=None, derandomize=True)
settings.load_profile("longtail")

ROOT = Path(__file__).parent / "src" / "longtail"


def needs_torch() -> list[str]:
    """Return the modules that import torch when they are imported: without torch their examples cannot run."""
    files = {".".join(("longtail", *f.relative_to(ROOT).with_suffix("").parts)): f for f in ROOT.rglob("*.py")}
    needs = {
        name: {m for node in ast.parse(file.read_text("utf-8")).body for m in imported(node)}
        for name, file in files.items()
    }
    found = {name for name, modules in needs.items() if any(m.split(".")[0] in TORCH for m in modules)}
    while more := {name for name, modules in needs.items() if modules & found} - found:
        found |= more
    return [str(files[name].relative_to(Path(__file__).parent)) for name in sorted(found)]


def imported(node: ast.stmt) -> list[str]:
    """Return the modules that a statement at the top of a file imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom) or node.module is None:
        return []
    stub = ROOT.parent / Path(*node.module.split(".")) / "__init__.pyi"
    homes = stub_names(stub) if node.module.startswith("longtail.") and stub.exists() else {}
    return [f"{node.module}.{homes[a.name]}" if a.name in homes else node.module for a in node.names]


TORCH = ("torch", "transformers", "tokenizers")
collect_ignore_glob = [] if importlib.util.find_spec("torch") else needs_torch()


@pytest.fixture
def run(capfd):
    """Return a function that runs a command in this process, checks its exit code and returns what it printed."""

    def call(*args, code=0):
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in args])
        out, err = capfd.readouterr()
        assert end.value.code == code, (out, err)
        return out if code == 0 else err

    return call
