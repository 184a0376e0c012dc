"""Names, types and defaults of constructor parameters, read from the source: importing the classes takes a second."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import longtail
from longtail._front_door import stub_names

ROOT = Path(longtail.__file__).parent


@dataclass(frozen=True)
class ConstructorParameter:
    """One parameter of a constructor, as its signature has it."""

    name: str
    kinds: tuple[str, ...]  # the types of its annotation, without None
    default: Any


def constructor_parameters(folder: str, name: str) -> tuple[ConstructorParameter, ...]:
    """Return the parameters of the constructor of a class that a folder offers, in the order of the signature.

    >>> first = constructor_parameters("one_vs_all", "OneVsAllClassifier")[0]
    >>> first.name, first.kinds, first.default
    ('C', ('float',), 1.0)
    """
    module = _module(f"longtail.{folder}", name)
    kind = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name)
    init = next(node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    positional = init.args.args[1:]  # without self
    defaults = [*init.args.defaults, *init.args.kw_defaults]
    return tuple(
        ConstructorParameter(arg.arg, _kinds(arg.annotation), _value(module, default))
        for arg, default in zip([*positional, *init.args.kwonlyargs], defaults, strict=True)
    )


@cache
def _parse(file: Path) -> ast.Module:
    """Return the syntax tree of a file, read once."""
    return ast.parse(file.read_text("utf-8"))


def _module(source: str, name: str) -> ast.Module:
    """Return the module that `from source import name` takes the name from."""
    path = ROOT.joinpath(*source.split(".")[1:])
    if path.is_dir():
        path = path.joinpath(*stub_names(path / "__init__.pyi")[name].split("."))
    return _parse(path.with_suffix(".py"))


def _kinds(annotation: ast.expr | None) -> tuple[str, ...]:
    """Return the names of the types in an annotation such as `int | None`."""
    written = "" if annotation is None else ast.unparse(annotation)
    return tuple(kind for kind in (part.strip() for part in written.split("|")) if kind not in ("", "None"))


def _value(module: ast.Module, default: ast.expr | None) -> Any:
    """Return a default, which is a literal or the name of a constant, its own or an imported one."""
    if not isinstance(default, ast.Name):
        return ast.literal_eval(default) if default is not None else None
    for node in module.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == default.id for t in node.targets):
            return _value(module, node.value)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == default.id:
            return _value(module, node.value)
        if isinstance(node, ast.ImportFrom) and default.id in {alias.name for alias in node.names}:
            return _value(_module(node.module or "", default.id), default)
    raise ValueError(f"the default {default.id} cannot be read from the source.")
