"""`longtail audit`: label sets that a model can never give, whatever its input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.engine_options import engine_options, running_as_asked
from longtail.cli.options import (
    data_options,
    how_to_read,
    jobs_option,
    json_option,
    key_option,
    read_data,
    read_vocabulary,
    use_vocabulary,
    vocabulary_options,
)
from longtail.cli.output import console, note, print_json
from longtail.errors import ParameterError

if TYPE_CHECKING:
    from longtail.data import Dataset
    from longtail.pipeline import Layer, Tagger

UNREACHABLE = 7
WEIGHTS, TORCH = (".npz", ".npy", ".safetensors"), (".pt", ".pth", ".bin", ".ckpt")  # how files of weights end
MORE = "--details shows how this was found, --report FILE.html writes a page."


@click.command()
@click.argument("given", nargs=-1, metavar="[MODEL] [DATA]")
@click.option("--weights", type=click.Path(path_type=Path), metavar="FILE", help="A layer: npz, npy or safetensors.")
@click.option("--array", default=None, metavar="NAME", help="With --weights: the array, where the file has several.")
@click.option("--classes", is_flag=True, help="Ask instead which labels can have the highest score of all.")
@click.option("--top-k", type=int, default=None, metavar="K", help="Ask instead which sets of K can be the top K.")
@click.option("--box", type=float, default=1e4, show_default=True, help="Inputs are between -box and box.")
@click.option("--eps", type=float, default=1e-8, show_default=True, help="Radius of the ball that makes a set robust.")
@click.option(
    "--radius",
    type=click.Choice(["exact", "bound"]),
    default=None,
    help="Find the largest ball, or stop at one of radius --eps, which is faster. [default: exact]",
)
@click.option("--rows", type=int, default=None, help="Audit a random sample of so many rows.")
@click.option("--seed", "random_state", type=int, default=0, show_default=True, help="Of the sample.")
@click.option("--seconds", type=float, default=None, help="Stop after so long; what is left stays undecided.")
@click.option("--limit", type=int, default=10, show_default=True, help="Sets to list.")
@click.option("--certificates", type=click.Path(path_type=Path), metavar="FILE", help="Write all proofs as npz.")
@click.option("--report", type=click.Path(path_type=Path), help="Write a page (HTML) with plots.")
@click.option("--fail-if-any", is_flag=True, help="Exit with 7 unless every set of DATA is proved to be possible.")
@click.option("--details", is_flag=True, help="Show the verdicts, radii and counts of specialists too.")
@engine_options
@jobs_option
@data_options
@vocabulary_options
@key_option
@json_option
@click.pass_context
def audit(
    context: click.Context,
    given: tuple[str, ...],
    report: Path | None,
    details: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the combinations of labels in DATA that MODEL can never assign, whatever the text, with proofs.

    MODEL is a folder of the method ova, dft or prime (of which a set must come out as the top of the ranking);
    --weights audits any other linear layer. Without DATA: how many of all label sets the layer can give. DATA may have
    labels only (JSONL, CSV or TSV with "labels", or a matrix as npz). Weights without names take the labels of DATA in
    order unless --labels-file names them.
    """
    from longtail.pipeline import audit_model
    from longtail.report import as_callback, audit_page, progress, show_audit, write_page

    weights, certificates, fail = options["weights"], options["certificates"], options["fail_if_any"]
    model, data = _model_and_data(weights, given)
    _refuse_lone_options(data, options)
    layer, taggers = _layer(model, options)
    rows = None if data is None else _read_label_sets(data, options, taggers)
    names = ("classes", "top_k", "box", "eps", "radius", "rows", "seconds", "limit", "random_state")
    asked = {name: options[name] for name in names}
    with running_as_asked(options), progress(None, "Auditing", unit="sets") as advance:
        audited = audit_model(layer, rows, n_jobs=options["jobs"], progress=as_callback(advance), **asked)
    facts = audited.facts
    subject = weights if weights is not None else model
    facts["title"] = f"{Path(str(subject)).name}" + ("" if data is None else f" on {facts['data']['name'] or data}")
    facts["command"] = "longtail audit " + (f"--weights {weights}" if weights is not None else f"{model}")
    facts["command"] += "" if data is None else f" {data}"
    if "assumed" in facts:
        facts["assumed"] = [sentence.replace("labels_file=", "--labels-file") for sentence in facts["assumed"]]
    if certificates is not None:
        audited.save_certificates(certificates)
    if report is not None:
        write_page(report, audit_page(facts))
    if as_json:
        print_json(facts)
    else:
        show_audit(console(), facts, limit="--limit", details=details, more=MORE)
    for what, file in (("Certificates", certificates), ("Report", report)):
        if file is not None:
            note(f"{what}: {file}")
    if fail and not audited.all_reachable:
        note("Not every combination of labels is proved to be possible.")
        context.exit(UNREACHABLE)


def _model_and_data(weights: Path | None, given: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return MODEL and DATA; with --weights there is no MODEL."""
    least, most = (0, 1) if weights is not None else (1, 2)
    if not least <= len(given) <= most:
        if not given:
            raise ParameterError("give a MODEL, or a file with --weights.")
        wanted = "--weights and at most DATA" if weights is not None else "MODEL and DATA"
        raise ParameterError(f"audit takes {wanted}; got {' '.join(given)!r} besides.")
    first, second = (None, *given, None)[:2] if weights is not None else (*given, None)[:2]
    return first, second


def _refuse_lone_options(data: str | None, options: dict[str, Any]) -> None:
    """Refuse options that say nothing without another one."""
    asks = data is not None or options["classes"]
    for name, there, needed in (
        ("array", options["weights"] is not None, "--weights"),
        ("key", options["weights"] is None, "MODEL"),
        ("rows", data is not None, "DATA"),
        ("certificates", asks, "DATA or --classes"),
        ("radius", asks, "DATA or --classes"),
        ("seconds", asks, "DATA or --classes"),
        ("fail_if_any", asks, "DATA or --classes"),
    ):
        if options[name] not in (None, False) and not there:
            raise ParameterError(f"--{name.replace('_', '-')} can only be used with {needed}.")


def _layer(model: str | None, options: dict[str, Any]) -> tuple[Layer, list[Tagger]]:
    """Return the layer to audit, of --weights or of MODEL, and the Tagger that MODEL is, if it is one."""
    from longtail.pipeline import Tagger, file_layer, load, model_layer, with_vocabulary

    if options["weights"] is not None:
        layer = file_layer(options["weights"], options["array"], options["labels_file"], options["limits"])
        vocabulary = read_vocabulary(options)
        return layer if vocabulary is None else with_vocabulary(layer, vocabulary), []
    if Path(model or "").suffix in (*WEIGHTS, *TORCH) and Path(model or "").is_file():
        raise ParameterError(f"{model} is no folder of a model; a file of weights is given with --weights {model}.")
    loaded = load(model or "", key=options["key"])
    if isinstance(loaded, Tagger):
        use_vocabulary(loaded, options)
        return model_layer(loaded), [loaded]
    if options["vocabulary_file"] is not None or options["lang"] is not None:
        raise ParameterError(f"--vocabulary and --lang need labels with names; {model} has none.")
    return model_layer(loaded), []


def _read_label_sets(data: str, options: dict[str, Any], taggers: list[Tagger]) -> Dataset:
    """Read DATA, which may have labels and nothing else."""
    from longtail.data import read_label_sets

    if options["format_name"] is None and Path(data).is_file():
        how = how_to_read(data, options, *taggers)
        if how["format"] is None:
            written = {name: how[name] for name in ("encoding", "label_separator", "delimiter")}
            label_sets = read_label_sets(data, how["labels_column"], options["limits"], **written)
            if label_sets is not None:
                return label_sets
    return read_data(data, "test", {**options, "labels_file": None}, taggers=taggers)
