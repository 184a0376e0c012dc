"""`longtail inspect` and `longtail verify`: what is in a model folder, and whether it is intact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from longtail.cli.options import (
    data_options,
    json_option,
    key_option,
    read_data,
    use_vocabulary,
    vocabulary_options,
)
from longtail.cli.output import console, print_json
from longtail.errors import MissingExtraError, ModelError, ParameterError
from longtail.report import file_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from longtail.facts import LabelFacts, TreeFacts
    from longtail.storage import Part

Facts = TypeVar("Facts")
TRANSFORMER = "encoder.weights."
DETAILS = ("parts", "files")  # of an inspection, what --details shows
MOST_UNNAMED = 20  # files beside a model that are listed one by one
HIDDEN = ("history", "network", "tree")  # of a model that reads texts; the first and the last are told in other words


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--tree", is_flag=True, help="Show the label tree: clusters with typical labels, sizes and words.")
@click.option("--depth", type=int, default=None, help="With --tree: levels to show. [default: all]")
@click.option("--clusters", type=int, default=None, help="With --tree: clusters below the root. [default: 12]")
@click.option("--label", default=None, metavar="NAME", help="Show the leaf slots of this label in the tree.")
@click.option("--data", default=None, metavar="DATA", help="With --label: data whose texts are shown at each slot.")
@click.option("--texts", type=int, default=None, help="With --data: texts to show for each slot. [default: 3]")
@click.option(
    "--labels", type=int, default=None, help="Labels to name per cluster. [default: 4 with --tree, 6 with --label]"
)
@click.option("--details", is_flag=True, help="Also show every part with its parameters and arrays, and the files.")
@data_options
@vocabulary_options
@key_option
@json_option
def inspect(model: Path, tree: bool, label: str | None, data: str | None, as_json: bool, **options: Any) -> None:
    """Show what MODEL is, what it was trained on and how large its parts are; or its label tree; or one label in it.

    With --label: the clusters the label stands in, the labels beside it and the words that lead to each. --data (read
    as in `train`) adds the texts that come there.
    """
    from longtail.report import show_inspection, show_label, show_tree

    _refuse_lone_options(tree, label, data, options)
    shown = {name: options[name] for name in ("vocabulary_file", "vocabulary_format", "lang", "limits")}
    names = ("labels", "texts") if label is not None else ("depth", "clusters", "labels")
    given = {name: options[name] for name in names if options[name] is not None}
    if label is not None:
        _print(_facts_of_label(model, label, data, given, options), show_label, as_json)
    elif tree:
        _print(_facts_of_tree(model, given, shown, options["key"]), show_tree, as_json)
    else:
        facts = inspection(model, options["key"])
        if not (as_json or options["details"]):
            facts = {name: value for name, value in facts.items() if name not in DETAILS}
        _print(facts, show_inspection, as_json)
        if not (as_json or options["details"]):
            console().print("\n--details shows every part with its parameters and arrays, and the files.")


def _print(facts: Facts, show: Callable[[Console, Facts], None], as_json: bool) -> None:
    """Print facts as JSON, or for people."""
    if as_json:
        print_json(facts)
    else:
        show(console(), facts)


def _refuse_lone_options(tree: bool, label: str | None, data: str | None, options: dict[str, Any]) -> None:
    """Refuse options that say nothing without another one."""
    if tree and label is not None:
        raise ParameterError("give one of --tree and --label.")
    for name, needed, there in (
        ("vocabulary_file", "--tree or --label", tree or label is not None),
        ("lang", "--tree or --label", tree or label is not None),
        ("depth", "--tree", tree),
        ("clusters", "--tree", tree),
        ("labels", "--tree or --label", tree or label is not None),
        ("data", "--label", label is not None),
        ("texts", "--data", data is not None),
    ):
        if (data if name == "data" else options[name]) is not None and not there:
            raise ParameterError(f"--{name.removesuffix('_file')} can only be used with {needed}.")


def _facts_of_label(
    model: Path, label: str, data: str | None, given: dict[str, Any], options: dict[str, Any]
) -> LabelFacts:
    """Return the facts about one label; the model and the name are looked at before data is read."""
    from longtail.pipeline import label_facts, label_number, load_tagger

    tagger = load_tagger(model, key=options["key"])
    use_vocabulary(tagger, options)
    label_number(tagger, label)
    rows = None if data is None else read_data(data, "train", options, taggers=[tagger])
    return label_facts(tagger, label, data=rows, **given)


def _facts_of_tree(model: Path, options: dict[str, Any], shown: dict[str, Any], key: Path | None) -> TreeFacts:
    """Return the facts about the label tree; below every cluster a quarter as many are listed as below the root."""
    from longtail.pipeline import load_tagger, tree_facts

    if "clusters" in options:
        options = {**options, "clusters": (options["clusters"], max(1, options["clusters"] // 4))}
    tagger = load_tagger(model, key=key)
    use_vocabulary(tagger, shown)
    return tree_facts(tagger, **options)


def inspection(model: Path, key: Path | None = None) -> dict[str, Any]:
    """Return the facts about a model folder, which must load."""
    from longtail.pipeline import MODELS, Tagger, open_model

    folder, loaded = open_model(model, key=key)
    manifest = folder.manifest
    counts = sorted((int(record.get("count", 0)) for record in folder.labels), reverse=True)
    by_count = sorted(folder.labels, key=lambda record: (-int(record.get("count", 0)), str(record.get("name"))))
    part = folder.parts.get("model")
    about = {} if part is None or part.kind not in MODELS else MODELS[part.kind].describe_saved(part)
    return {
        "model_folder": str(model),
        "kind": manifest["kind"],
        "format_version": manifest["version"],
        "seed": manifest.get("seed"),
        "trained_on": _with_one_digest(manifest.get("data")),
        "held_out": manifest.get("held_out"),
        "settings": (loaded.model_ if isinstance(loaded, Tagger) else loaded).effective_params(),
        **about,
        "parts": {
            name: {
                "kind": part.kind,
                "params": _without_history(part.params),
                "arrays": _array_shapes(part),
            }
            for name, part in folder.parts.items()
        },
        "labels": len(folder.labels),
        "label_counts": counts,
        **_vocabulary(folder.parts.get("vocabulary")),
        "most_frequent": _named(by_count[:10], folder.parts.get("vocabulary")),
        "least_frequent": _named(by_count[-10:] if len(by_count) > 10 else [], folder.parts.get("vocabulary")),
        "libraries": manifest.get("libraries"),
        "files": manifest["files"],
        "bytes": sum(entry["bytes"] for entry in manifest["files"].values()),
    }


def _with_one_digest(data: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return facts about training data, less the list of the files learned from where that is the digest itself."""
    if data is None or data.get("digests") != [data.get("digest")]:
        return data
    return {name: value for name, value in data.items() if name != "digests"}


def _vocabulary(part: Part | None) -> dict[str, Any]:
    """Return facts about the vocabulary of a folder; nothing if there is none."""
    from longtail.vocabulary import Vocabulary

    if part is None:
        return {}
    vocabulary = Vocabulary.from_part(part)
    return {
        "vocabulary": {
            "name": vocabulary.name_of_vocabulary,
            "concepts": len(vocabulary),
            "languages": list(vocabulary.languages),
            "language": vocabulary.shown_language,
            "with_broader_concept": vocabulary.n_with_broader,
            "deprecated": vocabulary.n_deprecated,
        }
    }


def _named(records: list[dict[str, Any]], part: Part | None) -> list[dict[str, Any]]:
    """Return the records of labels with the names of their concepts, where there is a vocabulary."""
    from longtail.vocabulary import Vocabulary

    if part is None:
        return records
    vocabulary = Vocabulary.from_part(part)
    return [
        {
            "name": vocabulary.name(record["name"]) if record["name"] in vocabulary else record["name"],
            "label": record["name"],
            "count": record.get("count", 0),
        }
        for record in records
    ]


def _without_history(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a part without the records of its epochs, which have their own place."""
    params = {name: value for name, value in params.items() if name != "history"}
    fitted = params.get("fitted")
    if not isinstance(fitted, dict) or "history" not in fitted:
        return params
    return {**params, "fitted": {name: value for name, value in fitted.items() if name not in HIDDEN}}


def _array_shapes(part: Part) -> dict[str, Any]:
    """Return shape and type of every array; the hundred of a transformer are added up."""
    out: dict[str, Any] = {}
    weights = [array for name, array in part.arrays.items() if name.startswith(TRANSFORMER)]
    if weights:
        out["encoder weights"] = {"shape": [sum(a.size for a in weights)], "dtype": str(weights[0].dtype)}
    for name, array in part.arrays.items():
        if not name.startswith(TRANSFORMER):
            out[name] = {"shape": list(array.shape), "dtype": str(array.dtype)}
    return out


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@key_option
@json_option
def verify(model: Path, key: Path | None, as_json: bool) -> None:
    """Check MODEL completely: every file against its digest and its schema, and that the model loads.

    With --key also that it was signed with the other half of this public key (see `longtail sign`). Files that the
    manifest does not name are told of; they belong to no model, and nothing reads them.
    """
    from longtail.pipeline import folder_schemas, load
    from longtail.storage import unnamed_files, verify_folder

    records = verify_folder(model, folder_schemas(), key=key)
    unnamed = unnamed_files(model)
    damaged = [record for record in records if not record["ok"]]
    unbuilt = None
    if not damaged:
        loaded = load(model, verify=False, key=key)
        try:
            loaded.build()
        except MissingExtraError as error:
            unbuilt = f"its encoder was not built, which could not be checked: {error}"
    if as_json:
        signed = None if key is None else True
        facts = {"model_folder": str(model), "ok": not damaged, "signed": signed, "unchecked": unbuilt}
        print_json({**facts, "files": records, "unnamed": unnamed})
    else:
        for record in records:
            click.echo(_verified_line(record))
        for name in unnamed[:MOST_UNNAMED]:
            click.echo(f"unnamed  {name}  not named by the manifest: never read, and not covered by a signature")
        if len(unnamed) > MOST_UNNAMED:
            click.echo(f"unnamed  and {len(unnamed) - MOST_UNNAMED} more")
    if damaged:
        raise ModelError(f"{model / damaged[0]['name']} {damaged[0]['problem']}.")
    if not as_json:
        signed_by = "" if key is None else f" and signed with the key of {key}"
        click.echo(f"{model} is intact{signed_by}" + (f"; {unbuilt}" if unbuilt is not None else "."))


def _verified_line(record: dict[str, Any]) -> str:
    """Return one line about a file: whether it is sound, and which of its checks hold."""
    state = "ok" if record["ok"] else "DAMAGED"
    checks = [
        f"{name} {'ok' if record[field] else 'WRONG'}"
        for field, name in (("digest", "digest"), ("schema", "schema"), ("crosschecks", "cross-checks"))
        if record[field] is not None
    ]
    return f"{state:8} {record['name']}  {file_size(record['bytes'] or 0)}  {', '.join(checks)}".rstrip()
