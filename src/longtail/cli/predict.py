"""`longtail predict`: tags for new texts, row by row, in constant memory."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from longtail.cli.engine_options import engine_options, running_as_asked
from longtail.cli.options import (
    BUNDLED,
    REMEMBERED,
    column_option_group,
    expected_width,
    first_id_option,
    given_labels,
    how_to_read,
    jobs_option,
    key_option,
    label_limit_options,
    limit_option,
    use_vocabulary,
    vocabulary_options,
)
from longtail.cli.output import announce_compilation, note
from longtail.cli.prediction_files import FORMATS, batch_writer, check_joined, output_format, parquet_columns
from longtail.cli.resume import (
    begin,
    check_resume,
    command_facts,
    digest,
    file_digest,
    is_resumable,
    telling_what_is_kept,
)
from longtail.cli.streams import naming_stdout, open_stdin, open_stdout
from longtail.cli.wording import naming_data
from longtail.errors import DataError, ParameterError

if TYPE_CHECKING:
    from longtail.data import Dataset, Limits, ParquetTable, PartialFile, ReadingPosition, TopK
    from longtail.pipeline import Scoring, Tag, Tagger

RANKED = 5  # labels of a row where neither a number nor a decision is asked for
STDIN_FORMATS = ("lines", "jsonl", "csv", "tsv", "fasttext")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; stdout if not given.")
@click.option("-k", "k", type=int, default=None, help="Labels per row, at most. [default: 5; with --assign no limit]")
@click.option(
    "--to",
    type=click.Choice(FORMATS),
    default=None,
    help="Output format; spreadsheet: CSV that Excel opens, -semicolon with decimal commas; -rows: one line per row, "
    "its labels joined by |. [default: by name]",
)
@click.option("--assign", is_flag=True, help="Only labels the model would assign.")
@click.option(
    "--optimise",
    default=None,
    metavar="GOAL",
    help="Labels that suit all rows together: macro-f1@5, coverage@5, macro-recall@5 or, mixed, macro-f1@5:0.3.",
)
@label_limit_options
@click.option("--min-probability", type=float, default=None, help="Only labels at least this likely.")
@click.option("--format", "format_name", metavar="NAME", help="Format of DATA; guessed if not given.")
@column_option_group
@click.option("--batch", type=int, default=1000, show_default=True, help="Rows held in memory at a time.")
@click.option("--resume", is_flag=True, help="Go on where the same command was broken off, with what it kept.")
@click.option("--part", default="test", show_default=True, type=click.Choice(["train", "test"]), help="Of a folder.")
@click.option("--split", default=0, show_default=True, help="Number of the split of a folder.")
@first_id_option
@limit_option
@vocabulary_options
@engine_options
@jobs_option
@key_option
def predict(model: Path, data: str, output: Path | None, k: int | None, to: str | None, **options: Any) -> None:
    """Predict the best labels of every row of DATA with MODEL.

    DATA is a file or folder as for `train`, without labels or with (they are ignored), a .txt file with one text per
    line, bundled:NAME, or - for texts on stdin, one per line, or records there with --format jsonl or csv.
    A model trained on features takes files of features.
    """
    from longtail.pipeline import Scoring, load_tagger
    from longtail.validate import check_integer, check_real

    if k is not None:
        check_integer("-k", k, low=1)
    check_integer("--batch", options["batch"], low=1)
    if options["resume"]:
        check_resume(data, output, options["optimise"])
    tagger = load_tagger(model, key=options["key"])
    use_vocabulary(tagger, options)
    tagger.model_.n_jobs = options["jobs"]
    least = options["min_probability"]
    if least is not None:
        check_real("--min-probability", least, low=0, high=1)
    if least is not None and not hasattr(tagger.model_, "calibration_"):
        raise ParameterError(f"--min-probability needs a calibrated model; {model} was trained with --calibrate 0.")
    choice = LabelChoice.of(tagger, k, options)
    to = output_format(output, to)
    check_joined(to, tagger)
    announce_compilation()
    with running_as_asked(options) as engine:
        if not engine.in_process:
            choice = choice._replace(scoring=Scoring(tagger, engine))
        if output is not None and options["optimise"] is None and is_resumable(data, output):
            rows = _predict_in_parts(choice, model, data, output, to, options)
        else:
            rows = _predict_at_once(choice, data, output, to, options)
    if output is not None:
        note(f"Wrote labels of {rows:,} rows to {output}.")


def _predict_at_once(choice: LabelChoice, data: str, output: Path | None, to: str, options: dict[str, Any]) -> int:
    """Write the labels of all rows to stdout, or to a file that has them all or is not there; returns how many."""
    from longtail.data import ParquetTable, ReadingPosition, replacing
    from longtail.report import progress

    named = choice.tagger.vocabulary_ is not None
    batches = read_batches(data, options, choice.tagger, ReadingPosition())
    rows = 0
    with contextlib.ExitStack() as stack:
        if output is None:
            file: IO[bytes] = open_stdout()
            stack.enter_context(naming_stdout())
            advance = None
        else:
            file = stack.enter_context(replacing(output))
            advance = stack.enter_context(progress(None, "Predicting"))
        table = ParquetTable(parquet_columns(named), file) if to == "parquet" else None
        if table is not None:
            stack.callback(table.close)
        write = batch_writer(to, file.write, None if table is None else table.add, named=named)
        for ids, top in choice.of_batches(batches, "stdin" if data == "-" else data, advance):
            write(ids, choice.tags(top, options["min_probability"]))
            rows += top.n_rows
            file.flush()
        if rows == 0 and table is None:
            write([], [])  # which is a header alone, where there is one
    return rows


def _predict_in_parts(
    choice: LabelChoice, model: Path, data: str, output: Path, to: str, options: dict[str, Any]
) -> int:
    """Write the labels of all rows to a file, so that the same command can go on after a kill; returns how many."""
    from longtail.data import Done, ParquetTable, PartialFile, ReadingPosition, check_writable, partial_names
    from longtail.report import progress

    named = choice.tagger.vocabulary_ is not None
    check_writable(output)
    facts = command_facts(model, data, _decisive_options(choice, data, to, options))
    done = begin(output, facts, data, resume=options["resume"]) or Done()
    rows, position = done.rows, ReadingPosition(done.block, done.batch)
    batches = read_batches(data, options, choice.tagger, position)
    table = ParquetTable(parquet_columns(named)) if to == "parquet" else None
    file = PartialFile(output, facts, done)
    with telling_what_is_kept(file), progress(None, "Predicting") as advance, file:
        add_rows = None
        if table is not None:
            file.convert = table.join
            add_rows = _parts_writer(file, table)
        write = batch_writer(to, file.write, add_rows, named=named, head=not done.bytes)
        if rows:
            note(f"Resuming after {rows:,} rows of {partial_names(output)[0]}.")
            advance(rows)
        for ids, top in choice.of_batches(batches, data, advance, first=rows):
            write(ids, choice.tags(top, options["min_probability"]))
            rows += top.n_rows
            file.end_batch(rows, position)
    return rows


def _parts_writer(file: PartialFile, table: ParquetTable) -> Callable[[list[tuple[Any, ...]]], None]:
    """Return a function that adds rows of a Parquet table to a partial file, as parts to be joined at its end."""
    return lambda rows: file.write(table.part(rows))


def _decisive_options(choice: LabelChoice, data: str, to: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the output depends on, by their names; None where one is not given."""
    reading = {} if data.startswith(BUNDLED) else how_to_read(data, options, choice.tagger)
    reading = {name: list(value) if isinstance(value, tuple) else value for name, value in reading.items()}
    file = options["vocabulary_file"]
    return {
        "-k": choice.k,
        "--to": to,
        "--assign": choice.assign,
        "--min-probability": options["min_probability"],
        "--allow": None if choice.allow is None else digest(sorted(choice.allow)),
        "--deny": None if choice.deny is None else digest(sorted(choice.deny)),
        "--vocabulary": None if file is None else file_digest(file),
        "--vocabulary-format": options["vocabulary_format"],
        "--lang": options["lang"],
        **{f"--{name.replace('_', '-')}": value for name, value in reading.items()},
        "--first-id": options["zero_based"],
        **{f"--{name}": options[name] for name in ("batch", "part", "split")},
    }


class LabelChoice(NamedTuple):
    """Which labels of every row are written: how many, of which, and whether they are ranked or assigned."""

    tagger: Tagger
    k: int | None
    assign: bool
    optimise: str | None
    allow: list[int] | None
    deny: list[int] | None
    scoring: Scoring | None = None  # on the engine asked for, where it is not this process

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
        given = [given_labels(name, options, tagger) for name in ("allow", "deny")]
        allow, deny = (None if names is None else tagger.label_numbers(names) for names in given)
        return cls(tagger, k, assign, optimise, allow, deny)

    def of_batches(
        self, batches: Iterator[Dataset], source: str, advance: Callable[[int], None] | None, first: int = 0
    ) -> Iterator[tuple[list[str], TopK]]:
        """Yield ids and labels of rows batch by batch; of all rows at once where they are decided together.

        The first row has the number `first`.
        """
        from longtail.data import TopK
        from longtail.pipeline import assign

        rows, ids_of_all, tops = first, [], []
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
        if self.scoring is not None:
            return self.scoring.predict_topk(batch, k, allow=self.allow, deny=self.deny)
        rows = self.tagger.dataset_rows(batch)
        return self.tagger.model_.predict_topk(rows, k=k, allow=self.allow, deny=self.deny)

    def tags(self, top: TopK, least: float | None) -> list[list[Tag]]:
        """Return labels by name, less those that are not likely enough."""
        tags = self.tagger.name_tags(top)
        if least is not None:
            tags = [[tag for tag in row if tag.probability is not None and tag.probability >= least] for row in tags]
        return tags


def read_batches(
    data: str, options: dict[str, Any], tagger: Tagger, position: ReadingPosition, *, labels: bool = False
) -> Iterator[Dataset]:
    """Return the rows of DATA in batches, read one by one where the format allows it, from a position on.

    With `labels` they come with the labels that they have.
    """
    from longtail.data import Stream, is_streamed, iter_texts, load_bundled, read

    if data == "-" and options["format_name"] not in (None, *STDIN_FORMATS):
        allowed = "', '".join(STDIN_FORMATS)
        raise ParameterError(f"--format must be one of '{allowed}' for stdin; got {options['format_name']!r}.")
    if data == "-" and options["format_name"] in (None, "lines") and options["encoding"] is None:
        check = None if options["format_name"] is not None else partial(_check_no_record, tagger)
        return _read_stdin(options["batch"], options["limits"], check)
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
            return iter_texts(data, options["batch"], **reading, position=position)
    if data.startswith(BUNDLED):
        whole = load_bundled(data.removeprefix(BUNDLED), options["part"] or "test")
    else:
        whole = read(data, part=options["part"] or "test", split=options["split"], labels_required=False, **reading)
    return _batches_of(whole, options["batch"], position)


def _batches_of(whole: Dataset, size: int, position: ReadingPosition) -> Iterator[Dataset]:
    """Yield rows that are in memory in batches, from a position on, which moves with them."""
    from longtail.kernels import blocks

    for at in islice(blocks(whole.n_rows, size), position.block, None):
        position.block += 1
        yield whole.take(at)


def _listed_labels(file: Path | None, limits: Limits) -> tuple[str, ...] | None:
    """Return the labels of the file of --labels-file, if it is given."""
    from longtail.data import read_labels

    return None if file is None else read_labels(file, limits).names


def _check_no_record(tagger: Tagger, text: str) -> None:
    """Refuse a first line of stdin that is a JSON object or the header of a table: its keys would be words."""
    from longtail.data import header_delimiter

    remembered = tagger.data_.get("reading", {})
    wanted = remembered.get("text_column", REMEMBERED["text_column"])
    names = [wanted] if isinstance(wanted, str) else wanted
    delimiter = header_delimiter(text, names, remembered.get("delimiter"))
    if delimiter is not None:
        table = "tsv" if delimiter == "\t" else "csv"
        raise DataError(
            f"stdin line 1 is the header of a table, with the column {names[0]!r}, not a text; "
            f"use --format {table}, or --format lines if it is one."
        )
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


def _read_stdin(size: int, limits: Limits, check: Callable[[str], None] | None) -> Iterator[Dataset]:
    """Read texts from stdin, the first checked; what has come is answered at the end of a batch or of the input."""
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
        if number == 0 and check is not None:
            check(waiting[0])
        if len(waiting) == size:
            yield batch(first, waiting)
            first, waiting = number + 1, []
    if waiting:
        yield batch(first, waiting)
