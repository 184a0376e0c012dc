"""`longtail explain`: the words behind each label."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from longtail.cli.options import (
    given_labels,
    json_option,
    key_option,
    label_limit_options,
    limit_option,
    use_vocabulary,
    vocabulary_options,
)
from longtail.cli.output import announce_compilation, console, print_json
from longtail.cli.streams import open_stdin
from longtail.errors import DataError, ParameterError


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--text", default=None, help="The text; - for stdin.")
@click.option("--file", "file", type=click.Path(path_type=Path), help="A file with the text.")
@click.option("--encoding", default=None, metavar="NAME", help="Of the file, such as windows-1252; found mostly.")
@click.option("-k", "k", type=int, default=5, show_default=True, help="Labels to explain.")
@click.option("--label", "labels", multiple=True, help="Explain this label, suggested or not; may be repeated.")
@label_limit_options
@limit_option
@vocabulary_options
@key_option
@json_option
def explain(
    model: Path,
    text: str | None,
    file: Path | None,
    k: int,
    labels: tuple[str, ...],
    key: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Explain which words of a text speak for and against each label."""
    from longtail.pipeline import load_tagger
    from longtail.report import show_explanation

    if (text is None) == (file is None):
        raise ParameterError("give one of --text and --file.")
    tagger = load_tagger(model, key=key)
    use_vocabulary(tagger, options)
    announce_compilation()
    may = {name: given_labels(name, options, tagger) for name in ("allow", "deny")}
    if labels and any(names is not None for names in may.values()):
        raise ParameterError("--allow and --deny choose among suggested labels; they cannot be used with --label.")
    facts = tagger.explain(_read_text(text, file, options), k=k, labels=labels or None, **may)
    if as_json:
        print_json(facts)
    else:
        show_explanation(console(), facts)


def _read_text(text: str | None, file: Path | None, options: Mapping[str, Any]) -> str:
    """Return the text to explain: that of --text, of stdin or of --file."""
    from longtail.data import check_encoding, text_blocks

    encoding = check_encoding(options["encoding"])
    if file is None and encoding is not None and text != "-":
        raise ParameterError("--encoding can only be used with --file, or with --text - for stdin.")
    if file is not None:
        blocks = text_blocks(file, may_be_empty=True, limits=options["limits"], encoding=encoding)
        return "".join(block for _, block in blocks).removesuffix("\n")
    if text != "-":
        return text or ""
    try:
        return open_stdin().read().decode(encoding or "utf-8")
    except UnicodeError:
        raise DataError(f"stdin is not {encoding or 'UTF-8'}.") from None
