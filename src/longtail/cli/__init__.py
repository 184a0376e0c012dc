"""The command line, `longtail`. Commands import what they need when they run, so `--help` answers at once."""

from longtail.cli.app import main

__all__ = ["main"]
