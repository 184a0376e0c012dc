"""The program `longtail`: its commands, and how their errors end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from longtail._version import __version__
from longtail.cli import (
    add_labels,
    audit,
    check_labels,
    convert,
    decide,
    demo,
    evaluate,
    explain,
    impute,
    inspect,
    monitor,
    plan,
    predict,
    review,
    serve,
    sign,
    train,
    tune,
    update,
)
from longtail.cli.given import check_given
from longtail.cli.memory_limit import is_lack_of_memory, lack_of_memory
from longtail.cli.signals import Stop
from longtail.cli.streams import (
    flush_or_discard_stdout,
    flush_stdout,
    forget_stdout,
    inert_streams,
    open_null_for_closed,
    tell,
)
from longtail.cli.wording import reword, usage_sentence, warnings_as_notes
from longtail.errors import LongtailError

EPILOG = """
\b
Exit codes:
  0  done
  1  something stopped the work
  2  an option or argument is wrong
  3  a data file cannot be used
  4  a model folder cannot be used
  5  an optional package is missing
  6  compare --fail-if-worse: the second model is worse
  7  audit --fail-if-any: a label set cannot come out
  8  monitor: the rows have changed
  130  interrupted
  143  terminated
"""


CHECKED = os.environ.get("LONGTAIL_CHECKED", "") not in ("", "0")  # as in longtail.kernels, which is slow to import


class Program(click.Group):
    """The commands; their errors name options, and a reader of the output that goes away ends them quietly."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with its whole first sentence."""
        rows = [(name, command.get_short_help_str(limit=200)) for name, command in sorted(self.commands.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is asked for, and check what all commands refuse alike before anything is done."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            check_given(command, rest, ctx)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            with warnings_as_notes(lambda: _running_command(ctx)):
                out = super().invoke(ctx)
            flush_stdout()
            return out
        except LongtailError as error:
            reword(error, self.commands.get(ctx.invoked_subcommand or ""))
            raise
        except BrokenPipeError:  # the reader of our output went away: not an error of ours
            forget_stdout()
            ctx.exit(0)


def _running_command(ctx: click.Context) -> click.Command | None:
    """Return the command that is running: of a group, the one below it."""
    innermost = click.get_current_context(silent=True)
    if innermost is not None and innermost is not ctx:
        return innermost.command
    group = ctx.command
    return group.commands.get(ctx.invoked_subcommand or "") if isinstance(group, click.Group) else None


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(cls=Program, epilog=EPILOG, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="longtail")
def app() -> None:
    """Tag texts with the right few of thousands of labels.

    Start with `longtail demo`; then train on your own data: `longtail train rows.jsonl -o model`.
    """


for command in (
    demo.demo,
    train.train,
    tune.tune,
    update.update,
    add_labels.add_labels,
    impute.impute,
    plan.plan,
    decide.decide,
    predict.predict,
    evaluate.evaluate,
    evaluate.compare,
    monitor.monitor,
    audit.audit,
    check_labels.check_labels,
    explain.explain,
    convert.convert,
    inspect.inspect,
    inspect.verify,
    sign.sign,
    review.review,
    serve.serve,
    serve.tokens,
):
    app.add_command(command)


def run(args: Sequence[str] | None, stop: Stop) -> int:
    """Run the command line and return its exit code; errors are told on stderr, signals passed on as exceptions."""
    open_null_for_closed()
    with inert_streams():
        code = _run(args, stop)
        flush_or_discard_stdout()
    return code


def _run(args: Sequence[str] | None, stop: Stop) -> int:
    try:
        code = app.main(args=args, prog_name="longtail", standalone_mode=False)
    except click.Abort as error:  # what click makes of Ctrl-C and of EOFError
        raise error.__cause__ or KeyboardInterrupt from None
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # `longtail` alone, from click 8.2 on
            error.show()
        else:
            tell(f"error: {usage_sentence(error)}")
        return error.exit_code
    except LongtailError as error:
        if stop.number is not None:  # an import that was interrupted looks like a package that is missing
            raise
        tell(f"error: {error}")
        return error.exit_code
    except Exception as error:
        if is_lack_of_memory(error):
            tell(f"error: {lack_of_memory()}")
        elif isinstance(error, OSError):
            tell(f"error: {_system_sentence(error)}")
        elif isinstance(error, IndexError) and CHECKED:
            tell(f"error: {_out_of_bounds(error)}")
        else:
            raise
        return 1
    return code if isinstance(code, int) else 0


def _system_sentence(error: OSError) -> str:
    """Return what the system refused, and for which file, as far as can be known."""
    if error.filename is None and isinstance(error, FileNotFoundError):
        try:
            Path.cwd()
        except FileNotFoundError:
            return "the working folder does not exist any more; change to another."
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."


def _out_of_bounds(error: IndexError) -> str:
    """Return what is known of an index that the checked mode refused."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    at = "" if frame is None else f" ({Path(frame.tb_frame.f_code.co_filename).name} line {frame.tb_lineno})"
    return f"LONGTAIL_CHECKED found an index out of bounds{at}: {error}; please report this with the command."
