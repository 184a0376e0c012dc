"""The options of every command as tables below its section of the page about the command line, read from click."""

from __future__ import annotations

import re

import click

HEADING = re.compile(r"^## (.+)$", re.M)


def with_option_tables(page: str) -> str:
    """Return the page about the command line with a table of options at the end of every command's section."""
    from longtail.cli.app import app  # here, because only this page needs longtail itself

    pieces = HEADING.split(page)
    out = [pieces[0]]
    for heading, section in zip(pieces[1::2], pieces[2::2], strict=True):
        commands = [(word, app.commands[word]) for word in re.findall(r"[\w-]+", heading) if word in app.commands]
        tables = [table for name, command in commands for table in tables_of(name, command)]
        out += [f"## {heading}", section.rstrip("\n") + "\n\n", *tables]
    return "".join(out)


def tables_of(name: str, command: click.Command) -> list[str]:
    """Return the folded table of a command, or those of the commands below it."""
    if isinstance(command, click.Group):
        return [table for below, sub in command.commands.items() for table in tables_of(f"{name} {below}", sub)]
    context = click.Context(command, info_name=f"longtail {name}")
    records = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)) is not None
    ]
    if not records:
        return []
    rows = [f"    | `{option(names)}` | {cell(text)} |" for names, text in records]
    return [
        f'??? abstract "All options of `{name}`"\n\n',
        "    | option | meaning |\n    |---|---|\n",
        "\n".join(rows),
        "\n\n",
    ]


def option(names: str) -> str:
    """Return the names of an option as they stand in a cell."""
    return names.replace("|", "\\|")


def cell(text: str) -> str:
    """Return words as they stand in a cell: no markup, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", " ".join(text.split()))
