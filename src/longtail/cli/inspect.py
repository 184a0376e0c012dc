"""`longtail inspect` and `longtail verify`: what is in a model folder, and whether it is intact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from longtail.cli.options import json_option
from longtail.cli.output import console, file_size, print_json
from longtail.errors import ModelError, ParameterError


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--tree", is_flag=True, help="Show the label tree: clusters with typical labels, sizes and words.")
@click.option("--depth", type=int, default=None, help="With --tree: levels to show. [default: all]")
@click.option("--clusters", type=int, default=None, help="With --tree: clusters below the root. [default: 12]")
@click.option("--labels", type=int, default=None, help="With --tree: labels to name per cluster. [default: 4]")
@json_option
def inspect(
    model: Path, tree: bool, depth: int | None, clusters: int | None, labels: int | None, as_json: bool
) -> None:
    """Show what MODEL is, what it was trained on and how large its parts are; or its label tree."""
    from longtail.report.terminal import show_inspection, show_tree

    options = {"depth": depth, "clusters": clusters, "labels": labels}
    given = {name: value for name, value in options.items() if value is not None}
    if given and not tree:
        raise ParameterError(f"--{next(iter(given))} can only be used with --tree.")
    facts = _tree(model, given) if tree else inspection(model)
    if as_json:
        print_json(facts)
    else:
        (show_tree if tree else show_inspection)(console(), facts)


def _tree(model: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return the facts about the label tree; below every cluster a quarter as many are listed as below the root."""
    from longtail.pipeline import load_tagger, tree_facts

    if "clusters" in options:
        options = {**options, "clusters": (options["clusters"], max(1, options["clusters"] // 4))}
    return tree_facts(load_tagger(model), **options)


def inspection(model: Path) -> dict[str, Any]:
    """Return the facts about a model folder."""
    from longtail.storage import load_folder

    folder = load_folder(model)
    manifest = folder.manifest
    counts = sorted((int(record.get("count", 0)) for record in folder.labels), reverse=True)
    by_count = sorted(folder.labels, key=lambda record: (-int(record.get("count", 0)), str(record.get("name"))))
    return {
        "model_folder": str(model),
        "kind": manifest["kind"],
        "format_version": manifest["version"],
        "seed": manifest.get("seed"),
        "trained_on": manifest.get("data"),
        "held_out": manifest.get("held_out"),
        "parts": {
            name: {
                "kind": part.kind,
                "params": part.params,
                "arrays": {key: {"shape": list(a.shape), "dtype": str(a.dtype)} for key, a in part.arrays.items()},
            }
            for name, part in folder.parts.items()
        },
        "labels": len(folder.labels),
        "label_counts": counts,
        "most_frequent": by_count[:10],
        "least_frequent": by_count[-10:] if len(by_count) > 10 else [],
        "libraries": manifest.get("libraries"),
        "files": manifest["files"],
        "bytes": sum(entry["bytes"] for entry in manifest["files"].values()),
    }


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@json_option
def verify(model: Path, as_json: bool) -> None:
    """Check every file of MODEL against its digest, and that the model loads."""
    from longtail.pipeline import load
    from longtail.storage import verify_folder

    records = verify_folder(model)
    damaged = [record for record in records if not record["ok"]]
    if not damaged:
        load(model, verify=False)
    if as_json:
        print_json({"model_folder": str(model), "ok": not damaged, "files": records})
    else:
        for record in records:
            state = "ok" if record["ok"] else "DAMAGED"
            click.echo(f"{state:8} {record['name']}  {file_size(record['bytes'] or 0)}")
    if damaged:
        raise ModelError(f"{model / damaged[0]['name']} {damaged[0]['problem']}.")
    if not as_json:
        click.echo(f"{model} is intact.")
