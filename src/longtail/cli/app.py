"""The program `longtail`: its commands, and how their errors end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from longtail._version import __version__
from longtail.cli import (
    add_labels,
    audit,
    convert,
    demo,
    evaluate,
    explain,
    impute,
    inspect,
    plan,
    predict,
    sign,
    train,
)
from longtail.cli.streams import flush_or_discard_stdout, flush_stdout, forget_stdout, open_null_for_closed, tell
from longtail.cli.wording import reword, usage_sentence
from longtail.errors import LongtailError

INTERRUPTED = 128 + 2
TERMINATED = 128 + 15

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
  130  interrupted
  143  terminated
"""


class Terminated(BaseException):
    """The system asked the program to end (SIGTERM)."""


class Program(click.Group):
    """The commands; their errors name options, and a reader of the output that goes away ends them quietly."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            out = super().invoke(ctx)
            flush_stdout()
            return out
        except LongtailError as error:
            reword(error, self.commands.get(ctx.invoked_subcommand or ""))
            raise
        except BrokenPipeError:  # the reader of our output went away: not an error of ours
            forget_stdout()
            ctx.exit(0)


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
    add_labels.add_labels,
    impute.impute,
    plan.plan,
    predict.predict,
    evaluate.evaluate,
    evaluate.compare,
    audit.audit,
    explain.explain,
    convert.convert,
    inspect.inspect,
    inspect.verify,
    sign.sign,
):
    app.add_command(command)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; every error is one sentence on stderr and an exit code."""
    open_null_for_closed()
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        code = _run(args)
        flush_or_discard_stdout()
    finally:
        signal.signal(signal.SIGTERM, before)
    sys.exit(code)


def _run(args: Sequence[str] | None) -> int:
    """Run the command line and return its exit code; errors are told on stderr."""
    try:
        code = app.main(args=args, prog_name="longtail", standalone_mode=False)
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # `longtail` alone, from click 8.2 on
            error.show()
        else:
            tell(f"error: {usage_sentence(error)}")
        return error.exit_code
    except LongtailError as error:
        tell(f"error: {error}")
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        tell("interrupted; what was there before is unchanged.")
        return INTERRUPTED
    except Terminated:
        tell("terminated; what was there before is unchanged.")
        return TERMINATED
    except MemoryError:
        tell("error: out of memory.")
        return 1
    except OSError as error:
        tell(f"error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
        return 1
    return code if isinstance(code, int) else 0


def _terminate(number: int, frame: object) -> NoReturn:
    """Turn SIGTERM into an exception, so that half-written files are removed."""
    raise Terminated
