"""The options that say how a tagger is trained, shared by `train` and `plan`, and the tagger they describe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from longtail.errors import ParameterError

if TYPE_CHECKING:
    from longtail.pipeline import Tagger

Command = TypeVar("Command", bound=Callable[..., Any])


def _places(context: click.Context, option: click.Parameter, value: str | None) -> int | str | None:
    """Return the number of places of a label, or "auto"."""
    if value is None or value == "auto":
        return value
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise ParameterError(f"--overlap must be a whole number >= 1 or 'auto'; got {value!r}.")
    return int(value)


OPTIONS = (
    click.option("--method", default="tree", show_default=True, help="tree, ova (one-vs-all) or dft (a network)."),
    click.option("--fast", is_flag=True, help="Settings of the tree that train faster, for a little accuracy."),
    click.option("--trees", "n_trees", type=int, default=None, help="Trees in the ensemble. [default: 1]"),
    click.option("--beam", type=int, default=None, help="Clusters kept per level. [default: 10; 7 with --overlap]"),
    click.option(
        "--overlap", callback=_places, help="Clusters a label may stand in, a number or auto. [default: 1]"
    ),
    click.option("--C", "cost", type=float, default=None, help="Cost of errors against large weights. [default: 1]"),
    click.option("--loss", default=None, help="squared_hinge or logistic. [default: squared_hinge]"),
    click.option("--threshold", type=float, default=None, help="Drop smaller weights. [default: the method's]"),
    click.option("--positive-weight", type=float, default=None, help="Cost of missing a label, times C. [default: 1]"),
    click.option("--epochs", type=int, default=None, help="Passes over the rows of dft, at most. [default: 50]"),
    click.option("--width", type=int, default=None, help="Trained dimensions of dft's output layer. [default: 64]"),
    click.option(
        "--checkpoint", type=click.Path(path_type=Path), default=None,
        help="Folder that keeps an unfinished training of dft; the same command again goes on from there.",
    ),
    click.option("--ngrams", type=int, default=1, show_default=True, help="Longest run of words that is a feature."),
    click.option("--min-df", type=int, default=1, show_default=True, help="Leave out words in fewer texts than this."),
    click.option("--max-features", type=int, default=None, help="Keep this many words, the most frequent."),
    click.option("--calibrate", type=float, default=0.1, show_default=True, help="Share of rows held out; 0 for none."),
    click.option("--seed", type=int, default=0, show_default=True),
)


def tagger_options(function: Command) -> Command:
    """Add the options that say how a tagger is trained."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def make_tagger(options: dict[str, Any]) -> Tagger:
    """Return the untrained tagger that the options describe."""
    from longtail.features import TfidfFeatures
    from longtail.pipeline import METHODS, Tagger
    from longtail.validate import check_choice

    method = check_choice("method", options["method"], tuple(METHODS))
    return Tagger(
        method,
        features=TfidfFeatures(
            ngrams=(1, options["ngrams"]), min_df=options["min_df"], max_features=options["max_features"]
        ),
        model=_estimator(METHODS[method], method, options),
        calibrate=options["calibrate"],
        random_state=options["seed"],
        n_jobs=options["jobs"],
    )


def _estimator(kind: type[Any], method: str, options: dict[str, Any]) -> Any:
    """Make the estimator from the options that were given; an option the method does not have is refused."""
    names = ("n_trees", "beam", "overlap", "loss", "threshold", "positive_weight", "epochs", "width", "checkpoint")
    given = {"C": options["cost"], **{name: options[name] for name in names}}
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in kind().get_params():
            raise ParameterError(f"--{name.removeprefix('n_')} is not an option of the method {method!r}.")
    if options["fast"]:
        if not hasattr(kind, "fast"):
            raise ParameterError(f"--fast is not an option of the method {method!r}.")
        return kind.fast(**given)
    return kind(**given)
