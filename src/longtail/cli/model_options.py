"""The options that say how a tagger is trained, made from the constructors they end up in, for `train` and `plan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from longtail.cli.option_help import HELP, MEANING_OF_NONE
from longtail.cli.signatures import ConstructorParameter, constructor_parameters
from longtail.errors import NOTHING, ParameterError

if TYPE_CHECKING:
    from longtail.data import Dataset
    from longtail.model import XMCEstimator
    from longtail.pipeline import Tagger
    from longtail.text import BeginningFeatures, TfidfFeatures

Command = TypeVar("Command", bound=Callable[..., Any])
METHODS = {  # folder and class of each method, as `longtail.pipeline.METHODS` has them
    "tree": ("tree", "LabelTreeClassifier"),
    "ova": ("one_vs_all", "OneVsAllClassifier"),
    "dft": ("bottleneck", "BottleneckClassifier"),
    "prime": ("prime", "Prime"),
    "hybrid": ("hybrid", "Hybrid"),
}
SECTIONS = {  # of the help, in their order: what each is called there
    "data": "Data",
    "output": "Output",
    "tagger": "Tagger",
    "tree": "tree (a label tree)",
    "ova": "ova (one linear classifier per label)",
    "dft": "dft (a network with a narrow output layer)",
    "prime": "prime (an encoder that reads texts)",
    "hybrid": "hybrid (encoder, label tree, similar texts and names of labels together)",
    "texts": "texts (how words are counted; not with prime and hybrid)",
}
SECTION_OF_OPTION = {  # of a command's own options; all others are about its data
    **dict.fromkeys(("--output", "--force", "--json", "--help"), "output"),
    **dict.fromkeys(("--method", "--jobs", "--engine", "--address", "--memory"), "tagger"),
    **dict.fromkeys(("--fast", "--published"), "tree"),
}
METHOD_KEY = f"{__name__}.method"  # where a context keeps the method that the help is about
NONE = "none"  # how None is written where it is a value of its own
SEED = 0  # what no seed at all means to a tagger too
PRESETS = ("fast", "published")  # class methods that make an estimator with other defaults
WITHOUT_OPTION = {  # constructor parameters that get no option here
    "tagger": ("method", "features", "model", "n_jobs"),
    "texts": ("n_jobs",),
    "beginning": ("tfidf", "of_beginning", "weight", "n_jobs"),  # words are counted as the options of texts say
    **dict.fromkeys(METHODS, ("random_state", "n_jobs")),  # those of the tagger are handed on
}
NAMES = {  # option and, where it differs from Python's name, the name of its value
    "C": ("-C", "--C", "C"),
    "n_trees": ("--trees", "n_trees"),
    "random_state": ("--seed", "seed"),
    "tree.rounds": ("--overlap-rounds", "rounds"),
    "dft.encoder": ("--network", "network"),
}


class WholeOrShare(click.ParamType):
    """A whole number, or a share where there is a decimal point."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return float(value) if "." in str(value) else int(value)
        except ValueError:
            return click.INT.convert(value, param, ctx)  # says what is wrong


class NumberOrAuto(click.ParamType):
    """A whole number, or "auto"."""

    name = "n|auto"

    def __init__(self, option: str, least: int) -> None:
        self.option, self.least = option, least

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "auto" or isinstance(value, int):
            return value
        if not value.isascii() or not value.isdigit() or int(value) < self.least:
            raise ParameterError(name=self.option, allowed=f"a whole number >= {self.least} or 'auto'", got=value)
        return int(value)


class LeafLimit(click.ParamType):
    """The size of a leaf as a multiple of the mean, or "none"."""

    name = "number|none"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "NUMBER|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return value if value == NONE else float(value)
        except ValueError:
            raise ParameterError(name="--balance", allowed="a number >= 1 or none", got=value) from None


class Listed(click.ParamType):
    """Values of one type, separated by commas; a single one is not made a list unless `always`."""

    always: bool

    def __init__(self, of: click.ParamType, always: bool = False) -> None:
        self.of, self.always = of, always
        self.name = f"{of.name},..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        parts = tuple(self.of.convert(part.strip(), param, ctx) for part in value.split(","))
        return parts if len(parts) > 1 or self.always else parts[0]


class RunLengths(Listed):
    """The lengths of runs of words: the longest alone, or the shortest and the longest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        lengths = super().convert(value, param, ctx)
        return (1, lengths) if isinstance(lengths, int) else lengths


class WordList(Listed):
    """Words separated by commas; one word that is the name of a language stands for its list."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from longtail.text import LANGUAGES

        words = super().convert(value, param, ctx)
        return words[0] if len(words) == 1 and words[0] in LANGUAGES else words


TYPES: dict[str, Any] = {  # where the annotation does not say how the value is written on a command line
    "random_state": click.INT,
    "overlap": NumberOrAuto("--overlap", 1),
    "beginning": NumberOrAuto("--beginning", 0),
    "balance": LeafLimit(),
    "ngrams": RunLengths(click.INT),
    "stop_words": WordList(click.STRING, always=True),
    "hidden": Listed(click.INT),
    "margin": Listed(click.FLOAT),
    "loss_weights": Listed(click.FLOAT, always=True),
    "checkpoint": click.Path(path_type=Path),
    "order": click.Choice(["cooccurrence", NONE]),
    "encoder": click.STRING,
    "experts": Listed(click.STRING, always=True),
    "dft.encoder": click.Choice(["mlp", "linear"]),
}
METAVARS = {"prime.encoder": "NAME|FOLDER|none", "experts": "NAME,..."}
SHOWN_WITH = {"beginning": "texts"}  # a section whose options stand in that of another in the help
OF_RUNS = ("ngram_weight", "ngram_min_df")  # options that are about longer runs of words
WITHOUT_BEGINNING = 0  # what a command line means that does not speak of beginnings, beside a TF-IDF of whole texts
READ_TEXTS = ("prime", "hybrid")  # methods that count words themselves, or none
ANNOTATED: dict[tuple[str, ...], Any] = {
    ("int",): click.INT,
    ("float",): click.FLOAT,
    ("str",): click.STRING,
    ("bool",): click.BOOL,
    ("int", "float"): WholeOrShare(),
}


class ModelOption(click.Option):
    """An option made from a constructor parameter; it has no default, so that only what is given is handed on."""

    def __init__(self, section: str, parameter: ConstructorParameter) -> None:
        self.parameter: str = parameter.name
        dashed = parameter.name.replace("_", "-")
        names = _entry(NAMES, section, parameter.name) or (f"--{dashed}", parameter.name)
        kind = _type(section, parameter)
        if kind is click.BOOL and parameter.default is not False:
            names = (f"--{dashed}/--no-{dashed}", parameter.name)
        flag = {"is_flag": True} if kind is click.BOOL else {"type": kind}
        super().__init__(names, default=None, metavar=_entry(METAVARS, section, parameter.name), **flag)


class Offered(NamedTuple):
    """A constructor parameter with the option that sets it."""

    section: str
    parameter: ConstructorParameter
    option: ModelOption

    def help_record(self, context: click.Context) -> tuple[str, str]:
        """Return what the help says of the option in this section, with the default of this constructor."""
        record = self.option.get_help_record(context)
        default = self.default_text()
        purpose = _entry(HELP, self.section, self.parameter.name) or ""
        return (record or ("", ""))[0], purpose + (f" [default: {default}]" if default else "")

    def default_text(self) -> str | None:
        """Return the default of the signature for people; None where there is nothing to say."""
        default = WITHOUT_BEGINNING if self.section == "beginning" else self.parameter.default
        if default is None:
            return _entry(MEANING_OF_NONE, self.section, self.parameter.name)
        if isinstance(default, bool):
            return "on" if default else None
        if isinstance(default, tuple):
            return str(default[-1]) if default[0] == 1 else ",".join(map(str, default))
        return str(default)


@cache
def offered() -> tuple[Offered, ...]:
    """Return every constructor parameter that has an option, section by section; methods share equal options."""
    of_texts = {"texts": ("text", "TfidfFeatures"), "beginning": ("text", "BeginningFeatures")}
    classes = {"tagger": ("pipeline", "Tagger"), **METHODS, **of_texts}
    options: dict[str, ModelOption] = {}
    out: list[Offered] = []
    for section, (folder, name) in classes.items():
        for parameter in constructor_parameters(folder, name):
            if parameter.name in WITHOUT_OPTION[section] or _type(section, parameter) is None:
                continue
            made = ModelOption(section, parameter)
            out.append(Offered(section, parameter, options.setdefault(made.name or "", made)))
    return tuple(out)


class ModelCommand(click.Command):
    """A command with the options of a tagger, in sections; with --method, its help shows those of that method."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and the options of a tagger."""
        return [*super().get_params(ctx), *dict.fromkeys(item.option for item in offered())]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the method before anything else, for the help."""
        ctx.meta[METHOD_KEY] = _asked_method(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in sections."""
        own = [option for option in super().get_params(ctx) if isinstance(option, click.Option)]
        for section, title in SECTIONS.items():
            if _concerns(section, ctx.meta.get(METHOD_KEY)):
                plain = [o.get_help_record(ctx) for o in own if SECTION_OF_OPTION.get(_longest(o), "data") == section]
                items = [item for item in offered() if SHOWN_WITH.get(item.section, item.section) == section]
                made = [item.help_record(ctx) for item in items]
                with formatter.section(title):
                    formatter.write_dl([record for record in (*plain, *made) if record is not None])


class WordCommand(click.Command):
    """A command with the options that say how words are counted."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and those about words."""
        return [*super().get_params(ctx), *(item.option for item in offered() if item.section == "texts")]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in two sections."""
        own = [option for option in super().get_params(ctx) if isinstance(option, click.Option)]
        with formatter.section("Options"):
            formatter.write_dl([record for o in own if (record := o.get_help_record(ctx)) is not None])
        with formatter.section("Words (how they are counted for a row store)"):
            formatter.write_dl([item.help_record(ctx) for item in offered() if item.section == "texts"])


def given_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `TfidfFeatures` that the command line has values for; refuse one without effect."""
    words = _given("texts", options)
    shortest, longest = words.get("ngrams", (1, 1))
    if longest > shortest or options.get("beginning"):
        return words
    for item in offered():
        if item.section == "texts" and item.parameter.name in OF_RUNS and item.parameter.name in words:
            runs = "runs of words of one length" if shortest > 1 else "words alone"
            raise ParameterError(
                f"{_longest(item.option)} has no effect on {runs}; --ngrams 2 takes pairs of words too."
            )
    return words


def _asked_method(args: Sequence[str]) -> str | None:
    """Return the method that the arguments name, if there is one of this name.

    >>> _asked_method(["rows.csv", "--method", "ova", "--help"]), _asked_method(["--method=x"])
    ('ova', None)
    """
    asked = [value for arg, value in pairwise(args) if arg == "--method"]
    asked += [arg.removeprefix("--method=") for arg in args if arg.startswith("--method=")]
    return asked[-1] if asked and asked[-1] in METHODS else None


def _longest(option: click.Option) -> str:
    """Return the name of an option that says most."""
    return max(option.opts, key=len)


def _concerns(section: str, method: str | None) -> bool:
    """Say whether the help on a method, or on all, shows a section."""
    if method is None or section not in (*METHODS, "texts"):
        return True
    return method not in READ_TEXTS if section == "texts" else section == method


def _entry(table: Mapping[str, Any], section: str, name: str) -> Any:
    """Return the entry of a parameter: its own in this section, else the common one, else None."""
    return table.get(f"{section}.{name}", table.get(name))


def _type(section: str, parameter: ConstructorParameter) -> Any:
    """Return the click type of a parameter; None where its values cannot be written on a command line."""
    return _entry(TYPES, section, parameter.name) or ANNOTATED.get(parameter.kinds)


def tagger_options(function: Command) -> Command:
    """Add the options of a tagger that are not constructor parameters; the others come with `ModelCommand`."""
    for option in (
        click.option(
            "--published", is_flag=True, help="Label disentanglement as in its paper: overlap 2, other settings."
        ),
        click.option("--fast", is_flag=True, help="Settings that train faster, for a little accuracy."),
        click.option(
            "--method",
            default="tree",
            show_default=True,
            help="tree, ova, dft, prime, hybrid, or auto: what suits the data.",
        ),
    ):
        function = option(function)
    return function


def make_tagger(options: dict[str, Any]) -> Tagger:
    """Return the untrained tagger that the options describe."""
    from longtail.pipeline import AUTO, METHODS, Tagger
    from longtail.text import TfidfFeatures
    from longtail.validate import check_choice

    method = check_choice("method", options["method"], (*METHODS, AUTO))
    if method == AUTO:
        _refuse_options_of_methods(options)
        words = given_words(options)
        own = {"random_state": SEED, **_given("tagger", options)}
        return Tagger(AUTO, features=TfidfFeatures(**words) if words else None, n_jobs=options["jobs"], **own)
    reads_texts = METHODS[method].reads_texts
    words = _given("texts", options) if reads_texts else given_words(options)
    if reads_texts and words:
        raise _not_of(method, next(item.option for item in offered() if item.parameter.name in words))
    return Tagger(
        method,
        features=None if reads_texts else _word_features(words, options["beginning"]),
        model=_make_estimator(METHODS[method], method, options),
        n_jobs=options["jobs"],
        **{"random_state": SEED, **_given("tagger", options)},
    )


def _word_features(words: dict[str, Any], beginning: int | str | None) -> TfidfFeatures | BeginningFeatures:
    """Return what counts words of texts; those of beginnings too if asked, with pairs unless there are --ngrams."""
    from longtail.text import BeginningFeatures, TfidfFeatures, with_pairs

    whole = TfidfFeatures(**words)
    if not beginning:
        return whole
    return BeginningFeatures(whole, of_beginning=with_pairs(whole).set_params(**words), beginning=beginning)


def gives_model_options(options: Mapping[str, Any]) -> bool:
    """Say whether an option was given that belongs to a method."""
    return any(options[name] for name in PRESETS) or any(
        item.section in METHODS and options[item.option.name or ""] is not None for item in offered()
    )


def _refuse_options_of_methods(options: Mapping[str, Any]) -> None:
    """Refuse options of a method where the method is chosen by the data."""
    given = [f"--{name}" for name in PRESETS if options[name]]
    given += [
        _longest(item.option)
        for item in offered()
        if item.section in METHODS and options[item.option.name or ""] is not None
    ]
    if given:
        raise ParameterError(f"{given[0]} is an option of some methods; with --method auto give none of them.")


def _given(section: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of one constructor that the command line has values for."""
    items = [item for item in offered() if item.section == section]
    values = {item.parameter.name: options[item.option.name or ""] for item in items}
    return {name: value for name, value in values.items() if value is not None}


def _make_estimator(kind: type[XMCEstimator], method: str, options: dict[str, Any]) -> XMCEstimator:
    """Make the estimator from the options that were given; an option the method does not have is refused."""
    sections = (method,) if method in READ_TEXTS else (method, "beginning")
    own = {item.option for item in offered() if item.section in sections}
    for item in offered():
        if item.section in METHODS and item.option not in own and options[item.option.name or ""] is not None:
            raise _not_of(method, item.option)
    given = _given(method, options)
    if "checkpoint_minutes" in given and "checkpoint" not in given:
        raise ParameterError("--checkpoint-minutes needs --checkpoint, the folder to write to.")
    given |= {name: None for name in ("order", "balance") if given.get(name) == NONE}
    if method in READ_TEXTS and "encoder" in given:
        given["encoder"] = _encoder(given["encoder"])
    presets = [name for name in PRESETS if options[name]]
    if not presets:
        return _refuse_idle(kind(**given), method, given)
    if len(presets) > 1:
        raise ParameterError("--fast and --published are settings of different trees; give one of them.")
    if not hasattr(kind, presets[0]):
        raise ParameterError(f"--{presets[0]} is not an option of the method {method!r}.")
    return _refuse_idle(getattr(kind, presets[0])(**given), method, given)


def _refuse_idle(model: XMCEstimator, method: str, given: Mapping[str, Any]) -> XMCEstimator:
    """Return the estimator; refuse an option that was given and has no effect beside the others."""
    names = {item.parameter.name: _longest(item.option) for item in offered() if item.section == method}
    for name, (word, other) in model.idle_params().items():
        if name in given:
            value = "" if other.value in (NOTHING, True) else f" {other.value or 0}"
            raise ParameterError(f"{names[name]} has no effect {word} {names[other.name]}{value}.")
    return model


def check_words_are_read(options: Mapping[str, Any], data: str, rows: Dataset) -> None:
    """Refuse an option about words for data that has no texts."""
    words = _given("texts", options)
    if options["method"] not in READ_TEXTS and options["beginning"]:
        words["beginning"] = options["beginning"]
    if not words or (rows.made_by is None and rows.texts is not None):
        return
    option = next(
        item.option for item in offered() if item.section in ("texts", "beginning") and item.parameter.name in words
    )
    if rows.made_by is not None:
        where = "make the store with --no-features" if option.name == "beginning" else "give it to convert"
        raise ParameterError(f"{_longest(option)} has no effect: {data} has its features already; {where}.")
    raise ParameterError(f"{_longest(option)} has no effect: {data} has features and no texts.")


def _encoder(name: str) -> str | None:
    """Return the name or folder of an encoder; None for a new one."""
    if name == NONE:
        return None
    if name.lower() == "none" and not Path(name).is_dir():
        raise ParameterError(
            name="--encoder", allowed="a name, a folder or none", got=name, hint=" Did you mean 'none'?"
        )
    return name


def _not_of(method: str, option: click.Option) -> ParameterError:
    """Return the complaint about an option of another method."""
    return ParameterError(f"{_longest(option)} is not an option of the method {method!r}.")
