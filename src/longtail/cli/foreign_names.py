"""Suggestions for options and commands that are not there: a name nearly the same, or as other programs call it."""

from __future__ import annotations

import difflib
import re

import click

NEAR = 0.75  # how like two names must be, of 1 for equal ones
NO_COMMAND = re.compile(r"No such command '([^']*)'")

# what fastText, Annif, Omikuji, PECOS, napkinXC, scikit-learn and transformers call our commands and options, without
# dashes; a name in capitals is an argument
COMMANDS = {
    **dict.fromkeys(("test", "eval", "score", "validate", "benchmark"), "evaluate"),
    **dict.fromkeys(("fit", "supervised"), "train"),
    **dict.fromkeys(("tag", "suggest", "classify", "infer", "index", "predict-prob"), "predict"),
    **dict.fromkeys(("learn", "partial-fit"), "update"),
    **dict.fromkeys(("optimize", "optimise", "calibrate"), "decide"),
    **dict.fromkeys(("hyperopt", "grid-search", "autotune"), "tune"),
    **dict.fromkeys(("info", "show", "describe", "dump"), "inspect"),
    **dict.fromkeys(("run", "start", "web"), "serve"),
    "diff": "compare",
}
OPTIONS: dict[str, tuple[str, ...]] = {  # the first that the command has is meant
    **dict.fromkeys(("model", "model-path", "model-dir", "model-folder", "load-model"), ("MODEL", "--output")),
    **dict.fromkeys(
        ("out", "output-file", "output-dir", "output-path", "save", "save-path", "save-model"), ("--output",)
    ),
    **dict.fromkeys(("input", "input-file", "data", "data-path", "train-file", "test-file", "corpus"), ("DATA",)),
    **dict.fromkeys(("top-k", "k-top", "topk", "only-topk", "limit", "n-labels"), ("-k",)),
    **dict.fromkeys(("n-trees", "num-trees", "ensemble"), ("--trees",)),
    **dict.fromkeys(("cluster.k", "k-ary", "arity", "nr-splits", "branching-factor"), ("--branching",)),
    **dict.fromkeys(("max-leaf-size", "max-leaves", "cluster.min-size"), ("--max-leaf",)),
    **dict.fromkeys(("beam-size", "beam-width", "beam-search-width"), ("--beam",)),
    **dict.fromkeys(("linear.c", "cost", "cp"), ("--C",)),
    **dict.fromkeys(("linear.eps", "eps", "tolerance"), ("--tol",)),
    **dict.fromkeys(("linear.weight-threshold", "weights-threshold"), ("--threshold",)),
    **dict.fromkeys(("threshold", "min-score", "min-prob"), ("--min-probability",)),
    **dict.fromkeys(("negative-sampling", "negative-sampling-scheme"), ("--negatives",)),
    **dict.fromkeys(("learning-rate",), ("--lr",)),
    **dict.fromkeys(("epoch", "n-epochs", "num-epochs", "num-train-epochs"), ("--epochs",)),
    **dict.fromkeys(("word-ngrams", "wordngrams", "ngram", "ngram-range"), ("--ngrams",)),
    **dict.fromkeys(("threads", "thread", "n-jobs", "num-threads", "n-threads"), ("--jobs",)),
    **dict.fromkeys(("random-state", "random-seed"), ("--seed",)),
    **dict.fromkeys(("sep", "separator"), ("--delimiter",)),
    **dict.fromkeys(("label-sep", "labels-separator", "subject-separator"), ("--label-separator",)),
    **dict.fromkeys(("label-column", "label-col", "labels", "target-column"), ("--labels-column",)),
    **dict.fromkeys(("text-col", "text-field"), ("--text-column",)),
    **dict.fromkeys(("vocab", "thesaurus"), ("--vocabulary",)),
    **dict.fromkeys(("algorithm", "backend", "model-type"), ("--method",)),
    **dict.fromkeys(("pretrained-model", "base-model"), ("--encoder",)),
    **dict.fromkeys(("output-format",), ("--to",)),
}


def unknown_name_sentence(error: click.ClickException) -> str | None:
    """Return the sentence about an option or a command that is not there; None for another error."""
    context: click.Context | None = getattr(error, "ctx", None)
    if context is None:
        return None
    if isinstance(error, click.NoSuchOption):
        return _about_option(error.option_name, context)
    found = NO_COMMAND.match(error.message)
    if found is None or not isinstance(context.command, click.Group):
        return None
    names = context.command.list_commands(context)
    meant = COMMANDS.get(_plain(found[1]), "")
    return _sentence("command", found[1], meant if meant in names else _nearest(found[1], names), context)


def _about_option(name: str, context: click.Context) -> str:
    """Return the sentence about an option that the command does not have."""
    params = context.command.get_params(context)
    options = [
        opt for param in params if isinstance(param, click.Option) for opt in (*param.opts, *param.secondary_opts)
    ]
    arguments = [(param.name or "").upper() for param in params if isinstance(param, click.Argument)]
    meant = next((each for each in OPTIONS.get(_plain(name), ()) if each in (*options, *arguments)), None)
    if meant in arguments:
        return f"No such option '{name}'; {meant} is given without one: {context.command_path} {' '.join(arguments)}."
    return _sentence("option", name, meant or _nearest(name, options), context)


def _sentence(kind: str, name: str, meant: str | None, context: click.Context) -> str:
    """Return the sentence with what was meant, or else with where to look."""
    more = f" (see {context.command_path} --help)." if meant is None else f". Did you mean '{meant}'?"
    return f"No such {kind} '{name}'{more}"


def _nearest(name: str, allowed: list[str]) -> str | None:
    """Return the allowed name that a name nearly is, dashes and capitals aside.

    >>> _nearest("--max_leaf", ["--max-leaf", "--max-iter"]), _nearest("--cluster.k", ["--classifier"])
    ('--max-leaf', None)
    """
    plain = {_plain(each): each for each in allowed}
    hits = difflib.get_close_matches(_plain(name)[:60], plain, n=1, cutoff=NEAR)
    return plain[hits[0]] if hits else None


def _plain(name: str) -> str:
    """Return a name without the dashes before it, in small letters, with dashes inside."""
    return name.lstrip("-").lower().replace("_", "-")
