"""Lazy imports for packages: a folder offers the names in its `__init__.pyi`, each imported at first use.

So importing a folder is cheap, and torch is loaded by the first name that needs it.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def front_door(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, from the imports in its stub `__init__.pyi`.

    >>> import longtail
    >>> get, names, offered = front_door("longtail.tree", longtail.tree.__file__)
    >>> "LabelTree" in offered, get("LabelTree").__module__
    (True, 'longtail.tree.label_tree')
    """
    homes = stub_names(Path(file).with_suffix(".pyi"))

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    offered = sorted(homes)
    return get, lambda: offered, offered


def stub_names(stub: Path) -> dict[str, str]:
    """Return the names that a stub offers, each with the module below the package that holds it."""
    lines = [node for node in ast.parse(stub.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: line.module or "" for line in lines for alias in line.names}
