"""`longtail predict`: tags for new texts, row by row, in constant memory."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from longtail.cli.options import (
    BUNDLED,
    column_option_group,
    expected_width,
    first_id_option,
    how_to_read,
    jobs_option,
    key_option,
    limit_option,
    use_vocabulary,
    vocabulary_options,
)
from longtail.cli.output import announce_compilation, as_json_bytes, note
from longtail.cli.streams import naming_stdout, open_stdin, open_stdout
from longtail.cli.wording import naming_data
from longtail.errors import DataError, ParameterError

if TYPE_CHECKING:
    from longtail.data import Dataset, Limits, TopK
    from longtail.pipeline import Tag, Tagger

RANKED = 5  # labels of a row where neither a number nor a decision is asked for
FORMATS = ("jsonl", "csv", "tsv", "parquet")
COMPRESSED = (".gz", ".xz", ".bz2")
STDIN_FORMATS = ("lines", "jsonl", "csv", "tsv", "fasttext")
NOT_WRITTEN = ("npz", "npy", "arrow", "feather", "xlsx", "xls", "safetensors", "svm", "libsvm")  # suffixes


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; stdout if not given.")
@click.option("-k", "k", type=int, default=None, help="Labels per row, at most. [default: 5; with --assign no limit]")
@click.option("--to", type=click.Choice(FORMATS), default=None, help="Output format. [default: by name, else jsonl]")
@click.option("--assign", is_flag=True, help="Only labels the model would assign.")
@click.option(
    "--optimise",
    default=None,
    metavar="GOAL",
    help="Labels that suit all rows together: macro-f1@5, coverage@5, macro-recall@5 or, mixed, macro-f1@5:0.3.",
)
@click.option("--allow", multiple=True, metavar="LABEL|FILE", help="Only these labels; repeat, or give a file of them.")
@click.option("--deny", multiple=True, metavar="LABEL|FILE", help="None of these labels; repeat, or give a file.")
@click.option("--min-probability", type=float, default=None, help="Only labels at least this likely.")
@click.option("--format", "format_name", metavar="NAME", help="Format of DATA; guessed if not given.")
@column_option_group
@click.option("--batch", type=int, default=1000, show_default=True, help="Rows held in memory at a time.")
@click.option("--part", default="test", show_default=True, type=click.Choice(["train", "test"]), help="Of a folder.")
@click.option("--split", default=0, show_default=True, help="Number of the split of a folder.")
@first_id_option
@limit_option
@vocabulary_options
@jobs_option
@key_option
def predict(model: Path, data: str, output: Path | None, k: int | None, to: str | None, **options: Any) -> None:
    """Predict the best labels of every row of DATA with MODEL.

    DATA is a file or folder as for `train`, without labels or with (they are ignored), a .txt file with one text per
    line, bundled:NAME, or - for texts on stdin, one per line, or records there with --format jsonl or csv.
    A model trained on features takes files of features.
    """
    from longtail.data import replacing
    from longtail.pipeline import load_tagger
    from longtail.report import progress
    from longtail.validate import check_integer, check_real

    if k is not None:
        check_integer("-k", k, low=1)
    check_integer("--batch", options["batch"], low=1)
    tagger = load_tagger(model, key=options["key"])
    use_vocabulary(tagger, options)
    tagger.model_.n_jobs = options["jobs"]
    least = options["min_probability"]
    if least is not None:
        check_real("--min-probability", least, low=0, high=1)
    if least is not None and not hasattr(tagger.model_, "calibration_"):
        raise ParameterError(f"--min-probability needs a calibrated model; {model} was trained with --calibrate 0.")
    choice = LabelChoice.of(tagger, k, options)
    to = to or _output_format(output)
    if to == "parquet" and (output is None or output.name.endswith(COMPRESSED)):
        raise ParameterError("--to parquet needs --output with the name of a file that is not compressed again.")
    batches = read_batches(data, options, tagger)
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
        if to == "parquet":
            line = _parquet_writer(file, stack, named=tagger.vocabulary_ is not None)
        else:
            line = _row_writer(to, file, named=tagger.vocabulary_ is not None)
        source = "stdin" if data == "-" else data
        for ids, top in choice.of_batches(batches, source, advance):
            for row, tags in zip(ids, choice.tags(top, least), strict=True):
                line(row, tags)
            rows += top.n_rows
            file.flush()
    if output is not None:
        note(f"Wrote labels of {rows:,} rows to {output}.")


class LabelChoice(NamedTuple):
    """Which labels of every row are written: how many, of which, and whether they are ranked or assigned."""

    tagger: Tagger
    k: int | None
    assign: bool
    optimise: str | None
    allow: list[int] | None
    deny: list[int] | None

    @classmethod
    def of(cls, tagger: Tagger, k: int | None, options: Mapping[str, Any]) -> LabelChoice:
        """Return the choice that the options describe, checked."""
        from longtail.pipeline import check_probabilities, n_candidates

        assign, optimise = options["assign"], options["optimise"]
        if assign and optimise is not None:
            raise ParameterError("--assign decides row by row and --optimise for all rows together; give one of them.")
        if optimise is not None:
            check_probabilities(tagger, "optimise")
            n_candidates(tagger, optimise)  # which reads the goal
        allow, deny = (_label_numbers(tagger, options[name]) for name in ("allow", "deny"))
        return cls(tagger, k, assign, optimise, allow, deny)

    def of_batches(
        self, batches: Iterator[Dataset], source: str, advance: Callable[[int], None] | None
    ) -> Iterator[tuple[list[str], TopK]]:
        """Yield ids and labels of rows batch by batch; of all rows at once where they are decided together."""
        from longtail.data import TopK
        from longtail.pipeline import assign

        rows, ids_of_all, tops = 0, [], []
        for batch in batches:
            with naming_data(source, first_row=rows):
                top = self._candidates(batch)
            ids = [str(rows + row) for row in range(batch.n_rows)] if batch.ids is None else list(batch.ids)
            rows += batch.n_rows
            if advance is not None:
                advance(batch.n_rows)
            if self.optimise is None:
                yield ids, assign(self.tagger, top, self.k) if self.assign else top
            else:
                ids_of_all += ids
                tops.append(top)
        if tops:
            yield ids_of_all, assign(self.tagger, TopK.stack(tops), self.k, self.optimise)

    def _candidates(self, batch: Dataset) -> TopK:
        from longtail.pipeline import n_candidates

        decided = self.assign or self.optimise is not None
        k = n_candidates(self.tagger, self.optimise) if decided else self.k or RANKED
        rows = self.tagger.dataset_rows(batch)
        return self.tagger.model_.predict_topk(rows, k=k, allow=self.allow, deny=self.deny)

    def tags(self, top: TopK, least: float | None) -> list[list[Tag]]:
        """Return labels by name, less those that are not likely enough."""
        tags = self.tagger.name_tags(top)
        if least is not None:
            tags = [[tag for tag in row if tag.probability is not None and tag.probability >= least] for row in tags]
        return tags


def _label_numbers(tagger: Tagger, given: Sequence[str]) -> list[int] | None:
    """Return the numbers of labels given by name, or by files that list names; None where none is given."""
    from longtail.data import read_labels

    if not given:
        return None
    names: list[str] = []
    for value in given:
        known = value in tagger.labels_
        names += [value] if known or not Path(value).is_file() else read_labels(Path(value)).names
    return tagger.label_numbers(names)


def read_batches(data: str, options: dict[str, Any], tagger: Tagger, *, labels: bool = False) -> Iterator[Dataset]:
    """Return the rows of DATA in batches, read one by one where the format allows it; with labels if they have some."""
    from longtail.data import Stream, is_streamed, iter_texts, load_bundled, read
    from longtail.kernels import blocks

    if data == "-" and options["format_name"] not in (None, *STDIN_FORMATS):
        allowed = "', '".join(STDIN_FORMATS)
        raise ParameterError(f"--format must be one of '{allowed}' for stdin; got {options['format_name']!r}.")
    if data == "-" and options["format_name"] in (None, "lines") and options["encoding"] is None:
        return _read_stdin(options["batch"], options["limits"], may_be_json=options["format_name"] is not None)
    reading: dict[str, Any] = {
        "zero_based": options["zero_based"],
        "n_features": expected_width(tagger),
        "limits": options["limits"],
    }
    if not data.startswith(BUNDLED):
        reading |= how_to_read(data, options, tagger)
        if labels:
            reading["label_names"] = _listed_labels(options["labels_file"], options["limits"])
        else:
            for name in ("labels_column", "label_separator"):
                del reading[name]
        if data == "-":
            reading["format"] = reading["format"] or "lines"
            return iter_texts(Stream("stdin", open_stdin()), options["batch"], **reading)
        if is_streamed(data, reading["format"]):
            return iter_texts(data, options["batch"], **reading)
    if data.startswith(BUNDLED):
        whole = load_bundled(data.removeprefix(BUNDLED), options["part"] or "test")
    else:
        whole = read(data, part=options["part"] or "test", split=options["split"], labels_required=False, **reading)
    return (whole.take(at) for at in blocks(whole.n_rows, options["batch"]))


def _listed_labels(file: Path | None, limits: Limits) -> tuple[str, ...] | None:
    """Return the labels of the file of --labels-file, if it is given."""
    from longtail.data import read_labels

    return None if file is None else read_labels(file, limits).names


def _check_no_record(text: str) -> None:
    """Refuse a first line of stdin that is a JSON object: its keys would be taken for words."""
    if not text.lstrip().startswith("{"):
        return
    try:
        record = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return
    if record:
        raise DataError(
            "stdin line 1 is a JSON object, not a text; use --format jsonl, or --format lines if it is one."
        )


def _read_stdin(size: int, limits: Limits, *, may_be_json: bool) -> Iterator[Dataset]:
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
        if number == 0 and not may_be_json:
            _check_no_record(waiting[0])
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
        advice = "predictions are written as jsonl, csv, tsv or parquet; choose such a name, or give --to"
        raise ParameterError(f"--output must not end in .{suffix}; got {output}: {advice}.")
    return suffix if suffix in FORMATS else "jsonl"


def _parquet_writer(file: IO[bytes], stack: contextlib.ExitStack, named: bool) -> Callable[[str, list[Tag]], None]:
    """Return a function that writes the labels of a row to a Parquet file, which ends with the stack."""
    from longtail.data import ParquetTable

    kinds = {"id": "string", "place": "int32", "label": "string", "score": "float32", "probability": "float32"}
    table = ParquetTable(file, {**kinds, "name": "string"} if named else kinds)
    stack.callback(table.close)

    def lines(row: str, tags: list[Tag]) -> None:
        for rank, tag in enumerate(tags, 1):
            more = (tag.name or tag.label,) if named else ()
            table.add(row, rank, tag.label, tag.score, tag.probability, *more)

    return lines


def _row_writer(to: str, file: IO[bytes], named: bool) -> Callable[[str, list[Tag]], None]:
    """Return a function that writes the labels of a row, given its id, in a format; with names where there are any."""
    columns = ["label", "score", "probability", *(["name"] if named else [])]
    if to == "jsonl":

        def line(row: str, tags: list[Tag]) -> None:
            labels = [{column: getattr(tag, column) for column in columns} for tag in tags]
            file.write(as_json_bytes({"id": row, "labels": labels}) + b"\n")

        return line

    delimiter = "," if to == "csv" else "\t"

    def write(fields: list[str]) -> None:
        text = io.StringIO()
        plain = not any("\r" in field for field in fields)  # which Python leaves without quotes
        writer = partial(csv.writer, text, delimiter=delimiter, lineterminator="\n")
        (writer() if plain else writer(quoting=csv.QUOTE_ALL)).writerow(fields)
        file.write(text.getvalue().encode("utf-8", "backslashreplace"))

    write(["id", "place", *columns])

    def lines(row: str, tags: list[Tag]) -> None:
        for rank, tag in enumerate(tags, 1):
            chance = "" if tag.probability is None else f"{tag.probability:.6g}"
            write([row, str(rank), tag.label, f"{tag.score:.6g}", chance, *([tag.name or tag.label] if named else [])])

    return lines
