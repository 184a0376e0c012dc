"""`longtail predict`: tags for new texts, row by row, in constant memory."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from longtail.cli.options import BUNDLED, expected_width, first_id_option, jobs_option, key_option, limit_option
from longtail.cli.output import announce_compilation, as_json_bytes, note
from longtail.cli.streams import naming_stdout, open_stdin, open_stdout
from longtail.cli.wording import naming_data
from longtail.errors import DataError, ParameterError

if TYPE_CHECKING:
    from longtail.data import Dataset, Limits
    from longtail.pipeline import Tag, Tagger

FORMATS = ("jsonl", "csv", "tsv")
NOT_WRITTEN = ("npz", "npy", "parquet", "arrow", "feather", "xlsx", "xls", "safetensors", "svm", "libsvm")  # suffixes


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; stdout if not given.")
@click.option("-k", "k", type=int, default=5, show_default=True, help="Labels per row.")
@click.option("--to", type=click.Choice(FORMATS), default=None, help="Output format. [default: by name, else jsonl]")
@click.option("--assign", is_flag=True, help="Only labels the model would assign (at most k).")
@click.option("--min-probability", type=float, default=None, help="Only labels at least this likely.")
@click.option("--format", "format_name", metavar="NAME", help="Format of DATA; guessed if not given.")
@click.option("--text-column", multiple=True, metavar="NAME", help="Column of the text; repeat to join.")
@click.option("--id-column", default="id", show_default=True, metavar="NAME")
@click.option("--batch", type=int, default=1000, show_default=True, help="Rows held in memory at a time.")
@click.option("--part", default="test", show_default=True, type=click.Choice(["train", "test"]), help="Of a folder.")
@click.option("--split", default=0, show_default=True, help="Number of the split of a folder.")
@first_id_option
@limit_option
@jobs_option
@key_option
def predict(model: Path, data: str, output: Path | None, k: int, to: str | None, **options: Any) -> None:
    """Predict the best labels of every row of DATA with MODEL.

    DATA is a file or folder as for `train`, without labels or with (they are ignored), a .txt file with one text per
    line, bundled:NAME, or - for texts on stdin, one per line. A model trained on features takes files of features.
    """
    from longtail.data import replacing
    from longtail.pipeline import load_tagger
    from longtail.report import progress
    from longtail.validate import check_integer, check_real

    check_integer("-k", k, low=1)
    check_integer("--batch", options["batch"], low=1)
    tagger = load_tagger(model, key=options["key"])
    tagger.model_.n_jobs = options["jobs"]
    least = options["min_probability"]
    if least is not None:
        check_real("--min-probability", least, low=0, high=1)
    if least is not None and not hasattr(tagger.model_, "calibration_"):
        raise ParameterError(f"--min-probability needs a calibrated model; {model} was trained with --calibrate 0.")
    to = to or _output_format(output)
    batches = _read_batches(data, options, expected_width(tagger))
    announce_compilation()
    rows = 0
    with contextlib.ExitStack() as stack:
        if output is None:
            file: IO[bytes] = open_stdout()
            stack.enter_context(naming_stdout())
            advance = None
        else:
            file = stack.enter_context(replacing(output))
            advance = stack.enter_context(progress(None, "Predicting"))
        line = _row_writer(to, file)
        for batch in batches:
            with naming_data("stdin" if data == "-" else data, first_row=rows):
                tagged = _tag_batch(tagger, batch, k, options["assign"], least)
            for row, tags in enumerate(tagged):
                line(batch.ids[row] if batch.ids is not None else str(rows + row), tags)
            rows += batch.n_rows
            file.flush()
            if advance is not None:
                advance(batch.n_rows)
    if output is not None:
        note(f"Wrote labels of {rows:,} rows to {output}.")


def _tag_batch(tagger: Tagger, batch: Dataset, k: int, assign: bool, least: float | None) -> list[list[Tag]]:
    """Return the labels of every row of a batch: the best k, less those that are not assigned or not likely enough."""
    X = tagger.dataset_rows(batch)
    top = tagger.model_.predict_topk(X, k=k)
    tags = tagger.name_tags(top)
    if assign:  # missing labels stand at the end of a row, so names and choices run alike
        chosen = tagger.model_.chosen(top)
        tags = [[tag for tag, keep in zip(row, keeps, strict=False) if keep] for row, keeps in zip(tags, chosen)]
    if least is not None:
        tags = [[tag for tag in row if tag.probability is not None and tag.probability >= least] for row in tags]
    return tags


def _read_batches(data: str, options: dict[str, Any], n_features: int | None) -> Iterator[Dataset]:
    """Return the rows of DATA in batches, read one by one where the format allows it."""
    from longtail.data import is_streamed, iter_texts, load_bundled, read
    from longtail.kernels import blocks

    if data == "-":
        if options["format_name"] not in (None, "lines"):
            raise ParameterError(f"--format must be 'lines' for stdin; got {options['format_name']!r}.")
        return _read_stdin(options["batch"], options["limits"])
    reading: dict[str, Any] = {
        "format": options["format_name"],
        "text_column": options["text_column"] or "text",
        "id_column": options["id_column"],
        "zero_based": options["zero_based"],
        "n_features": n_features,
        "limits": options["limits"],
    }
    if not data.startswith(BUNDLED) and is_streamed(data, options["format_name"]):
        return iter_texts(data, options["batch"], **reading)
    if data.startswith(BUNDLED):
        whole = load_bundled(data.removeprefix(BUNDLED), options["part"])
    else:
        whole = read(data, part=options["part"], split=options["split"], labels_required=False, **reading)
    return (whole.take(at) for at in blocks(whole.n_rows, options["batch"]))


def _read_stdin(size: int, limits: Limits) -> Iterator[Dataset]:
    """Read texts from stdin; what has come is answered at the end of a batch or of the input."""
    import numpy as np
    import scipy.sparse as sp

    from longtail.data import Dataset

    def batch(first: int, texts: list[str]) -> Dataset:
        ids = tuple(str(first + i) for i in range(len(texts)))
        return Dataset(Y=sp.csr_array((len(texts), 0), dtype=np.float32), ids=ids, texts=tuple(texts))

    source = open_stdin()
    size = 1 if sys.stdin.isatty() else size
    first, waiting = 0, []
    for number, raw in enumerate(iter(lambda: source.readline(limits.line_bytes + 1), b"")):
        limits.check("line_bytes", len(raw), f"stdin line {number + 1}")
        try:
            waiting.append(raw.decode("utf-8").rstrip("\r\n"))
        except UnicodeDecodeError:
            raise DataError(f"stdin line {number + 1} is not UTF-8.") from None
        if len(waiting) == size:
            yield batch(first, waiting)
            first, waiting = number + 1, []
    if waiting:
        yield batch(first, waiting)


def _output_format(output: Path | None) -> str:
    """Return the format that the name of the output asks for; JSONL if none."""
    if output is None:
        return "jsonl"
    name = output.name.removesuffix(".gz").removesuffix(".xz").removesuffix(".bz2")
    suffix = Path(name).suffix.lstrip(".")
    if suffix in NOT_WRITTEN:
        advice = "predictions are written as jsonl, csv or tsv; choose such a name, or give --to"
        raise ParameterError(f"--output must not end in .{suffix}; got {output}: {advice}.")
    return suffix if suffix in FORMATS else "jsonl"


def _row_writer(to: str, file: IO[bytes]) -> Callable[[str, list[Tag]], None]:
    """Return a function that writes the labels of a row, given its id, in a format."""
    if to == "jsonl":

        def line(row: str, tags: list[Tag]) -> None:
            file.write(as_json_bytes({"id": row, "labels": [tag._asdict() for tag in tags]}) + b"\n")

        return line

    delimiter = "," if to == "csv" else "\t"

    def write(fields: list[str]) -> None:
        text = io.StringIO()
        plain = not any("\r" in field for field in fields)  # which Python leaves without quotes
        writer = partial(csv.writer, text, delimiter=delimiter, lineterminator="\n")
        (writer() if plain else writer(quoting=csv.QUOTE_ALL)).writerow(fields)
        file.write(text.getvalue().encode("utf-8", "backslashreplace"))

    write(["id", "place", "label", "score", "probability"])

    def lines(row: str, tags: list[Tag]) -> None:
        for rank, tag in enumerate(tags, 1):
            chance = "" if tag.probability is None else f"{tag.probability:.6g}"
            write([row, str(rank), tag.label, f"{tag.score:.6g}", chance])

    return lines
