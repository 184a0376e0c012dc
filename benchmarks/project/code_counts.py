"""Count, from the source alone, what makes a package hard to read: importers, doubled names, `Any`, long functions.

A module is named as it is imported ("longtail.tree.beam"); its folder is the part after the package ("tree"). The
front door of a folder is its `__init__.pyi`, or its `__init__.py` where there is no stub.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.program import Facts

PACKAGE = "longtail"
LONGEST, MOST_COMPLEX = 60, 20  # lines of a function without its docstring; McCabe's complexity
EXCUSE = "noqa: C901"  # on the line of a `def`, with the reason


class Import(NamedTuple):
    """One imported name: by which module, from which module, and the name ("" for a whole module)."""

    importer: str
    source: str
    name: str
    line: int


class Package:
    """The modules of a package: their files, their syntax trees, and the names that folders offer."""

    def __init__(self, source: Path) -> None:
        self.root = source / "src" / PACKAGE
        self.files = {self._name(file): file for file in sorted(self.root.rglob("*.py"))}
        self.trees = {name: ast.parse(file.read_text("utf-8")) for name, file in self.files.items()}
        self.doors = {name: self._offered(name) for name, file in self.files.items() if file.name == "__init__.py"}

    def _name(self, file: Path) -> str:
        parts = file.relative_to(self.root.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _offered(self, package: str) -> dict[str, str]:
        """Return the names that a door offers, each with the module it comes from."""
        stub = self.files[package].with_suffix(".pyi")
        tree = ast.parse(stub.read_text("utf-8")) if stub.exists() else self.trees[package]
        offered: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                home = f"{package}.{node.module}" if node.level else node.module or ""
                offered |= {alias.asname or alias.name: home for alias in node.names}
        return offered

    def imports(self, name: str) -> Iterator[Import]:
        """Yield the imports of a module from its own package; a module named in a string counts as imported."""
        for node in ast.walk(self.trees[name]):
            if isinstance(node, ast.Import):
                yield from (Import(name, alias.name, "", node.lineno) for alias in node.names if in_package(alias.name))
            elif isinstance(node, ast.ImportFrom) and node.module and in_package(node.module):
                yield from (Import(name, node.module, alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in self.files:
                yield Import(name, node.value, "", node.lineno)

    def home(self, source: str, name: str) -> str:
        """Return the module that holds an imported name, followed through doors."""
        if f"{source}.{name}" in self.files:
            return f"{source}.{name}"
        inner = self.doors.get(source, {}).get(name)
        return source if inner is None or inner == source else self.home(inner, name)


def in_package(module: str) -> bool:
    """Say whether a module belongs to the package."""
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def folder_of(module: str) -> str:
    """Return the folder below the package that a module is in; "" for the package itself."""
    return module.split(".")[1] if "." in module else ""


def count_code(source: Path) -> Facts:
    """Return all counts for the package in `source`/src."""
    package = Package(source)
    texts = [file.read_text("utf-8") for file in package.files.values()]
    past = [i for name in package.files for i in past_the_door(package, name)]
    lonely = one_importer(package)
    return {
        "modules": len(package.files),
        "lines": sum(len(text.splitlines()) for text in texts),
        "modules_with_one_importer": len(lonely),
        "imports_past_a_front_door": len({(i.importer, i.line) for i in past}),
        "doubled_class_names": doubled(class_names(package)),
        "doubled_file_names": doubled(
            [(file.stem, name) for name, file in package.files.items() if file.name != "__init__.py"]
        ),
        "any_in_signatures": sum(count_any(tree) for tree in package.trees.values()),
        "type_ignores": sum(text.count("# type: ignore") for text in texts),
        "long_functions": sorted(long_functions(package)),
        "complex_functions": complex_functions(package.root),
        "names": {"one_importer": lonely, "past_a_front_door": sorted({f"{i.importer}:{i.line}" for i in past})},
    }


def one_importer(package: Package) -> list[str]:
    """Return the modules that exactly one other module imports; doors of folders are looked through, not counted."""
    importers: dict[str, set[str]] = defaultdict(set)
    for name in package.files:
        is_door = name in package.doors and name != PACKAGE
        for each in package.imports(name) if not is_door else ():
            home = package.home(each.source, each.name) if each.name else each.source
            importers[home].add(name)
    return sorted(name for name in package.files if name not in package.doors and len(importers[name] - {name}) == 1)


def past_the_door(package: Package, name: str) -> Iterator[Import]:
    """Yield the imports of a module that reach into another folder instead of taking what its door offers."""
    for each in package.imports(name):
        whole = f"{each.source}.{each.name}"
        target = whole if whole in package.files else each.source
        if folder_of(target) != folder_of(name) and name != PACKAGE and target.count(".") > 1:
            yield each


def class_names(package: Package) -> list[tuple[str, str]]:
    """Return every public class with its module."""
    return [
        (node.name, name)
        for name, tree in package.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def doubled(names: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that are used more than once, with the modules that use them."""
    users: dict[str, set[str]] = defaultdict(set)
    for name, module in names:
        users[name].add(module)
    return {name: sorted(modules) for name, modules in sorted(users.items()) if len(modules) > 1}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield all functions and methods of a module."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def count_any(tree: ast.Module) -> int:
    """Return how many parameters and return values of functions are typed with Any."""
    count = 0
    for node in functions(tree):
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for annotation in [*(parameter.annotation for parameter in parameters), node.returns]:
            if annotation is not None:
                count += any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(annotation))
    return count


def long_functions(package: Package) -> Iterator[str]:
    """Yield the functions that are too long, unless their `def` line says why."""
    for name, tree in package.trees.items():
        lines = package.files[name].read_text("utf-8").splitlines()
        for node in functions(tree):
            first = node.body[0]
            documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
            length = (node.end_lineno or 0) - node.lineno + 1 - docstring
            excused = any(EXCUSE in line for line in lines[node.lineno - 1 : first.lineno])
            if length > LONGEST and not excused:
                yield f"{name}.{node.name}: {length} lines"


def complex_functions(root: Path) -> list[str]:
    """Return the functions that ruff finds too complex, unless their `def` line says why."""
    words = ["check", "--isolated", "--no-cache", "--select", "C901", "--output-format", "concise"]
    words += ["--config", f"lint.mccabe.max-complexity = {MOST_COMPLEX}", str(root)]
    done = subprocess.run([sys.executable, "-m", "ruff", *words], capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(f"ruff failed: {done.stderr.strip()}")
    reports = [line for line in done.stdout.splitlines() if "C901" in line]
    return sorted(report.partition(f"src/{PACKAGE}/")[2] for report in reports)
