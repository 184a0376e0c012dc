"""Checks of a command line before its command runs: no option given twice, no output over an input."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from longtail.errors import ParameterError

WRITTEN = frozenset(  # options that name what a command writes
    ("--output", "-o", "--report", "--labels-csv", "--certificates", "--write-labels", "--log", "--new-key")
)
WRITTEN_ARGUMENTS = frozenset(("output",))  # of convert
NAMES_FILES = ("FILE", "FOLDER", "DATA")  # in the metavar of an option that is read and whose type does not say so
BOTH = frozenset(("checkpoint",))  # read and written by one command: its own folder
MANIFEST = "manifest.json"  # as in longtail.storage, which is slow to import
REPLACED = "model"  # a model folder may be replaced by what was made of it: it is exchanged as a whole


def check_given(command: click.Command, args: Sequence[str], above: click.Context) -> None:
    """Refuse an option that takes one value and is given twice, and an output that is the same file as an input."""
    context = click.Context(command, parent=above, resilient_parsing=True)
    try:
        values, rest, order = command.make_parser(context).parse_args(list(args))
    except click.UsageError:
        return  # which the command will say itself
    _refuse_repeated(order)
    if isinstance(command, click.Group):
        below = command.get_command(context, rest[0]) if rest else None
        if below is not None:
            check_given(below, rest[1:], context)
        return
    params = command.get_params(context)
    _refuse_overwriting(params, values)
    arguments = [param.name for param in params if isinstance(param, click.Argument)]
    if arguments[:2] == ["model", "data"]:
        _refuse_swapped(values, command.name or "")


def _refuse_repeated(order: Sequence[click.Parameter]) -> None:
    """Refuse an option whose first value would be forgotten; flags and options that may be repeated are none."""
    for param, times in Counter(order).items():
        if isinstance(param, click.Option) and times > 1 and not (param.multiple or param.is_flag or param.count):
            often = "twice" if times == 2 else f"{times} times"
            raise ParameterError(f"{_name(param)} is given {often}; it takes one value, so give it once.")


def _refuse_overwriting(params: Sequence[click.Parameter], values: Mapping[str, Any]) -> None:
    """Refuse an output that would take the place of a file that is read, or of another output."""
    outputs: list[tuple[str, str]] = []
    inputs: list[tuple[str, str]] = []
    for param in params:
        given = list(_strings(values.get(param.name or "")))
        if _is_written(param):
            outputs += [(_name(param), path) for path in given]
        elif _is_read(param):
            inputs += [(param.name or "", path) for path in given]
    for number, (name, path) in enumerate(outputs):
        for other, there in outputs[:number]:
            if os.path.realpath(there) == os.path.realpath(path) or _same_file(there, path):
                raise ParameterError(f"{other} and {name} must be different files; got {path} for both.")
        for role, source in inputs:
            if _same_file(source, path) and not (role == REPLACED and Path(source).is_dir()):
                what = "folder" if Path(path).is_dir() else "file"
                shown = path if source in (path, "-") else f"{path} is {source}"
                raise ParameterError(f"{name} is the {what} that is read ({shown}); give another name.")


def _refuse_swapped(values: Mapping[str, Any], command: str) -> None:
    """Refuse DATA before MODEL where a look at the two tells."""
    model, data = values.get("model"), values.get("data")
    if isinstance(model, str) and isinstance(data, str) and _has_manifest(data) and not _has_manifest(model):
        raise ParameterError(f"MODEL comes first: longtail {command} {data} {model}; got {model} as MODEL.")


def _has_manifest(path: str) -> bool:
    """Return whether a path is a folder as models are saved in."""
    return os.path.isfile(os.path.join(path, MANIFEST))  # noqa: PTH113, PTH118 - whatever the path


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of what a parser found for a parameter, which may be a list or none of them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)


def _is_written(param: click.Parameter) -> bool:
    names = WRITTEN if isinstance(param, click.Option) else WRITTEN_ARGUMENTS
    return not names.isdisjoint(param.opts)


def _is_read(param: click.Parameter) -> bool:
    if isinstance(param, click.Argument) or isinstance(param.type, click.Path):
        return param.name not in BOTH
    return any(word in (param.metavar or "") for word in NAMES_FILES)


def _same_file(source: str, output: str) -> bool:
    """Return whether two paths lead to one file or folder, by whatever names; "-" is what stdin was opened from."""
    try:
        there = os.stat(output)  # noqa: PTH116 - a path that the system does not take is no Path either
        read = os.fstat(0) if source == "-" else os.stat(source)  # noqa: PTH116
    except (OSError, ValueError):
        return False
    ordinary = os.path.isfile(output) or os.path.isdir(output)  # noqa: PTH112, PTH113 - not a terminal or null
    return ordinary and os.path.samestat(there, read) and (source != "-" or sys.stdin is not None)


def _name(param: click.Parameter) -> str:
    """Return what the help calls a parameter."""
    return max(param.opts, key=len) if isinstance(param, click.Option) else (param.name or "").upper()
