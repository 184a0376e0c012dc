"""Shared by all tests: how property tests draw, which examples need an optional package, and running commands."""

import ast
import doctest
import importlib.util
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import settings

EXTRAS = {  # extra: the packages it installs that are imported somewhere
    "torch": ("torch", "transformers", "sentence_transformers"),
    "onnx": ("onnxruntime", "tokenizers"),
    "io": ("pyarrow",),
    "audit": ("highspy",),
    "ann": ("faiss",),
    "skos": ("rdflib",),
    "stem": ("snowballstemmer",),
    "serve": ("starlette", "uvicorn"),
    "ray": ("ray",),
}
HIDDEN = {p for extra in os.environ.get("LONGTAIL_TEST_WITHOUT", "").split() for p in EXTRAS[extra]}


class Hide:
    """Hides packages from imports, as if they were not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".")[0])


if HIDDEN:
    find_spec = importlib.util.find_spec
    sys.meta_path.insert(0, Hide())
    importlib.util.find_spec = lambda name, *args: None if name.split(".")[0] in HIDDEN else find_spec(name, *args)

from longtail._front_door import stub_names  # noqa: E402
from longtail.cli import main, output  # noqa: E402

output.SILENCE = 600.0  # a slow machine says no more than a fast one

SOURCE = Path(__file__).parent / "src" / "longtail"

# On a desk the same examples every time; in CI new ones in every run, with the line that draws a failing one again.
settings.register_profile("desk", deadline=None, derandomize=True)
settings.register_profile("ci", deadline=None, print_blob=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


# --- examples in docstrings that need an extra ------------------------------------------------------------------------

# `>>> model = ...  # doctest: +NEEDS_TORCH` marks an example that runs only where the extra is installed
FLAGS = {doctest.register_optionflag(f"NEEDS_{extra.upper()}"): extra for extra in EXTRAS}


def is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def importing(packages: tuple[str, ...]) -> list[Path]:
    """Return the modules that cannot be imported without some packages: they or what they import name them."""
    files = {".".join(("longtail", *f.relative_to(SOURCE).with_suffix("").parts)): f for f in SOURCE.rglob("*.py")}
    needs = {
        name: {module for node in ast.parse(file.read_text("utf-8")).body for module in imported_by(node)}
        for name, file in files.items()
    }
    without = {name for name, modules in needs.items() if any(m.split(".")[0] in packages for m in modules)}
    while more := {name for name, modules in needs.items() if modules & without} - without:
        without |= more
    return [files[name] for name in sorted(without)]


def imported_by(node: ast.stmt) -> list[str]:
    """Return the modules that a statement at the top of a file imports, seen through the front doors of folders."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom) or node.module is None:
        return []
    stub = SOURCE.parent / Path(*node.module.split(".")) / "__init__.pyi"
    homes = stub_names(stub) if node.module.startswith("longtail.") and stub.exists() else {}
    return [f"{node.module}.{homes[a.name]}" if a.name in homes else node.module for a in node.names]


MISSING = tuple(p for packages in EXTRAS.values() for p in packages if not is_installed(p))
collect_ignore = [str(file) for file in importing(MISSING)] if MISSING else []


def pytest_collection_modifyitems(items):
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            wanted = {extra for e in item.dtest.examples for flag, extra in FLAGS.items() if e.options.get(flag)}
            for extra in sorted(wanted):
                if not all(map(is_installed, EXTRAS[extra])):
                    item.add_marker(pytest.mark.skip(reason=f"needs the extra [{extra}]"))


# --- commands ---------------------------------------------------------------------------------------------------------


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


@pytest.fixture
def wait_until_at_work():
    """Return a function that waits until a process has used some processor time: imports are done, work has begun."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("reads processor time from /proc")
    ticks = os.sysconf("SC_CLK_TCK")

    def wait(process, seconds=1.5):
        while process.poll() is None:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            if (int(fields[11]) + int(fields[12])) / ticks >= seconds:
                return
            time.sleep(0.02)
        raise AssertionError(f"the process ended before it was at work, with exit code {process.returncode}")

    return wait
