"""Which values settings may take: some to choose from, or all between two numbers."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from longtail.errors import ParameterError, near
from longtail.model import XMCEstimator, plain_value
from longtail.text import TfidfFeatures
from longtail.validate import Json

Space: TypeAlias = "Mapping[str, list[Any] | tuple[float, float]]"
"""Of every setting the values to choose from, in a list, or the smallest and largest, as a pair."""

OF_TEXTS: dict[str, Any] = {"ngrams": [(1, 1), (1, 2)], "min_df": [1, 2, 3], "sublinear_tf": [True, False]}
DEFAULT_SPACES: dict[str, dict[str, Any]] = {
    "tree": {
        "C": (0.1, 2.0),
        "max_leaf": [40, 80, 160, 320],
        "threshold": [0.02, 0.05, 0.1, 0.15],
        "tol": [0.1, 0.3, 0.5],
        "beam": [10, 20],
        "path_weight": (0.1, 1.0),
        "link": ["l2-hinge", "l3-hinge", "l4-hinge"],
        "negatives": ["tfn+man", "tfn"],
    },
    "ova": {"C": (0.1, 10.0), "positive_weight": (0.5, 4.0), "loss": ["squared_hinge", "logistic"]},
}
LOGARITHMIC = 8  # ranges whose ends differ by this factor or more are drawn from evenly in logarithms
DIGITS = 3  # of numbers drawn


@dataclass(frozen=True)
class AnyOf:
    """Some values, each as likely."""

    values: tuple[Any, ...]

    def draw(self, chance: np.random.Generator) -> Any:
        """Return one of them."""
        return self.values[int(chance.integers(len(self.values)))]


@dataclass(frozen=True)
class Between:
    """All numbers from `low` to `high`, or all whole ones."""

    low: float
    high: float
    whole: bool = False

    def draw(self, chance: np.random.Generator) -> Any:
        """Return one, to three digits.

        >>> [Between(0.1, 10.0).draw(np.random.default_rng(i)) for i in range(3)]
        [1.88, 1.06, 0.334]
        """
        if self.low > 0 and self.high / self.low >= LOGARITHMIC:
            value = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = chance.uniform(self.low, self.high)
        if self.whole:
            return int(min(max(round(value), self.low), self.high))
        return float(min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high))


@dataclass(frozen=True)
class CheckedSpace:
    """The settings of a model and of its features that are searched."""

    of_model: dict[str, AnyOf | Between]
    of_texts: dict[str, AnyOf | Between]

    def outermost(self) -> Iterator[tuple[str, str, Any]]:
        """Yield part, name and value of all that can be chosen, and of the ends of what lies between."""
        for part, space in (("model", self.of_model), ("texts", self.of_texts)):
            for name, one in space.items():
                values = one.values if isinstance(one, AnyOf) else (one.low, one.high)
                yield from ((part, name, value) for value in values)

    def draw(self, seed: int, number: int) -> Json:
        """Return the settings of a trial; number 0 has all defaults. They depend on seed and number alone."""
        chance = np.random.default_rng([seed, number])
        parts = {"model": self.of_model, "texts": self.of_texts}
        drawn = {
            part: {name: json.loads(json.dumps(plain_value(one.draw(chance)))) for name, one in sorted(space.items())}
            for part, space in parts.items()
        }
        return drawn if number else {part: {} for part in parts}


def check_space(space: Space | None, method: str, model: XMCEstimator, has_texts: bool) -> CheckedSpace:
    """Return the space of a method, checked; None for the one that comes with it."""
    if space is None:
        space = {**DEFAULT_SPACES[method], **(OF_TEXTS if has_texts else {})} if method in DEFAULT_SPACES else {}
    if not space:
        raise ParameterError(name="space", problem=f"must be given for the method {method!r}: none comes with it.")
    mine = set(model.get_params(deep=False)) - {"random_state", "n_jobs", "checkpoint"}
    texts = set(TfidfFeatures().get_params(deep=False)) - {"n_jobs"} if has_texts else set()
    of_model: dict[str, AnyOf | Between] = {}
    of_texts: dict[str, AnyOf | Between] = {}
    for name, values in space.items():
        if name not in mine | texts:
            of = f"one of the settings of the method {method!r}" + (" or of features of texts" if has_texts else "")
            allowed = f"{of}: {', '.join(sorted(mine | texts, key=str.lower))}"
            hint = near(name, mine | texts)
            raise ParameterError(name="space", allowed=allowed, got=name, hint=hint)
        owner: object = model if name in mine else TfidfFeatures()
        (of_model if name in mine else of_texts)[name] = _checked_values(name, values, owner)
    return CheckedSpace(of_model, of_texts)


def _checked_values(name: str, values: Any, owner: object) -> AnyOf | Between:
    """Return the values of a setting of a model or of features."""
    if isinstance(values, list) and values:
        return AnyOf(tuple(values))
    numbers = isinstance(values, tuple) and len(values) == 2 and not any(isinstance(v, bool) for v in values)
    if numbers and all(isinstance(v, int | float) and math.isfinite(v) for v in values) and values[0] < values[1]:
        whole = all(isinstance(v, int) for v in values) and takes_whole_numbers(owner, name)
        return Between(values[0], values[1], whole)
    allowed = "a list of values, or a pair of numbers, the smaller first"
    raise ParameterError(name=f"space[{name!r}]", allowed=allowed, got=values)


def takes_whole_numbers(owner: object, name: str) -> bool:
    """Say whether a setting may be a whole number as such, and not only as any other number.

    >>> from longtail import LabelTreeClassifier
    >>> takes_whole_numbers(LabelTreeClassifier(), "beam"), takes_whole_numbers(LabelTreeClassifier(), "C")
    (True, False)
    """
    return "int" in str(inspect.signature(type(owner).__init__).parameters[name].annotation)


def parse_values(text: str) -> list[Any] | tuple[float, float]:
    """Return the values of a setting as a command line writes them: `0.1..10`, or `40,80,160`.

    >>> parse_values("0.1..10"), parse_values("40..320"), parse_values("tfn,tfn+man"), parse_values("none,2")
    ((0.1, 10), (40, 320), ['tfn', 'tfn+man'], [None, 2])
    """
    low, dots, high = text.partition("..")
    if dots:
        ends = _value(low), _value(high)
        if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
            raise ParameterError(name="try", allowed="NAME=LOW..HIGH or NAME=VALUE,VALUE", got=text)
        if not (all(map(math.isfinite, ends)) and ends[0] < ends[1]):
            raise ParameterError(name="try", allowed="NAME=LOW..HIGH, the smaller number first", got=text)
        return (ends[0], ends[1])
    return [_value(word) for word in text.split(",")]


def _value(word: str) -> Any:
    """Return a number, True, False or None where the word is one."""
    known = {"none": None, "true": True, "false": False}
    if word.lower() in known:
        return known[word.lower()]
    try:
        value = json.loads(word)
    except ValueError:
        return word
    return value if isinstance(value, int | float) else word
