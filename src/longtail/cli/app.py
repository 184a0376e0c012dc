"""The program `longtail`: its commands, and how their errors end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import click

from longtail._version import __version__
from longtail.cli import convert, demo, evaluate, explain, inspect, plan, predict, train
from longtail.errors import LongtailError

INTERRUPTED = 130

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
  130  interrupted
"""


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="longtail")
def app() -> None:
    """Tag texts with the right few of thousands of labels.

    Start with `longtail demo`; then train on your own data: `longtail train rows.jsonl -o model`.
    """


for command in (
    demo.demo,
    train.train,
    plan.plan,
    predict.predict,
    evaluate.evaluate,
    evaluate.compare,
    explain.explain,
    convert.convert,
    inspect.inspect,
    inspect.verify,
):
    app.add_command(command)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; every error is one sentence on stderr and an exit code."""
    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, _terminate)
    try:
        code = app.main(args=args, prog_name="longtail", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except LongtailError as error:
        click.echo(f"error: {error}", err=True)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; what was there before is unchanged.", err=True)
        code = INTERRUPTED
    except MemoryError:
        click.echo("error: out of memory.", err=True)
        code = 1
    except BrokenPipeError:  # the reader of our output went away: not an error of ours
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        click.echo(f"error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}.", err=True)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _terminate(number: int, frame: object) -> None:
    raise KeyboardInterrupt
